"""A single LLM call with retries.

Transient failures (:func:`is_transient`) are retried with exponential backoff. A reply that cannot be used is asked for
again at once, with the reason and at a higher temperature, but without the reply, since small models repeat it.
Many clients retry on their own as well: set `max_retries=0` on the LLM, so that the attempts do not multiply.
"""

import asyncio
import json
import re
import time
import weakref
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from textwrap import shorten
from typing import Any, Generic, Literal, ParamSpec, TypeVar, get_args

from llama_index.core.base.llms.types import ChatMessage, ChatResponse
from llama_index.core.llms import LLM, CustomLLM, MockLLM
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.program.function_program import get_function_tool
from llama_index.core.prompts import BasePromptTemplate, ChatPromptTemplate, PromptTemplate, SelectorPromptTemplate
from llama_index.core.settings import Settings
from pydantic import BaseModel, ValidationError

from llama_index.ragkit.core_internals import may_send_json_schema, set_llm, with_system_prompt
from llama_index.ragkit.errors import ConfigurationError, ExtractionError, LanguageModelError, ParseError
from llama_index.ragkit.llm.announcements import without_loop
from llama_index.ragkit.llm.context_window import (
    Fitted,
    fitted,
    limited,
    overflow,
    prompt_size,
    remember_window,
    window_of,
)
from llama_index.ragkit.llm.echoes import without_echo
from llama_index.ragkit.llm.json.output import storable, texts_in_values
from llama_index.ragkit.llm.json.shapes import bounded
from llama_index.ragkit.llm.prompts import in_lines, prompt_version
from llama_index.ragkit.llm.reasoning import strip_reasoning
from llama_index.ragkit.llm.retry import RetryPolicy, is_permanent, is_refused, is_timeout, is_transient, is_unreachable
from llama_index.ragkit.llm.usage import is_counting, note_failure, note_read, note_repeated, note_reply
from llama_index.ragkit.redaction import redact
from llama_index.ragkit.steps import Steps, call
from llama_index.ragkit.text.function_words import in_another_language
from llama_index.ragkit.text.tokens import count_tokens
from llama_index.ragkit.validation import check_choice

__all__ = [
    "MODES",
    "Asking",
    "Completion",
    "Mode",
    "Rejected",
    "RetryPolicy",
    "check_llm",
    "complete",
    "find_llm",
    "known_llm",
    "model_identity",
    "parsed",
]

T = TypeVar("T")
R = TypeVar("R")
P = ParamSpec("P")
Mode = Literal["auto", "text", "lines", "function", "json_schema"]
MODES: tuple[str, ...] = get_args(Mode)
_DEFAULT_RETRY = RetryPolicy()
_LONGEST_REASON = 500  # characters; a failing proxy may reply with a whole HTML page
_ABOUT_BOUNDS = re.compile("max_|token|context|temperature|maxLength|maxItems|minItems", re.IGNORECASE)
_FOR_EVERY_CALL = re.compile("max_completion_tokens|support|temperature|maxLength|maxItems|minItems", re.IGNORECASE)
# LLMs that say they have functions or schemas, and whose server refused them; LLMs that think for longer than a reply
# may be, or whose server refused bounds; and LLMs that may be such.
_text_only: "weakref.WeakValueDictionary[int, LLM]" = weakref.WeakValueDictionary()
_unbounded: "weakref.WeakValueDictionary[int, LLM]" = weakref.WeakValueDictionary()
_silent: "weakref.WeakValueDictionary[int, LLM]" = weakref.WeakValueDictionary()
_forms: dict[int, dict[str, str]] = {}  # by the id of a model that lives and the version of a prompt: "json" or "lines"


@dataclass(frozen=True)
class Completion(Generic[T]):
    """The text of a reply and its parsed value.

    Attributes
    ----------
    repeated : how often it repeated its end, which was cut before it was parsed
    """

    text: str
    value: T
    repeated: int = 0


@dataclass(frozen=True)
class Rejected:
    """A reply that cannot be used, and why, in words for the model."""

    reply: str
    reason: str


def complete(
    llm: LLM,
    prompt: BasePromptTemplate,
    *,
    parse: Callable[[str], T],
    retry: RetryPolicy = _DEFAULT_RETRY,
    mode: Mode = "auto",
    output_cls: type[BaseModel] | None = None,
    name: str = "",
    rejected: Rejected | None = None,
    like: str = "",
    reply_tokens: int | None = None,
    **prompt_args: Any,
) -> Steps[T]:
    """Call the model and parse its reply.

    Parameters
    ----------
    llm : any LlamaIndex LLM, called by its chat or completion method as in `llm.predict`. An asynchronous driver
        awaits the asynchronous methods, except those that a `CustomLLM` inherits: they would block the event loop, so
        its synchronous methods run in a thread
    prompt : formatted with `prompt_args`; never changed. If prompt and reply do not fit into the context window of the
        model, texts given as :class:`~llama_index.ragkit.llm.context_window.PromptTexts` are cut. If the server says
        that the prompt is still too long, it is cut to what the server takes, or else by a quarter, and so are later
        ones
    parse : parses the reply; a `ValueError` (`ParseError`, pydantic's `ValidationError`) rejects it. A reply that
        repeats the prompt or its worked example is rejected before, and one that ends in a loop is cut
    mode : "auto" uses a function call or a JSON schema if the model's metadata say that it has them, and text for the
        next attempt if that fails. As long as no JSON of a model could be read, another attempt asks for numbered
        lines, if the prompt can (:func:`~llama_index.ragkit.llm.prompts.in_lines`). The first form that could be read
        is used for this model from then on. "text" uses text in the form of the prompt, and "lines" numbered lines.
        "function" (the model calls a function whose parameters are the fields of `output_cls`) and "json_schema"
        (`llm.structured_predict`) always use these; `parse` then receives JSON text
    output_cls : the schema of the reply; without one the reply is text in every mode
    name : of the prompt, for messages of errors
    rejected : an earlier reply to this prompt that could not be used
    like : a text; a reply that is clearly in another language is rejected. "" for none
    reply_tokens : maximum number of tokens that the reply can need. It is sent with the call if the class of the model
        is known to take a bound, and is lowered if the window has no room. A reply that is cut there is read as far as
        it goes. If a model thinks longer, or if its server refuses a bound, the call has none. None for no bound

    Raises
    ------
    ExtractionError
        If the last attempt failed, or one failed with an error that is not retried; that error is its cause.
        `ParseError` if the model replied, and the reply could not be used; `LanguageModelError` for an error that every
        further call would meet too.
    ConfigurationError
        If the model does not support `mode`, or is LlamaIndex's `MockLLM`, which means that there is no model.
    """
    asking = Asking(llm, prompt, prompt_args, parse, retry, mode, output_cls, name, rejected, like, reply_tokens)
    return (yield from asking.answer()).value


def find_llm(llm: LLM | None, remedy: str = "") -> LLM:
    """A language model, or else the one of `Settings`.

    Parameters
    ----------
    remedy : what needs no LLM instead

    Raises
    ------
    ConfigurationError
        If there is no model, or only a mock.
    """
    try:
        found = llm or Settings.llm
    except (ImportError, ValueError) as error:  # core looks for OpenAI: its package is not installed, or has no key
        without = f" Or use {remedy}, which needs none." if remedy else ""
        raise ConfigurationError(
            f"This step needs a language model: pass llm=, or set Settings.llm.{without} None is set, and LlamaIndex's "
            f"default cannot be used: {redact(str(error).strip())}"
        ) from error
    check_llm(found, remedy)
    return found


def known_llm(llm: LLM | None) -> LLM | None:
    """A language model, or else the one that was set in `Settings`; None if none was, or only a mock.

    This is for estimates: it looks for no model. A `ConfigurationError` is raised for what is no model.
    """
    if llm is not None:
        return _usable(llm)
    found = set_llm()
    return None if found is None or isinstance(found, MockLLM) else _usable(found)


def check_llm(llm: LLM, remedy: str = "") -> None:
    """Raise a `ConfigurationError` for what is no language model, for one whose class does not know its name, and for
    the mock that `Settings.llm = None` leaves, which echoes its prompt; `remedy` is what needs no LLM instead.
    """
    _usable(llm)
    if isinstance(llm, MockLLM) and _owner(llm, "complete") is MockLLM:
        without = f", or use {remedy}, which needs none" if remedy else ""
        raise ConfigurationError(
            "This step needs a language model, and there is only LlamaIndex's MockLLM, which Settings.llm = None sets: "
            f"it repeats its prompt. Pass llm=, or set Settings.llm{without}."
        )


def _usable(llm: LLM) -> LLM:
    """The model, if it is one and its class has metadata of it."""
    if not isinstance(llm, LLM):
        raise ConfigurationError(f"An LLM is an object of LlamaIndex, such as OpenAI(model=...), not {llm!r}.")
    try:
        _ = llm.metadata
    except ValueError as error:  # core's OpenAI knows the window only of OpenAI's models
        raise ConfigurationError(
            f"{type(llm).__name__} has no metadata of its model: {shorten(str(error), 100, placeholder=' ...')} For "
            "another server than OpenAI's, use OpenAILike (pip install llama-index-llms-openai-like)."
        ) from error
    return llm


def model_identity(llm: LLM) -> str:
    """What identifies a model in cache keys, as JSON, without API key and address."""
    settings = {name: getattr(llm, name, None) for name in ("temperature", "max_tokens", "system_prompt")}
    identity = {"class": type(llm).__name__, "model": llm.metadata.model_name, **settings}
    return json.dumps(identity, sort_keys=True, default=str)


class _UnusableError(Exception):
    """Marks its cause as a fault of the reply, which is asked for again at once."""

    def __init__(self, rejected: Rejected) -> None:
        self.rejected = rejected


class _RetryableError(Exception):
    """Marks its cause as retryable."""


@dataclass(frozen=True)
class Asking(Generic[T]):
    """The parameters of :func:`complete`; what the server refuses and what cannot be used change them for a while."""

    llm: LLM
    prompt: BasePromptTemplate
    prompt_args: dict[str, Any]
    parse: Callable[[str], T]
    retry: RetryPolicy = _DEFAULT_RETRY
    mode: Mode = "auto"
    output_cls: type[BaseModel] | None = None
    name: str = ""
    rejected: Rejected | None = None
    like: str = ""
    reply_tokens: int | None = None
    bare: bool = False
    window: int | None = None

    def answer(self) -> Steps[Completion[T]]:
        """As :func:`complete`, but with the text of the reply too."""
        check_llm(self.llm)
        prompt = self.prompt.select(self.llm) if isinstance(self.prompt, SelectorPromptTemplate) else self.prompt
        mode = _resolved(self.llm, self.mode, self.output_cls)
        # Programs of LlamaIndex write their output parser into the prompt that they receive, so they get a copy.
        asking, attempt = [replace(self, prompt=prompt.model_copy(), mode=mode)], 1
        while True:
            try:
                return (yield from self._attempt(asking))
            except ConfigurationError:
                raise
            except Exception as error:
                is_last = attempt == self.retry.max_attempts or not isinstance(error, _RetryableError | _UnusableError)
                if is_last:
                    raise self._failure(error, attempt) from _cause(error)
                wait = self.retry.wait(attempt, error.__cause__) if isinstance(error, _RetryableError) else 0.0
            yield from call(partial(time.sleep, wait), partial(asyncio.sleep, wait))
            attempt += 1

    def _attempt(self, asking: list["Asking[T]"]) -> Steps[Completion[T]]:
        """Ask until the server takes the request, and read the reply; what to ask next is noted if it is of no use."""
        this, refused = asking[-1], list[Exception]()
        begun = time.perf_counter()
        _ = this._fitted  # here, since no further attempt could send what cannot be cut
        while True:
            try:
                text = yield from this._reply()
                break
            except Exception as error:
                instead = this._instead(error)
                if instead is None:
                    if is_transient(error):
                        raise _RetryableError from error
                    raise
                this = instead
                refused.append(error)
        this._note(asking[-1], refused)
        return this._read(text, asking, time.perf_counter() - begun)

    # -- one attempt ------------------------------------------------------------------------------------

    # What a request is sent with is found once: what other workers learn of the model meanwhile does not change it.

    @cached_property
    def _is_bare(self) -> bool:
        """Whether no bounds are sent: of a reply, of its schema, of the temperature."""
        return self.bare or _unbounded.get(id(self.llm)) is self.llm

    @property
    def _model(self) -> LLM:
        """The model with a bound on the reply, and warmer after a reply that was rejected."""
        if self._is_bare:
            return self.llm
        return limited(self.llm, self.reply_tokens, left=self._fitted.left, warmer=self.rejected is not None)

    @cached_property
    def _fitted(self) -> Fitted:
        """The variables of the prompt as they are sent."""
        beside = "" if self.rejected is None or self._lines is not None else _correction(self.rejected)
        if self._structure != "text" and self.output_cls is not None:
            beside += json.dumps(self.output_cls.model_json_schema())
        return fitted(
            self.llm,
            self._lines or self.prompt,
            self.prompt_args,
            self.reply_tokens,
            window=self.window or window_of(self.llm),
            beside=beside,
        )

    @property
    def _schema(self) -> type[BaseModel] | None:
        return self.output_cls if self._is_bare or self.output_cls is None else bounded(self.output_cls)

    def _reply(self) -> Steps[str]:
        llm, cls = self._model, self._schema
        prompt, given = self._wording()
        if self._structure == "function" and cls is not None and isinstance(llm, FunctionCallingLLM):
            tools, arguments = [get_function_tool(cls)], self._tool_arguments(prompt, given)
            response = yield from _called(llm, llm.chat_with_tools, llm.achat_with_tools, tools, **arguments)
            return self._function_arguments(response)
        if self._structure == "json_schema" and cls is not None:
            try:
                answer: BaseModel = yield from _called(
                    llm, llm.structured_predict, llm.astructured_predict, cls, prompt, **given
                )
                return answer.model_dump_json()
            except ValidationError as error:
                return _cut_json(error)
        return (yield from _called(llm, llm.predict, llm.apredict, prompt, **given))

    @cached_property
    def _structure(self) -> Mode:
        """How this attempt asks: "auto" asks by structure only for as long as no reply was rejected."""
        if self.mode != "auto":
            return self.mode
        return "text" if self.rejected is not None else _best_mode(self.llm)

    def _instead(self, error: Exception) -> "Asking[T] | None":
        """What is asked in place of a request that the server refuses: less, the same without bounds, or text."""
        most = overflow(error)
        if most is not None and (smaller := self._smaller(most)) is not None:
            return smaller
        if is_refused(error):
            is_bounded = not self._is_bare and (self._model is not self.llm or self._structure != "text")
            if is_bounded and _ABOUT_BOUNDS.search(str(error)):
                return replace(self, bare=True)
            if self.mode == "auto" and self._structure != "text":
                return replace(self, mode="text")
        return None

    def _smaller(self, most: int) -> "Asking[T] | None":
        """The same with less text or a lower bound for the tokens that the server takes (0: it did not say), if it can
        be cut.
        """
        window = self.window or window_of(self.llm)
        if most and (window is None or most < window):
            remember_window(self.llm, most)
        else:
            size = prompt_size(self.llm, self._lines or self.prompt, self._fitted.given) + (self.reply_tokens or 0)
            most = 3 * min(size, window or size) // 4
        smaller = replace(self, window=max(1, most))
        try:
            sent = smaller._fitted
        except ExtractionError:
            return None
        is_less = sent.given != self._fitted.given or (not self._is_bare and smaller._model is not self._model)
        return smaller if is_less else None

    def _note(self, asked: "Asking[T]", refused: Sequence[Exception]) -> None:
        """Remember what the server refused, now that it took this."""
        if self.window is not None and self.window != asked.window:
            remember_window(self.llm, self.window)
        if self.bare and not asked.bare and _FOR_EVERY_CALL.search(str(refused[0])):
            _unbounded[id(self.llm)] = self.llm
        if self.mode != asked.mode and not isinstance(refused[-1], ValueError):  # the client could not read the reply
            _text_only[id(self.llm)] = self.llm

    def _note_thinking(self, asked: "Asking[T]") -> None:
        """Remember a model that answers where no bound is sent, and thought or was silent where one was.

        Silence has to come twice: some models keep their thoughts to themselves, and others have nothing to say.
        """
        if self.reply_tokens != asked.reply_tokens and self.rejected is not None:
            if self.rejected.reply.strip() or _silent.get(id(self.llm)) is self.llm:
                _unbounded[id(self.llm)] = self.llm
            _silent[id(self.llm)] = self.llm

    @property
    def _form(self) -> str:
        """What this model could write for this prompt before: "json" or "lines"; "" if nothing is known."""
        return _forms.get(id(self.llm), {}).get(prompt_version(self.prompt), "")

    @cached_property
    def _lines(self) -> BasePromptTemplate | None:
        """The prompt for an answer in lines, if this attempt asks for lines."""
        if self.mode == "lines" or (self.mode == "auto" and self._structure == "text" and self._form != "json"):
            is_due = self.mode == "lines" or self._form == "lines" or self.rejected is not None
            return in_lines(self.prompt) if is_due else None
        return None

    def _wording(self) -> tuple[BasePromptTemplate, dict[str, Any]]:
        """The prompt with its variables; after a rejected reply with what was wrong with it, or in another form."""
        lines = self._lines
        given = self._fitted.given
        if lines is not None or self.rejected is None:
            return lines or self.prompt, given
        correction = _correction(self.rejected)
        if self.llm.metadata.is_chat_model or isinstance(self.prompt, ChatPromptTemplate):
            messages = self.prompt.format_messages(llm=self.llm, **given)
            # In the last message, since many chat templates want turns that alternate.
            last = ChatMessage(role=messages[-1].role, content=f"{messages[-1].content}{correction}")
            return ChatPromptTemplate(message_templates=[*messages[:-1], last]), {}
        return PromptTemplate(f"{self.prompt.format(llm=self.llm, **given)}{correction}\n"), {}

    def _tool_arguments(self, prompt: BasePromptTemplate, given: dict[str, Any]) -> dict[str, Any]:
        messages = prompt.format_messages(llm=self.llm, **given)
        return {"chat_history": with_system_prompt(self.llm, messages), "tool_required": True}

    def _function_arguments(self, response: ChatResponse) -> str:
        calls = self.llm.get_tool_calls_from_response(  # type: ignore[attr-defined]
            response, error_on_no_tool_call=False
        )
        if calls and calls[0].tool_kwargs:  # clients replace arguments that they cannot parse by none
            return json.dumps(calls[0].tool_kwargs)
        return response.message.content or ""  # some models answer in text all the same

    def _read(self, text: str, asking: "list[Asking[T]]", seconds: float) -> Completion[T]:
        """Read a reply; if it cannot be used, the next attempt is told why."""
        text = storable(text)  # a reply can contain lone surrogates, which stores and embedding models reject
        try:
            given = self._fitted.given
            about = " ".join(str(value) for value in given.values())
            prompt = self._lines or self.prompt
            asked = prompt.format(llm=self.llm, **given)
            if is_counting():
                note_reply(self.name, count_tokens(asked), count_tokens(text), seconds)
            text = without_echo(text, prompt, asked, about)
            value, repeated = parsed(text, self.parse)
            if self.like and in_another_language(_written(text), self.like):
                raise ParseError("The answer is in another language than the text.")
            self._note_thinking(asking[0])
            if self._structure == "text" and in_lines(self.prompt) is not None:
                if id(self.llm) not in _forms:
                    weakref.finalize(self.llm, _forms.pop, id(self.llm), None)
                known = _forms.setdefault(id(self.llm), {})
                known.setdefault(prompt_version(self.prompt), "json" if self._lines is None else "lines")
            note_read(self.name)
            return Completion(text, value, repeated)
        except ValueError as error:
            rejected = Rejected(text, getattr(error, "hint", "") or str(error)[:_LONGEST_REASON])
            # A model that thinks may have come to no answer within the bound.
            tokens = self.reply_tokens if strip_reasoning(text) else None
            asking.append(replace(self, rejected=rejected, reply_tokens=tokens))
            raise _UnusableError(rejected) from error

    def _failure(self, error: Exception, attempts: int) -> ExtractionError:
        cause = _cause(error)
        reason = redact(f"{type(cause).__name__}: {cause}", self.llm)[:_LONGEST_REASON]
        step = f" to {self.name!r}" if self.name else ""
        kind: type[ExtractionError] = ExtractionError
        if isinstance(error, _UnusableError) or isinstance(cause, ValidationError):
            kind = ParseError
        elif is_permanent(cause) or is_unreachable(cause):
            kind = LanguageModelError
        remedy = ""
        if is_timeout(cause):
            remedy = " If the server is only slow, pass a larger timeout= to the LLM."
        elif is_unreachable(cause):
            address = getattr(self.llm, "api_base", None) or getattr(self.llm, "base_url", None) or "its address"
            remedy = redact(f" No server answers at {address}.", self.llm)
        elif isinstance(error, _RetryableError) and isinstance(cause, AttributeError | LookupError | TypeError):
            remedy = f" {type(self.llm).__name__} may not understand what the server sends: check its address."
        failure = kind(
            f"No usable reply of the LLM{step} in {attempts} of {self.retry.max_attempts} attempts. {reason}{remedy}"
        )
        failure.step = self.name
        reply = error.rejected.reply if isinstance(error, _UnusableError) else ""
        note_failure(self.name, f"{reason}{remedy}", redact(reply, self.llm))
        return failure


def _cause(error: Exception) -> BaseException:
    return error.__cause__ or error if isinstance(error, _RetryableError | _UnusableError) else error


def _correction(rejected: Rejected) -> str:
    return f"\n\nAn earlier answer could not be used: {rejected.reason}"


def parsed(reply: str, parse: Callable[[str], T]) -> tuple[T, int]:
    """The value of a reply without the loop that it may end in, and how often it was repeated."""
    text, repeated = without_loop(reply)
    value = parse(text)
    note_repeated(repeated)
    return value, repeated


def _cut_json(error: ValidationError) -> str:
    """The text that a client could not read as JSON, such as a reply that was cut off; else the error is raised."""
    for flaw in error.errors(include_url=False):
        if flaw["type"] == "json_invalid" and isinstance(flaw["input"], str) and flaw["input"].strip():
            return flaw["input"]
    raise error


def _written(reply: str) -> str:
    """The texts in the JSON of a reply, or the whole of it."""
    return " ".join(texts_in_values(reply)) or strip_reasoning(reply)


def _resolved(llm: LLM, mode: Mode, output_cls: type[BaseModel] | None) -> Mode:
    """The mode of a call, text without a schema; `ConfigurationError` if there is none such, or the model lacks it."""
    check_choice("mode", mode, MODES)
    if (mode == "function" and not _calls_functions(llm)) or (mode == "json_schema" and not _takes_schemas(llm)):
        raise ConfigurationError(
            f"{type(llm).__name__}({llm.metadata.model_name!r}) does not support mode={mode!r}, according to "
            "its metadata. Use mode='auto', which works with every model."
        )
    return "text" if output_cls is None else mode


def _best_mode(llm: LLM) -> Mode:
    if _text_only.get(id(llm)) is llm:
        return "text"
    if _calls_functions(llm):
        return "function"
    says_schemas = bool(getattr(llm, "should_use_structured_outputs", False))  # a field of OpenAI-like clients
    return "json_schema" if says_schemas and _takes_schemas(llm) else "text"


def _calls_functions(llm: LLM) -> bool:
    return isinstance(llm, FunctionCallingLLM) and bool(llm.metadata.is_function_calling_model)


def _takes_schemas(llm: LLM) -> bool:
    # The inherited `structured_predict` uses a function call or plain text, not a JSON schema.
    return _owner(llm, "structured_predict") not in (LLM, FunctionCallingLLM) and may_send_json_schema(llm)


def _called(
    llm: LLM, fn: Callable[P, R], afn: Callable[P, Awaitable[R]], *args: P.args, **kwargs: P.kwargs
) -> Steps[R]:
    """A call of a model; where its asynchronous method would block the event loop, the synchronous one in a thread."""

    async def in_thread(*args: P.args, **kwargs: P.kwargs) -> R:
        return await asyncio.to_thread(_without_stop, partial(fn, *args, **kwargs))

    method = "achat" if llm.metadata.is_chat_model else "acomplete"
    blocks = isinstance(llm, CustomLLM) and _owner(llm, method) is CustomLLM
    return call(fn, in_thread if blocks else afn, *args, **kwargs)


def _without_stop(fn: Callable[[], R]) -> R:
    """The result of a function; a `StopIteration`, which no thread can hand to an event loop, is another error."""
    try:
        return fn()
    except StopIteration as error:
        raise RuntimeError("The LLM raised StopIteration.") from error


def _owner(llm: LLM, method: str) -> type | None:
    return next((kind for kind in type(llm).__mro__ if method in vars(kind)), None)
