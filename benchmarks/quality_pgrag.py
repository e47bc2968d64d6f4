"""PG-RAG in the quality benchmark: `pgrag` with its defaults, `pgrag-off` without maps, and its ablations."""

import argparse
from collections.abc import Mapping
from typing import Any

from llama_index.core.base.embeddings.base import BaseEmbedding

from benchmarks.data import Corpus
from benchmarks.systems import Dense, Ranking, System, node_depth
from llama_index.pgrag import GivenMindMaps, OutlineExtractor, PGRAGIndex

__all__ = ["add_arguments", "build", "map_of_triples"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the method."""
    parser.add_argument("--outline", action="store_true", help="read outlines even where triples were recorded")
    parser.add_argument("--ablations", action="store_true", help="also the modes of the paper, and its three titles")


def build(corpus: Corpus, dense: Dense, embed_model: BaseEmbedding, options: argparse.Namespace) -> dict[str, System]:
    """`pgrag` gives the source passages of fact paths; `pgrag-off` is the same index with no weight on paths.

    Where the corpus has recorded triples, mind maps are made from them: the words of a real LLM.
    """
    recorded = {
        node.node_id: map_of_triples(corpus.records[corpus.passage_of[node.node_id]])
        for node in corpus.nodes
        if not options.outline and corpus.records[corpus.passage_of[node.node_id]].get("triples")
    }
    titles = {i: corpus.records[corpus.passage_of[i]]["title"] for i in recorded}
    extractor = GivenMindMaps(maps=recorded, topics=titles) if recorded else OutlineExtractor()
    index = PGRAGIndex(nodes=corpus.fresh_nodes(), embed_model=embed_model, extractor=extractor)

    def system(**settings: Any) -> System:
        retriever = index.as_retriever(similarity_top_k=node_depth(corpus), return_source=True, **settings)

        def rank(question: str) -> Ranking:
            return corpus.passages([found.node.node_id for found in retriever.retrieve(question)])[:100]

        return rank

    systems = {"pgrag": system(), "pgrag-off": system(dense_weight=1.0, lead_weight=0.0)}
    if options.ablations:
        paths_only: dict[str, Any] = {"dense_weight": 0.0}
        systems |= {
            "paths": system(**paths_only),
            "paths-PG": system(mode="PG", **paths_only),
            "paths-capped": system(seed_facts=0, **paths_only),
            "pgrag-PG": system(mode="PG"),
            "pgrag-capped": system(seed_facts=0),
        }
    return systems


def map_of_triples(record: Mapping[str, Any]) -> dict[str, Any]:
    """A mind map of recorded triples: relations are routes under the title, objects are facts.

    A subject other than the title is a route above its relations. Malformed triples are left out.
    """
    title = record["title"]
    tree: dict[str, Any] = {}
    for triple in record["triples"]:
        if not (
            isinstance(triple, list) and len(triple) == 3 and all(isinstance(x, str) and x.strip() for x in triple)
        ):
            continue
        subject, relation, fact = (text.strip() for text in triple)
        branch = tree if subject.casefold() == title.casefold() else tree.setdefault(subject, {})
        if isinstance(branch, dict):
            branch.setdefault(relation, []).append(fact) if isinstance(branch.get(relation, []), list) else None
    return {title: tree}
