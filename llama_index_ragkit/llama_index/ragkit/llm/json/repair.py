"""Repair of invalid JSON by the `json-repair` library, with two safeguards.

The library builds dictionaries, which drop duplicate keys, so every key is made unique before and restored after. It
takes quadratic time on some inputs, so it is stopped after a fixed number of reads per character (ordinary replies
need fewer than 5).
"""

import re
from typing import Any

import json_repair

from llama_index.ragkit.llm.json.scan import MAX_DEPTH, Pairs, close_cut

__all__ = ["repair"]

_MAX_CHARACTERS = 100_000  # some 25,000 tokens
_READS_PER_CHARACTER = 32
# The position before the text of a possible key: a quoted string or a bare word, followed by a colon. A quote that is
# itself followed by a colon ends a key, unless it is where one begins. A superfluous mark inside a string or a word is
# harmless, since all marks are removed afterwards.
_KEY = re.compile(
    r"(?:(?<=[{,\s])|(?![\"'”’]\s*:))(?:"
    r"\"(?=(?:[^\"\\]|\\.){0,1000}\"\s*:)"
    r"|'(?=(?:[^'\\]|\\.){0,1000}'\s*:)"
    r"|[“‘](?=[^”’]{0,1000}[”’]\s*:))"
    r"|(?<=[{,\s])(?=[\w$][\w$-]{0,100}\s*:)",
    re.DOTALL,
)
# Rare letters, so that a mark is part of a bare word too. One that the text does not contain is used.
_LETTERS = "ǀǁǂǃ"


class _CountedText(str):
    """A string that can be read a limited number of times, for a parser that might not terminate."""

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


def repair(text: str, cut: bool) -> Any:
    """The container that broken JSON text, which begins at its bracket, most likely means, objects as :class:`Pairs`.

    None if it means none. If the text is cut off inside it, its last, possibly incomplete part is dropped.
    """
    letter = next((letter for letter in _LETTERS if letter not in text), None)
    if letter is None or len(text) > _MAX_CHARACTERS:
        return None
    count = iter(range(len(text) + 1))
    marked = _KEY.sub(lambda found: f"{found[0]}{letter}{next(count)}{letter}", text)
    try:
        repaired = json_repair.loads(
            _counted(marked, [_READS_PER_CHARACTER * len(marked) + 1000]), skip_json_loads=True
        )
        value = _restore(repaired, re.compile(f"{letter}[0-9]+{letter}"), MAX_DEPTH)
    except Exception:  # a third-party parser may raise anything on text that is not JSON
        return None
    if text[0] == "{" and type(value) is list:  # several values: the requested one is the first
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
    """The complete part of a container that was cut off, without its last scalar, which may be incomplete."""
    stack: list[Any] = []
    keys: list[str | None] = []
    while isinstance(value, list) and value:
        stack.append(value)
        last = value.pop()
        key, value = last if isinstance(stack[-1], Pairs) else (None, last)
        keys.append(key)
    return close_cut(stack, keys)
