"""What components print: short, without addresses and credentials."""

import importlib
import inspect
from collections.abc import Callable
from typing import Any

import pytest
from llama_index.core.llms import MockLLM
from tests.cases import CASES, chunks

from llama_index.graphrag import CosineResolver, GraphRAGQueryEngine, LLMResolver, ReportMapReduce, ReportWriter
from llama_index.hipporag import IRCoTRetriever
from llama_index.mrag import MultiAspectGenerator, MultiHeadEmbedding, SplitEmbedding
from llama_index.ragkit import (
    ExtractionCache,
    ExtractiveSummarizer,
    HybridRetriever,
    LLMSummarizer,
    MatrixVectorStore,
    SQLiteKVStore,
)
from llama_index.ragkit.storage.external_store import ExternalVectorStore
from llama_index.ragkit.testing import HashEmbedding

SECRET = "sk-0123456789"
# Parts with which methods are written, of which users hold no instance.
PARTS = {
    "Builder", "ExtractionContext", "FailureWatch", "PromptHolder", "Records", "SummaryBuilder", "SummaryMethods",
    "SummaryWriter",
}  # fmt: skip


class KeyedLLM(MockLLM):
    """An LLM that holds a credential, as those of servers do."""

    model: str = "model-of-the-test"
    api_key: str = SECRET


class KeyedEmbedding(HashEmbedding):
    """An embedding model that holds a credential."""

    api_key: str = SECRET


def public_classes() -> list[type]:
    # The toy index is in no package.
    names = {case.cls.__module__.split(".")[1] for case in CASES if case.cls.__module__.startswith("llama_index.")}
    modules = [importlib.import_module(f"llama_index.{name}") for name in ("ragkit", *sorted(names))]
    found = {getattr(module, name) for module in modules for name in module.__all__}
    return sorted((each for each in found if inspect.isclass(each)), key=lambda each: (each.__module__, each.__name__))


@pytest.mark.parametrize("cls", public_classes(), ids=lambda cls: cls.__name__)
def test_no_class_that_a_user_holds_prints_its_address(cls: type) -> None:
    protocol = getattr(cls, "_is_protocol", False)
    assert cls.__repr__ is not object.__repr__ or inspect.isabstract(cls) or protocol or cls.__name__ in PARTS


def hipporag_retriever() -> Any:
    case = next(case for case in CASES if case.name == "hipporag")
    return case.build(chunks("d", 3)).as_retriever()


def graphrag_index() -> Any:
    case = next(case for case in CASES if case.name == "graphrag")
    return case.build(chunks("d", 3))


COMPONENTS: dict[str, Callable[[], Any]] = {
    "IRCoTRetriever(retriever=HippoRAGRetriever(": lambda: IRCoTRetriever(hipporag_retriever(), llm=KeyedLLM()),
    "HybridRetriever(chunks=3, embed_model=KeyedEmbedding('hash'))": lambda: HybridRetriever(
        chunks("d", 3), KeyedEmbedding()
    ),
    "GraphRAGQueryEngine(retriever=GraphRAGRetriever(": lambda: GraphRAGQueryEngine.over(
        graphrag_index(), answer_llm=KeyedLLM()
    ),
    "MultiAspectGenerator(llm=KeyedLLM('model-of-the-test'))": lambda: MultiAspectGenerator(KeyedLLM()),
    "MultiHeadEmbedding(model_name='m', model_kwargs={'token'})": lambda: MultiHeadEmbedding(
        model_name="m", model_kwargs={"token": SECRET}
    ),
    "SplitEmbedding(model_name='hash', embed_model=KeyedEmbedding('hash')": lambda: SplitEmbedding(KeyedEmbedding()),
    "ExtractiveSummarizer(max_sentences=2)": lambda: ExtractiveSummarizer(max_sentences=2),
    "LLMSummarizer(llm=KeyedLLM('model-of-the-test'))": lambda: LLMSummarizer(KeyedLLM()),
    "ReportWriter(llm=KeyedLLM('model-of-the-test'))": lambda: ReportWriter(KeyedLLM()),
    "ReportMapReduce(": lambda: ReportMapReduce(KeyedLLM(), num_workers=2),
    "CosineResolver(threshold=0.5)": lambda: CosineResolver(0.5),
    "LLMResolver(llm=KeyedLLM('model-of-the-test'))": lambda: LLMResolver(llm=KeyedLLM()),
    "MatrixVectorStore(rows=0, dim=None, dtype='float16')": lambda: MatrixVectorStore(dtype="float16"),
    "ExternalVectorStore(store=MatrixVectorStore": lambda: ExternalVectorStore(MatrixVectorStore()),
    "ExtractionCache(store=SQLiteKVStore(path=':memory:'))": lambda: ExtractionCache(SQLiteKVStore(":memory:")),
    "Resources(": lambda: hipporag_retriever()._index.resources,
    "Snapshot(rows=3, dim=32)": lambda: hipporag_retriever()._index.state.chunks,
}


@pytest.mark.parametrize("wanted", COMPONENTS)
def test_a_component_says_what_was_chosen(wanted: str) -> None:
    text = repr(COMPONENTS[wanted]())
    assert text.startswith(wanted)
    assert " at 0x" not in text
    assert SECRET not in text
    assert len(text) < 400


@pytest.mark.parametrize(
    "case", [case for case in CASES if "extractor" in case.components()], ids=lambda case: case.name
)
def test_an_extractor_says_what_was_chosen(case: Any) -> None:
    extractor = case.components()["extractor"]
    extractor.llm = KeyedLLM()
    text = repr(extractor)
    assert text.startswith(f"{type(extractor).__name__}(")
    assert "llm=KeyedLLM('model-of-the-test')" in text
    assert SECRET not in text
    assert " at 0x" not in text
