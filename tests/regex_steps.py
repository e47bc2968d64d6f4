"""How many steps a backtracking matcher takes, which the `re` module does not tell; and texts that cost it many.

A pattern becomes a program of characters, choices and jumps, which runs as `re` runs its own: one alternative after the
other, from one place of the text after the other. Bounds of repetitions are cut to 8, since a bound makes a search
slower at every length alike.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

try:
    from re import _constants as op  # type: ignore[attr-defined]
    from re import _parser as parser
except ImportError:  # Python 3.10
    import sre_constants as op  # type: ignore[no-redef]
    import sre_parse as parser  # type: ignore[no-redef]

__all__ = ["TooManyStepsError", "hard_texts", "steps_of"]

MOST_REPETITIONS = 8
_PLACES = {
    op.AT_BEGINNING: "^", op.AT_BEGINNING_STRING: r"\A", op.AT_END: "$", op.AT_END_STRING: r"\Z",
    op.AT_BOUNDARY: r"\b", op.AT_NON_BOUNDARY: r"\B",
}  # fmt: skip
_CATEGORIES = {
    op.CATEGORY_DIGIT: r"\d", op.CATEGORY_NOT_DIGIT: r"\D", op.CATEGORY_SPACE: r"\s", op.CATEGORY_NOT_SPACE: r"\S",
    op.CATEGORY_WORD: r"\w", op.CATEGORY_NOT_WORD: r"\W",
}  # fmt: skip
_CHARACTERS = (op.LITERAL, op.NOT_LITERAL, op.IN, op.ANY)
_LOOPS = (op.MAX_REPEAT, op.MIN_REPEAT)
_ORDINARY = "aA1 \t\n.,-:#_'\"京서ก\u0301/(*`<>[|\\"


class TooManyStepsError(Exception):
    """A match took more steps than it may."""


class _Characters(dict[str, bool]):
    """Which characters a class of a pattern has."""

    def __init__(self, kind: Any, value: Any, flags: int) -> None:
        pattern = re.compile("x", flags)  # the flags that a class depends on
        self._kind, self._value, self._flags = kind, value, pattern.flags

    def __missing__(self, character: str) -> bool:
        forms = {character}
        if self._flags & re.IGNORECASE:
            forms |= {form for form in (character.lower(), character.upper()) if len(form) == 1}
        if self._kind is op.ANY:
            found = character != "\n" or bool(self._flags & re.DOTALL)
        elif self._kind is op.IN:
            is_negated = self._value[0][0] is op.NEGATE
            found = any(_has(item, form) for item in self._value for form in forms) is not is_negated
        else:
            found = any(ord(form) == self._value for form in forms) is (self._kind is op.LITERAL)
        self[character] = found
        return found


def _has(item: tuple[Any, Any], character: str) -> bool:
    kind, value = item
    if kind is op.RANGE:
        return bool(value[0] <= ord(character) <= value[1])
    if kind is op.CATEGORY:
        return re.match(_CATEGORIES[value], character) is not None
    return kind is op.LITERAL and ord(character) == value


class _Program:
    """The instructions of a pattern."""

    def __init__(self, tree: Any, flags: int) -> None:
        self._flags = flags
        self.code: list[tuple[Any, ...]] = []
        self._all(tree)
        self.code.append(("end",))

    def _all(self, tree: Any) -> None:
        for kind, value in tree:
            if kind in _CHARACTERS:
                self.code.append(("character", _Characters(kind, value, self._flags)))
            elif kind is op.SUBPATTERN:
                group, _, _, inner = value
                self.code.append(("save", 2 * (group or 0)))
                self._all(inner)
                self.code.append(("save", 2 * (group or 0) + 1))
            elif kind is op.BRANCH:
                self._branch(value[1])
            elif kind in _LOOPS:
                self._loop(*value, is_lazy=kind is op.MIN_REPEAT)
            elif kind in (op.ASSERT, op.ASSERT_NOT):
                width = value[1].getwidth()[0] if value[0] < 0 else 0
                self.code.append(("look", _Program(value[1], self._flags).code, kind is op.ASSERT, width))
            elif kind is op.AT:
                self.code.append(("at", re.compile(_PLACES[value], self._flags & re.MULTILINE)))
            elif kind is op.GROUPREF:
                self.code.append(("again", value))
            else:
                raise NotImplementedError(f"{kind} is in no pattern of these packages so far.")

    def _choice(self, place: int, first: int, other: int, is_lazy: bool = False) -> None:
        self.code[place] = ("choice", other, first) if is_lazy else ("choice", first, other)

    def _branch(self, trees: Any) -> None:
        ends = []
        for tree in trees[:-1]:
            place = len(self.code)
            self.code.append(())
            self._all(tree)
            ends.append(len(self.code))
            self.code.append(())
            self._choice(place, place + 1, len(self.code))
        self._all(trees[-1])
        for end in ends:
            self.code[end] = ("jump", len(self.code))

    def _loop(self, least: int, most: Any, tree: Any, is_lazy: bool) -> None:
        least = min(least, MOST_REPETITIONS)
        for _ in range(least):
            self._all(tree)
        place = len(self.code)
        if most is op.MAXREPEAT:
            self.code += [(), ("begin", place)]
            self._all(tree)
            self.code += [("advance", place), ("jump", place)]
            self._choice(place, place + 1, len(self.code), is_lazy)
            return
        places = []
        for _ in range(min(most, MOST_REPETITIONS) - least):
            places.append(len(self.code))
            self.code.append(())
            self._all(tree)
        for place in places:
            self._choice(place, place + 1, len(self.code), is_lazy)


class _Matcher:
    """Matches a program against a text, in a limited number of steps."""

    def __init__(self, text: str, most: int) -> None:
        self._text = text
        self._most = most
        self.steps = 0

    def match(self, code: list[tuple[Any, ...]], at: int, whole: bool = False, saved: Mapping[Any, int] = {}) -> int:
        """The end of the match; -1 if there is none."""
        text, size = self._text, len(self._text)
        stack = [(0, at, saved)]
        while stack:
            place, at, saved = stack.pop()
            while True:
                self.steps += 1
                if self.steps > self._most:
                    raise TooManyStepsError
                kind, *values = code[place]
                place += 1
                if kind == "character":
                    if at == size or not values[0][text[at]]:
                        break
                    at += 1
                elif kind == "choice":
                    place = values[0]
                    stack.append((values[1], at, saved))
                elif kind == "jump":
                    place = values[0]
                elif kind in ("save", "begin"):
                    saved = {**saved, (kind, values[0]): at}
                elif kind == "advance":
                    if saved["begin", values[0]] == at:
                        break
                elif kind == "at":
                    if not values[0].match(text, at):
                        break
                elif kind == "look":
                    inner, is_wanted, width = values
                    if (at >= width and self.match(inner, at - width, saved=saved) >= 0) is not is_wanted:
                        break
                elif kind == "again":
                    part = text[saved["save", 2 * values[0]] : saved["save", 2 * values[0] + 1]]
                    if not text.startswith(part, at):
                        break
                    at += len(part)
                elif whole and at < size:
                    break
                else:
                    return at
        return -1

    def search(self, code: list[tuple[Any, ...]]) -> None:
        """Find all matches."""
        at = 0
        while at <= len(self._text):
            end = self.match(code, at)
            at = end if end > at else at + 1


def steps_of(pattern: re.Pattern[str]) -> Callable[..., int]:
    """How many steps a pattern takes: (text, "search", "match" or "fullmatch", the most that it may take, where it
    begins) -> steps.

    A search finds all matches, as `finditer`, `sub` and `split` do.

    Raises
    ------
    TooManyStepsError
    """
    code = _Program(parser.parse(pattern.pattern, pattern.flags), pattern.flags).code

    def steps(text: str, how: str, most: int, start: int = 0) -> int:
        matcher = _Matcher(text, most)
        if how == "search":
            matcher.search(code)
        else:
            matcher.match(code, start, whole=how == "fullmatch")
        return matcher.steps

    return steps


def hard_texts(pattern: re.Pattern[str], length: int) -> list[str]:
    """Texts that lead a pattern into each of its unbounded repetitions, as often as they have room, and then fail it.

    Parameters
    ----------
    length : of each, in characters
    """
    tree = parser.parse(pattern.pattern, pattern.flags)
    texts: dict[str, None] = {}
    for before, body in _unbounded(tree, pattern.flags, ""):
        for again in _samples(body, pattern.flags):
            for unit in (again, before + again, before + 2 * again):
                start = before if unit == again else ""
                texts |= dict.fromkeys((start + unit * length)[:length] + end for end in ("", "\0", " \0"))
            texts[(again * length)[:length]] = None
    return list(texts)


def _unbounded(tree: Any, flags: int, before: str) -> Iterator[tuple[str, Any]]:
    """A text before each unbounded repetition of a pattern, and what is repeated."""
    for kind, value in tree:
        if kind in _LOOPS and value[1] is op.MAXREPEAT:
            yield before, value[2]
        for inner in _inner(kind, value):
            yield from _unbounded(inner, flags, before)
        before += _sample([(kind, value)], flags, 0)


def _inner(kind: Any, value: Any) -> list[Any]:
    """The parts of a node."""
    if kind is op.BRANCH:
        return list(value[1])
    if kind is op.SUBPATTERN:
        return [value[3]]
    return [value[2]] if kind in _LOOPS else [value[1]] if kind in (op.ASSERT, op.ASSERT_NOT) else []


def _samples(tree: Any, flags: int) -> list[str]:
    """Texts that a part of a pattern matches, of different characters."""
    return list(dict.fromkeys(text for pick in range(8) if (text := _sample(tree, flags, pick))))


def _sample(tree: Any, flags: int, pick: int) -> str:
    text = ""
    for kind, value in tree:
        if kind in _CHARACTERS:
            known = _Characters(kind, value, flags)
            named = value if kind is op.IN else [(op.LITERAL, value)] if kind is op.LITERAL else []
            own = [chr(item[1]) for item in named if item[0] is op.LITERAL]
            fitting = [character for character in dict.fromkeys([*_ORDINARY, *own]) if known[character]]
            fitting = fitting or [chr(item[1][0]) for item in named if item[0] is op.RANGE]
            text += fitting[pick % len(fitting)]
        elif kind in _LOOPS:
            text += _sample(value[2], flags, pick) * min(value[0], MOST_REPETITIONS)
        elif kind in (op.SUBPATTERN, op.BRANCH):
            inner = _inner(kind, value)
            text += _sample(inner[pick % len(inner)], flags, pick)
    return text
