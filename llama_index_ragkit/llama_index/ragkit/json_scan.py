"""Where JSON stands in what a model wrote, and what it says: a strict reader, and a mender for broken text.

Two stages, both linear in the length of the text and free of recursion on its structure:

1. An iterative reader of strict JSON, but for trailing commas and `//` and `/* */` comments. It keeps
   duplicate keys, bounds the nesting, and when the text ends inside a value it knows what was finished
   until then.
2. For other text (single quotes, bare keys, quotes inside strings, missing commas, ...) the `json-repair`
   library, which has to guess. It builds dictionaries, which lose duplicate keys, so every key
   is made unique before and restored after; and it takes quadratic time on some inputs, so it is
   stopped after a fixed number of reads a character (sound replies need fewer than 5).
"""

import re
from json.decoder import JSONDecodeError, scanstring  # type: ignore[attr-defined]
from typing import Any

import json_repair

from llama_index.ragkit.errors import ParseError

__all__ = ["MAX_DEPTH", "MAX_INTEGER_DIGITS", "CutError", "NotStrictError", "Pairs", "mend", "read_container"]

MAX_DEPTH = 100  # containers inside one another
MAX_INTEGER_DIGITS = 4300  # Python's own default limit: beyond it the conversion takes quadratic time

_MAX_MENDED = 100_000  # characters, some 25,000 tokens
_READS_PER_CHARACTER = 32
_TOKEN = re.compile(
    # Every part can match in one way only, or a long run of comments would take exponential time.
    r"\s*(?:(?://[^\n]*(?:\n|\Z)|/\*(?:[^*]|\*(?!/))*\*/)\s*)*"
    r"(?:([{}\[\],:\"])"
    r"|(-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?)(?![\w.+-])"
    r"|(true|false|null|NaN|-?Infinity)(?!\w))"
)
# The end of the text, in the middle of a word or number perhaps, or of its code fence, which models close
# even where they were cut off inside it.
_END = re.compile(r"\s*(?:[-+.\w]{0,20}\Z|```)")
_WORDS = {"true": True, "false": False, "null": None} | {w: float(w) for w in ("NaN", "Infinity", "-Infinity")}
_VALUE = ("value", "first value")  # what must be expected where a value begins
_ALLOWED_BEFORE = {  # the same for the other tokens
    '"': ("value", "first value", "key", "first key"),
    ",": (",",),
    ":": (":",),
    "]": (",", "first value", "value"),  # the latter after a trailing comma
    "}": (",", "first key", "key"),
}
# Before the text of whatever may be a key: a quoted string or a bare word, followed by a colon. A quote that
# is itself followed by a colon ends a key, unless it stands where one begins. A mark too many does no harm,
# since all are taken out again, as long as it stands inside a string or a word.
_KEY = re.compile(
    r"(?:(?<=[{,\s])|(?![\"'”’]\s*:))(?:"
    r"\"(?=(?:[^\"\\]|\\.){0,1000}\"\s*:)"
    r"|'(?=(?:[^'\\]|\\.){0,1000}'\s*:)"
    r"|[“‘](?=[^”’]{0,1000}[”’]\s*:))"
    r"|(?<=[{,\s])(?=[\w$][\w$-]{0,100}\s*:)",
    re.DOTALL,
)
_LETTERS = "ǀǁǂǃ"  # letters, so that a mark is part of a bare word too; rare, and one that is absent is chosen


class Pairs(list[tuple[str, Any]]):
    """A JSON object as its (key, value) pairs in the order of the text, duplicate keys kept."""

    def get_all(self, key: str) -> list[Any]:
        """The values of every occurrence of a key."""
        return [value for name, value in self if name == key]


class NotStrictError(Exception):
    """The text is not strict JSON."""


class CutError(Exception):
    """The text ends inside a value; `value` is what was finished of it (None: nothing)."""

    def __init__(self, value: Any) -> None:
        self.value = value


def read_container(text: str, start: int) -> tuple[Any, int]:
    """Read the strict JSON object or array that opens at `text[start]`; NaN and the infinities are numbers.

    Returns
    -------
    value : objects are :class:`Pairs`
    end : position behind its closing bracket

    Raises
    ------
    NotStrictError
        If it is not strict JSON.
    CutError
        If the text ends inside it.
    ParseError
        If it is nested deeper than `MAX_DEPTH`.
    """
    stack: list[Any] = []  # the containers that are open, outermost first
    keys: list[str | None] = []  # the key of each of them whose value is being read; None in an array
    position = start
    expected = "value"
    while True:
        token = _TOKEN.match(text, position)
        if token is None and not _END.match(text, position):
            raise NotStrictError
        if token is None or (token[2] and token.end() == len(text)):  # a number at the very end may go on
            raise CutError(_finished(stack, keys))
        mark, number, word = token.groups()
        position = token.end()
        if expected not in _ALLOWED_BEFORE.get(mark, _VALUE):
            raise NotStrictError
        if mark in (",", ":"):
            expected = "value" if mark == ":" or keys[-1] is None else "key"
            continue
        if mark in ("{", "["):
            if len(stack) == MAX_DEPTH:
                raise ParseError(f"The reply is nested deeper than {MAX_DEPTH} levels.")
            stack.append(Pairs() if mark == "{" else [])
            keys.append("" if mark == "{" else None)
            expected = "first key" if mark == "{" else "first value"
            continue
        if mark in ("}", "]"):
            if isinstance(stack[-1], Pairs) != (mark == "}"):
                raise NotStrictError
            value = stack.pop()
            keys.pop()
            if not stack:
                return value, position
        elif mark == '"':
            try:
                value, position = scanstring(text, position, False)
            except JSONDecodeError as error:
                cut = error.msg.startswith("Unterminated") or error.pos > len(text) - len("\\uXXXX")
                raise (CutError(_finished(stack, keys)) if cut else NotStrictError) from None
            if expected in ("key", "first key"):
                keys[-1], expected = value, ":"
                continue
        else:
            value = _WORDS[word] if word else _number(number)
        stack[-1].append(value if keys[-1] is None else (keys[-1], value))
        expected = ","


def _number(digits: str) -> float:
    if not digits.lstrip("-").isdigit():
        return float(digits)
    if len(digits) > MAX_INTEGER_DIGITS:
        raise NotStrictError
    return int(digits)


def _finished(stack: list[Any], keys: list[str | None]) -> Any:
    """What is worth keeping of containers that were never closed, or None.

    A container with nothing finished in it goes (an empty list would claim that there is nothing to list),
    and so does an unfinished element of an array that has finished ones (half a record); the rest is closed.
    """
    value: Any = None
    for container, key in zip(reversed(stack), reversed(keys), strict=True):
        if value is not None and isinstance(container, Pairs):
            container.append((key or "", value))
        elif value is not None and not container:
            container.append(value)
        value = container or None
    return value


class _CountedText(str):
    """A string that can be read a limited number of times, for a parser that may read it for ever."""

    left: list[int]

    def __getitem__(self, index: Any) -> str:
        part = super().__getitem__(index)
        self.left[0] -= 1 + len(part) // 64
        if self.left[0] < 0:
            raise TimeoutError
        return _counted(part, self.left) if isinstance(index, slice) else part


def _counted(text: str, left: list[int]) -> _CountedText:
    counted = _CountedText(text)
    counted.left = left
    return counted


def mend(text: str, cut: bool) -> Any:
    """The container that broken JSON text most likely means, objects as :class:`Pairs`, or None.

    Parameters
    ----------
    text : begins at the opening bracket
    cut : whether the text ends inside the container; what may be unfinished is then left out
    """
    letter = next((letter for letter in _LETTERS if letter not in text), None)
    if letter is None or len(text) > _MAX_MENDED:
        return None
    count = iter(range(len(text) + 1))
    marked = _KEY.sub(lambda found: f"{found[0]}{letter}{next(count)}{letter}", text)
    try:
        mended = json_repair.loads(_counted(marked, [_READS_PER_CHARACTER * len(marked) + 1000]), skip_json_loads=True)
        value = _restore(mended, re.compile(f"{letter}[0-9]+{letter}"), MAX_DEPTH)
    except Exception:  # whatever a third-party parser raises on text that is not JSON
        return None
    if text[0] == "{" and type(value) is list:  # several values: the one that was asked for came first
        value = next((one for one in value if isinstance(one, Pairs)), value)
    if cut:
        return _reopened(value)
    return value if value and isinstance(value, list) else None


def _restore(value: Any, mark: re.Pattern[str], depth: int) -> Any:
    if depth < 0:
        raise RecursionError
    if isinstance(value, dict):
        return Pairs((mark.sub("", str(key)), _restore(item, mark, depth - 1)) for key, item in value.items())
    if isinstance(value, list):
        return [_restore(item, mark, depth - 1) for item in value]
    return mark.sub("", value) if isinstance(value, str) else value


def _reopened(value: Any) -> Any:
    """What is finished of a container that was cut: its last scalar may be half of one, and goes."""
    stack: list[Any] = []
    keys: list[str | None] = []
    while isinstance(value, list) and value:
        stack.append(value)
        last = value.pop()
        key, value = last if isinstance(stack[-1], Pairs) else (None, last)
        keys.append(key)
    return _finished(stack, keys)
