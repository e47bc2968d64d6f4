"""The HTML page of the tree."""

from collections.abc import Iterator, Mapping

from llama_index.ragkit import LastQuery
from llama_index.ragkit.html import Edge, Facts, Graph, Group, Node, Page, Result, Results, passage_label
from llama_index.ragkit.text.salient_terms import group_names
from llama_index.raptor.state import RaptorState
from llama_index.raptor.tree_rows import marks_of

__all__ = ["page_of"]


def page_of(state: RaptorState, texts: Mapping[str, str], query: LastQuery | None, partial: bool = False) -> Page:
    """The tree, with the nodes of the last query and their paths to the roots highlighted.

    If it is `partial`, the state has only the nodes of the answer, the summaries above them, and the children of all
    of these.
    """
    page = _TreePage(state, texts, query, partial)
    layers = [Group(f"summary {layer}", f"Summary, layer {layer}") for layer in range(state.tree.height, 0, -1)]
    groups = [*layers, Group("chunk", "Chunk of a document")]
    covers = "The page shows the answer, the summaries above it, and the nodes directly below these."
    return Page(
        title="RAPTOR tree",
        subtitle="Chunks, and summaries of clusters above them" if query is None else f"Question: {query.question}",
        view=Graph([*page.summaries(), *page.chunks()], list(page.edges()), groups, layout="tree"),
        panels=list(page.panels()),
        highlight_label="Path to the answer",
        covers=covers if partial else "",
    )


class _TreePage:
    """The parts of the page; see :func:`page_of`."""

    def __init__(self, state: RaptorState, texts: Mapping[str, str], query: LastQuery | None, partial: bool) -> None:
        self._state, self._texts, self._query, self._partial = state, texts, query, partial
        self._scores = {node: score for node, score in (query.answer if query else ()) if node in texts}
        self._highlighted = set(self._scores) | state.tree.ancestors(self._scores)
        chunks = {name: texts[name] for name in state.chunks.ids if name in texts}
        self._names = group_names({name: state.tree.leaves(name) for name in state.tree.summaries}, chunks)

    def _title(self, name: str) -> str:
        if name in self._state.chunks:
            return passage_label(self._texts.get(name, ""), self._state.chunks.metadata_of(name))
        return self._names.get(name, "")

    def summaries(self) -> Iterator[Node]:
        """The summaries, from the roots down."""
        tree = self._state.tree
        for name in sorted(tree.summaries, key=lambda name: (-tree.level(name), name)):
            below = {} if self._partial else {"chunks below": len(tree.leaves(name))}
            by = self._state.written.get(name, {}).get("by")
            yield Node(
                id=name,
                label=self._title(name) if name in self._texts else "(not written yet)",
                text=self._texts.get(name, "This summary is not written yet."),
                group=f"summary {tree.level(name)}",
                level=tree.level(name),
                score=self._scores.get(name),
                highlighted=name in self._highlighted,
                details={"children": len(tree.children(name)), **below, **({"written by": by} if by else {})},
            )

    def chunks(self) -> Iterator[Node]:
        """The chunks."""
        for record in self._state.chunks.records:
            yield Node(
                id=record.id,
                label=self._title(record.id),
                text=self._texts.get(record.id, ""),
                group="chunk",
                score=self._scores.get(record.id),
                highlighted=record.id in self._highlighted,
                details={"document": record.ref_doc_id or "none", **self._state.chunks.metadata_of(record.id)},
            )

    def edges(self) -> Iterator[Edge]:
        """Edges from each summary to its children on the page."""
        tree = self._state.tree
        for name, summary in sorted(tree.summaries.items()):
            for child in summary.children:
                if child in tree.summaries or child in self._state.chunks:
                    yield Edge(name, child, highlighted={name, child} <= self._highlighted)

    def panels(self) -> Iterator[Facts | Results]:
        """The answer, if there is a question, and the counts."""
        state = self._state
        if self._query is not None:
            found = self._scores.items()
            items = [
                Result(self._title(name), snippet=self._texts[name], score=score, node=name) for name, score in found
            ]
            yield Results("Retrieved", items)
        counts = {
            "chunks": len(state.chunks),
            "summaries": len(state.summaries),
            "layers of summaries": state.tree.height,
        }
        if state.unwritten:
            counts["summaries not written yet"] = len(state.unwritten)
        if by_rules := marks_of(state.written):
            counts["summaries written by rules"] = len(by_rules)
        yield Facts("The tree", counts)
