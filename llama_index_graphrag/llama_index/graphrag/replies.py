"""Reads yes, no and scores as models write them."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from llama_index.ragkit.errors import ParseError
from llama_index.ragkit.llm.json.shapes import Reply, read_reply
from llama_index.ragkit.llm.reasoning import strip_reasoning

__all__ = ["YesNo", "read_score", "read_yes_no"]

_ANSWER = re.compile(r"[\W_]*(yes|no)(?:[,.:;!*]|\W*$)", re.IGNORECASE)
_FRACTION = re.compile(r"\s*(-?\d+(?:\.\d+)?)(?:\s*(?:(/|out of|von|sur|de)\s*(\d+(?:\.\d+)?)|(%)))?\s*", re.IGNORECASE)


class YesNo(Reply):
    """A reply as an object."""

    other_names: ClassVar[Mapping[str, Sequence[str]]] = {
        "answer": (
            *("relevant", "relevance", "isrelevant", "helps", "helpful"),
            *("same", "issame", "sameentity", "missed", "result"),
        )
    }

    answer: bool


def read_yes_no(reply: str) -> bool:
    """Whether a reply says yes.

    Raises
    ------
    ParseError
        If none of its lines begins with yes or no, and it is not an object with such an answer.
    """
    for line in strip_reasoning(reply).splitlines():
        word = _ANSWER.match(line)
        if word:
            return word[1].casefold() == "yes"
    try:
        return read_reply(reply, YesNo).answer
    except ParseError:
        raise ParseError(f"The reply must be yes or no, not {reply[:80]!r}.") from None


def read_score(value: Any, most: float = 100) -> float | None:
    """A score as models write it, between 0 and `most`; None if it is not a score.

    >>> read_score("9/10"), read_score(85), read_score("40 %"), read_score("high"), read_score(True)
    (90.0, 85.0, 40.0, None, None)
    >>> read_score("4 out of 5", most=10), read_score(120), read_score("-3")
    (8.0, 100.0, 0.0)
    """
    match = None if isinstance(value, bool) else _FRACTION.fullmatch(str(value))
    if match is None:
        return None
    number, _, whole, percent = match.groups()
    top = 100.0 if percent else float(whole) if whole else most
    return min(max(float(number) / top * most, 0.0), float(most)) if top > 0 else None
