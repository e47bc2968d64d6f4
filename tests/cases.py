"""Every index of the project, ready to be put through what all of them must do."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from llama_index.core import StorageContext, load_index_from_storage
from llama_index.core.schema import TextNode
from tests.toy import ToyIndex, WordExtractor

from llama_index.gemrag import GEMRAGIndex, KeyphraseQuestionExtractor
from llama_index.graphrag import CooccurrenceExtractor, GraphRAGIndex
from llama_index.hipporag import HippoRAGIndex, NounPhraseExtractor
from llama_index.mrag import HeadEmbedding, MRAGIndex
from llama_index.pgrag import OutlineExtractor, PGRAGIndex
from llama_index.ragkit import DerivedIndex, ExtractiveSummarizer
from llama_index.ragkit.testing import HashEmbedding, chunks
from llama_index.ragkit.testing import texts_and_scores as told
from llama_index.ragkit.testing.corpus import QUESTION, TEXTS
from llama_index.raptor import RaptorIndex
from llama_index.sprag import RuleContext, SpRAGIndex

__all__ = ["CASES", "QUESTION", "TEXTS", "Case", "HashHeads", "ask", "chunks", "retriever", "told"]


class HashHeads(HashEmbedding, HeadEmbedding):
    """Of four heads, for MRAG."""

    def heads_of(self, dim: int) -> int:
        return 4


@dataclass(frozen=True)
class Case:
    """An index class and the offline components that it is built and loaded with."""

    name: str
    cls: type[DerivedIndex]
    components: Callable[[], dict[str, Any]] = field(default=dict)
    embed_model: type[HashEmbedding] = HashEmbedding

    def options(self, **kwargs: Any) -> dict[str, Any]:
        return {"embed_model": self.embed_model(), **self.components(), **kwargs}

    def build(self, nodes: Sequence[TextNode] = (), **kwargs: Any) -> DerivedIndex:
        return self.cls(nodes=list(nodes), **self.options(**kwargs))

    def from_documents(self, documents: Sequence[Any], **kwargs: Any) -> DerivedIndex:
        return self.cls.from_documents(documents, **self.options(**kwargs))

    def load(self, context: StorageContext, index_id: str | None = None, **kwargs: Any) -> Any:
        return load_index_from_storage(context, index_id=index_id, **self.options(**kwargs))


def summaries() -> dict[str, Any]:
    """Without an LLM."""
    return {"summarizer": ExtractiveSummarizer(), "summary_tokens": 30}


CASES = [
    Case("toy", ToyIndex, lambda: {"extractor": WordExtractor()}),
    Case(
        "gemrag",
        GEMRAGIndex,
        lambda: {"extractor": KeyphraseQuestionExtractor(num_questions=2, embed_questions=True), **summaries()},
    ),
    Case(
        "graphrag",
        GraphRAGIndex,
        lambda: {"extractor": CooccurrenceExtractor(), "summarizer": ExtractiveSummarizer()},
    ),
    Case("hipporag", HippoRAGIndex, lambda: {"extractor": NounPhraseExtractor()}),
    Case("mrag", MRAGIndex, embed_model=HashHeads),
    Case("pgrag", PGRAGIndex, lambda: {"extractor": OutlineExtractor()}),
    Case("raptor", RaptorIndex, summaries),
    Case("sprag", SpRAGIndex, lambda: {"extractor": RuleContext()}),
]


def retriever(index: Any, **kwargs: Any) -> Any:
    """A retriever of chunks: PG-RAG gives facts, and spRAG segments, unless told otherwise."""
    of_chunks: dict[str, Any] = {}
    if isinstance(index, PGRAGIndex):
        of_chunks = {"return_source": True}
    elif isinstance(index, SpRAGIndex):
        of_chunks = {"mode": "chunks"}
    return index.as_retriever(**{**of_chunks, **kwargs})


def ask(index: Any, question: str = QUESTION, top_k: int = 10, **kwargs: Any) -> list[tuple[str, float]]:
    return told(retriever(index, similarity_top_k=top_k, **kwargs).retrieve(question))
