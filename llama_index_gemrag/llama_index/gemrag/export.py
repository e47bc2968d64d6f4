"""Export of the memory to networkx."""

from collections.abc import Mapping, Sequence
from typing import Any

from llama_index.gemrag.graph.memory_graph import strongest_edges, unit_rows
from llama_index.gemrag.question_writer import question_id
from llama_index.gemrag.state import GEMRAGState
from llama_index.ragkit.extras import need

__all__ = ["to_graph"]


def to_graph(
    state: GEMRAGState, texts: Mapping[str, str], plain: Mapping[str, Sequence[str]], blend: float, neighbours: int
) -> Any:
    """Chunks, themes and questions with the edges between them.

    Nodes are named by their ids and have `kind` ("chunk", "theme" or "question") and `text`; a chunk also has
    `document`. Edges have `kind` and `weight`. A "member" edge joins a theme and a chunk; its weight is the component.
    An "asks" edge joins a question and its node; its weight is their cosine, or 1 for a `plain` question, which is not
    embedded. A "similar" edge joins a chunk and one of its strongest `neighbours`, with the weight of the memory graph.
    """
    graph = need("networkx", "to_networkx()", "llama-index-gemrag[networkx]").Graph()
    for record in state.chunks.records:
        graph.add_node(record.id, kind="chunk", text=texts.get(record.id, ""), document=record.ref_doc_id or "")
    for name in state.theme_layer.texts.ids:
        graph.add_node(name, kind="theme", text=texts.get(name, ""))
        theme = state.themes[name]
        for member, weight in zip(theme.members, theme.weights, strict=True):
            graph.add_edge(name, member, kind="member", weight=weight)
    for layer in (state.chunk_layer, state.theme_layer):
        for name, (owner, question), near in zip(
            layer.questions.ids, layer.questions_with_owners(), layer.agreement, strict=True
        ):
            graph.add_node(name, kind="question", text=question)
            graph.add_edge(name, owner, kind="asks", weight=float(near))
    for owner, question in ((owner, question) for owner, asked in plain.items() for question in asked):
        graph.add_node(question_id(owner, question), kind="question", text=question)
        graph.add_edge(question_id(owner, question), owner, kind="asks", weight=1.0)
    if neighbours and len(state.chunks) > 1:
        ids = state.chunks.ids
        means = state.chunk_layer.mean_questions(range(len(ids)), blend)
        for i, j, weight in strongest_edges(means, unit_rows(state.chunks.matrix), neighbours):
            graph.add_edge(ids[i], ids[j], kind="similar", weight=weight)
    return graph
