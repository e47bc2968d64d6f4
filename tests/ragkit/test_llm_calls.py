"""One LLM call through the real OpenAI client: which failures are tried again, how long is waited, what is said."""

import asyncio
import time
from datetime import datetime, timedelta, timezone
from email.utils import format_datetime
from typing import Any

import pytest
from llama_index.llms.openai_like import OpenAILike
from tests.llm_server import LLMServer, Reply
from tests.ragkit.llm_cases import GOOD, KEY, PROMPT, QUICK, like, script

from llama_index.ragkit.errors import ConfigurationError, ExtractionError, LanguageModelError, ParseError
from llama_index.ragkit.llm.completion import RetryPolicy, complete, model_identity
from llama_index.ragkit.llm.json.output import parse_json
from llama_index.ragkit.llm.retry import is_transient
from llama_index.ragkit.redaction import redact
from llama_index.ragkit.steps import run_steps

PASSING = {
    "prose without JSON": "I would rather not.",
    "truncated before anything was finished": Reply('{"a": ["', finish_reason="length"),
    "empty": "",
    "429": Reply("slow down", status=429),
    "408": Reply("too slow", status=408),
    "500": Reply("oops", status=500),
    "503 with a page": Reply(status=503, body=b"<html>busy</html>", headers={"Content-Type": "text/html"}),
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


def test_a_hang_is_tried_again(drive: Any) -> None:
    with LLMServer(script(Reply(GOOD, delay=4), GOOD)) as server:
        llm = like(server, timeout=2)  # on a busy machine the second request needs part of it
        assert drive(complete(llm, PROMPT, parse=parse_json, retry=QUICK, text="t")) == {"a": ["x"]}
        assert len(server.asked) == 2


def test_lone_surrogates_do_not_pass(drive: Any) -> None:
    with LLMServer(lambda asked: "half \ud83d, other \ude00, both \ud83d\ude00") as server:
        reply = drive(complete(like(server), PROMPT, parse=str, retry=QUICK, text="t"))
        assert reply == "half \ufffd, other \ufffd, both 😀"


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
    with pytest.raises(LanguageModelError, match=rf"in 3 of 3 attempts.*Connection.*No server answers at {server.url}"):
        drive(complete(llm, PROMPT, parse=parse_json, retry=QUICK, text="t"))


def test_an_address_without_a_scheme_is_that_of_no_server() -> None:
    llm = OpenAILike(model="m", api_base="127.0.0.1:8000/v1", api_key=KEY, is_chat_model=True, max_retries=0)
    with pytest.raises(LanguageModelError, match=r"No server answers at 127\.0\.0\.1:8000/v1\."):
        run_steps(complete(llm, PROMPT, parse=parse_json, retry=QUICK, text="t"))


@pytest.mark.parametrize("body", [b"<html></html>", b'{"error": {"message": "loading"}}', b"null"])
def test_what_the_client_cannot_read_points_at_the_address(body: bytes) -> None:
    page = Reply(body=body, headers={"Content-Type": "text/html" if body.startswith(b"<") else "application/json"})
    with LLMServer(lambda asked: page) as server, pytest.raises(ExtractionError) as caught:
        run_steps(complete(like(server), PROMPT, parse=parse_json, retry=QUICK, text="t"))
    assert "OpenAILike may not understand what the server sends: check its address." in str(caught.value)


@pytest.mark.parametrize("mistake", [KeyError("k"), TypeError("t")])
def test_a_mistake_in_the_callers_parser_is_not_paid_for_twice(mistake: Exception, drive: Any) -> None:
    def parse(text: str) -> None:
        raise mistake

    with LLMServer(lambda asked: GOOD) as server:
        with pytest.raises(ExtractionError) as caught:
            drive(complete(like(server), PROMPT, parse=parse, retry=QUICK, text="t"))
        assert len(server.asked) == 1
    assert caught.value.__cause__ is mistake
    assert "the server" not in str(caught.value)


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
