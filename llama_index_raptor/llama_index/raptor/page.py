"""The HTML page of the tree."""

from collections.abc import Mapping
from typing import Any

from llama_index.ragkit import LastQuery
from llama_index.ragkit.html import Edge, Facts, Graph, Group, Node, Page, Result, Results, passage_label
from llama_index.ragkit.text.salient_terms import group_names
from llama_index.raptor.state import RaptorState
from llama_index.raptor.tree_rows import marks_of

__all__ = ["page_of"]


def page_of(state: RaptorState, texts: Mapping[str, str], query: LastQuery | None, partial: bool = False) -> Page:
    """The tree, with the nodes of the last query and their paths to the roots highlighted.

    Parameters
    ----------
    texts : the text of every node that has one
    query : the last question, if any
    partial : whether the state has only a part of the tree: the nodes of the answer, the summaries above them, and the
        children of all of these
    """
    found = [(node, score) for node, score in (query.answer if query else ()) if node in texts]
    scores = dict(found)
    highlighted = set(scores) | state.tree.ancestors(scores)
    tree = state.tree
    chunks = {name: texts[name] for name in state.chunks.ids if name in texts}
    names = group_names({name: tree.leaves(name) for name in tree.summaries}, chunks)

    def details(name: str) -> dict[str, Any]:
        below = {} if partial else {"chunks below": len(tree.leaves(name))}
        by = state.written.get(name, {}).get("by")
        return {"children": len(tree.children(name)), **below, **({"written by": by} if by else {})}

    def title(name: str) -> str:
        chunk = name in state.chunks
        return passage_label(texts[name], state.chunks.metadata_of(name)) if chunk else names.get(name, "")

    nodes = [
        Node(
            id=name,
            label=names.get(name, "") if name in texts else "(not written yet)",
            text=texts.get(name, "This summary is not written yet."),
            group=f"summary {tree.level(name)}",
            level=tree.level(name),
            score=scores.get(name),
            highlighted=name in highlighted,
            details=details(name),
        )
        for name in sorted(tree.summaries, key=lambda name: (-tree.level(name), name))
    ]
    nodes += [
        Node(
            id=record.id,
            label=passage_label(texts.get(record.id, ""), state.chunks.metadata_of(record.id)),
            text=texts.get(record.id, ""),
            group="chunk",
            score=scores.get(record.id),
            highlighted=record.id in highlighted,
            details={"document": record.ref_doc_id or "none", **state.chunks.metadata_of(record.id)},
        )
        for record in state.chunks.records
    ]
    edges = [
        Edge(name, child, highlighted=name in highlighted and child in highlighted)
        for name, summary in sorted(tree.summaries.items())
        for child in summary.children
        if child in tree.summaries or child in state.chunks
    ]
    facts = {"chunks": len(state.chunks), "summaries": len(state.summaries), "layers of summaries": tree.height}
    if state.unwritten:
        facts["summaries not written yet"] = len(state.unwritten)
    if by_rules := marks_of(state.written):
        facts["summaries written by rules"] = len(by_rules)
    panels: list[Facts | Results] = []
    if query is not None:
        items = [Result(title(name), snippet=texts[name], score=score, node=name) for name, score in found]
        panels.append(Results("Retrieved", items))
    panels.append(Facts("The tree", facts))
    layers = range(tree.height, 0, -1)
    groups = [Group(f"summary {layer}", f"Summary, layer {layer}") for layer in layers]
    return Page(
        title="RAPTOR tree",
        subtitle=f"Question: {query.question}" if query is not None else "Chunks, and summaries of clusters above them",
        view=Graph(nodes=nodes, edges=edges, groups=[*groups, Group("chunk", "Chunk of a document")], layout="tree"),
        panels=panels,
        highlight_label="Way to the answer",
        covers="The page has the answer, the summaries above it, and the nodes directly below these."
        if partial
        else "",
    )
