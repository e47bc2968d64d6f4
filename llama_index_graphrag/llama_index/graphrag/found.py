"""`GraphRAGFound`: the result of a search; similarities and report nodes, which the searches share."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from llama_index.core.schema import TextNode
from numpy.typing import NDArray

from llama_index.graphrag.reports.report import Report
from llama_index.graphrag.search.cut import Cut
from llama_index.graphrag.search.drift import DriftAnswer
from llama_index.graphrag.search.linking import Link
from llama_index.graphrag.state import GraphRAGState, GraphView
from llama_index.ragkit import Query, Steps, content_id
from llama_index.ragkit.index.results import deepened
from llama_index.ragkit.storage.derived_nodes import derived_node
from llama_index.ragkit.vectors.question_scores import Nearness, best_rows, result_scores

__all__ = ["FINDINGS_KEY", "REPORT_KEY", "GraphRAGFound", "Similarities", "report_id", "report_node", "similarities"]

REPORT_KEY = "graphrag_report"
FINDINGS_KEY = "graphrag_findings"

_STARTS = 5

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Similarities:
    """The nearness of the chunks of a state to a question; scores are -inf for chunks that the query may not see."""

    state: GraphRAGState
    nearness: Nearness

    @property
    def scores(self) -> Floats:
        """Nearness in standard deviations, shape (n,). The scale of a model's cosines does not matter."""
        return self.nearness.scores

    @property
    def ids(self) -> list[str]:
        """The ids of the chunks that the query may see."""
        ids = self.state.chunks.ids
        return [ids[row] for row in np.flatnonzero(np.isfinite(self.scores))]

    def cosine(self, node_id: str) -> float | None:
        """The cosine of the question and a chunk; None for other nodes."""
        return self._of(node_id, self.nearness.cosines)

    def lexical(self, node_id: str) -> float | None:
        """The BM25 score of a chunk; None for other nodes."""
        return self._of(node_id, self.nearness.lexical)

    def _of(self, node_id: str, values: Floats) -> float | None:
        chunks = self.state.chunks
        return float(values[chunks.row_of(node_id)]) if node_id in chunks else None

    def ranking(self, scores: Floats, depth: int) -> Iterator[tuple[str, float]]:
        """Ids with scores in [0, 1], best first, ties in canonical order, for scores in standard deviations.

        A score of -inf leaves a chunk out. After `depth` chunks, others are ranked when they are needed.
        """
        return deepened(self._best(scores, depth), lambda deeper: self._best(scores, deeper), depth)

    def _best(self, scores: Floats, depth: int) -> list[tuple[str, float]]:
        rows = best_rows(scores, depth, self.state.chunks)
        ids = self.state.chunks.ids
        return [
            (ids[row], score) for row, score in zip(rows, result_scores(scores[rows], scores).tolist(), strict=True)
        ]


def similarities(
    query: Query[GraphRAGState], lexical_weight: float, vector: NDArray[np.float32] | None = None
) -> Steps[Similarities]:
    """The nearness of every chunk that a query may see to the question, or, given a vector, to that instead."""
    nearness = yield from query.nearness(lexical_weight, vector)
    return Similarities(query.state, nearness)


@dataclass(frozen=True)
class GraphRAGFound:
    """The result of a search.

    Attributes
    ----------
    ranking : ids of chunks and derived nodes with scores, best first
    fallback : which part of the method was not used, and why; empty otherwise
    derived : id -> node, for reports and statements
    active, shares : entity -> its activation, and chunk -> its share of the activations, in (0, 1]
    trust : how far the shares were trusted, relative to nearness, in [0, 1]; None if the search does not use trust
    added : the part of the activations in the scores of chunks, in standard deviations; None in the other modes
    calls, tokens : calls of a model, including those for reports, and tokens of the derived nodes
    keep_all : whether the whole ranking is the result, regardless of `similarity_top_k`
    """

    view: GraphView
    ranking: Iterator[tuple[str, float]] | Sequence[tuple[str, float]] = ()
    fallback: str = ""
    derived: Mapping[str, TextNode] = field(default_factory=dict)
    links: Sequence[Link] = ()
    active: Mapping[str, float] = field(default_factory=dict)
    shares: Mapping[str, float] = field(default_factory=dict)
    trust: float | None = None
    near: Similarities | None = None
    cut: Cut | None = None
    answers: Sequence[DriftAnswer] = ()
    added: Floats | None = None
    calls: int = 0
    tokens: int = 0
    keep_all: bool = False

    @property
    def starts(self) -> Sequence[Link]:
        """The links to show a reader: those by names and vectors, or, if there are none, the five surest by chunks."""
        return [link for link in self.links if link.kind != "chunk"] or self.links[:_STARTS]


def report_node(level: int, report: Report, metadatas: Sequence[Mapping[str, Any]]) -> TextNode:
    """A report of a level as a node, marked as such, with its sources and the metadata that all of these share."""
    shared = {
        name: value
        for name, value in (metadatas[0].items() if metadatas else ())
        if name not in ("doc_id", "ref_doc_id") and all(name in m and m[name] == value for m in metadatas[1:])
    }
    metadata = {
        **shared,
        REPORT_KEY: report.form,
        "graphrag_level": level,
        FINDINGS_KEY: [[finding.text, list(finding.nodes)] for finding in report.findings],
    }
    return derived_node(report_id(report.key), report.text, metadata, report.nodes)


def report_id(key: str) -> str:
    """The id of the node of a report."""
    return content_id("graphrag report", key)
