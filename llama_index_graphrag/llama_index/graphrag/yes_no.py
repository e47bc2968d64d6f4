"""Reading a reply that says yes or no."""

import re
from collections.abc import Mapping, Sequence
from typing import ClassVar

from llama_index.ragkit.errors import ParseError
from llama_index.ragkit.llm.json.shapes import Reply, read_reply
from llama_index.ragkit.llm.reasoning import strip_reasoning

__all__ = ["YesNo", "read_yes_no"]

_ANSWER = re.compile(r"[\W_]*(yes|no)(?:[,.:;!*]|\W*$)", re.IGNORECASE)


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
