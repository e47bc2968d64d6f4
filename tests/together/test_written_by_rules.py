"""What a model fails at beyond nodes is written by rules: summaries, themes, reports, descriptions of documents."""

import json
import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from llama_index.core import Settings, load_index_from_storage
from llama_index.core.llms import MockLLM
from tests.together.plugins import ONCE

from llama_index.gemrag import GEMRAGIndex, KeyphraseQuestionExtractor
from llama_index.graphrag import CooccurrenceExtractor, GraphRAGIndex, ReportWriter
from llama_index.ragkit import ExtractiveSummarizer, LLMSummarizer, MatrixVectorStore, NodeExtractor, Summarizer
from llama_index.ragkit.errors import ExtractionError, ParseError
from llama_index.ragkit.sql import storage_context
from llama_index.ragkit.storage.derived_nodes import node_from_record
from llama_index.ragkit.testing import HashEmbedding, ScriptedLLM, chunks
from llama_index.raptor import RaptorIndex
from llama_index.sprag import AutoContext, RuleContext, SpRAGIndex

UNREADABLE = "{}"
SUMMARY = "Ada Byron and Charles Babbage drew the Analytical Engine."
REPORT = json.dumps({"title": "Ada Byron", "summary": SUMMARY, "findings": [{"text": SUMMARY, "sources": [1]}]})
SHORT = {"summary_tokens": 30}
SMALL = {"report_tokens": 20, "context_tokens": 200, "extractor": CooccurrenceExtractor()}


@dataclass(frozen=True)
class Kind:
    """An index that asks a model for more than what its nodes say.

    Attributes
    ----------
    options : components that ask a model
    rules : those that write the same without one
    good : a reply that can be used
    twin : what stands in
    """

    cls: Any
    options: Callable[[], dict[str, Any]]
    rules: dict[str, Any]
    good: str
    twin: str


def phrases() -> NodeExtractor:
    return KeyphraseQuestionExtractor(num_questions=2)


KINDS = {
    "raptor": Kind(
        RaptorIndex,
        lambda: {"summarizer": LLMSummarizer(retry=ONCE, min_in_text=0), **SHORT},
        {"summarizer": ExtractiveSummarizer(), **SHORT},
        SUMMARY,
        "ExtractiveSummarizer",
    ),
    "gemrag": Kind(
        GEMRAGIndex,
        lambda: {"summarizer": LLMSummarizer(retry=ONCE, min_in_text=0), "extractor": phrases(), **SHORT},
        {"summarizer": ExtractiveSummarizer(), "extractor": phrases(), **SHORT},
        SUMMARY,
        "ExtractiveSummarizer",
    ),
    "graphrag": Kind(
        GraphRAGIndex,
        lambda: {"summarizer": ReportWriter(retry=ONCE, min_in_text=0), "reports": "eager", **SMALL},
        {"summarizer": None, **SMALL},
        REPORT,
        "extract",
    ),
    "sprag": Kind(
        SpRAGIndex, lambda: {"extractor": AutoContext(retry=ONCE)}, {"extractor": RuleContext()}, REPORT, "RuleContext"
    ),
}
each_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())


class Model(ScriptedLLM):
    """A model of which nothing can be read until it is mended."""

    def __init__(self, kind: Kind) -> None:
        working: list[bool] = []
        super().__init__(lambda prompt: kind.good if working else UNREADABLE)
        self._working = working

    def mend(self) -> None:
        self._working.append(True)


def build(kind: Kind, llm: Any = None, **kwargs: Any) -> Any:
    components = kind.rules if llm is None else {**kind.options(), "llm": llm}
    nodes = [*chunks("d", 18), *chunks("e", 18)]
    return kind.cls(nodes=nodes, embed_model=HashEmbedding(), **{**components, **kwargs})


def said(index: Any) -> list[str]:
    """What the index says beyond its nodes, sorted."""
    if isinstance(index, SpRAGIndex):
        return sorted(index.header_of(node_id) for node_id in index.docstore.docs)
    if isinstance(index, GraphRAGIndex):
        state = index.state
        return sorted(state.report(state.everything, c).text for c in range(len(state.everything.hierarchy)))
    return sorted(node_from_record(record["node"]).get_content() for record in index.state.written.values())


def marks(index: Any) -> set[str]:
    """What explanations say of who made what was found."""
    options: dict[type, dict[str, Any]] = {
        GraphRAGIndex: {"mode": "global"},
        RaptorIndex: {"summary_margin": None},
        GEMRAGIndex: {"summary_margin": 0.0, "keep_covered": True},
    }
    retriever = index.as_retriever(similarity_top_k=50, **options.get(type(index), {}))
    explained = retriever.explain("Which engine used punched cards?")
    return {each.by for each in explained} - {""}


@each_kind
def test_what_a_model_fails_at_is_written_by_rules_and_marked(
    kind: Kind, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    index = build(kind, Model(kind))
    assert {failure.by for failure in index.failures()} == {kind.twin}
    assert said(index) == said(build(kind))
    assert kind.twin in marks(index)
    assert f'"{kind.twin}"' in index.visualize(tmp_path / "page.html").read_text(encoding="utf-8")
    (told,) = [r.getMessage() for r in caplog.records if r.levelno == logging.ERROR]
    assert all(part in told for part in (kind.twin, "with the model 'scripted'", "No usable reply"))
    with pytest.raises(ExtractionError):
        build(kind, Model(kind), on_error="raise")


@each_kind
def test_a_model_that_is_mended_writes_it_after_all(kind: Kind) -> None:
    llm = Model(kind)
    index = build(kind, llm)
    failed, by_rules = index.failures(), said(index)
    assert index.retry_failed() == len(failed)
    assert said(index) == by_rules
    again = load_index_from_storage(index.storage_context, embed_model=HashEmbedding(), llm=llm, **kind.options())
    assert sorted(f.node_id for f in again.failures()) == sorted(f.node_id for f in failed)
    llm.mend()
    assert again.retry_failed() == 0
    assert said(again) != by_rules
    assert said(again) == said(build(kind, llm))
    assert marks(again).isdisjoint({kind.twin})


@each_kind
def test_without_a_fallback_it_is_missing(kind: Kind) -> None:
    index = build(kind, Model(kind), fallback=None)
    assert {failure.by for failure in index.failures()} == {""}
    assert marks(index) == set()


class Refusing(Summarizer):
    """Asks something that is no LLM of LlamaIndex."""

    @property
    def fingerprint(self) -> dict[str, str]:
        return {"class": "Refusing"}

    def summarize(self, texts: Any, **kwargs: Any) -> Any:
        raise ParseError("I would rather not.")
        yield


def test_a_summarizer_with_a_client_of_its_own_has_the_same_fallback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Settings, "_llm", MockLLM())
    index = RaptorIndex(chunks("d", 18), embed_model=HashEmbedding(), summarizer=Refusing(), **SHORT)
    assert {failure.by for failure in index.failures()} == {"ExtractiveSummarizer"}


@each_kind
def test_what_rules_have_written_goes_with_what_it_was_written_from(kind: Kind) -> None:
    index = build(kind, Model(kind))
    index.delete_ref_doc("d", delete_from_docstore=True)
    assert not any(" d " in text for text in said(index))
    index.delete_ref_doc("e", delete_from_docstore=True)
    assert index.failures() == []


@each_kind
def test_an_index_in_stores_knows_what_rules_have_written(kind: Kind, tmp_path: Path) -> None:
    spaces: dict[str, MatrixVectorStore] = {}

    def context() -> Any:
        url = f"sqlite:///{tmp_path / 'index.db'}"
        return storage_context(url, vectors=lambda space, _: spaces.setdefault(space, MatrixVectorStore()))

    llm = Model(kind)
    failed = build(kind, Model(kind)).failures()
    build(kind, llm, storage_context=context())
    index = load_index_from_storage(context(), embed_model=HashEmbedding(), llm=llm, **kind.options())
    assert {failure.by for failure in index.failures()} == {kind.twin}
    assert len(index.failures()) == len(failed)
    assert kind.twin in marks(index)
    llm.mend()
    assert index.retry_failed() == 0
    assert marks(index).isdisjoint({kind.twin})
