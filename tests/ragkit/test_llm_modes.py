"""LLM calls by kind: chat and completion, own classes, several event loops, functions and schemas."""

import asyncio
import json
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, partial
from typing import Any

import pytest
from llama_index.core.base.llms.types import CompletionResponse, CompletionResponseGen, LLMMetadata
from llama_index.core.llms import LLM, CustomLLM, MockLLM
from llama_index.core.llms.callbacks import llm_completion_callback
from llama_index.core.output_parsers.pydantic import PydanticOutputParser
from llama_index.core.prompts import ChatPromptTemplate, PromptTemplate, SelectorPromptTemplate
from llama_index.llms.openai import OpenAI
from llama_index.llms.openai_like import OpenAILike
from tests.llm_server import Asked, LLMServer, Reply
from tests.ragkit.llm_cases import GOOD, KEY, PROMPT, QUICK, Facts, like, script

from llama_index.ragkit.errors import ConfigurationError, ExtractionError
from llama_index.ragkit.llm.completion import complete
from llama_index.ragkit.llm.context_window import limited, prompt_room
from llama_index.ragkit.llm.json.output import parse_json, parse_model
from llama_index.ragkit.steps import arun_steps, run_steps

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


def test_a_mock_llm_is_no_language_model(drive: Any) -> None:
    with pytest.raises(ConfigurationError, match="MockLLM, which Settings"):
        drive(complete(MockLLM(), PROMPT, parse=parse_json, text="t"))


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
needs_schemas = pytest.mark.skipif(
    "should_use_structured_outputs" not in OpenAILike.model_fields, reason="an OpenAILike that sends no schemas"
)


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


@needs_schemas
def test_json_schema_mode_sends_the_schema(drive: Any) -> None:
    with LLMServer(script("no", '{"a": ["x"]}')) as server:
        llm = like(server, should_use_structured_outputs=True)
        steps = complete(llm, PROMPT, parse=parse_facts, retry=QUICK, mode="json_schema", output_cls=Facts, text="t")
        assert drive(steps) == Facts(a=["x"])
        assert server.asked[1].body["response_format"]["json_schema"]["name"] == "Facts"
        assert server.asked[1].prompt.startswith('Read t and answer like {"a": [1]}.')


@pytest.mark.parametrize("mode", ["function", "json_schema", "yaml"])
def test_modes_that_the_model_lacks_are_refused_before_it_is_asked(mode: Any) -> None:
    with LLMServer(lambda asked: GOOD) as server:
        for llm in (like(server), like(server, is_chat_model=False)):
            with pytest.raises(ConfigurationError, match="mode"):
                run_steps(complete(llm, PROMPT, parse=parse_facts, mode=mode, output_cls=Facts, text="t"))
        assert server.asked == []


@pytest.fixture
def able() -> Iterator[Callable[[str], LLM]]:
    def answer(asked: Asked) -> Reply:
        return Reply('{"a": ["x"]}', tool_arguments='{"a": ["x"]}' if asked.body.get("tools") else None)

    with LLMServer(answer) as server:
        yield lambda mode: like(
            server, is_function_calling_model=mode == "function", should_use_structured_outputs=mode == "json_schema"
        )


@pytest.mark.parametrize("mode", ["text", "function", pytest.param("json_schema", marks=needs_schemas)])
def test_the_prompt_of_the_caller_is_never_changed(mode: Any, able: Callable[[str], LLM], drive: Any) -> None:
    parser = PydanticOutputParser(Facts)
    inner = PromptTemplate("Read {text}.")
    for prompt in (inner, SelectorPromptTemplate(inner), PromptTemplate("Read {text}.", output_parser=parser)):
        before = prompt.output_parser, json.dumps(inner.template), dict(prompt.kwargs), dict(prompt.metadata)
        drive(complete(able(mode), prompt, parse=parse_facts, mode=mode, output_cls=Facts, text="t"))
        assert (prompt.output_parser, json.dumps(inner.template), dict(prompt.kwargs), dict(prompt.metadata)) == before
        assert inner.output_parser is None


class Schemas(Slow):
    """Its structured output is LlamaIndex's text program, which writes a parser into the prompt."""

    def structured_predict(self, *args: Any, **kwargs: Any) -> Any:
        seen.append(args[1])
        return super().structured_predict(*args, **kwargs)


seen: list[PromptTemplate] = []


def test_a_program_that_writes_into_its_prompt_gets_a_copy() -> None:
    for prompt in (PROMPT, SelectorPromptTemplate(PROMPT)):
        steps = complete(Schemas(), prompt, parse=parse_facts, mode="json_schema", output_cls=Facts, text="t")
        assert asyncio.run(arun_steps(steps)) == Facts(a=["x"])
        assert seen[-1].output_parser is not None
        assert prompt.output_parser is None
        assert PROMPT.output_parser is None


# -- what a server refuses ---------------------------------------------------------------------------------

_TOOLS_REFUSED = [
    (400, "tools are not supported by this model"),
    (500, "tools param requires --jinja flag"),
    (404, "No endpoints found that support tool use"),
]


@pytest.mark.parametrize(("status", "told"), _TOOLS_REFUSED)
def test_a_model_whose_server_refuses_functions_is_asked_for_text(status: int, told: str, drive: Any) -> None:
    def answer(asked: Asked) -> Reply | str:
        return Reply(told, status=status) if asked.body.get("tools") else GOOD

    with LLMServer(answer) as server:
        llm = like(server, is_function_calling_model=True, reuse_client=False)
        for _ in range(2):
            found = drive(complete(llm, PROMPT, parse=parse_facts, retry=QUICK, output_cls=Facts, text="t"))
            assert found == Facts(a=["x"])
        assert [bool(asked.body.get("tools")) for asked in server.asked] == [True, False, False]


@pytest.mark.parametrize("status", [429, 503])
def test_a_server_that_is_busy_is_not_taken_for_one_without_functions(status: int, drive: Any) -> None:
    busy = Reply("too many requests with tools" if status == 429 else "overloaded", status=status)
    with LLMServer(script(busy, Reply(tool_arguments='{"a": ["x"]}'))) as server:
        llm = like(server, is_function_calling_model=True)
        found = drive(complete(llm, PROMPT, parse=parse_facts, retry=QUICK, output_cls=Facts, text="t"))
        assert found == Facts(a=["x"])
        assert all(asked.body.get("tools") for asked in server.asked)


@pytest.mark.parametrize("refused", ["tools", "max_tokens"])
def test_a_refusal_is_answered_although_another_worker_has_met_it_first(refused: str) -> None:
    first = threading.Event()

    def answer(asked: Asked) -> Reply | str:
        if asked.body.get(refused):
            if "late" in asked.prompt:
                first.wait(10)
            return Reply(f"{refused} is not supported with this model", status=400)
        return GOOD

    with LLMServer(answer) as server:
        llm = like(server, is_function_calling_model=refused == "tools")

        def ask(text: str) -> Facts:
            steps = complete(llm, PROMPT, parse=parse_facts, retry=QUICK, output_cls=Facts, reply_tokens=64, text=text)
            return run_steps(steps)

        with ThreadPoolExecutor() as pool:
            late = pool.submit(ask, "late")
            while not server.asked:
                time.sleep(0.01)
            assert ask("soon") == Facts(a=["x"])
            first.set()
            assert late.result() == Facts(a=["x"])


class Exhausted(Slow):
    """A client whose replies have run out."""

    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        return CompletionResponse(text=next(iter(())))


def test_an_llm_that_raises_stop_iteration_fails_in_a_thread_too() -> None:
    steps = complete(Exhausted(), PROMPT, parse=parse_json, retry=QUICK, text="t")
    with pytest.raises(ExtractionError, match="StopIteration"):
        asyncio.run(asyncio.wait_for(arun_steps(steps), 10))


class WithClient(Slow):
    """A model with a bound, which makes its client when it is first needed."""

    max_tokens: int = 512

    @cached_property
    def client(self) -> object:
        return object()


def test_a_model_that_has_made_its_client_meanwhile_is_copied_again() -> None:
    llm = WithClient()
    before = limited(llm, 64)
    client = llm.client
    after = limited(llm, 64)
    assert after is not before
    assert vars(after)["client"] is client
    assert limited(llm, 64) is after


def test_the_room_of_a_prompt_with_functions_is_measured_without_its_texts() -> None:
    prompt = PromptTemplate("Read {text}.", function_mappings={"text": lambda **given: given["text"]})
    plain = PromptTemplate("Read {text}.")
    assert prompt_room(Slow(), prompt, 100) == prompt_room(Slow(), plain, 100)


def test_what_is_filled_into_a_prompt_takes_room() -> None:
    given = {"about": "the lights of the coast " * 50}
    for functions in (None, {"text": lambda **known: known["text"]}):
        prompt = PromptTemplate("Read {text} on {about}.", function_mappings=functions)
        whole = PromptTemplate(f"Read {{text}} on {given['about']}.")
        assert prompt_room(Slow(), prompt.partial_format(**given), 100) == prompt_room(Slow(), whole, 100)
