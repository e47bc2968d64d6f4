"""What fails is heard: errors that will not go away end a write, and the others are listed and tried again."""

import socket
from typing import Any

import pytest
from llama_index.core import Settings
from llama_index.core.llms import MockLLM
from tests.cases import CASES, Case, chunks
from tests.llm_server import Asked, LLMServer, Reply
from tests.together.plugins import ONCE, with_llm
from tests.together.server import client

from llama_index.hipporag import HippoRAGIndex, OpenIEExtractor
from llama_index.ragkit import LLMSummarizer
from llama_index.ragkit.errors import ConfigurationError, ExtractionError, LanguageModelError
from llama_index.ragkit.testing import HashEmbedding, ScriptedLLM
from llama_index.raptor import RaptorIndex

ASKING = [case for case in CASES if with_llm(case)]
each_asking = pytest.mark.parametrize("case", ASKING, ids=lambda case: case.name)
# Those that ask about each node; spRAG asks about documents, of which there is one here.
READING = [case for case in ASKING if "extractor" in with_llm(case) and case.name != "sprag"]
each_node = pytest.mark.parametrize("case", READING, ids=lambda case: case.name)


def built(case: Case, count: int, **kwargs: Any) -> Any:
    nodes = [node for i in range(count) for node in chunks(f"d{i}", 1)]  # a document each: some methods read it whole
    return case.cls(nodes=nodes, embed_model=case.embed_model(), **{**with_llm(case), **kwargs})


@each_asking
@pytest.mark.parametrize("status", [401, 404])
def test_a_wrong_key_or_model_ends_a_write_at_the_first_call(case: Case, status: int) -> None:
    with LLMServer(lambda asked: Reply("no such key", status=status)) as server:
        with pytest.raises(LanguageModelError, match="no such key"):
            built(case, 12, llm=client(server), num_workers=2)
        assert len(server.asked) <= 2  # those that were running


@each_asking
def test_a_server_that_is_down_ends_a_write(case: Case) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(LanguageModelError, match="Connection error"):
        built(case, 12, llm=client(f"http://127.0.0.1:{port}/v1"), num_workers=1)


@each_node
def test_a_server_that_fails_several_times_in_a_row_ends_a_write(case: Case) -> None:
    with LLMServer(lambda asked: Reply("out of memory", status=500)) as server:
        with pytest.raises(LanguageModelError, match=r"5 (nodes|documents) in a row failed for the same reason"):
            built(case, 12, llm=client(server), num_workers=1)
        assert len(server.asked) == 5


def facts(prompt: str) -> str:
    return '{"named_entities": []}' if "triples" not in prompt else '{"triples": []}'


def hippo(llm: Any, count: int, **kwargs: Any) -> HippoRAGIndex:
    return HippoRAGIndex(
        nodes=chunks("d", count),
        llm=llm,
        extractor=OpenIEExtractor(retry=ONCE),
        embed_model=HashEmbedding(),
        **{"num_workers": 1, **kwargs},
    )


def test_what_was_paid_for_before_a_write_ended_is_not_paid_for_again(tmp_path: Any) -> None:
    asked: list[str] = []
    good = 6

    def script(given: Asked) -> Reply:
        asked.append(given.prompt)
        return Reply(facts(given.prompt)) if len(asked) <= good else Reply("out of memory", status=500)

    with LLMServer(script) as server:
        with pytest.raises(LanguageModelError):
            hippo(client(server), 10, cache=tmp_path / "cache.db")
        asked.clear()
        good = 100
        index = hippo(client(server), 10, cache=tmp_path / "cache.db")
    assert len(asked) == 2 * 10 - 6
    assert index.failures() == []


@each_node
def test_a_server_that_serves_no_node_ends_a_write(case: Case) -> None:
    with (
        LLMServer(lambda asked: Reply("out of memory", status=500)) as server,
        pytest.raises(LanguageModelError, match=r"^All 3 (nodes|documents) failed\. Node 'd0-0': No usable reply"),
    ):
        built(case, 3, llm=client(server))


def test_failures_are_listed_with_node_step_and_reason_and_the_log_says_how_to_retry(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def script(prompt: str) -> str:
        return "I would rather not." if chunks("d", 3)[1].text in prompt and "triples" in prompt else facts(prompt)

    index = hippo(ScriptedLLM(script), 3)
    (failure,) = index.failures()
    assert (failure.node_id, failure.step) == ("d-1", "triples")
    assert "I would rather not." in failure.reason
    assert "failed at 1 of 3 nodes" in caplog.text
    assert "retry_failed()" in caplog.text
    assert index.retry_failed() == 1
    assert index.failures() == [failure]


def test_summaries_that_fail_are_listed_too() -> None:
    nodes = chunks("d", 30)
    index = RaptorIndex(
        nodes=nodes,
        llm=ScriptedLLM(lambda prompt: "" if nodes[0].text in prompt else "It is a summary."),
        summarizer=LLMSummarizer(retry=ONCE, min_in_text=0),
        embed_model=HashEmbedding(),
        fallback=None,
    )
    failed = index.failures()
    assert failed
    assert {failure.node_id for failure in failed} == set(index.state.unwritten)
    assert {failure.step for failure in failed} == {"summary"}
    assert all("The reply is empty" in failure.reason for failure in failed)


def test_an_error_names_the_node() -> None:
    def script(prompt: str) -> str:
        return "I would rather not." if chunks("d", 3)[2].text in prompt else facts(prompt)

    with pytest.raises(ExtractionError, match=r"^Node 'd-2': No usable reply of the LLM to 'entities'"):
        hippo(ScriptedLLM(script), 3, on_error="raise")


@each_asking
def test_without_a_language_model_what_needs_none_is_named(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Settings, "_llm", MockLLM())
    with pytest.raises(ConfigurationError, match=r"only LlamaIndex's MockLLM.*or use (?:extractor|summarizer)="):
        built(case, 4)
