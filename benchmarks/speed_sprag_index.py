"""Speed of a spRAG index: documents of 300 pages, up to 10,000 pages, with made-up embeddings.

Each size in a process of its own: seconds and memory of a build, of the insert and the delete of one more document, and
of questions. What an insert or delete costs should not grow with the corpus.
"""

import hashlib
from collections.abc import Iterator
from typing import Any

import numpy as np
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode

from benchmarks.apart import apart
from benchmarks.measuring import peak_mb, repeated, reset_peak, resident_mb, timed
from llama_index.sprag import RuleContext, SpRAGIndex

__all__ = ["measurements"]

PAGES = (2_500, 10_000)
PAGES_PER_DOCUMENT = 300
CHUNKS_PER_PAGE = 4
WORDS_PER_CHUNK = 120
DIMENSION = 384
QUESTIONS = 10


class _MadeUp(BaseEmbedding):
    """A vector that depends on the text alone, at no cost worth measuring."""

    def _get_text_embedding(self, text: str) -> list[float]:
        seed = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")
        vector: list[float] = np.random.default_rng(seed).standard_normal(DIMENSION, dtype=np.float32).tolist()
        return vector

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)


def _document(number: int, pages: int) -> list[TextNode]:
    """The chunks of a document: words by Zipf's law, a LlamaIndex document a page."""
    random = np.random.default_rng(number)
    words = random.zipf(1.3, (pages * CHUNKS_PER_PAGE, WORDS_PER_CHUNK)) % 50_000
    metadata = {"file_path": f"report-{number}.pdf"}
    chunks = []
    for place, row in enumerate(words):
        page, part = divmod(place, CHUNKS_PER_PAGE)
        text = f"Report {number}, page {page}. " * (part == 0) + " ".join(f"w{word}" for word in row) + "."
        chunks.append(
            TextNode(
                text=text,
                id_=f"{number}-{page}-{part}",
                metadata={**metadata, "page_label": str(page)},
                excluded_embed_metadata_keys=["file_path", "page_label"],
                excluded_llm_metadata_keys=["file_path", "page_label"],
                start_char_idx=part * 10_000,
                relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=f"report-{number}#{page}")},
            )
        )
    return chunks


def _index(pages: int) -> dict[str, Any]:
    sizes = [PAGES_PER_DOCUMENT] * (pages // PAGES_PER_DOCUMENT) + [pages % PAGES_PER_DOCUMENT]
    nodes = [node for number, size in enumerate(sizes) for node in _document(number, size)]
    more = _document(len(sizes), PAGES_PER_DOCUMENT)
    before_mb = resident_mb()
    reset_peak()
    index, build_s, build_cpu_s = timed(
        lambda: SpRAGIndex(nodes, extractor=RuleContext(), embed_model=_MadeUp(model_name="made up"))
    )
    found = {
        "name": "index",
        "documents": len(sizes),
        "pages": pages,
        "chunks": len(nodes),
        "build_s": build_s,
        "build_cpu_s": build_cpu_s,
        "build_peak_mb": peak_mb() - before_mb,
    }
    for mode in ("chunks", "segments"):
        retriever = index.as_retriever(mode=mode)
        questions = iter(f"w{number} w{7 * number} page {number}" for number in range(1, QUESTIONS + 2))
        retriever.retrieve(next(questions))  # what is made at the first question
        found[f"{mode}_query_ms"] = repeated(lambda: retriever.retrieve(next(questions)), QUESTIONS).median_ms  # noqa: B023
    _, found["insert_s"], found["insert_cpu_s"] = timed(lambda: index.insert_nodes(more))
    ids = [node.node_id for node in more]
    _, found["delete_s"], found["delete_cpu_s"] = timed(lambda: index.delete_nodes(ids, delete_from_docstore=True))
    return found


def measurements() -> Iterator[dict[str, Any]]:
    """Seconds and memory by the number of pages."""
    for pages in PAGES:
        yield apart(_index, pages)
