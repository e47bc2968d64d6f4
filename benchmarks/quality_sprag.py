"""spRAG in the quality benchmark: `sprag` with its defaults, `sprag-off` the same search without headers.

Both rank chunks, of which segments are made. A budget of 4,000 tokens holds four chunks of a thousand, so recall at 5
of segments would measure the budget; `--mode segments` shows it. What segments are worth at equal tokens,
`benchmarks.coverage` and `benchmarks.containment` measure.
"""

import argparse
from typing import Any

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode

from benchmarks.data import Corpus
from benchmarks.systems import HybridZ, Ranking, System, node_depth, source_passages
from llama_index.sprag import RuleContext, SpRAGIndex, SpRAGRetriever
from llama_index.sprag.segment_nodes import chunks_of_node

__all__ = ["add_arguments", "build", "make_index"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the method."""
    parser.add_argument("--mode", choices=["segments", "chunks"], default="chunks")
    parser.add_argument("--presets", action="store_true", help="rows of the published presets too")


def make_index(corpus: Corpus, embed_model: BaseEmbedding, options: argparse.Namespace, **context: Any) -> SpRAGIndex:
    """The index with its defaults; the chunks of a passage are a document, in the order in which they were cut.

    Chunks that were cut from a document stay those of that document, a page of which may be a passage.
    """
    nodes = corpus.fresh_nodes()
    places: dict[str, int] = {}
    for node in nodes:
        if node.ref_doc_id is None:
            _place(node, corpus.passage_of[node.node_id], places)
    return SpRAGIndex(nodes, extractor=RuleContext(**context), embed_model=embed_model)


def _place(node: TextNode, passage: str, places: dict[str, int]) -> None:
    node.relationships[NodeRelationship.SOURCE] = RelatedNodeInfo(node_id=passage)
    node.start_char_idx = places.get(passage, 0)
    node.end_char_idx = places[passage] = node.start_char_idx + len(node.text)


def build(
    corpus: Corpus, hybrid: HybridZ, embed_model: BaseEmbedding, options: argparse.Namespace
) -> dict[str, System]:
    """`sprag` is the index with its defaults; `sprag-off` ranks chunks without headers."""
    depth = node_depth(corpus)

    def system(index: SpRAGIndex, **keywords: Any) -> System:
        retriever = index.as_retriever(**{**keywords, "similarity_top_k": depth})

        def rank(question: str) -> Ranking:
            found = retriever.retrieve(question)
            chunks = {each.node.node_id: chunks_of_node(each.node) for each in found}
            return source_passages(corpus, hybrid, question, found, chunks.__getitem__)

        return rank

    index = make_index(corpus, embed_model, options)
    plain = make_index(corpus, embed_model, options, title=False, sections=False, first_lines=0)
    systems = {"sprag": system(index, mode=options.mode), "sprag-off": system(plain, mode="chunks")}
    if options.presets:
        for preset in ("balanced", "precision", "find_all", "article"):
            systems[preset] = system(index, **{**SpRAGRetriever.paper(preset), "segment_headers": False})
    return systems
