"""Prompts that fit into the context window of a model, which they share with the reply, and bounds of replies.

A step gives the texts that may be cut as :class:`PromptTexts`. Everything else stays: instructions, examples, question.
A step that can ask several times asks first how much there is room for (:func:`prompt_room`), and loses nothing.

Models count other tokens than LlamaIndex's tokenizer does: SmolLM2 7 to 45 % more. So half as many again are reckoned
with, unless LlamaIndex has the model's own tokenizer. What a server says about its window is remembered for its model.
"""

import logging
import math
import re
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple

from llama_index.core.llms import LLM
from llama_index.core.prompts import BasePromptTemplate
from llama_index.core.utils import get_tokenizer

from llama_index.ragkit.core_internals import own_tokenizer
from llama_index.ragkit.errors import ExtractionError
from llama_index.ragkit.llm.prompts import fence, in_lines
from llama_index.ragkit.text.tokens import batches, count_tokens, pieces_of

__all__ = [
    "LEAST_ROOM",
    "TAG_TOKENS",
    "Fitted",
    "PromptTexts",
    "declared_window",
    "fitted",
    "limited",
    "overflow",
    "prompt_room",
    "prompt_size",
    "remember_window",
    "rounded",
    "window_of",
    "within",
]

_BY_OPTION = {"Ollama": ("additional_kwargs", "num_predict"), "LlamaCPP": ("generate_kwargs", "max_tokens")}
_BY_FIELD = ("max_tokens", "max_new_tokens")
_WARM, _WARMER = 0.5, 0.3  # the least temperature of a further attempt, and what it is above that of the first
_MOST_WARM = 1.0
_STEP = 64  # of bounds that the window lowers
_copies: dict[int, dict[tuple[int | None, bool], LLM]] = {}  # by the id of a model that lives

logger = logging.getLogger(__name__)

MARGIN = 1.5  # tokens of a model for each that LlamaIndex's tokenizer counts
TAG_TOKENS = 32  # of the tags around a text
_MESSAGE_TOKENS = 8  # around each message, by the template of a chat model
_CORRECTION_TOKENS = 160  # of what is said about a reply that could not be used, by LlamaIndex's tokenizer
_SCHEMA_TOKENS = 300
_REPLY_TOKENS = 256  # of a reply without a bound
LEAST_ROOM = 64  # tokens of a text, which are left of it however small the window is
_LEAST_EACH = 16  # of each of several texts
_UNLIMITED = 1 << 40
_MOST_CUTS = 8

_OVERFLOW = re.compile(
    r"context_length_exceeded|exceed_context_size|maximum context length|max(?:imum)? model length|"
    r"exceed\w{0,3}(?: \w{1,16}){0,3} context (?:size|length|window)|prompt (?:is )?too long|context the overflows|"
    r"input token count",
    re.IGNORECASE,
)
_NAMED = re.compile(
    r"(?:context length (?:is|of|of only)|context size \(|context window of|model length of|n_ctx\W{1,4}|tokens >|"
    r"maximum number of tokens allowed \()\s{0,4}(\d+)",
    re.IGNORECASE,
)

_learned: dict[int, int] = {}  # windows that servers named or showed, by the id of a model that lives


def rounded(reply_tokens: int) -> int:
    """The bound of a reply: the next power of two, so that a model is copied a few times."""
    return 1 << (reply_tokens - 1).bit_length()


def limited(llm: LLM, reply_tokens: int | None, *, left: int | None = None, warmer: bool = False) -> LLM:
    """The model with a bound on its replies, or the model itself where its class is not known to take one.

    The bound is what the class calls it, on a shallow copy of the model, which shares clients and callbacks. So it is
    sent with each call, by whatever method. A bound that the user set is only ever lowered.

    Parameters
    ----------
    reply_tokens : the most tokens of a reply, rounded up to a power of two, at least 1; None for no bound
    left : tokens that the prompt leaves of the context window, at least 1, which the bound keeps to; None for no limit
    warmer : whether its temperature is raised, so that it does not repeat a reply
    """
    most = None if reply_tokens is None else rounded(reply_tokens)
    if most is not None and left is not None and most > left:
        most = max(left // _STEP * _STEP, min(left, _STEP))
    update = {**({} if most is None else _bound(llm, most)), **(_warmth(llm) if warmer else {})}
    if not update:
        return llm
    if id(llm) not in _copies:
        weakref.finalize(llm, _copies.pop, id(llm), None)
    copies = _copies.setdefault(id(llm), {})
    copy = copies.get((most, warmer))
    # A copy is kept for its clients, as long as the model is as it was.
    own = {name: value for name, value in vars(llm).items() if name not in update}
    if copy is None or any(vars(copy).get(name, ...) is not value for name, value in own.items()):
        copy = copies[most, warmer] = llm.model_copy(update=update)
    return copy


def _bound(llm: LLM, most: int) -> dict[str, Any]:
    for kind in type(llm).__mro__:
        if kind.__name__ in _BY_OPTION:
            field, option = _BY_OPTION[kind.__name__]
            options = getattr(llm, field, None) or {}
            return {field: {**options, option: min(most, _positive(options.get(option)) or most)}}
    field = next((name for name in _BY_FIELD if name in type(llm).model_fields), "")
    return {field: min(most, _positive(getattr(llm, field)) or most)} if field else {}


def _positive(value: Any) -> int:
    """A bound that is set; 0 for none, which some servers write as -1."""
    return value if isinstance(value, int) and value > 0 else 0


def _warmth(llm: LLM) -> dict[str, Any]:
    own = getattr(llm, "temperature", None)
    if "temperature" not in type(llm).model_fields or not isinstance(own, int | float):
        return {}
    return {"temperature": max(own, min(_MOST_WARM, max(_WARM, own + _WARMER)))}


@dataclass(frozen=True)
class PromptTexts:
    """A variable of a prompt: texts between tags, of which as many as need be are cut where they do not fit.

    Attributes
    ----------
    texts : the most relevant first; the last are cut first, at the end of a sentence
    tag : the name of the tags
    evenly : whether every text is cut to the same length instead, since each is needed
    shown : how the texts stand in the prompt, if not between tags as :func:`~llama_index.ragkit.llm.prompts.fence` puts
        them
    """

    texts: Sequence[str]
    tag: str = "passage"
    evenly: bool = False
    shown: Callable[[Sequence[str]], str] | None = None

    def __str__(self) -> str:
        return fence(self.texts, self.tag) if self.shown is None else self.shown(self.texts)

    def cut(self, most: int, count: Callable[[str], int]) -> "PromptTexts":
        """As much of the texts as `most` tokens hold with their tags; the beginning of the first in any case."""
        if self.evenly:
            each = most // max(1, len(self.texts)) - TAG_TOKENS
            return replace(self, texts=[_beginning(text, max(_LEAST_EACH, each), count) for text in self.texts])
        kept: list[str] = []
        for text in self.texts:
            cost = count(text) + TAG_TOKENS
            if cost > most:
                if not kept or most > TAG_TOKENS + LEAST_ROOM:
                    kept.append(_beginning(text, max(LEAST_ROOM, most - TAG_TOKENS), count))
                break
            kept.append(text)
            most -= cost
        return replace(self, texts=kept)


class Fitted(NamedTuple):
    """The variables of a prompt that fits.

    Attributes
    ----------
    given : the variables as they are formatted
    left : tokens that the window has for the reply; None for as many as it may have
    """

    given: dict[str, Any]
    left: int | None = None


def fitted(
    llm: LLM,
    prompt: BasePromptTemplate,
    given: Mapping[str, Any],
    reply_tokens: int | None,
    *,
    window: int | None,
    beside: str = "",
) -> Fitted:
    """The variables of a prompt, with as little cut of its :class:`PromptTexts` as the window asks for, the last first.

    The reply has the room that it can need, or half of what instructions and question leave, if that is less.

    Parameters
    ----------
    reply_tokens : the most tokens that the reply can need; None if there is no bound
    window : tokens of prompt and reply, at least 1; None for no limit
    beside : what is sent beside the prompt, such as a schema

    Raises
    ------
    ExtractionError
        If what may not be cut is longer than the window.
    """
    whole = {name: str(value) if isinstance(value, PromptTexts) else value for name, value in given.items()}
    if window is None:
        return Fitted(whole)
    need = _REPLY_TOKENS if reply_tokens is None else reply_tokens
    if _most_tokens(llm, prompt, whole, beside) + rounded(need) <= window:
        return Fitted(whole)
    size = prompt_size(llm, prompt, whole, beside)
    if size + need <= window:
        return Fitted(whole, window - size)
    texts = {name: value for name, value in given.items() if isinstance(value, PromptTexts)}
    bare = {**whole, **dict.fromkeys(texts, "")}
    uncut = count_tokens(prompt.format(llm=llm, **bare))
    if uncut >= window:
        raise ExtractionError(
            f"The parts of the prompt that cannot be cut have {uncut} tokens, but the context window of "
            f"{llm.metadata.model_name!r} has only {window}. If it is larger, pass context_window= to the LLM. If not, "
            "use a model with a larger window, or a shorter question."
        )
    free = max(0, window - prompt_size(llm, prompt, bare, beside))
    reply = min(need, free // 2)
    count = counter(llm)
    room, cut = free - reply, whole
    for _ in range(_MOST_CUTS if texts else 0):
        cut, left = dict(whole), room
        for name, each in texts.items():
            if count(cut[name]) > left:
                cut[name] = str(each.cut(left, count))
            left -= count(cut[name])
        size = prompt_size(llm, prompt, cut, beside)
        if size + reply <= window or room <= 0:
            break
        room -= size + reply - window
    return Fitted(cut, max(1, window - size))


def prompt_size(llm: LLM, prompt: BasePromptTemplate, given: Mapping[str, Any], beside: str = "") -> int:
    """The tokens of a prompt with its variables, and of what is sent beside it, as many as a model may count."""
    return counter(llm)(_sent(llm, prompt, given, beside)) + _MESSAGE_TOKENS * _messages(prompt)


def _most_tokens(llm: LLM, prompt: BasePromptTemplate, given: Mapping[str, Any], beside: str) -> int:
    """An upper bound of the tokens of a prompt that takes no time: no token is shorter than a byte."""
    return len(_sent(llm, prompt, given, beside).encode(errors="replace")) + _MESSAGE_TOKENS * _messages(prompt)


def _sent(llm: LLM, prompt: BasePromptTemplate, given: Mapping[str, Any], beside: str) -> str:
    return f"{getattr(llm, 'system_prompt', None) or ''}{beside}{prompt.format(llm=llm, **given)}"


def prompt_room(llm: LLM | None, prompt: BasePromptTemplate, reply_tokens: int, **given: Any) -> int:
    """Tokens of text that a prompt has room for, as LlamaIndex's tokenizer counts them, at least 64.

    Parameters
    ----------
    llm : None for a model of which nothing is known, and so for no limit
    reply_tokens : the most tokens that the reply can need
    given : the variables that are not the text
    """
    window = None if llm is None else window_of(llm)
    if llm is None or window is None:
        return _UNLIMITED
    if prompt.function_mappings:  # which may need each variable
        names = {*prompt.template_vars, *(prompt.template_var_mappings or ())} - prompt.kwargs.keys()
        given = {**{name: f"{{{name}}}" for name in names}, **given}
    wordings = [each.format(llm=llm, **given) for each in (prompt, in_lines(prompt)) if each is not None]
    fixed = max(_counted(wording, get_tokenizer()) for wording in wordings)
    fixed += TAG_TOKENS + _CORRECTION_TOKENS + count_tokens(getattr(llm, "system_prompt", None) or "")
    if llm.metadata.is_function_calling_model or getattr(llm, "should_use_structured_outputs", False):
        fixed += _SCHEMA_TOKENS
    free = max(0.0, window - _MESSAGE_TOKENS * _messages(prompt) - MARGIN * fixed)
    return max(LEAST_ROOM, int((free - min(reply_tokens, free / 2)) / MARGIN))


def within(texts: Sequence[str], room: int, tags: int = TAG_TOKENS) -> list[list[tuple[int, str]]]:
    """Texts in batches that have room in a prompt, each with its position; a longer text is in pieces.

    Parameters
    ----------
    room : tokens, as :func:`prompt_room` gives them
    tags : tokens around each text
    """
    if sum(len(text.encode(errors="replace")) + tags for text in texts) <= room:
        return [list(enumerate(texts))]
    pieces = [
        (i, piece)
        for i, text in enumerate(texts)
        for piece in ([text] if count_tokens(text) <= room else pieces_of(text, room, count_tokens))
    ]
    groups = batches([count_tokens(piece) + tags for _, piece in pieces], room)
    return [[pieces[place] for place in group] for group in groups]


def declared_window(llm: LLM) -> int | None:
    """The context window that a model declares; None if it declares none.

    A model whose class takes `context_window=`, and which was made without it, declares a default that says nothing
    about it. A warning tells that, once a model.
    """
    metadata = llm.metadata
    if "context_window" in type(llm).model_fields.keys() - llm.model_fields_set and metadata.context_window > 0:
        _tell_default(type(llm).__name__, metadata.model_name, metadata.context_window)
    return metadata.context_window if metadata.context_window > 0 else None


@lru_cache(maxsize=64)
def _tell_default(class_name: str, model: str, window: int) -> None:
    logger.warning(
        "The context window of the model %r was not given, so LlamaIndex's default of %d tokens is used. Pass "
        "%s(context_window=...) with the server's context window: a larger one needs fewer calls.",
        model, window, class_name,
    )  # fmt: skip


def window_of(llm: LLM) -> int | None:
    """The context window of a model, the smaller one if its server showed another than it declares."""
    declared, learned = declared_window(llm), _learned.get(id(llm))
    return min(declared, learned) if declared and learned else declared or learned


def remember_window(llm: LLM, window: int) -> None:
    """Note that a server takes no more for a model."""
    if id(llm) not in _learned:
        weakref.finalize(llm, _learned.pop, id(llm), None)
    _learned[id(llm)] = min(window, _learned.get(id(llm), window))


def overflow(error: BaseException) -> int | None:
    """The tokens that a server takes, if an error says that a prompt is too long; 0 if it does not say how many it
    takes; None for another error.

    >>> overflow(ValueError("This model's maximum context length is 2048 tokens. However, you requested 2500 tokens"))
    2048
    """
    said = str(error)
    if not _OVERFLOW.search(said):
        return None
    named = _NAMED.search(said)
    return int(named.group(1)) if named else 0


def counter(llm: LLM) -> Callable[[str], int]:
    """Counts the tokens of a text as a model does, or as many as it may count."""
    encode = own_tokenizer(llm)
    if encode is not None:
        return lambda text: len(encode(text))
    return lambda text: math.ceil(MARGIN * count_tokens(text))


@lru_cache(maxsize=64)
def _counted(text: str, tokenizer: Callable[[str], Sequence[Any]]) -> int:
    """The tokens of a prompt without its texts, which is asked for each of them."""
    return len(tokenizer(text))


def _messages(prompt: BasePromptTemplate) -> int:
    return len(getattr(prompt, "message_templates", ())) + 2  # and a system prompt, and the beginning of the reply


def _beginning(text: str, most: int, count: Callable[[str], int]) -> str:
    """The first sentences of a text, as many as fit."""
    return text if count(text) <= most else (pieces_of(text, most, count) or [text])[0]
