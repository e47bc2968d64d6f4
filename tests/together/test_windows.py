"""Every prompt fits into the context window of its model, with the reply, and nothing is lost that a step can read."""

import json
import re
from collections.abc import Sequence
from functools import cache
from typing import Any

import pytest
from benchmarks.windows import METHODS, QUESTION, STEPS, WINDOWS, WindowLLM, documents, run
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.prompts import PromptTemplate
from llama_index.core.schema import TextNode
from llama_index.llms.openai_like import OpenAILike
from tests.llm_server import Asked, LLMServer, Reply
from tests.ragkit.llm_cases import QUICK, like

from llama_index.gemrag import GEMRAGIndex, UtilityQuestionExtractor
from llama_index.graphrag import (
    CooccurrenceExtractor,
    EntityExtractor,
    GraphRAGIndex,
    GraphRAGQueryEngine,
    ReportWriter,
)
from llama_index.hipporag import HippoRAGIndex, OpenIEExtractor
from llama_index.pgrag import MindMapExtractor, PGRAGIndex
from llama_index.ragkit import ExtractiveSummarizer, LLMSummarizer
from llama_index.ragkit.errors import ExtractionError
from llama_index.ragkit.llm.completion import complete
from llama_index.ragkit.llm.context_window import PromptTexts, overflow, within
from llama_index.ragkit.steps import run_steps
from llama_index.ragkit.testing import HashEmbedding
from llama_index.ragkit.text.tokens import count_tokens
from llama_index.raptor import RaptorIndex
from llama_index.sprag import AutoContext, SpRAGIndex

TEXTS = documents(2, 110)
SPLIT: list[Any] = [SentenceSplitter(chunk_overlap=0)]
PREFIX = {"raptor": "RAPTOR", "gemrag": "GEM-RAG", "hipporag": "HippoRAG", "graphrag": "Graph RAG", "pgrag": "PG-RAG"}
# Steps that read all of the texts, and can ask several times.
READING = {
    "raptor": ["RAPTOR, GEM-RAG: summary"],
    "gemrag": ["GEM-RAG: questions"],
    "hipporag": ["HippoRAG: entities", "HippoRAG: triples"],
    "graphrag": ["Graph RAG: entities and relations", "Graph RAG: gleaning", "Graph RAG: claims"],
    "pgrag": ["PG-RAG: mind map"],
    "sprag": ["spRAG: sections"],
}

each_method = pytest.mark.parametrize("method", METHODS)


@cache
def asked(method: str, window: int) -> tuple[WindowLLM, Any, str]:
    return run(method, window, TEXTS)


def steps_of(method: str) -> set[str]:
    heads = {"mrag": "MRAG", "sprag": "spRAG", "ragkit": ("compare", "StructuredExtractor"), **PREFIX}[method]
    return {step for step in STEPS if step.startswith(heads) or (method == "gemrag" and "GEM-RAG" in step)}


@pytest.mark.parametrize("window", WINDOWS)
@each_method
def test_every_prompt_of_every_step_fits_with_its_reply(method: str, window: int) -> None:
    llm, index, raised = asked(method, window)
    assert not raised
    assert index is None or not index.failures()
    assert {call.step for call in llm.asked} >= steps_of(method)
    assert not [(call.step, call.size, call.bound) for call in llm.asked if call.size + call.bound > window]


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("method", READING)
def test_a_small_window_loses_nothing_of_the_texts(method: str, window: int) -> None:
    llm, *_ = asked(method, window)
    sentences = {sentence for text in TEXTS for sentence in re.findall(r"[A-Z].*? barrels of oil\.", text.text)}
    assert len(sentences) == 220
    for step in READING[method]:
        read = "\n".join(call.prompt for call in llm.asked if call.step == step)
        assert not [sentence for sentence in sentences if sentence not in read]


@each_method
def test_with_a_large_window_every_prompt_is_as_without_one(method: str) -> None:
    (large, _, _), (without, _, _) = asked(method, 128_000), asked(method, 0)
    assert sorted(large.asked) == sorted(without.asked)


# -- estimates ----------------------------------------------------------------------------------------------


ESTIMATED: dict[str, tuple[Any, dict[str, Any]]] = {
    "gemrag": (GEMRAGIndex, {"extractor": UtilityQuestionExtractor(), "summarizer": ExtractiveSummarizer()}),
    "hipporag": (HippoRAGIndex, {"extractor": OpenIEExtractor()}),
    "graphrag": (GraphRAGIndex, {"extractor": EntityExtractor(), "summarizer": ExtractiveSummarizer()}),
    "pgrag": (PGRAGIndex, {"extractor": MindMapExtractor(verify=False)}),
    "sprag": (SpRAGIndex, {"extractor": AutoContext()}),
}


@pytest.mark.parametrize("window", [2048, 128_000])
@pytest.mark.parametrize("method", ESTIMATED)
def test_an_estimate_is_what_is_then_sent(method: str, window: int) -> None:
    cls, components = ESTIMATED[method]
    llm = WindowLLM(window=window)
    said = cls.estimate(TEXTS, llm=llm, transformations=SPLIT, **components)
    assert not llm.asked
    cls.from_documents(TEXTS, llm=llm, embed_model=HashEmbedding(), transformations=SPLIT, **components)
    assert said.calls == len(llm.asked)
    of_replies = 0.15 if method == "hipporag" else 0  # the second prompt holds the first reply, whose length is assumed
    sent = sum(count_tokens(call.prompt) for call in llm.asked)
    assert said.prompt_tokens == pytest.approx(sent, rel=0.05 + of_replies)


@pytest.mark.parametrize("window", [2048, 128_000])
def test_an_estimate_of_a_summary_counts_its_parts(window: int) -> None:
    llm = WindowLLM(window=window)
    texts = [text.text[:3000] for text in documents(9, 110)]
    tokens = sum(map(count_tokens, texts))
    said = LLMSummarizer().estimate(tokens, len(texts), 200, llm)
    run_steps(LLMSummarizer(llm=llm).summarize(texts, max_tokens=200))
    assert said.calls == pytest.approx(len(llm.asked), rel=0.35)
    sent = sum(count_tokens(call.prompt) for call in llm.asked) / len(llm.asked)
    assert said.prompt_tokens / said.calls == pytest.approx(sent, rel=0.2)
    assert (said.calls == len(llm.asked) == 1) == (window == 128_000)
    lines = [f"[{i}] {sentence}." for i, sentence in enumerate(" ".join(texts).split(". "), start=1)]
    said = ReportWriter().estimate(sum(count_tokens(line) + 1 for line in lines), len(lines), 400, llm)
    llm.asked.clear()
    run_steps(ReportWriter(llm=llm).summarize(lines, max_tokens=400))
    assert said.calls == pytest.approx(len(llm.asked), rel=0.1)


def test_an_estimate_of_raptor_counts_parts_of_summaries() -> None:
    small, large = (
        RaptorIndex.estimate(TEXTS, llm=WindowLLM(window=window), transformations=SPLIT) for window in (2048, 128_000)
    )
    assert small.calls > 2 * large.calls
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("llama_index.core.settings.Settings._llm", WindowLLM(window=2048))
        assert RaptorIndex.estimate(TEXTS, transformations=SPLIT) == small


@pytest.mark.parametrize("window", [2048, 128_000])
def test_an_estimate_of_a_question_counts_the_batches(window: int) -> None:
    llm = WindowLLM(window=window)
    given: dict[str, Any] = {"embed_model": HashEmbedding(), "transformations": SPLIT}
    made: dict[str, Any] = {"extractor": CooccurrenceExtractor(), "summarizer": ExtractiveSummarizer()}
    index = GraphRAGIndex.from_documents(TEXTS, llm=llm, **made, **given)
    said = index.estimate_question(QUESTION)
    GraphRAGQueryEngine.over(index).query(QUESTION)
    assert said.calls == len(llm.asked)
    assert (said.calls == 2) == (window == 128_000)
    index = GraphRAGIndex.from_documents(TEXTS, llm=llm, extractor=CooccurrenceExtractor(), **given)
    said = index.estimate_question(QUESTION)
    llm.asked.clear()
    GraphRAGQueryEngine.over(index).query(QUESTION)
    reports = [call for call in llm.asked if call.step == "Graph RAG: report"]
    assert said.report_calls == pytest.approx(len(reports), rel=0.1)


# -- cutting ------------------------------------------------------------------------------------------------


def test_the_last_texts_are_cut_first_and_at_sentences() -> None:
    texts = [f"The {name} lamp was lit. It burned all night." for name in ("first", "second", "third")] * 20
    cut = PromptTexts(texts).cut(1200, count_tokens)
    assert 0 < len(cut.texts) < len(texts)
    assert list(cut.texts[:-1]) == texts[: len(cut.texts) - 1]
    assert cut.texts[-1].endswith(("lit.", "night."))
    even = PromptTexts([" ".join(texts)] * 3, evenly=True).cut(1200, count_tokens)
    assert len(even.texts) == 3
    assert all(text.endswith(("lit.", "night.")) and count_tokens(text) <= 400 for text in even.texts)


def test_a_text_without_sentences_is_divided_too() -> None:
    pieces = within(["lamp " * 3000, "oil"], 500)
    assert all(sum(count_tokens(text) for _, text in group) <= 500 for group in pieces)
    assert "".join(text for group in pieces for i, text in group if i == 0).count("lamp") == 3000


PROMPT = PromptTemplate("Which lamp was first? Say so in one word.\n\n{text}\n\n{question}")


def ask_of(llm: Any, texts: Sequence[str] = ("The lamp was lit. " * 3000,), question: str = "Why?") -> str:
    given: dict[str, Any] = {"text": PromptTexts(texts, "text"), "question": question}
    return run_steps(complete(llm, PROMPT, parse=str, retry=QUICK, reply_tokens=100, **given))


def test_what_may_not_be_cut_is_a_failure_without_a_call() -> None:
    llm = WindowLLM(window=2048)
    with pytest.raises(
        ExtractionError, match=r"cannot be cut .* context window of 'window' has only 2048\. .*context_window="
    ):
        ask_of(llm, question="Who lit the lamp? " * 1000)
    assert not llm.asked


class Tokenizer:
    def encode(self, text: str) -> list[str]:
        return re.findall(r"\w+|\W", text)

    def __call__(self, text: str, *args: Any, **kwargs: Any) -> list[str]:
        return self.encode(text)


def test_the_tokenizer_of_the_model_counts_where_there_is_one() -> None:
    with LLMServer(lambda asked: "x") as server:
        sizes = []
        for tokenizer in (None, Tokenizer()):
            ask_of(like(server, context_window=4096, tokenizer=tokenizer, timeout=30))
            sizes.append(len(Tokenizer().encode(server.asked[-1].prompt)))
        assert sizes[0] != sizes[1]
        assert 3500 < sizes[1] + 128 <= 4096


# -- servers ------------------------------------------------------------------------------------------------


OVERFLOWS = {
    "OpenAI": (
        "This model's maximum context length is 1500 tokens. However, your messages resulted in 9001 tokens. Please "
        "reduce the length of the messages.",
        1500,
    ),
    "OpenAI, code": ('{"error": {"code": "context_length_exceeded"}}', 0),
    "llama.cpp": ("request (9001 tokens) exceeds the available context size (1500 tokens), try increasing it", 1500),
    "llama.cpp, earlier": (
        "the request exceeds the available context size. try increasing the context size or enable context shift",
        0,
    ),
    "llama-cpp-python": ("Requested tokens (9001) exceed context window of 1500", 1500),
    "Ollama": ("the input length exceeds the context length", 0),
    "Ollama, by": ("prompt too long; exceeded max context length by 7501 tokens", 0),
    "vLLM": (
        "This model's maximum context length is 1500 tokens. However, you requested 9001 tokens (8873 in the messages, "
        "128 in the completion). Please reduce the length of the messages or completion.",
        1500,
    ),
    "vLLM, prompt": (
        "The decoder prompt (length 9001) is longer than the maximum model length of 1500. Make sure that "
        "`max_model_len` is no smaller than the number of text tokens.",
        1500,
    ),
    "LM Studio": (
        "Trying to keep the first 9001 tokens when context the overflows. However, the model is loaded with context "
        "length of only 1500 tokens, which is not enough.",
        1500,
    ),
    "Anthropic": ("prompt is too long: 9001 tokens > 1500 maximum", 1500),
}


@pytest.mark.parametrize(("said", "named"), OVERFLOWS.values(), ids=list(OVERFLOWS))
def test_a_prompt_that_a_server_finds_too_long_is_shortened_and_the_size_remembered(said: str, named: int) -> None:
    def script(asked: Asked) -> Reply:
        fits = count_tokens(asked.prompt) + asked.body["max_tokens"] <= 1500
        return Reply("lamp") if fits else Reply(said, status=400)

    assert overflow(ValueError(said)) == named
    with LLMServer(script) as server:
        llm = like(server, context_window=8192, timeout=30)
        assert ask_of(llm) == "lamp"
        first = len(server.asked)
        assert first == 2 if named else 2 < first < 12
        assert ask_of(llm) == "lamp"
        assert len(server.asked) == first + 1
        assert all("Say so in one word" in each.prompt and "Why?" in each.prompt for each in server.asked)
        assert server.asked[-1].prompt.split("</")[0].endswith("The lamp was lit.\n")


def test_a_window_that_was_not_given_is_told_once_a_model(caplog: pytest.LogCaptureFixture) -> None:
    given: dict[str, Any] = {"is_chat_model": True, "api_key": "none", "max_retries": 0}
    with LLMServer(lambda asked: json.dumps({"title": "Lamp", "summary": "A lamp."})) as server:
        for name, more in (("unknown", {}), ("unknown", {}), ("known", {"context_window": 3900}), ("other", {})):
            llm = OpenAILike(model=name, api_base=server.url, **given, **more)
            SpRAGIndex([TextNode(text="A lamp.")], llm=llm, extractor=AutoContext(), embed_model=HashEmbedding())
    told = [record.getMessage() for record in caplog.records if "was not given" in record.getMessage()]
    assert [name for line in told for name in ("'unknown'", "'other'", "'known'") if name in line] == [
        "'unknown'", "'other'",
    ]  # fmt: skip
    assert all("3900" in line and "OpenAILike(context_window=...)" in line for line in told)


def test_an_error_that_is_no_overflow_shortens_nothing() -> None:
    assert overflow(ValueError("max_tokens is not supported; use max_completion_tokens")) is None
    assert overflow(TimeoutError("timed out")) is None


def test_a_prompt_that_cannot_be_shortened_is_a_failure_of_its_piece() -> None:
    with LLMServer(lambda asked: Reply("context_length_exceeded", status=400)) as server:
        with pytest.raises(ExtractionError, match="context_length_exceeded"):
            ask_of(like(server, context_window=8192, timeout=30), ["Lamp."])
        assert len(server.asked) < 6


@pytest.mark.parametrize("said", ["exceeds the available context size (2048 tokens)", "context_length_exceeded"])
def test_a_build_reads_everything_where_the_server_takes_less_than_the_model_declares(said: str) -> None:
    def script(asked: Asked) -> Reply | str:
        if 1.45 * count_tokens(asked.prompt) + asked.body["max_tokens"] > 2048:
            return Reply(said, status=400)
        return json.dumps({"named_entities": ["Ada Lisbon"], "triples": []})

    (text, *_) = TEXTS
    with LLMServer(script) as server:
        extractor = OpenIEExtractor(llm=like(server, context_window=16_000, timeout=30), retry=QUICK, min_in_text=0)
        (found,) = run_steps(extractor.extract([TextNode(text=text.text)]))
        assert found.error is None
        read = "".join(asked.prompt for asked in server.asked if "List the named" in asked.prompt)
        sentences = re.findall(r"[A-Z].*? barrels of oil\.", text.text)
        assert all(sentence in read for sentence in sentences)
