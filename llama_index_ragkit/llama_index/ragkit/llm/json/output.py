"""Parsing the JSON of a model's reply into Python data or a pydantic model.

Models wrap JSON in prose, code fences and reasoning, repeat keys, break its syntax or stop in the middle. This parser
finds the JSON, reads it strictly if possible (`scan`) and repairs it otherwise (`repair`). It raises only `ParseError`
and does not depend on LlamaIndex.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ValidationError

from llama_index.ragkit.errors import ParseError
from llama_index.ragkit.llm.json.repair import repair
from llama_index.ragkit.llm.json.scan import CutError, NotStrictError, Pairs, balanced_end, read_container
from llama_index.ragkit.llm.reasoning import THOUGHT_END, THOUGHT_NAMES

__all__ = [
    "Duplicates",
    "Pairs",
    "Truncated",
    "drop_values",
    "find_values",
    "parse_json",
    "parse_model",
    "parse_pairs",
    "storable",
    "texts_in",
    "texts_in_values",
    "to_plain",
]

Truncated = Literal["repair", "reject"]
Duplicates = Literal["merge", "raise"]
M = TypeVar("M", bound=BaseModel)

MAX_CHARACTERS = 2_000_000  # per reply; the longest outputs of models have a quarter of that
_MAX_REPAIRED = 4  # repaired values per reply
_SPREAD = 10  # times its shortest form that a value may be spread over; a longer one is another value

# Where a value or a block of reasoning begins. A bracket counts only if what follows it looks like JSON, so prose such
# as "the set {a, b}" or "[sic]" is ignored.
_OPENING = re.compile(
    r"\{(?=\s*(?:[\"'“‘}#]|/[/*]|[\w$][\w$-]{0,100}\s*:))"
    r"|\[(?=\s*(?:[\"'“‘{\[\]\d#-]|/[/*]|(?:true|false|null|none|nan|infinity)\b))"
    rf"|<(?P<close>/?)(?:{THOUGHT_NAMES})>",
    re.IGNORECASE,
)
_SURROGATE = re.compile("[\ud800-\udfff]")


def find_values(text: str, *, truncated: Truncated = "repair") -> Iterator[Any]:
    """Yield the JSON values of a reply, the most reliable first; objects are `Pairs`.

    Values that are strict JSON come first, then repaired ones, then one that is cut off by the end of the reply; each
    group in the order of the text. Values nested in another value are not yielded separately. Reasoning
    (`<think>...</think>`, also without the opening tag) is skipped; in reasoning without an end tag only a strict
    value at the end of the reply counts, since earlier ones are drafts. A reply that is one JSON string is parsed as
    the text in it; if that contains no value, or the reply is another scalar, it is the value itself. Lone surrogates,
    which can neither be stored nor sent, become U+FFFD.

    Parameters
    ----------
    text : the reply, at most `MAX_CHARACTERS`
    truncated : "repair" closes a value that is cut off and drops its incomplete parts (a value without complete parts
        is skipped), "reject" skips it

    Raises
    ------
    ParseError
        If there is no value, or the text is too long or nested too deeply.
    """
    if truncated not in ("repair", "reject"):
        raise ParseError(f"truncated must be 'repair' or 'reject', not {truncated!r}.")
    if len(text) > MAX_CHARACTERS:
        raise ParseError(f"The reply has {len(text)} characters, more than the maximum of {MAX_CHARACTERS}.")
    scalar = _read_scalar(text)
    found = _survey(scalar[0] if scalar and isinstance(scalar[0], str) else text)
    values = chain(
        found.whole,
        (repair(broken, cut=False) for broken in found.broken[:_MAX_REPAIRED]),
        [found.rest] if truncated == "repair" else [],
        (repair(broken, cut=True) for broken in found.broken_rest if truncated == "repair"),
    )
    yielded = False
    for value in values:
        if value is not None:
            yielded = True
            yield _storable(value)
    if scalar and not yielded:
        yield _storable(scalar[0])
    elif not yielded:
        where = "ends inside its JSON value" if found.cut else "contains no readable JSON value"
        raise _unread(f"The reply {where}", text)


@dataclass
class _Survey:
    """What was found in a text: strict values, and the texts of invalid ones."""

    whole: list[Any] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    cut: bool = False  # whether the text ends inside a value
    rest: Any = None  # its complete part
    broken_rest: list[str] = field(default_factory=list)  # its text, if that is not strict JSON


def _survey(text: str) -> _Survey:
    found = _Survey()
    thinking = False  # inside reasoning without an end tag
    reply_end = len(text.rstrip().rstrip("`").rstrip())
    position = 0
    while opening := _OPENING.search(text, position):
        position = opening.end()
        if opening["close"]:  # the chat template had the opening tag: everything so far was reasoning
            found = _Survey()
        elif opening["close"] == "":
            ending = None if thinking else THOUGHT_END.search(text, position)
            thinking = ending is None
            position = ending.end() if ending else position
        elif not thinking:
            position = _read_at(text, opening.start(), found)
            ends = list(THOUGHT_END.finditer(text, opening.start())) if found.cut else []
            if ends:  # it was a draft in such reasoning
                found, position = _Survey(), ends[-1].end()
        else:
            draft = _Survey()
            position = _read_at(text, opening.start(), draft)
            if position == reply_end:
                found.whole += draft.whole
    return found


def _read_at(text: str, start: int, found: _Survey) -> int:
    """Add the value that opens at `start` to `found`; return its end."""
    try:
        value, end = read_container(text, start)
    except CutError as error:
        found.cut, found.rest = True, error.value
        return len(text)
    except NotStrictError:
        balanced = balanced_end(text, start)
        if balanced is None:
            found.cut = True
            found.broken_rest.append(text[start:].split("\n```", 1)[0])
            return len(text)
        found.broken.append(text[start:balanced])
        return balanced
    found.whole.append(value)
    return end


def texts_in_values(text: str) -> list[str]:
    """The texts in the JSON values of a reply; none if it has no JSON."""
    try:
        return [part for value in find_values(text) for part in texts_in(to_plain(value))]
    except ParseError:
        return []


def texts_in(value: Any) -> Iterator[str]:
    """The texts in a plain value, without its keys."""
    if isinstance(value, dict):
        for inner in value.values():
            yield from texts_in(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from texts_in(inner)
    elif isinstance(value, str):
        yield value


def drop_values(text: str, unwanted: Sequence[Any]) -> tuple[str, int]:
    """A text without the strict JSON objects and arrays that equal one of these values, and how many there were.

    >>> drop_values('For example {"a": ["x"]}, here {"a": ["y"]}', [{"a": ["x"]}])
    ('For example , here {"a": ["y"]}', 1)
    """
    kept: list[str] = []
    dropped = start = position = 0
    longest = max((_SPREAD * len(json.dumps(value)) for value in unwanted), default=0)
    while opening := _OPENING.search(text, position):
        position = opening.end()
        if opening["close"] is not None:
            continue
        try:
            value, length = read_container(text[opening.start() : opening.start() + longest], 0)
        except (CutError, NotStrictError):
            continue
        except ParseError:  # nested so deeply that the reply will be refused
            break
        position = opening.start() + length
        if to_plain(value) in unwanted:
            kept.append(text[start : opening.start()])
            start, dropped = position, dropped + 1
    return "".join([*kept, text[start:]]), dropped


def _read_scalar(text: str) -> tuple[Any] | None:
    if text.lstrip()[:1] in ("", "{", "["):
        return None
    try:
        return (json.loads(text),)
    except (ValueError, RecursionError):
        return None


def storable(text: str) -> str:
    """A text with lone surrogates replaced by U+FFFD; the separately escaped halves of a pair are joined."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace") if _SURROGATE.search(text) else text


def _storable(value: Any) -> Any:
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, Pairs):
        return Pairs((_storable(key), _storable(item)) for key, item in value)
    if isinstance(value, list):
        return [_storable(item) for item in value]
    return value


def to_plain(value: Any, duplicates: Duplicates = "merge") -> Any:
    """Turn `Pairs` into dictionaries.

    Parameters
    ----------
    value : a value of :func:`find_values`
    duplicates : "merge" joins the values of a repeated key in one list, to which lists contribute their elements;
        "raise" rejects repeated keys

    >>> to_plain(Pairs([("a", 1), ("b", 2), ("a", [3, 4])]))
    {'a': [1, 3, 4], 'b': 2}
    """
    if not isinstance(value, Pairs):
        return [to_plain(item, duplicates) for item in value] if isinstance(value, list) else value
    plain: dict[str, Any] = {}
    repeated: set[str] = set()
    for key, item in value:
        item = to_plain(item, duplicates)
        if key not in plain:
            plain[key] = item
            continue
        if duplicates == "raise":
            raise ParseError(f"The reply has the key {key[:80]!r} twice in one object.")
        if key not in repeated:
            repeated.add(key)
            plain[key] = plain[key] if isinstance(plain[key], list) else [plain[key]]
        plain[key].extend(item if isinstance(item, list) else [item])
    return plain


def parse_pairs(text: str, *, truncated: Truncated = "repair") -> Any:
    """The first value of :func:`find_values`, with duplicate keys."""
    return next(find_values(text, truncated=truncated))


def parse_json(text: str, *, duplicates: Duplicates = "merge", truncated: Truncated = "repair") -> Any:
    """The first value of :func:`find_values` as plain Python data; see :func:`to_plain` for `duplicates`.

    >>> parse_json('Sure! {"a": 1, "a": 2, "b": {}} Anything else?')
    {'a': [1, 2], 'b': {}}
    """
    return to_plain(parse_pairs(text, truncated=truncated), duplicates)


def parse_model(text: str, model: type[M], *, duplicates: Duplicates = "merge", truncated: Truncated = "repair") -> M:
    """The first value of :func:`find_values` that is valid for a pydantic model.

    If none is, a `ParseError` says why the first is not.
    """
    reason = ""
    for value in find_values(text, truncated=truncated):
        try:
            return model.model_validate(to_plain(value, duplicates))
        except ValidationError as error:
            flaws = error.errors(include_url=False, include_input=False, include_context=False)[:3]
            first = "; ".join(f"{'.'.join(map(str, flaw['loc'])) or 'value'}: {flaw['msg']}" for flaw in flaws)
        except ParseError as error:
            first = str(error)
        reason = reason or first
    raise _unread(f"No value of the reply is a {model.__name__} ({reason})", text)


def _unread(why: str, text: str) -> ParseError:
    error = ParseError(f"{why}: {text if len(text) <= 120 else f'{text[:80]} ... {text[-35:]}'!r}")
    error.hint = f"{why}."
    return error
