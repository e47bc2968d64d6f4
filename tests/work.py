"""The work of reading a text, counted: lines of Python that run, and characters that are read without Python.

Those are what a regular expression scans, what is handed to a function that reads a whole text, and, by its square,
what is handed to a library that takes the square of its length. What a method of `str` reads does not count.
"""

import inspect
import re
import sys
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import CodeType, FrameType
from typing import Any

import pytest
from tests.readers import READERS, TEXT_PARAMETERS
from tests.regex_steps import steps_of

from llama_index.ragkit import RagKitError
from llama_index.ragkit.llm.json.scan import CutError, NotStrictError
from llama_index.ragkit.text import sentences

__all__ = ["Work", "patterns"]

_EXPECTED = (RagKitError, ValueError, CutError, NotStrictError)  # of what is no such text
_MARKS = re.compile("[\u0300-\u036f]{31,}")  # on one letter
_SEGMENTED = 10_000  # characters from which their square counts
_MOST_STEPS = 100_000_000


def patterns() -> Iterator[tuple[dict[str, Any], str, re.Pattern[str]]]:
    """The regular expressions of all modules of the project that were imported, and where their names stand."""
    for name, module in sorted(sys.modules.items()):
        if re.match(r"llama_index\.(?!core\b)", name) and name != sentences.__name__ + ".re":
            space = vars(module)
            yield from ((space, key, value) for key, value in list(space.items()) if isinstance(value, re.Pattern))


class Work:
    """Counts the work of calls."""

    def __init__(self) -> None:
        self.done = 0.0
        self._readers: dict[CodeType, list[str]] = {}
        for reader in READERS.values():
            function = getattr(reader, "args", [None])[0]
            if inspect.isfunction(function) and "start" not in inspect.signature(function).parameters:
                names = [name for name in inspect.signature(function).parameters if name in TEXT_PARAMETERS]
                self._readers[function.__code__] = names

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Count what regular expressions and libraries read, too."""
        with pytest.MonkeyPatch.context() as patch:
            for space, name, pattern in list(patterns()):
                patch.setitem(space, name, _CountedPattern(pattern, self._add))
            segment, normalize = sentences.segment, unicodedata.normalize

            def counted_segment(language: str, text: str) -> list[str]:
                self._add(len(text) * max(1, len(text) / _SEGMENTED))
                return list(segment(language, text))

            def counted_normalize(form: Any, text: str) -> str:
                self._add(len(text) + sum(len(run) ** 2 for run in _MARKS.findall(text)))
                return normalize(form, text)

            patch.setattr(sentences, "segment", counted_segment)
            patch.setattr(unicodedata, "normalize", counted_normalize)
            yield

    def _add(self, characters: float) -> None:
        self.done += characters

    def of(self, reader: Callable[[str], Any], text: str) -> float:
        """The work of one call."""
        lines = 0
        self.done = 0.0
        readers, own = self._readers, __file__

        def line(frame: FrameType, event: str, argument: Any) -> Any:
            nonlocal lines
            lines += 1
            return line

        def call(frame: FrameType, event: str, argument: Any) -> Any:
            code = frame.f_code
            if code.co_filename == own:
                return None
            if code in readers:
                values = (frame.f_locals[name] for name in readers[code])
                self.done += sum(len(value) for value in values if isinstance(value, str))
            return line

        before = sys.gettrace()
        sys.settrace(call)
        try:
            with suppress(*_EXPECTED):
                reader(text)
        finally:
            sys.settrace(before)
        return lines + self.done


class _CountedPattern:
    """A regular expression that tells how many characters it scans."""

    def __init__(self, pattern: re.Pattern[str], add: Callable[[float], None]) -> None:
        self._pattern = pattern
        self._add = add
        self._steps: Callable[..., int] | None = None

    def __getattr__(self, name: str) -> Any:
        """A method that scans all of a text or a region, or what is no method."""
        found = getattr(self._pattern, name)
        if not callable(found):
            return found

        def scanned(*given: Any, **options: Any) -> Any:
            text, *region = given[1:] if name in ("sub", "subn") else given
            self._add(1 + self._length(text, *(region if name in ("findall", "fullmatch") else ())))
            return found(*given, **options)

        return scanned

    def finditer(self, text: str, *region: int) -> Iterator[re.Match[str]]:
        """As far as the matches are asked for."""
        at = region[0] if region else 0
        for match in self._pattern.finditer(text, *region):
            self._add(1 + match.end() - at)
            at = match.end()
            yield match
        self._add(1 + self._length(text, at, *region[1:]))

    def search(self, text: str, *region: int) -> re.Match[str] | None:
        found = self._pattern.search(text, *region)
        self._add(1 + (found.end() - (region[0] if region else 0) if found else self._length(text, *region)))
        return found

    def match(self, text: str, *region: int) -> re.Match[str] | None:
        if region:  # how far it reads is not known from what it finds
            self._steps = self._steps or steps_of(self._pattern)
            self._add(self._steps(text, "match", _MOST_STEPS, region[0]))
        else:
            self._add(1 + len(text))
        return self._pattern.match(text, *region)

    @staticmethod
    def _length(text: str, start: int = 0, end: int = sys.maxsize) -> int:
        return min(end, len(text)) - start
