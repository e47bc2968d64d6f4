"""The content of a page, as plain data."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from llama_index.ragkit.errors import ConfigurationError
from llama_index.ragkit.validation import check_choice

__all__ = ["Edge", "Facts", "Graph", "Grid", "Group", "Node", "Page", "Result", "Results", "nodes_of"]

Layout = Literal["tree", "force"]
LAYOUTS = get_args(Layout)

_COLOUR = re.compile(r"#[0-9a-fA-F]{6}")


@dataclass(frozen=True)
class Node:
    """A passage, a summary, an entity, a question, an attention head: any selectable item of a page.

    Parameters
    ----------
    id : unique within the page
    label : one line for the drawing; when empty, the beginning of `text`, or else `id`
    text : shown whole when the node is selected
    group : name of its :class:`Group`, which determines the colour
    level : its layer, 0 at the bottom
    size : relative weight above 0; in graphs the area of the node grows with it
    score : shown with the node; None when there is none
    highlighted : whether the page emphasises the node, such as the path of the last query
    details : further properties, shown in a table
    """

    id: str
    label: str = ""
    text: str = ""
    group: str = ""
    level: int = 0
    size: float = 1.0
    score: float | None = None
    highlighted: bool = False
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Edge:
    """A line between two nodes, given by their ids; in a tree from parent to child.

    `weight` is relative: wider lines, and in a tree the heaviest edge into a node determines the parent under which it
    is drawn (the first of equal ones; a highlighted edge takes precedence). `directed` draws an arrow.
    """

    source: str
    target: str
    label: str = ""
    weight: float = 1.0
    highlighted: bool = False
    directed: bool = False


@dataclass(frozen=True)
class Group:
    """A kind of node: its name, legend label, and colour as `#rrggbb` (chosen by the page when empty)."""

    name: str
    label: str = ""
    colour: str = ""

    def __post_init__(self) -> None:
        if self.colour and not _COLOUR.fullmatch(self.colour):
            raise ConfigurationError(f"The colour of group {self.name!r} must be '#rrggbb' or '', not {self.colour!r}.")


@dataclass(frozen=True)
class Facts:
    """A panel of names and values."""

    title: str
    rows: Mapping[str, Any]


@dataclass(frozen=True)
class Result:
    """One line of a ranked list; a click on it selects its node.

    Where `label` is empty, the line shows the group of the node.
    """

    label: str = ""
    snippet: str = ""
    score: float | None = None
    node: str | None = None


@dataclass(frozen=True)
class Results:
    """A panel with a ranked list, best first."""

    title: str
    items: Sequence[Result]


@dataclass(frozen=True)
class Graph:
    """Nodes and edges, drawn with Cytoscape.js.

    Parameters
    ----------
    nodes, edges : every edge names two nodes of the graph
    groups : colours and legend names; other groups of the nodes get the next free colour
    layout : `"tree"` (layers, roots at the top; expanded as far as it is readable, the rest on click) or `"force"`
        (connected nodes are drawn close together)

    Raises
    ------
    ConfigurationError
        If two nodes share an id, an edge names an unknown node, a size is not above 0, a weight is below 0, or the
        layout is unknown.

    Notes
    -----
    Large graphs are shown in part. A tree shows its top layers and the highlighted path; a graph of more than some 300
    nodes shows the highlighted and the heaviest nodes. The rest is shown by click, by search or with "Show all".
    """

    nodes: Sequence[Node]
    edges: Sequence[Edge] = ()
    groups: Sequence[Group] = ()
    layout: Layout = "tree"

    def __post_init__(self) -> None:
        check_choice("layout", self.layout, LAYOUTS)
        known = _check_nodes(self.nodes)
        for edge in self.edges:
            for end in (edge.source, edge.target):
                if end not in known:
                    raise ConfigurationError(
                        f"The edge from {edge.source!r} to {edge.target!r} names {end!r}, which is not a node "
                        "of the graph: add the node or remove the edge."
                    )
            if not 0 <= edge.weight < float("inf"):
                raise ConfigurationError(
                    f"The weight of the edge from {edge.source!r} to {edge.target!r} must be 0 or more and finite, "
                    f"not {edge.weight!r}."
                )


@dataclass(frozen=True)
class Grid:
    """A heat map: rows against columns, such as attention heads against passages.

    Parameters
    ----------
    rows, columns : one node per row and column, ids unique over both; highlighted ones are marked
    values : shape (n_rows, n_columns); NaN cells stay empty. Colours range from the smallest to the largest value
    label : name of the values for the scale and the tooltip, such as "cosine"
    groups : colours and legend names of the groups of rows and columns

    Raises
    ------
    ConfigurationError
        If two nodes share an id, a size is not above 0, or the shape of `values` does not match.
    """

    rows: Sequence[Node]
    columns: Sequence[Node]
    values: ArrayLike
    label: str = ""
    groups: Sequence[Group] = ()

    def __post_init__(self) -> None:
        _check_nodes([*self.rows, *self.columns])
        shape = np.shape(self.values)
        if shape != (len(self.rows), len(self.columns)) and np.size(self.values) + len(self.rows) * len(self.columns):
            raise ConfigurationError(
                f"values must have the shape (rows, columns) = ({len(self.rows)}, {len(self.columns)}), not {shape}."
            )


@dataclass(frozen=True)
class Page:
    """A page: one view and its panels.

    Parameters
    ----------
    title, subtitle : plain text
    view : what to draw
    panels : shown next to the drawing, in this order
    legend : further lines of the legend, such as the meaning of the size of a node
    highlight_label : the meaning of highlighted nodes and edges, for the legend and the button that isolates them
    covers : the part of the index that the page and its search contain, if not the whole; shown below the drawing

    Raises
    ------
    ConfigurationError
        If a result names a node that the view does not have.
    """

    title: str
    view: Graph | Grid
    subtitle: str = ""
    panels: Sequence[Facts | Results] = ()
    legend: Sequence[str] = ()
    highlight_label: str = "Highlighted"
    covers: str = ""

    def __post_init__(self) -> None:
        known = {node.id for node in nodes_of(self.view)}
        for panel in self.panels:
            for item in panel.items if isinstance(panel, Results) else ():
                if item.node is not None and item.node not in known:
                    raise ConfigurationError(
                        f"The result {item.label!r} names {item.node!r}, which is not a node of the view: "
                        "use one of its nodes, or None."
                    )


def nodes_of(view: Graph | Grid) -> Sequence[Node]:
    """The nodes of a view, rows before columns; panels may name them."""
    return view.nodes if isinstance(view, Graph) else [*view.rows, *view.columns]


def _check_nodes(nodes: Iterable[Node]) -> set[str]:
    known: set[str] = set()
    for node in nodes:
        if not isinstance(node.id, str):
            raise ConfigurationError(f"The id of a node must be a string, not {node.id!r}.")
        if node.id in known:
            raise ConfigurationError(f"Two nodes have the id {node.id!r}: ids must be unique within a page.")
        if not 0 < node.size < float("inf"):
            raise ConfigurationError(f"The size of node {node.id!r} must be above 0 and finite, not {node.size!r}.")
        known.add(node.id)
    return known
