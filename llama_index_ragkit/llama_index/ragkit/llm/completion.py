"""A single LLM call with retries.

Transient failures (:func:`is_transient`) and replies that `parse` rejects are retried with exponential backoff. Many
clients retry on their own as well: set `max_retries=0` on the LLM, so that the attempts do not multiply.
"""

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar, get_args

from llama_index.core.base.llms.types import ChatResponse
from llama_index.core.llms import LLM, CustomLLM
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.program.function_program import get_function_tool
from llama_index.core.prompts import BasePromptTemplate, SelectorPromptTemplate
from pydantic import BaseModel
from tenacity import AsyncRetrying, RetryCallState, Retrying, retry_if_exception_type, stop_after_attempt

from llama_index.ragkit.core_internals import may_send_json_schema, with_system_prompt
from llama_index.ragkit.errors import ConfigurationError, ExtractionError, ParseError
from llama_index.ragkit.llm.json.output import storable
from llama_index.ragkit.llm.redaction import redact
from llama_index.ragkit.llm.retry import RetryPolicy, is_transient
from llama_index.ragkit.steps import Request, Steps
from llama_index.ragkit.validation import check_choice

__all__ = ["Mode", "RetryPolicy", "ask", "complete", "model_identity"]

T = TypeVar("T")
Mode = Literal["text", "function", "json_schema"]
_DEFAULT_RETRY = RetryPolicy()
_LONGEST_REASON = 500  # characters; a failing proxy may reply with a whole HTML page


@dataclass(frozen=True)
class Completion(Generic[T]):
    """The text of a reply and its parsed value."""

    text: str
    value: T


def complete(
    llm: LLM,
    prompt: BasePromptTemplate,
    *,
    parse: Callable[[str], T],
    retry: RetryPolicy = _DEFAULT_RETRY,
    mode: Mode = "text",
    output_cls: type[BaseModel] | None = None,
    **prompt_args: Any,
) -> Steps[T]:
    """Call the model and parse its reply.

    Parameters
    ----------
    llm : any LlamaIndex LLM, called by its chat or completion method as in `llm.predict`. An asynchronous driver
        awaits the asynchronous methods, except those that a `CustomLLM` inherits: they would block the event loop, so
        its synchronous methods run in a thread
    prompt : formatted with `prompt_args`; never changed
    parse : parses the reply; a `ValueError` (`ParseError`, pydantic's `ValidationError`) rejects it
    mode : "text"; or, for models that support it, "function" (the model calls a function whose parameters are the
        fields of `output_cls`) or "json_schema" (`llm.structured_predict`); `parse` then receives JSON text
    output_cls : the schema for the latter two modes

    Raises
    ------
    ExtractionError
        When the last attempt failed, or one with an error that is not retried; its cause is that error.
    ConfigurationError
        If the model does not support `mode`.
    """
    reply = yield from ask(llm, prompt, parse=parse, retry=retry, mode=mode, output_cls=output_cls, **prompt_args)
    return reply.value


def ask(
    llm: LLM,
    prompt: BasePromptTemplate,
    *,
    parse: Callable[[str], T],
    retry: RetryPolicy = _DEFAULT_RETRY,
    mode: Mode = "text",
    output_cls: type[BaseModel] | None = None,
    **prompt_args: Any,
) -> Steps[Completion[T]]:
    """As :func:`complete`, but returns the text of the reply too."""
    _check_mode(llm, mode, output_cls)
    chosen = prompt.select(llm) if isinstance(prompt, SelectorPromptTemplate) else prompt
    # Programs of LlamaIndex write their output parser into the prompt that they receive, so they get a copy.
    reply: Completion[T] = yield _Ask(llm, chosen.model_copy(), prompt_args, parse, retry, mode, output_cls)
    return reply


def model_identity(llm: LLM) -> str:
    """What identifies a model in cache keys, as JSON, without API key and address."""
    settings = {name: getattr(llm, name, None) for name in ("temperature", "max_tokens", "system_prompt")}
    identity = {"class": type(llm).__name__, "model": llm.metadata.model_name, **settings}
    return json.dumps(identity, sort_keys=True, default=str)


class _RetryableError(Exception):
    """Marks its cause as retryable."""


@contextmanager
def _marking(retryable: Callable[[Exception], bool]) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        if retryable(error):
            raise _RetryableError from error
        raise


@dataclass(frozen=True)
class _Ask(Request, Generic[T]):
    llm: LLM
    prompt: BasePromptTemplate
    prompt_args: dict[str, Any]
    parse: Callable[[str], T]
    retry: RetryPolicy
    mode: Mode
    output_cls: type[BaseModel] | None

    def run(self) -> Completion[T]:
        def once() -> Completion[T]:
            with _marking(is_transient):
                text = self._reply()
            return self._read(text)

        retrying = Retrying(**self._rules())
        try:
            return retrying(once)
        except ConfigurationError:
            raise
        except Exception as error:
            raise self._failure(error, retrying.statistics) from _cause(error)

    async def arun(self) -> Completion[T]:
        blocking = _blocks_event_loop(self.llm)

        async def once() -> Completion[T]:
            with _marking(is_transient):
                text = await (asyncio.to_thread(self._reply) if blocking else self._areply())
            return self._read(text)

        retrying = AsyncRetrying(**self._rules())
        try:
            return await retrying(once)
        except ConfigurationError:
            raise
        except Exception as error:
            raise self._failure(error, retrying.statistics) from _cause(error)

    def _reply(self) -> str:
        llm, cls = self.llm, self.output_cls
        if self.mode == "function" and cls is not None and isinstance(llm, FunctionCallingLLM):
            response = llm.chat_with_tools([get_function_tool(cls)], **self._tool_arguments())
            return self._function_arguments(response)
        if self.mode == "json_schema" and cls is not None:
            answer: BaseModel = llm.structured_predict(cls, self.prompt, **self.prompt_args)
            return answer.model_dump_json()
        return llm.predict(self.prompt, **self.prompt_args)

    async def _areply(self) -> str:
        llm, cls = self.llm, self.output_cls
        if self.mode == "function" and cls is not None and isinstance(llm, FunctionCallingLLM):
            response = await llm.achat_with_tools([get_function_tool(cls)], **self._tool_arguments())
            return self._function_arguments(response)
        if self.mode == "json_schema" and cls is not None:
            answer: BaseModel = await llm.astructured_predict(cls, self.prompt, **self.prompt_args)
            return answer.model_dump_json()
        return await llm.apredict(self.prompt, **self.prompt_args)

    def _tool_arguments(self) -> dict[str, Any]:
        messages = self.prompt.format_messages(llm=self.llm, **self.prompt_args)
        return {"chat_history": with_system_prompt(self.llm, messages), "tool_required": True}

    def _function_arguments(self, response: ChatResponse) -> str:
        calls = self.llm.get_tool_calls_from_response(response)  # type: ignore[attr-defined]
        if not calls or not calls[0].tool_kwargs:  # clients replace arguments that they cannot parse by none
            raise ParseError("The reply has no function call with arguments that can be read.")
        return json.dumps(calls[0].tool_kwargs)

    def _read(self, text: str) -> Completion[T]:
        text = storable(text)  # a reply can contain lone surrogates, which stores and embedding models reject
        with _marking(lambda error: isinstance(error, ValueError)):
            return Completion(text, self.parse(text))

    def _rules(self) -> dict[str, Any]:
        def wait(state: RetryCallState) -> float:
            error = state.outcome.exception() if state.outcome else None
            return self.retry.wait(state.attempt_number, error.__cause__ if error else None)

        return {
            "stop": stop_after_attempt(self.retry.max_attempts),
            "wait": wait,
            "retry": retry_if_exception_type(_RetryableError),
            "reraise": True,
        }

    def _failure(self, error: Exception, statistics: dict[str, Any]) -> ExtractionError:
        cause = _cause(error)
        reason = redact(f"{type(cause).__name__}: {cause}", self.llm)[:_LONGEST_REASON]
        attempts = statistics.get("attempt_number", 1)
        return ExtractionError(
            f"No usable reply of the LLM in {attempts} of {self.retry.max_attempts} attempts. {reason}"
        )


def _cause(error: Exception) -> BaseException:
    return error.__cause__ or error if isinstance(error, _RetryableError) else error


def _check_mode(llm: LLM, mode: Mode, output_cls: type[BaseModel] | None) -> None:
    check_choice("mode", mode, get_args(Mode))
    if mode == "text":
        return
    if output_cls is None:
        raise ConfigurationError(f"mode={mode!r} needs an output_cls.")
    if mode == "function":
        able = isinstance(llm, FunctionCallingLLM) and llm.metadata.is_function_calling_model
    else:
        # The inherited `structured_predict` uses a function call or plain text, not a JSON schema.
        able = _owner(llm, "structured_predict") not in (LLM, FunctionCallingLLM) and may_send_json_schema(llm)
    if not able:
        raise ConfigurationError(
            f"{type(llm).__name__}({llm.metadata.model_name!r}) does not support mode={mode!r}, according to "
            "its metadata. Use mode='text', which works with every model."
        )


def _blocks_event_loop(llm: LLM) -> bool:
    method = "achat" if llm.metadata.is_chat_model else "acomplete"
    return isinstance(llm, CustomLLM) and _owner(llm, method) is CustomLLM


def _owner(llm: LLM, method: str) -> type | None:
    return next((kind for kind in type(llm).__mro__ if method in vars(kind)), None)
