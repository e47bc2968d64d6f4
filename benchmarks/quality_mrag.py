"""MRAG in the quality benchmark: `mrag` with its defaults, `mrag-off` without aspects and heads, `heads` as published.

`--steps` adds those between:

mrag-off            the same vectors as one space, the question whole
split               the model's own vectors cut into twelve, the question whole (Split RAG)
heads               the attention heads, the question whole (the paper's MRAG)
sentences           the model's own vectors as one space, a vote an aspect
votes               heads and aspects, votes alone and without words
mrag                the defaults: nearness and BM25 beside the votes of heads
mrag-split          the same with the parts of the model's own vectors for heads, as users of other models have it
bm25-sentences      BM25 alone, asked sentence by sentence, 2^-place votes summed
random              passages in random order
"""

import argparse
import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from llama_index.core.base.embeddings.base import BaseEmbedding

from benchmarks.data import Corpus
from benchmarks.embedding import MINILM, MINILM_TOKENS, CachedEmbedding, cache_folder, minilm_folder
from benchmarks.systems import BM25, DEPTH, HybridZ, Ranking, System, node_depth, source_passages
from llama_index.mrag import HeadEmbedding, MRAGIndex, MRAGRetriever, MultiHeadEmbedding, SplitEmbedding
from llama_index.ragkit.text.sentences import split_sentences

__all__ = ["CachedHeads", "add_arguments", "build", "make_index", "minilm_heads"]

HEADS = 12


class CachedHeads(CachedEmbedding, HeadEmbedding):
    """Head vectors, and MiniLM's own before them, that are kept on disk. Questions and texts are alike to MiniLM."""

    def heads_of(self, dim: int) -> int:
        return HEADS

    def own_of(self, dim: int) -> int:
        return dim // 2

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._embed("text", [query])[0]

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._embed("text", [query])[0]

    def get_query_embedding_batch(self, queries: Sequence[str]) -> list[list[float]]:
        return self._embed("text", queries)


def minilm_heads(pooling: str = "auto", cache: Path | None = None, layer: int = -1) -> CachedHeads:
    """The heads of a layer of MiniLM, by default the last as in `MultiHeadEmbedding`, behind the disk cache."""

    def load() -> BaseEmbedding:
        return MultiHeadEmbedding(
            minilm_folder(), pooling=pooling, layers=[layer], max_length=MINILM_TOKENS, device="cpu"
        )

    folder = cache_folder() if cache is None else cache
    return CachedHeads(
        load=load,
        model_name=f"all-MiniLM-L6-v2 with heads {pooling}" + (f" of layer {layer}" if layer != -1 else ""),
        path=str(folder / "embeddings.sqlite"),
        max_length=MINILM_TOKENS,
    )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the method."""
    parser.add_argument("--aspects", choices=["none", "sentences"], default="sentences")
    parser.add_argument("--vote", choices=["mrag", "decay", "distance"], default="mrag")
    parser.add_argument("--steps", action="store_true", help="rows between the published and the default method")
    parser.add_argument("--pooling", choices=["auto", "mean", "cls"], default="auto", help="of the heads")


def make_index(corpus: Corpus, embed_model: BaseEmbedding, options: argparse.Namespace) -> MRAGIndex:
    """The index over heads, see :func:`heads_of`."""
    return MRAGIndex(nodes=corpus.fresh_nodes(), embed_model=heads_of(embed_model, options.pooling))


def heads_of(embed_model: BaseEmbedding, pooling: str) -> HeadEmbedding:
    """The heads of MiniLM; of another model, whose heads are not at hand, the parts of its vectors."""
    return minilm_heads(pooling) if embed_model.model_name == MINILM else SplitEmbedding(embed_model)


def build(
    corpus: Corpus, hybrid: HybridZ, embed_model: BaseEmbedding, options: argparse.Namespace
) -> dict[str, System]:
    """The systems by name; `mrag` has the defaults of index and retriever unless options say otherwise."""
    heads = heads_of(embed_model, options.pooling)

    def index_of(model: HeadEmbedding) -> MRAGIndex:
        return MRAGIndex(nodes=corpus.fresh_nodes(), embed_model=model)

    def system(index: MRAGIndex, **kwargs: Any) -> System:
        settings = {"aspects": options.aspects, "vote": options.vote, **kwargs}
        retriever = index.as_retriever(similarity_top_k=node_depth(corpus), **settings)

        def rank(question: str) -> Ranking:
            return source_passages(corpus, hybrid, question, retriever.retrieve(question), lambda node: [node])

        return rank

    spaces = make_index(corpus, embed_model, options)
    votes: dict[str, Any] = {"vote_weight": 1.0, "lexical_weight": 0.0}
    systems = {
        "mrag": system(spaces),
        "mrag-off": system(index_of(SplitEmbedding(heads, num_heads=1)), aspects="none", **votes),
        "heads": system(spaces, **MRAGRetriever.paper()),
    }
    if options.steps:
        parts = index_of(SplitEmbedding(embed_model, num_heads=HEADS))
        systems |= {
            "mrag-split": system(parts),
            "votes": system(spaces, **votes),
            "split": system(parts, **MRAGRetriever.paper()),
            "sentences": system(index_of(SplitEmbedding(embed_model, num_heads=1)), **votes),
            "bm25-sentences": _sentences(BM25(corpus)),
            "random": _random(corpus),
        }
    return systems


def _sentences(bm25: BM25) -> System:
    def rank(question: str) -> Ranking:
        votes: Counter[str] = Counter()
        for sentence in split_sentences(question) or [question]:
            for place, passage in enumerate(bm25(sentence)):
                votes[passage] += 2.0**-place  # type: ignore[assignment]
        return [passage for passage, _ in votes.most_common(DEPTH)]

    return rank


def _random(corpus: Corpus) -> System:
    def rank(question: str) -> Ranking:
        return random.Random(question).sample(sorted(corpus.records), min(DEPTH, len(corpus.records)))

    return rank
