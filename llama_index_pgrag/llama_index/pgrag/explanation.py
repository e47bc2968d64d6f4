"""Explanations of results: path, key point, the seed that reached it, and the contribution of each cell."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from llama_index.core.schema import NodeWithScore

from llama_index.pgrag.maps.mind_map import Path
from llama_index.pgrag.search.ranking import Answer, MergedPath
from llama_index.ragkit import Explanation
from llama_index.ragkit.index.results import result_fields

__all__ = ["CellSupport", "PGRAGExplanation", "explain"]


@dataclass(frozen=True)
class CellSupport:
    """A cell of a path: its text, its cosine to the key point, and its control value.

    Attributes
    ----------
    cosine : in [-1, 1]; if cells are compared by their words, the share of the best BM25 score, in [0, 1]
    weight : 1 if the cell supports the seed, 0.5 if it half supports it, 0 if it is rejected; None if no seed reached
        the path
    """

    text: str
    cosine: float
    weight: float | None


@dataclass(frozen=True, kw_only=True)
class PGRAGExplanation(Explanation):
    """Why a fact path, or a source node, is in the answer.

    Attributes
    ----------
    path : the fact path; for a source node its best path, empty if none was found
    reason : how the mind map of the path was reached: "seed topic", "topic walk", "fact walk", "fact", or "names" if
        only the walk over names, or its node, led to it; "" without a path
    key_point : the key point nearest to it, or the key point of the seed
    cosine : cosine of key point and path, in [-1, 1]; if cells are compared by their words, the share of the best BM25
        score, in [0, 1]; without a path, the cosine of key point and node
    lexical : BM25 score of the question and the node, or for a path its source node; at least 0
    lexical_weight : weight of words in nearness for this question, in [0, 1]; cosines have the rest
    seed : the path of the seed that supports it most; None if no seed reached it
    support : the support of all seeds together, in [0, 1] relative to the best path
    names : the names in the question from which the walk over names started
    share : the node's share of that walk, relative to the best, in [0, 1]
    trust : how far that walk counted for this question, in [0, 1]; None without a walk
    cells : from the topic to the fact
    sources, documents : ids of the nodes from which the path was read, and of their documents
    by : the class that read all sources without an LLM because the LLM failed; empty otherwise
    """

    path: Path
    reason: str
    key_point: str
    cosine: float
    lexical: float
    lexical_weight: float
    seed: Path | None = None
    support: float = 0.0
    names: list[str] = field(default_factory=list)
    share: float = 0.0
    trust: float | None = None
    cells: list[CellSupport] = field(default_factory=list)
    sources: list[str] = field(default_factory=list)
    documents: list[str] = field(default_factory=list)


def explain(answer: Answer, path: MergedPath | None, result: NodeWithScore) -> PGRAGExplanation:
    """Explain a result by its path; a source node by its nearest fact, or by its own similarity if it has no fact."""
    path = answer.best_fact(result.node.node_id) if path is None else path
    if path is None:
        return _without_fact(answer, result)
    facts, fact = answer.facts, path.fact
    at = int(answer.graph.facts.rows_of([fact.id])[0])
    point = int(np.argmax(facts.cosines[:, at]))
    row = answer.row_of.get(fact.id)
    cells = [CellSupport(cell, float(facts.cosines[point, at]), None) for cell in fact.path[-1:]]
    seed: Path | None = None
    if row is not None:
        point, seed, cells = _cells(answer, fact.path, row, point)
    return PGRAGExplanation(
        **result_fields(result),
        path=fact.path,
        reason=next((c.reason for c in facts.candidates if c.topic_id == fact.topic_id), "names"),
        key_point=answer.key_points[point],
        cosine=float(facts.cosines[point, at]),
        seed=seed,
        support=float(facts.support[at]) if seed is not None else 0.0,
        cells=cells,
        sources=path.sources,
        documents=path.documents,
        fallback=answer.fallback,
        **_of_node(answer, fact.node_id),
    )


def _cells(answer: Answer, path: Path, row: int, point: int) -> tuple[int, Path | None, list[CellSupport]]:
    """The key point whose seed supports a path most, this seed, and the cells."""
    facts = answer.facts
    walked = facts.walked
    seed: int | None = None
    if walked is not None and walked.scores[row] > 0:
        stained = walked.stained[:, :, row]
        point, place = (int(i) for i in np.unravel_index(int(np.argmax(stained)), stained.shape))
        seed = int(walked.seeds[point, place])
    sims = facts.sims[point, row, : len(path)]
    weights: list[float | None] = [None] * len(path)
    if seed is not None:
        level = facts.sims[point, seed, len(facts.template.facts[seed].path) - 1]
        weights = [float(weight) for weight in answer.config.cell_control.weights(sims, np.asarray(level))]
    cosines = facts.cell_cosines[point, row, : len(path)].tolist()
    cells = [CellSupport(*cell) for cell in zip(path, cosines, weights, strict=True)]
    return point, None if seed is None else facts.template.facts[seed].path, cells


def _of_node(answer: Answer, node_id: str) -> dict[str, Any]:
    """The lexical score of a node, and its part of the walk over names."""
    row, names = answer.graph.chunks.row_of(node_id), answer.names
    words = {"lexical": float(answer.near.lexical[row]), "lexical_weight": answer.lexical_weight}
    if names is None:
        return words
    return {**words, "names": list(names.named), "share": float(names.shares[row]), "trust": names.trust}


def _without_fact(answer: Answer, result: NodeWithScore) -> PGRAGExplanation:
    node_id = result.node.node_id
    near = answer.cosines[:, answer.graph.chunks.row_of(node_id)]
    point = int(np.argmax(near))
    document = answer.graph.chunks.record_of(node_id).ref_doc_id
    return PGRAGExplanation(
        **result_fields(result),
        path=(),
        reason="",
        key_point=answer.key_points[point],
        cosine=float(near[point]),
        sources=[node_id],
        documents=[] if document is None else [document],
        fallback=answer.fallback,
        **_of_node(answer, node_id),
    )
