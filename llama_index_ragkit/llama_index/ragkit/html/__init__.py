"""Self-contained HTML pages that show the structure of an index and the path to an answer.

A page is one file that needs no network and no server, and treats every text as untrusted. The subpackage does not
depend on LlamaIndex.

    from llama_index.ragkit.html import Edge, Graph, Node, Page, Result, Results, write

    page = Page(
        title="Lighthouses",
        view=Graph(
            nodes=[
                Node("s1", "Who keeps the light", text="Keepers lit the lamp...", group="summary", highlighted=True),
                Node("p1", "The lamp", text="The lamp burned whale oil...", group="passage", highlighted=True),
                Node("p2", "The tower", text="The tower is 40 metres tall...", group="passage"),
            ],
            edges=[Edge("s1", "p1", highlighted=True), Edge("s1", "p2")],
            layout="tree",
        ),
        panels=[Results("Retrieved", [Result("The lamp", snippet="burned whale oil", score=0.81, node="p1")])],
    )
    write(page, "lighthouses.html")

See :class:`Graph` for trees and graphs, :class:`Grid` for heat maps.
"""

from llama_index.ragkit.html.labels import passage_label
from llama_index.ragkit.html.model import Edge, Facts, Graph, Grid, Group, Node, Page, Result, Results
from llama_index.ragkit.html.render import InlinePage, framed, render, write

__all__ = [
    "Edge",
    "Facts",
    "Graph",
    "Grid",
    "Group",
    "InlinePage",
    "Node",
    "Page",
    "Result",
    "Results",
    "framed",
    "passage_label",
    "render",
    "write",
]
