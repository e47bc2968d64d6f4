"""Every method, BM25 and plain vector search over one storage context, fused by rank.

    python -m examples.fusion "Who kept the light?"

It needs no API key and no network.
"""

import sys
import textwrap

from benchmarks.embedding import minilm
from examples.demo_methods import METHODS
from examples.sample import archive
from llama_index.core import Settings, StorageContext, VectorStoreIndex
from llama_index.core.llms import MockLLM
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.retrievers import QueryFusionRetriever
from llama_index.retrievers.bm25 import BM25Retriever

QUESTION = "As a grown man, what calling did the infant have whose cradle floated off with a cat aboard?"
TOP_K = 5


def main(question: str) -> None:
    Settings.llm = MockLLM()  # never called
    Settings.embed_model = minilm()
    nodes = SentenceSplitter(chunk_size=128, chunk_overlap=0).get_nodes_from_documents(archive()[:20])

    context = StorageContext.from_defaults()
    vector = VectorStoreIndex(nodes, storage_context=context, store_nodes_override=True)
    retrievers = {"vector search": vector.as_retriever(similarity_top_k=TOP_K)}
    for method in METHODS:
        index = method.cls(nodes, storage_context=context, **method.offline(), **method.models(), **method.settings)
        retrievers[method.name] = index.as_retriever(similarity_top_k=TOP_K, **method.passages)
    retrievers["BM25"] = BM25Retriever.from_defaults(docstore=context.docstore, similarity_top_k=TOP_K)

    fusion = QueryFusionRetriever(
        list(retrievers.values()), mode="reciprocal_rerank", similarity_top_k=TOP_K, num_queries=1, use_async=False
    )
    ranks = {name: [n.node.node_id for n in retriever.retrieve(question)] for name, retriever in retrievers.items()}
    print(question)
    for result in fusion.retrieve(question):
        node_id = result.node.node_id
        found = [f"{name} {ids.index(node_id) + 1}" for name, ids in ranks.items() if node_id in ids]
        print(f"{result.score:.4f}  {textwrap.shorten(result.node.text, 80)}\n        rank by {', '.join(found)}")


if __name__ == "__main__":
    main(" ".join(sys.argv[1:]) or QUESTION)
