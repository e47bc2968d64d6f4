"""What a build says of its language model: while it runs, at its end, and what it costs."""

import asyncio
import json
import logging
from pathlib import Path
from typing import Any

import pytest
from llama_index.core import Document
from tests.together.plugins import ONCE

from llama_index.gemrag import GEMRAGIndex, UtilityQuestionExtractor
from llama_index.graphrag import GraphRAGIndex
from llama_index.hipporag import HippoRAGIndex, NounPhraseExtractor, OpenIEExtractor
from llama_index.ragkit import Estimate, LLMSummarizer
from llama_index.ragkit.errors import ConfigurationError
from llama_index.ragkit.testing import HashEmbedding, ScriptedLLM, chunks
from llama_index.raptor import RaptorIndex

SECRET = "sk-abcdefgh12345678"
GOOD = json.dumps({"named_entities": [], "triples": []})
PRICES: Any = {"prompt": 2.0, "completion": 10.0, "embedding": 1.0}


def reply(prompt: str) -> str:
    return f"I would rather not. api_key={SECRET}" if "d 1" in prompt or "d 7" in prompt else GOOD


def build(llm: Any = None, **kwargs: Any) -> HippoRAGIndex:
    given = {"extractor": OpenIEExtractor(retry=ONCE), "embed_model": HashEmbedding(), **kwargs}
    return HippoRAGIndex(chunks("d", 12), llm=llm or ScriptedLLM(reply), **given)


def told(caplog: pytest.LogCaptureFixture, level: int) -> list[str]:
    name = "llama_index.ragkit.index.build_report"
    return [r.getMessage() for r in caplog.records if r.name == name and r.levelno == level]


@pytest.mark.parametrize("how", ["sync", "async", "one worker"])
def test_a_build_ends_with_a_line_of_what_its_model_did(how: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    if how == "async":
        documents = [Document(text=node.text, id_=node.node_id) for node in chunks("d", 12)]
        given = {"extractor": OpenIEExtractor(retry=ONCE), "embed_model": HashEmbedding(), "llm": ScriptedLLM(reply)}
        asyncio.run(HippoRAGIndex.afrom_documents(documents, **given))
    else:
        build(num_workers=1 if how == "one worker" else 4)
    (line,) = told(caplog, logging.INFO)
    # The names of twelve chunks, of which four have "d 1" or "d 7" in them, and the triples of the others.
    assert "hipporag: 12 chunks written in" in line
    assert "asked 20 questions in 20 calls of about 24: 16 answered, 4 failed, 4 done by rules, 0 loops cut" in line
    assert "tokens a second" in line


def test_chunks_that_did_not_change_are_neither_written_nor_expected(caplog: pytest.LogCaptureFixture) -> None:
    index = build(ScriptedLLM(GOOD))
    caplog.set_level(logging.INFO)
    index.insert_nodes(chunks("d", 13))
    (line,) = told(caplog, logging.INFO)
    assert "hipporag: 1 chunks written in" in line
    assert "in 2 calls of about 2: 2 answered" in line


def test_why_much_failed_is_told_with_an_example_and_without_secrets(caplog: pytest.LogCaptureFixture) -> None:
    build()
    by_rules, why = told(caplog, logging.WARNING)
    assert "4 of 12 nodes: NounPhraseExtractor for OpenIEExtractor" in by_rules
    assert "4 of 20 questions to the LLM failed" in why
    assert "- 4 times: ParseError: The reply contains no readable JSON value" in why
    assert "'I would rather not. api_key=***'" in why
    assert SECRET not in caplog.text
    assert "check_llm" in why
    caplog.clear()
    build(ScriptedLLM(GOOD))
    assert told(caplog, logging.WARNING) == []


def test_a_progress_bar_says_what_failed_and_what_was_spent(capsys: pytest.CaptureFixture[str]) -> None:
    build(num_workers=1, show_progress=True, prices=PRICES)
    bar = capsys.readouterr().err
    assert "4 failed" in bar
    assert "tokens/s" in bar
    assert " of about " in bar
    assert " paid" in bar
    build(num_workers=1, show_progress=True)
    assert "tokens/s, 5" in capsys.readouterr().err.replace(",", "").replace("tokens/s ", "tokens/s, ")


def test_a_progress_bar_of_rules_tells_no_tokens(capsys: pytest.CaptureFixture[str]) -> None:
    build(extractor=NounPhraseExtractor(), show_progress=True)
    bar = capsys.readouterr().err
    assert "NounPhraseExtractor: 100%" in bar
    assert "token" not in bar


@pytest.mark.parametrize("cls", [HippoRAGIndex, RaptorIndex, GEMRAGIndex, GraphRAGIndex])
def test_an_estimate_tells_the_cost(cls: Any) -> None:
    documents = [Document(text=" ".join(node.text for node in chunks(name, 60)), id_=name) for name in "defg"]
    work = cls.estimate(documents, prices=PRICES)
    expected = (2 * work.prompt_tokens + 10 * work.completion_tokens + work.embedded_tokens) / 1_000_000
    assert work.cost == pytest.approx(expected)
    assert work.calls > 0
    assert cls.estimate(documents).cost is None
    assert (work + work).cost == pytest.approx(2 * expected)
    assert (work + Estimate()).cost is None


@pytest.mark.parametrize("prices", [[1], 5, "0.5"])
def test_prices_of_another_kind_are_refused(prices: Any) -> None:
    with pytest.raises(ConfigurationError, match="prices is a dictionary, such as"):
        build(prices=prices)


@pytest.mark.parametrize("prices", [{"input": 1.0}, {"prompt": -1.0}, {"prompt": "cheap"}])
def test_prices_that_are_none_are_refused_by_name(prices: Any) -> None:
    (name,) = prices
    with pytest.raises(ConfigurationError, match=f"numbers from 0 for completion, embedding, prompt.*{name}="):
        build(prices=prices)


SENTENCE = "Ada Byron met Charles Babbage in London."


@pytest.mark.parametrize("cls", [RaptorIndex, GEMRAGIndex])
def test_a_summary_that_says_one_thing_over_and_over_says_it_once(
    cls: Any, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    caplog.set_level(logging.INFO)
    given = {
        "summarizer": LLMSummarizer(retry=ONCE, min_in_text=0),
        "embed_model": HashEmbedding(),
        "cache": tmp_path / "cache.db",
    }
    if cls is GEMRAGIndex:
        given["extractor"] = UtilityQuestionExtractor(num_questions=0)
    for _ in range(2):  # from the model, and from the cache
        index = cls(chunks("d", 12), llm=ScriptedLLM(" ".join([SENTENCE] * 5)), **given)
        records = list(index.state.written.values())
        assert records
        assert all(SENTENCE in str(r["node"]) and f"{SENTENCE} {SENTENCE}" not in str(r["node"]) for r in records)
        assert all(record["dropped"]["repeated"] >= 3 for record in records)
    assert " 0 loops cut" not in told(caplog, logging.INFO)[0]
