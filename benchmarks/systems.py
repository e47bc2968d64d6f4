"""The systems of a quality run: dense, BM25, both, a method, the method with its structure off, and fusions."""

import argparse
import importlib
from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.schema import NodeWithScore
from llama_index.retrievers.bm25 import BM25Retriever
from numpy.typing import NDArray

from benchmarks.data import Corpus
from llama_index.ragkit.text.lexical_index import AlignedWords, LexicalIndex, lexical_terms
from llama_index.ragkit.vectors.question_scores import standardised, with_words

__all__ = [
    "BM25",
    "DEPTH",
    "METHODS",
    "RANKED",
    "Dense",
    "HybridZ",
    "Ranking",
    "System",
    "adapter",
    "build",
    "fill",
    "fuse",
    "source_passages",
]

DEPTH = 100  # passages a ranking has where the system finds as many
RRF_K = 60

Ranking = list[str]
System = Callable[[str], Ranking]

# Each has a module `benchmarks.quality_<method>` with `add_arguments(parser)`, `make_index(corpus, model, options)`
# and `build(corpus, hybrid, embed_model, options)`, which returns {method: system, f"{method}-off": system, and
# further rows of its own}.
METHODS = ("gemrag", "graphrag", "hipporag", "mrag", "pgrag", "raptor", "sprag")
RANKED = (*METHODS, "together")  # the last ranks by several methods at once, and has no `make_index`


def _unit_rows(corpus: Corpus, embed_model: BaseEmbedding) -> NDArray[np.float64]:
    vectors = np.asarray(embed_model.get_text_embedding_batch([node.get_content() for node in corpus.nodes]))
    rows: NDArray[np.float64] = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    return rows


class Dense:
    """The ranking of a `VectorStoreIndex` on a `SimpleVectorStore`: cosine of question and node, exact."""

    def __init__(self, corpus: Corpus, embed_model: BaseEmbedding) -> None:
        self._corpus = corpus
        self._embed_model = embed_model
        self._rows = _unit_rows(corpus, embed_model)

    def __call__(self, question: str) -> Ranking:
        cosines = self._rows @ np.asarray(self._embed_model.get_query_embedding(question))
        order = np.argsort(-cosines, kind="stable")
        return self._corpus.passages([self._corpus.nodes[row].node_id for row in order])[:DEPTH]


class BM25:
    """`llama-index-retrievers-bm25` with its defaults; nodes without a word of the question are no answer."""

    def __init__(self, corpus: Corpus) -> None:
        self._corpus = corpus
        self._retriever = BM25Retriever.from_defaults(
            nodes=list(corpus.nodes), similarity_top_k=node_depth(corpus), verbose=False
        )

    def __call__(self, question: str) -> Ranking:
        found = [node.node.node_id for node in self._retriever.retrieve(question) if (node.score or 0) > 0]
        return self._corpus.passages(found)[:DEPTH]


class HybridZ:
    """The sum of the standardised cosine and the standardised BM25 score, weighted alike for every question.

    BM25 is that of these packages, with stems of the language of the question. `node_ids` gives all nodes, best first.
    """

    def __init__(self, corpus: Corpus, embed_model: BaseEmbedding) -> None:
        self._corpus = corpus
        self._embed_model = embed_model
        self._rows = _unit_rows(corpus, embed_model)
        terms = {node.node_id: lexical_terms(node.get_content()) for node in corpus.nodes}
        row_of = {node.node_id: row for row, node in enumerate(corpus.nodes)}
        self._words = AlignedWords(
            LexicalIndex().changed((), terms), lambda ids: np.array([row_of[i] for i in ids], np.intp), len(row_of)
        )
        self.node_ids = lru_cache(maxsize=1)(self._compute)

    def __call__(self, question: str) -> Ranking:
        return self._corpus.passages(self.node_ids(question)[: node_depth(self._corpus)])[:DEPTH]

    def nearest_first(self, question: str, node_ids: Sequence[str]) -> list[str]:
        """Nodes ordered by their own nearness to the question."""
        wanted = set(node_ids)
        return [node_id for node_id in self.node_ids(question) if node_id in wanted]

    def _compute(self, question: str) -> list[str]:
        cosines = self._rows @ np.asarray(self._embed_model.get_query_embedding(question))
        words = self._words.scores(question)
        scores = with_words(standardised(cosines), words, 0.5)
        return [self._corpus.nodes[row].node_id for row in np.argsort(-scores, kind="stable")]


def node_depth(corpus: Corpus) -> int:
    """How many nodes to ask for so that there are `DEPTH` passages among them, if the corpus has so many."""
    chunked = len(corpus.nodes) > len(corpus.records) or bool(corpus.pages_of)
    return len(corpus.nodes) if chunked else min(DEPTH, len(corpus.nodes))


def source_passages(
    corpus: Corpus,
    hybrid: HybridZ,
    question: str,
    found: Sequence[NodeWithScore],
    sources_of: Callable[[str], Sequence[str]],
) -> Ranking:
    """Passages of a ranking with derived nodes.

    A derived node stands for its source nodes, ordered by their own nearness to the question, at its place.
    """
    node_ids: list[str] = []
    for node in found:
        node_id = node.node.node_id
        if node_id in corpus.passage_of:
            node_ids.append(node_id)
        else:
            node_ids.extend(hybrid.nearest_first(question, sources_of(node_id)))
    return corpus.passages(node_ids)[:DEPTH]


def fuse(rankings: Sequence[Ranking], k: int = RRF_K) -> Ranking:
    """Reciprocal rank fusion (Cormack et al. 2009): the sum of ``1 / (k + rank)``, rank from 1.

    Ties keep the order in which the passages first come up, list by list.
    """
    scores: dict[str, float] = {}
    for ranking in rankings:
        for rank, passage in enumerate(ranking, start=1):
            scores[passage] = scores.get(passage, 0.0) + 1 / (k + rank)
    return sorted(scores, key=lambda passage: -scores[passage])[:DEPTH]


def fill(ranking: Ranking, dense: Ranking, length: int) -> tuple[Ranking, int]:
    """The ranking, lengthened to `length` from dense; and how many places were filled."""
    known = set(ranking)
    extra = [passage for passage in dense if passage not in known][: max(0, length - len(ranking))]
    return ranking + extra, len(extra)


def adapter(method: str) -> object:
    """The module that builds the systems of a method."""
    if method not in RANKED:
        raise SystemExit(f"Unknown method {method!r}; there are {', '.join(sorted(RANKED))}.")
    return importlib.import_module(f"benchmarks.quality_{method}")


def build(method: str, corpus: Corpus, embed_model: BaseEmbedding, options: argparse.Namespace) -> dict[str, System]:
    """The systems of a run by name, in the order of the table."""
    hybrid = HybridZ(corpus, embed_model)
    own = adapter(method).build(corpus, hybrid, embed_model, options)  # type: ignore[attr-defined]
    systems: dict[str, System] = {
        "dense": Dense(corpus, embed_model),
        "bm25": BM25(corpus),
        "hybrid-z": hybrid,
        **own,
    }
    # A question goes through all systems before the next: what fusion asks for again was just computed.
    systems = {name: lru_cache(maxsize=1)(system) for name, system in systems.items()}

    def fused(*names: str) -> System:
        return lambda question: fuse([systems[name](question) for name in names])

    return {**systems, "hybrid": fused("dense", "bm25"), "fusion": fused("dense", "bm25", method)}
