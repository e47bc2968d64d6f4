"""One LLM call through the real OpenAI client: which failures are tried again, how long is waited, what is said."""

import asyncio
import json
import threading
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from email.utils import format_datetime
from functools import partial
from typing import Any

import pytest
from llama_index.core.base.llms.types import CompletionResponse, CompletionResponseGen, LLMMetadata
from llama_index.core.llms import LLM, CustomLLM, MockLLM
from llama_index.core.llms.callbacks import llm_completion_callback
from llama_index.core.output_parsers.pydantic import PydanticOutputParser
from llama_index.core.prompts import ChatPromptTemplate, PromptTemplate, SelectorPromptTemplate
from llama_index.llms.openai import OpenAI
from llama_index.llms.openai_like import OpenAILike
from pydantic import BaseModel
from tests.llm_server import Asked, LLMServer, Reply

from llama_index.ragkit.driver import Steps, arun_steps, run_steps
from llama_index.ragkit.errors import ConfigurationError, ExtractionError, ParseError
from llama_index.ragkit.json_output import parse_json, parse_model
from llama_index.ragkit.llm_calls import RetryPolicy, complete, model_identity
from llama_index.ragkit.retry import is_transient, redact

KEY = "sk-very-secret-0123456789"
QUICK = RetryPolicy(max_attempts=3, min_wait=0.0, max_wait=0.3)
PROMPT = PromptTemplate('Read {text} and answer like {"a": [1]}.')


class Facts(BaseModel):
    """What is said."""

    a: list[str]


def like(server: LLMServer, **kwargs: Any) -> OpenAILike:
    settings = {"model": "m", "api_key": KEY, "is_chat_model": True, "max_retries": 0, "timeout": 0.5, **kwargs}
    return OpenAILike(api_base=server.url, **settings)


def script(*replies: Reply | str) -> Callable[[Asked], Reply | str]:
    """One reply after another; the last one for ever."""
    left = iter(replies)
    last: list[Reply | str] = []

    def answer(asked: Asked) -> Reply | str:
        last[:] = [next(left, last[0] if last else "")]
        return last[0]

    return answer


@pytest.fixture(params=["sync", "async"])
def drive(request: pytest.FixtureRequest) -> Callable[[Steps[Any]], Any]:
    return run_steps if request.param == "sync" else lambda steps: asyncio.run(arun_steps(steps))


GOOD = '```json\n{"a": ["x"]}\n```'
PASSING = {
    "prose without JSON": "I would rather not.",
    "truncated before anything was finished": Reply('{"a": ["', finish_reason="length"),
    "empty": "",
    "429": Reply("slow down", status=429),
    "408": Reply("too slow", status=408),
    "500": Reply("oops", status=500),
    "503 with a page": Reply(status=503, body=b"<html>busy</html>", headers={"Content-Type": "text/html"}),
    "a hang": Reply(GOOD, delay=1.2),
    "a cut connection": Reply(GOOD, cut=True),
    "a garbage body": Reply(body=b"\x00\xffgarbage"),
    "a body of another kind": Reply(body=b'{"detail": "maintenance"}'),
    "no choices": Reply(body=b'{"id": "1", "choices": [], "created": 0, "model": "m", "object": "chat.completion"}'),
    "a page instead of a body": Reply(body=b"<html></html>", headers={"Content-Type": "text/html"}),
}


@pytest.mark.parametrize("fault", PASSING.values(), ids=PASSING.keys())
def test_what_may_pass_is_tried_again(fault: Reply | str, drive: Any) -> None:
    with LLMServer(script(fault, GOOD)) as server:
        assert drive(complete(like(server), PROMPT, parse=parse_json, retry=QUICK, text="t")) == {"a": ["x"]}
        assert len(server.asked) == 2


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
def test_what_will_not_pass_is_not_tried_again(status: int, drive: Any) -> None:
    with LLMServer(lambda asked: Reply(f"refused {KEY}", status=status)) as server:
        with pytest.raises(ExtractionError, match="in 1 of 3 attempts") as caught:
            drive(complete(like(server), PROMPT, parse=parse_json, retry=QUICK, text="t"))
        assert len(server.asked) == 1
    assert caught.value.__cause__.status_code == status  # type: ignore[union-attr]
    assert "refused ***" in str(caught.value)
    assert KEY not in str(caught.value)


def test_the_last_failure_says_how_often_and_why(drive: Any) -> None:
    with LLMServer(lambda asked: "no JSON here") as server:
        with pytest.raises(ExtractionError, match=r"in 3 of 3 attempts.*no JSON here") as caught:
            drive(complete(like(server), PROMPT, parse=parse_json, retry=QUICK, text="t"))
        assert len(server.asked) == 3
    assert isinstance(caught.value.__cause__, ParseError)


def test_an_error_page_does_not_fill_the_message() -> None:
    page = Reply(status=500, body=b"x" * 100_000, headers={"Content-Type": "text/html"})
    with LLMServer(lambda asked: page) as server, pytest.raises(ExtractionError) as caught:
        run_steps(complete(like(server), PROMPT, parse=parse_json, retry=QUICK, text="t"))
    assert len(str(caught.value)) < 1000


def test_a_connection_that_is_refused_is_tried_again(drive: Any) -> None:
    with LLMServer(lambda asked: GOOD) as server:
        llm = like(server)
    with pytest.raises(ExtractionError, match=r"in 3 of 3 attempts.*Connection"):
        drive(complete(llm, PROMPT, parse=parse_json, retry=QUICK, text="t"))


@pytest.mark.parametrize("mistake", [KeyError("k"), TypeError("t")])
def test_a_mistake_in_the_callers_parser_is_not_paid_for_twice(mistake: Exception, drive: Any) -> None:
    def parse(text: str) -> None:
        raise mistake

    with LLMServer(lambda asked: GOOD) as server:
        with pytest.raises(ExtractionError) as caught:
            drive(complete(like(server), PROMPT, parse=parse, retry=QUICK, text="t"))
        assert len(server.asked) == 1
    assert caught.value.__cause__ is mistake


def test_a_slow_body_and_a_slow_stream_are_waited_for(drive: Any) -> None:
    with LLMServer(lambda asked: Reply(GOOD, drip=0.05)) as server:
        assert drive(complete(like(server), PROMPT, parse=parse_json, retry=QUICK, text="t")) == {"a": ["x"]}
        assert "".join(part.delta or "" for part in like(server).stream_complete("t")).strip() == GOOD


# -- waits ---------------------------------------------------------------------------------------------


def http_error(status: int, **headers: str) -> Exception:
    error = RuntimeError("from the client")
    error.response = type("Response", (), {"status_code": status, "headers": headers})  # type: ignore[attr-defined]
    return error


def test_waits_double_up_to_a_bound() -> None:
    policy = RetryPolicy(min_wait=1.0, max_wait=10.0)
    for attempt, longest in [(1, 1.0), (2, 2.0), (3, 4.0), (4, 8.0), (5, 10.0), (5000, 10.0)]:
        waits = [policy.wait(attempt, None) for _ in range(50)]
        assert longest / 2 <= min(waits) <= max(waits) <= longest


def test_a_server_is_given_the_time_it_asks_for_within_the_bound() -> None:
    policy = RetryPolicy(min_wait=0.0, max_wait=10.0)
    assert policy.wait(1, http_error(429, **{"retry-after": "7"})) == 7.0
    assert policy.wait(1, http_error(429, **{"retry-after": "7000"})) == 10.0
    soon = format_datetime(datetime.now(timezone.utc) + timedelta(seconds=6), usegmt=True)
    assert 4.0 < policy.wait(1, http_error(429, **{"retry-after": soon})) <= 6.0
    for useless in ("-3", "soon", "nan", "Wed, 21 Oct 2015 07:28:00 GMT", ""):
        assert policy.wait(1, http_error(429, **{"retry-after": useless})) == 0.0


def test_retry_after_of_a_real_response_is_honoured(drive: Any) -> None:
    busy = Reply("slow down", status=429, headers={"Retry-After": "0.25"})
    with LLMServer(script(busy, GOOD)) as server:
        times = []
        inner = server.script
        server.script = lambda asked: times.append(time.monotonic()) or inner(asked)  # type: ignore[func-returns-value]
        drive(complete(like(server), PROMPT, parse=parse_json, retry=QUICK, text="t"))
    assert times[1] - times[0] >= 0.25


@pytest.mark.parametrize("wrong", [{"max_attempts": 0}, {"min_wait": -1.0}, {"min_wait": 2.0, "max_wait": 1.0}])
def test_policies_that_cannot_be_meant_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match="max_attempts >= 1"):
        RetryPolicy(**wrong)


def test_errors_are_sorted_without_knowing_their_library() -> None:
    class AuthenticationError(Exception):
        pass

    class ResourceExhausted(Exception):  # noqa: N818 - as Google's is called
        code = 429

    wrapped = RuntimeError("wrapped")
    wrapped.__cause__ = http_error(401)
    for passing in (ConnectionError(), TimeoutError(), asyncio.TimeoutError(), ResourceExhausted(), http_error(502)):
        assert is_transient(passing)
    for lasting in (AuthenticationError(), http_error(400), wrapped, NotImplementedError(), ConfigurationError("c")):
        assert not is_transient(lasting)


# -- secrets -------------------------------------------------------------------------------------------


def test_no_key_shows_in_messages_or_in_what_the_cache_goes_by() -> None:
    with LLMServer(lambda asked: "") as server:
        llm = like(server, default_headers={"X-Auth": "header-secret-1"}, additional_kwargs={"user": "u"})
    message = redact(f"bad key {KEY} or header-secret-1, not sk-abcdefghijkl nor Bearer abc.def", llm)
    assert message == "bad key *** or ***, not *** nor Bearer ***"
    assert KEY not in model_identity(llm)
    assert "127.0.0.1" not in model_identity(llm)
    assert "header-secret-1" not in model_identity(llm)


def test_models_that_answer_differently_have_different_identities() -> None:
    with LLMServer(lambda asked: "") as server:
        variants = [{}, {"model": "n"}, {"temperature": 0.9}, {"max_tokens": 5}, {"system_prompt": "Be brief."}]
        assert len({model_identity(like(server, **variant)) for variant in variants}) == len(variants)
        assert model_identity(like(server)) == model_identity(like(server, api_key="another", timeout=9))


# -- chat, completion, own LLMs ------------------------------------------------------------------------


def test_chat_and_completion_models_are_asked_where_they_listen(drive: Any) -> None:
    with LLMServer(lambda asked: GOOD) as server:
        for chat, path in ((True, "/v1/chat/completions"), (False, "/v1/completions")):
            llm = like(server, is_chat_model=chat)
            assert drive(complete(llm, PROMPT, parse=parse_json, retry=QUICK, text="{t}")) == {"a": ["x"]}
            assert server.asked[-1].path == path
            assert server.asked[-1].prompt == 'Read {t} and answer like {"a": [1]}.'


def test_the_openai_class_itself_works_as_well(drive: Any) -> None:
    with LLMServer(script(Reply(status=500), GOOD)) as server:
        llm = OpenAI(model="gpt-4o-mini", api_base=server.url, api_key=KEY, max_retries=0, timeout=5)
        assert drive(complete(llm, PROMPT, parse=parse_json, retry=QUICK, text="t")) == {"a": ["x"]}


def test_chat_prompts_and_system_prompts_reach_the_model() -> None:
    prompt = ChatPromptTemplate.from_messages([("system", "Answer in JSON."), ("user", "Read {text}.")])
    with LLMServer(lambda asked: GOOD) as server:
        run_steps(complete(like(server, system_prompt="Be brief."), prompt, parse=parse_json, text="t"))
        assert [m["content"] for m in server.asked[0].body["messages"]] == ["Be brief.", "Answer in JSON.", "Read t."]


class Slow(CustomLLM):
    """A user's own model, with a synchronous method only."""

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(model_name="slow")

    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        assert threading.current_thread() is not threading.main_thread(), "called on the event loop"
        return CompletionResponse(text=GOOD)

    @llm_completion_callback()
    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponseGen:
        raise NotImplementedError


def test_an_own_llm_without_async_methods_does_not_block_the_event_loop() -> None:
    steps = complete(Slow(), PROMPT, parse=parse_json, text="t")
    assert asyncio.run(arun_steps(steps)) == {"a": ["x"]}


def test_a_mock_llm_echoes_its_prompt(drive: Any) -> None:
    assert drive(complete(MockLLM(), PROMPT, parse=parse_json, text="t")) == {"a": [1]}


def test_sync_then_async_then_sync_over_one_client_and_several_loops() -> None:
    with LLMServer(lambda asked: GOOD) as server:
        llm = like(server, timeout=5, reuse_client=False)
        for _ in range(2):
            assert run_steps(complete(llm, PROMPT, parse=parse_json, text="t"))
            assert asyncio.run(arun_steps(complete(llm, PROMPT, parse=parse_json, text="t")))


def test_sync_calls_touch_no_async_client_and_work_inside_a_running_loop() -> None:
    with LLMServer(lambda asked: GOOD) as server:
        llm = like(server, timeout=5)

        async def inside() -> Any:
            return run_steps(complete(llm, PROMPT, parse=parse_json, text="t"))

        assert asyncio.run(inside()) == asyncio.run(inside()) == {"a": ["x"]}
        assert llm._aclient is None


# -- schemas -------------------------------------------------------------------------------------------

parse_facts = partial(parse_model, model=Facts)


def test_function_mode_calls_a_function_with_the_fields_of_the_schema(drive: Any) -> None:
    broken = Reply(tool_arguments='{"a": ["x"')
    nothing = Reply("no call")
    with LLMServer(script(nothing, Reply(tool_arguments="garbage"), Reply(tool_arguments='{"a": ["x"]}'))) as server:
        llm = like(server, is_function_calling_model=True, system_prompt="Be brief.")
        steps = complete(llm, PROMPT, parse=parse_facts, retry=QUICK, mode="function", output_cls=Facts, text="t")
        assert drive(steps) == Facts(a=["x"])
        assert len(server.asked) == 3
        assert server.asked[0].body["tools"][0]["function"]["name"] == "Facts"
        assert server.asked[0].body["tool_choice"] == "required"
        assert server.asked[0].body["messages"][0]["content"] == "Be brief."
        server.script = lambda asked: broken
        assert drive(complete(llm, PROMPT, parse=parse_facts, mode="function", output_cls=Facts, text="t")).a == ["x"]


def test_json_schema_mode_sends_the_schema(drive: Any) -> None:
    with LLMServer(script("no", '{"a": ["x"]}')) as server:
        llm = like(server, should_use_structured_outputs=True)
        steps = complete(llm, PROMPT, parse=parse_facts, retry=QUICK, mode="json_schema", output_cls=Facts, text="t")
        assert drive(steps) == Facts(a=["x"])
        assert server.asked[1].body["response_format"]["json_schema"]["name"] == "Facts"
        assert server.asked[1].prompt == 'Read t and answer like {"a": [1]}.'


@pytest.mark.parametrize("mode", ["function", "json_schema", "yaml"])
def test_modes_that_the_model_lacks_are_refused_before_it_is_asked(mode: Any) -> None:
    with LLMServer(lambda asked: GOOD) as server:
        for llm in (like(server), like(server, is_chat_model=False), MockLLM()):
            with pytest.raises(ConfigurationError, match="mode"):
                run_steps(complete(llm, PROMPT, parse=parse_facts, mode=mode, output_cls=Facts, text="t"))
        with pytest.raises(ConfigurationError, match="output_cls"):
            run_steps(complete(like(server), PROMPT, parse=parse_facts, mode="function", text="t"))
        assert server.asked == []


@pytest.fixture
def able() -> Iterator[Callable[[str], LLM]]:
    def answer(asked: Asked) -> Reply:
        return Reply('{"a": ["x"]}', tool_arguments='{"a": ["x"]}' if asked.body.get("tools") else None)

    with LLMServer(answer) as server:
        yield lambda mode: like(
            server, is_function_calling_model=mode == "function", should_use_structured_outputs=mode == "json_schema"
        )


@pytest.mark.parametrize("mode", ["text", "function", "json_schema"])
def test_the_prompt_of_the_caller_is_never_changed(mode: Any, able: Callable[[str], LLM], drive: Any) -> None:
    parser = PydanticOutputParser(Facts)
    inner = PromptTemplate("Read {text}.")
    for prompt in (inner, SelectorPromptTemplate(inner), PromptTemplate("Read {text}.", output_parser=parser)):
        before = prompt.output_parser, json.dumps(inner.template), dict(prompt.kwargs), dict(prompt.metadata)
        drive(complete(able(mode), prompt, parse=parse_facts, mode=mode, output_cls=Facts, text="t"))
        assert (prompt.output_parser, json.dumps(inner.template), dict(prompt.kwargs), dict(prompt.metadata)) == before
        assert inner.output_parser is None
