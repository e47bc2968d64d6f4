"""RAPTOR in the quality benchmark: `raptor` with its defaults, `raptor-off` without any summary."""

import argparse
from collections.abc import Mapping
from typing import Any

from llama_index.core.base.embeddings.base import BaseEmbedding

from benchmarks.data import Corpus
from benchmarks.systems import HybridZ, Ranking, System, node_depth, source_passages
from llama_index.ragkit import ExtractiveSummarizer
from llama_index.raptor import GraphClustering, RaptorIndex, RaptorRetriever

__all__ = ["add_arguments", "build"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the method."""
    parser.add_argument("--mode", choices=["collapsed", "tree_traversal"], default="collapsed")
    parser.add_argument("--paper", action="store_true", help="a row of the published tree and search too")
    parser.add_argument("--summary-tokens", type=int, default=None, help="length of a summary; the index's default")
    parser.add_argument(
        "--target-size", type=float, default=None, help="chunks in a cluster; GraphClustering's default"
    )


def make_index(corpus: Corpus, embed_model: BaseEmbedding, options: argparse.Namespace, **kwargs: Any) -> RaptorIndex:
    """The index with its defaults; summaries are extractive, since there is no LLM."""
    settings: dict[str, Any] = {} if options.summary_tokens is None else {"summary_tokens": options.summary_tokens}
    if options.target_size is not None:
        settings["clustering"] = GraphClustering(target_size=options.target_size)
    summarizer = ExtractiveSummarizer()
    given = {"embed_model": embed_model, "summarizer": summarizer, **settings, **kwargs}
    return RaptorIndex(nodes=corpus.fresh_nodes(), **given)


def build(
    corpus: Corpus, hybrid: HybridZ, embed_model: BaseEmbedding, options: argparse.Namespace
) -> dict[str, System]:
    """`raptor` as it comes; `raptor-off` is the same index with `max_layers=0`.

    `raptor-paper` is the published tree and search without its budget, since rankings of the same depth are compared.
    """

    def system(search: Mapping[str, Any] | None = None, **kwargs: Any) -> System:
        index = make_index(corpus, embed_model, options, **kwargs)
        keywords = {"similarity_top_k": node_depth(corpus), "mode": options.mode, "token_budget": None}
        retriever = index.as_retriever(**{**(search or {}), **keywords})

        def rank(question: str) -> Ranking:
            found = retriever.retrieve(question)
            return source_passages(corpus, hybrid, question, found, index.leaves_of)

        return rank

    systems = {"raptor": system(), "raptor-off": system(max_layers=0)}
    if options.paper:
        systems["raptor-paper"] = system(RaptorRetriever.paper(), **RaptorIndex.paper())
    return systems
