"""`CombinedRetriever` in the quality benchmark: six methods together; `together-off` is nearness alone."""

import argparse
from typing import Any

from llama_index.core.base.embeddings.base import BaseEmbedding

from benchmarks.data import Corpus
from benchmarks.systems import HybridZ, Ranking, System, adapter, node_depth
from llama_index.ragkit import CombinedRetriever, HybridRetriever

__all__ = ["add_arguments", "build"]

METHODS = ("hipporag", "pgrag", "mrag", "graphrag", "sprag", "gemrag")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """No options."""


def build(
    corpus: Corpus, hybrid: HybridZ, embed_model: BaseEmbedding, options: argparse.Namespace
) -> dict[str, System]:
    """`together` over the index of each method; `together-off` compares vectors and words alone."""

    def system(retriever: Any) -> System:
        def rank(question: str) -> Ranking:
            return corpus.passages([found.node.node_id for found in retriever.retrieve(question)])

        return rank

    depth = node_depth(corpus)
    indexes = [_index(method, corpus, embed_model) for method in METHODS]
    return {
        "together": system(CombinedRetriever(indexes, similarity_top_k=depth)),
        "together-off": system(HybridRetriever(corpus.fresh_nodes(), embed_model, similarity_top_k=depth)),
    }


def _index(method: str, corpus: Corpus, embed_model: BaseEmbedding) -> Any:
    parser = argparse.ArgumentParser()
    module: Any = adapter(method)
    module.add_arguments(parser)
    return module.make_index(corpus, embed_model, parser.parse_args([]))
