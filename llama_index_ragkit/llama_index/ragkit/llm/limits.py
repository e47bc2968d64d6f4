"""Models with a bound on the length of a reply, and warmer ones.

The bound is what the class of a model calls it, on a shallow copy of the model, which shares clients and callbacks. So
it is sent with each call, by whatever method. A bound that the user set is only ever lowered.
"""

import weakref
from typing import Any

from llama_index.core.llms import LLM

__all__ = ["limited", "rounded"]

_BY_OPTION = {"Ollama": ("additional_kwargs", "num_predict"), "LlamaCPP": ("generate_kwargs", "max_tokens")}
_BY_FIELD = ("max_tokens", "max_new_tokens")
_WARM, _WARMER = 0.5, 0.3  # the least temperature of a further attempt, and what it is above that of the first
_MOST_WARM = 1.0
_STEP = 64  # of bounds that the window lowers
_copies: dict[int, dict[tuple[int | None, bool], LLM]] = {}  # by the id of a model that lives


def rounded(reply_tokens: int) -> int:
    """The bound of a reply: the next power of two, so that a model is copied a few times."""
    return 1 << (reply_tokens - 1).bit_length()


def limited(llm: LLM, reply_tokens: int | None, *, left: int | None = None, warmer: bool = False) -> LLM:
    """The model with a bound on its replies, or the model itself where its class is not known to take one.

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
    if copy is None or any(vars(copy)[name] is not own for name, own in vars(llm).items() if name not in update):
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
