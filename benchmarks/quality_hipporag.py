"""HippoRAG in the quality benchmark. No LLM: triples are those recorded with the corpus, or read by rules."""

import argparse
from typing import Any, get_args

from llama_index.core.base.embeddings.base import BaseEmbedding

from benchmarks.data import Corpus
from benchmarks.systems import HybridZ, Ranking, System, node_depth
from llama_index.hipporag import HippoRAGIndex, HippoRAGRetriever, NounPhraseExtractor, PublishedWalk, RecordedExtractor
from llama_index.hipporag.config import Version
from llama_index.ragkit import NodeExtractor

__all__ = ["add_arguments", "build", "extractor_of", "make_index"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the method."""
    parser.add_argument("--rules", action="store_true", help="read passages by rules, whatever the corpus carries")
    parser.add_argument("--terms", action="store_true", help="with the rules, read terms in lower case too")
    parser.add_argument("--conjunction", type=float, default=0.0, help="of the retriever, for questions of paths")
    parser.add_argument("--paper", action="store_true", help="rows of the published methods too, without an LLM")


def extractor_of(corpus: Corpus, rules: bool = False, terms: bool = False, field: str = "triples") -> NodeExtractor:
    """Recorded entities and triples where the corpus carries them, else rules; `field` has the triples."""
    recorded = {
        node.node_id: {"entities": record.get("entities", []), "triples": record[field]}
        for node in corpus.nodes
        for record in [corpus.records[corpus.passage_of[node.node_id]]]
        if field in record
    }
    return NounPhraseExtractor(terms=terms) if rules or not recorded else RecordedExtractor(recorded)


def make_index(corpus: Corpus, embed_model: BaseEmbedding, options: argparse.Namespace, **kwargs: Any) -> HippoRAGIndex:
    """The index with its defaults, but for its extractor."""
    extractor = extractor_of(corpus, options.rules, options.terms)
    given: dict[str, Any] = {"extractor": extractor, **kwargs}
    return HippoRAGIndex(nodes=corpus.fresh_nodes(), embed_model=embed_model, **given)


def build(
    corpus: Corpus, hybrid: HybridZ, embed_model: BaseEmbedding, options: argparse.Namespace
) -> dict[str, System]:
    """`hipporag` is the index with its defaults; `hipporag-off` its nearness, without graph and walk.

    With `--paper` the question's entities are read by rules and no fact is filtered, since there is no LLM.
    """

    def system(retriever: Any) -> System:
        def rank(question: str) -> Ranking:
            return corpus.passages([found.node.node_id for found in retriever.retrieve(question)])

        return rank

    depth = node_depth(corpus)
    index = make_index(corpus, embed_model, options)
    no_graph = index.as_retriever(walk_weight=0.0, similarity_top_k=depth)
    own = index.as_retriever(similarity_top_k=depth, published=PublishedWalk(conjunction=options.conjunction))
    systems = {"hipporag": system(own), "hipporag-off": system(no_graph)}
    if options.paper:
        published = make_index(corpus, embed_model, options, **HippoRAGIndex.paper("v2"))
        for version in get_args(Version):
            keywords = {**HippoRAGRetriever.paper(version), "question_entities": "rules", "filter_facts": False}
            systems[version] = system(published.as_retriever(**keywords, similarity_top_k=depth))
    return systems
