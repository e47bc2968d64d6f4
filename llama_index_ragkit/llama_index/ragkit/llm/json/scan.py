"""A strict JSON reader without recursion, which keeps the complete part of a text that is cut off.

It is strict except for trailing commas, `//` and `/* */` comments (up to 20 in a row, of up to 300 characters), and
Python's words for the constants. Duplicate keys are kept, the nesting is bounded, and the time is linear in the length
of the text.
"""

import re
from json.decoder import JSONDecodeError, scanstring  # type: ignore[attr-defined]
from typing import Any

from llama_index.ragkit.errors import ParseError

__all__ = ["MAX_DEPTH", "CutError", "NotStrictError", "Pairs", "balanced_end", "close_cut", "read_container"]

MAX_DEPTH = 100  # nested containers
_LONGEST_NUMBER = 4301  # characters; converting digits takes quadratic time, and Python stops here by default

_TOKEN = re.compile(
    # Every part can match in one way only; otherwise a long run of comments would take exponential time.
    # Comments are short, since a reader that looks for JSON begins within them too.
    r"\s*(?:(?://[^\n]{0,300}(?:\n|\Z)|/\*(?:[^*]|\*(?!/)){0,300}\*/)\s*){0,20}"
    r"(?:([{}\[\],:\"])"
    r"|(-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?)(?![\w.+-])"
    r"|([tT]rue|[fF]alse|null|None|NaN|-?Infinity)(?!\w))"
)
# The end of the text, in the middle of a word or number perhaps, or of its code fence, which models close
# even where they were cut off inside it.
_END = re.compile(r"\s*(?:[-+.\w]{0,20}\Z|```)")
_BRACKET = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)|[{}\[\]]', re.DOTALL)
_WORDS = {"true": True, "false": False, "null": None, "True": True, "False": False, "None": None} | {
    w: float(w) for w in ("NaN", "Infinity", "-Infinity")
}
_VALUE = ("value", "first value")  # the expected tokens where a value begins
_ALLOWED_BEFORE = {  # the same for the other tokens
    '"': ("value", "first value", "key", "first key"),
    ",": (",",),
    ":": (":",),
    "]": (",", "first value", "value"),  # the latter after a trailing comma
    "}": (",", "first key", "key"),
}


class Pairs(list[tuple[str, Any]]):
    """A JSON object as its (key, value) pairs in the order of the text, duplicate keys kept."""

    def get_all(self, key: str) -> list[Any]:
        """The values of every occurrence of a key."""
        return [value for name, value in self if name == key]


class NotStrictError(Exception):
    """The text is not strict JSON."""


class CutError(Exception):
    """The text ends inside a value; `value` is its complete part (None: nothing)."""

    def __init__(self, value: Any) -> None:
        self.value = value


def read_container(text: str, start: int) -> tuple[Any, int]:
    """Read the strict JSON object or array that opens at `text[start]`: its value, with objects as :class:`Pairs`, and
    where it ends. NaN and the infinities are numbers.

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
        if token is None or (token[2] and token.end() == len(text)):  # a number at the very end may be incomplete
            raise CutError(close_cut(stack, keys))
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
                raise (CutError(close_cut(stack, keys)) if cut else NotStrictError) from None
            if expected in ("key", "first key"):
                keys[-1], expected = value, ":"
                continue
        else:
            value = _WORDS[word] if word else _number(number)
        stack[-1].append(value if keys[-1] is None else (keys[-1], value))
        expected = ","


def _number(digits: str) -> float:
    if len(digits) > _LONGEST_NUMBER:
        raise NotStrictError
    try:
        return int(digits) if digits.lstrip("-").isdigit() else float(digits)
    except ValueError:  # Python's limit may be set lower
        raise NotStrictError from None


def close_cut(stack: list[Any], keys: list[str | None]) -> Any:
    """The complete part of containers that were never closed, outermost first, or None.

    A container without complete parts is dropped (an empty list would mean that there is nothing to list), and so is
    an incomplete element of an array with complete ones (half a record); the rest is closed.
    """
    value: Any = None
    for container, key in zip(reversed(stack), reversed(keys), strict=True):
        if value is not None and isinstance(container, Pairs):
            container.append((key or "", value))
        elif value is not None and not container:
            container.append(value)
        value = container or None
    return value


def balanced_end(text: str, start: int) -> int | None:
    """The end of the bracket that opens at `start`, judged by double-quoted strings and brackets alone."""
    depth = 0
    for found in _BRACKET.finditer(text, start):
        if found[0] in ("{", "["):
            depth += 1
            if depth > MAX_DEPTH:
                raise ParseError(f"The reply is nested deeper than {MAX_DEPTH} levels.")
        elif found[0] in ("}", "]"):
            depth -= 1
            if depth == 0:
                return found.end()
    return None
