"""Graph RAG in the quality benchmark. No LLM: triples are those recorded with the corpus, or names read by rules."""

import argparse
import gzip
import json
from pathlib import Path
from typing import Any

from llama_index.core.base.embeddings.base import BaseEmbedding

from benchmarks import quality_hipporag
from benchmarks.data import Corpus
from benchmarks.systems import HybridZ, Ranking, System, node_depth
from llama_index.graphrag import CooccurrenceExtractor, GraphRAGIndex, PublishedOptions, RecordedExtractor
from llama_index.ragkit import ExtractiveSummarizer, NodeExtractor

__all__ = ["add_arguments", "build", "extractor_of", "make_index", "published_tables"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the method."""
    parser.add_argument("--rules", action="store_true", help="read passages by rules, whatever the corpus carries")
    parser.add_argument("--weights", type=float, nargs="*", default=(), help="rows with these structure weights too")
    parser.add_argument("--hipporag", action="store_true", help="rows of HippoRAG too, on the same triples or rules")
    parser.add_argument("--spreads", type=float, nargs="*", default=(), help="rows with these spreads too")


def extractor_of(corpus: Corpus, rules: bool = False) -> NodeExtractor:
    """Recorded triples where the corpus carries them, as relations, else co-occurrence."""
    recorded = {
        node.node_id: {
            "entities": [[str(name)] for name in record.get("entities", [])],
            "relations": [[str(t[0]), str(t[2]), " ".join(map(str, t))] for t in record["triples"] if len(t) == 3],
        }
        for node in corpus.nodes
        for record in [corpus.records[corpus.passage_of[node.node_id]]]
        if "triples" in record
    }
    return CooccurrenceExtractor() if rules or not recorded else RecordedExtractor(recorded)


def make_index(corpus: Corpus, embed_model: BaseEmbedding, options: argparse.Namespace, **kwargs: Any) -> GraphRAGIndex:
    """The index with its defaults, without an LLM."""
    given: dict[str, Any] = {"extractor": extractor_of(corpus, options.rules), "summarizer": ExtractiveSummarizer()}
    return GraphRAGIndex(nodes=corpus.fresh_nodes(), embed_model=embed_model, **{**given, **kwargs})


def build(
    corpus: Corpus, hybrid: HybridZ, embed_model: BaseEmbedding, options: argparse.Namespace
) -> dict[str, System]:
    """`graphrag` is the local mode with its defaults; `graphrag-off` the same without the structure.

    With `--hipporag` the rows of :mod:`benchmarks.quality_hipporag` stand beside them, from the same run.
    """

    def system(retriever: Any) -> System:
        def rank(question: str) -> Ranking:
            return corpus.passages([found.node.node_id for found in retriever.retrieve(question)])

        return rank

    depth = node_depth(corpus)
    index = make_index(corpus, embed_model, options)
    systems = {
        "graphrag": system(index.as_retriever(similarity_top_k=depth)),
        "graphrag-off": system(index.as_retriever(similarity_top_k=depth, structure_weight=0)),
    }
    for weight in options.weights:
        systems[f"weight {weight:g}"] = system(index.as_retriever(similarity_top_k=depth, structure_weight=weight))
    for spread in options.spreads:
        systems[f"spread {spread:g}"] = system(
            index.as_retriever(similarity_top_k=depth, published=PublishedOptions(spread=spread))
        )
    if options.hipporag:
        given = argparse.Namespace(rules=options.rules, terms=False, conjunction=0.0, paper=False)
        systems.update(quality_hipporag.build(corpus, hybrid, embed_model, given))
    return systems


def published_tables(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """The tables of a recorded run of the command-line tool, stored as JSON lines."""
    tables = {}
    for name in ("text_units", "entities", "relationships", "communities", "community_reports"):
        with gzip.open(folder / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
            tables[name] = [json.loads(line) for line in lines]
    return tables
