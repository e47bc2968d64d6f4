"""`GraphRAGFound`: the result of a search, and what the searches share: similarities and report nodes."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
from llama_index.core.schema import TextNode
from numpy.typing import NDArray

from llama_index.graphrag.reports.report import Report
from llama_index.graphrag.search.cut import Cut
from llama_index.graphrag.search.drift import DriftAnswer
from llama_index.graphrag.search.linking import Link
from llama_index.graphrag.state import GraphRAGState, GraphView
from llama_index.ragkit import Query, Steps, content_id, deepened, derived_node, offload
from llama_index.ragkit.vectors.kernels import cosines

__all__ = ["FINDINGS_KEY", "REPORT_KEY", "GraphRAGFound", "Similarities", "report_node", "similarities"]

REPORT_KEY = "graphrag_report"
FINDINGS_KEY = "graphrag_findings"

Floats = NDArray[np.float64]
_EXACT = 50_000  # chunks; their exact cosines take some 30 ms
_STANDARD = 100  # best chunks that similarities are standardised by
_DECIMALS = 10  # hides the order of a sum


@dataclass(frozen=True)
class Similarities:
    """Chunks that a query may see, and how similar to the question they are.

    Attributes
    ----------
    state : whose chunks they are
    rows : int64, shape (n,), in `state.chunks`
    cosines : shape (n,)
    """

    state: GraphRAGState
    rows: NDArray[np.int64]
    cosines: Floats

    @property
    def standard(self) -> Floats:
        """Cosines standardised by the mean and standard deviation of the 100 best, shape (n,).

        Shifting or stretching all cosines, as embedding models differ, changes nothing.
        """
        best = np.sort(self.cosines)[::-1][:_STANDARD]
        spread = float(best.std()) if best.size else 0.0
        if spread < 1e-9:
            return np.zeros_like(self.cosines)
        found: Floats = ((self.cosines - best.mean()) / spread).round(_DECIMALS)
        return found

    def ids(self) -> list[str]:
        """The ids of the chunks."""
        ids = self.state.chunks.ids
        return [ids[row] for row in self.rows]

    def ranking(self, scores: Floats, depth: int) -> Iterator[tuple[str, float]]:
        """Ids with scores, the best first, ties in canonical order.

        Parameters
        ----------
        scores : shape (n,)
        depth : how many are ranked at first; the rest when they are needed
        """
        return deepened(self._best(scores, depth), lambda deeper: self._best(scores, deeper), depth)

    def _best(self, scores: Floats, depth: int) -> list[tuple[str, float]]:
        places = np.arange(len(scores))
        if depth < len(scores):
            places = np.flatnonzero(scores >= np.partition(scores, -depth)[-depth])
        records = self.state.chunks.records
        found = [(records[int(self.rows[place])], float(scores[place])) for place in places]
        return [(record.id, score) for record, score in sorted(found, key=lambda f: (-f[1], f[0].key, f[0].id))]


def similarities(query: Query[GraphRAGState], vector: NDArray[np.float32]) -> Steps[Similarities]:
    """The similarity of every chunk that a query may see to a vector."""
    return (yield from offload(_similarities, query.state, query.allowed, vector))


def _similarities(state: GraphRAGState, allowed: NDArray[np.bool_] | None, vector: NDArray[np.float32]) -> Similarities:
    chunks = state.chunks
    rows = np.arange(len(chunks)) if allowed is None else np.flatnonzero(allowed)
    if len(chunks) <= _EXACT:
        found = cosines(chunks.matrix, vector)
    else:
        found = chunks.cosines([vector])[:, 0].astype(np.float64).round(6)
    return Similarities(state, rows, found[rows])


@dataclass(frozen=True)
class GraphRAGFound:
    """The result of a search.

    Attributes
    ----------
    view : the graph that was searched
    ranking : ids of chunks and derived nodes with scores, the best first
    fallback : which part of the method was not used, and why; empty otherwise
    derived : id -> node, for reports and statements
    links : the entities that the question leads to
    active : entity -> its activation
    shares : chunk -> its share of the activations, in (0, 1]
    cosines : chunk -> its cosine with the question
    cut : the communities that were read
    answers : of a search with follow-up questions
    calls : of a model for this question, reports included
    tokens : of the derived nodes
    keep_all : whether all of the ranking is the result, whatever `similarity_top_k` says
    """

    view: GraphView
    ranking: Iterator[tuple[str, float]] | Sequence[tuple[str, float]] = ()
    fallback: str = ""
    derived: Mapping[str, TextNode] = field(default_factory=dict)
    links: Sequence[Link] = ()
    active: Mapping[str, float] = field(default_factory=dict)
    shares: Mapping[str, float] = field(default_factory=dict)
    cosines: Mapping[str, float] = field(default_factory=dict)
    cut: Cut | None = None
    answers: Sequence[DriftAnswer] = ()
    calls: int = 0
    tokens: int = 0
    keep_all: bool = False


def report_node(state: GraphRAGState, view: GraphView, community: int, report: Report) -> TextNode:
    """A report as a node: derived, marked, with its sources and what these have in common as metadata."""
    shared = _shared([state.chunks.metadata_of(node) for node in report.nodes])
    metadata = {
        **{name: value for name, value in shared.items() if name not in ("doc_id", "ref_doc_id")},
        REPORT_KEY: report.form,
        "graphrag_level": int(view.hierarchy.level[community]),
        FINDINGS_KEY: [[finding.text, list(finding.nodes)] for finding in report.findings],
    }
    return derived_node(content_id("graphrag report", report.key), report.text, metadata, report.nodes)


def _shared(metadatas: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The values that all have in common."""
    if not metadatas:
        return {}
    first = cast(dict[str, Any], metadatas[0])
    return {name: value for name, value in first.items() if all(name in m and m[name] == value for m in metadatas[1:])}
