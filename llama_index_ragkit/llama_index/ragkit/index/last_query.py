"""`LastQuery`: the last query of an index, for its page."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from llama_index.ragkit.storage.selection import Selection

__all__ = ["LastQuery"]


@dataclass(frozen=True)
class LastQuery:
    """The last query and its answer, which the page of the index shows.

    Attributes
    ----------
    answer : ids of the nodes with their scores, in the order of the answer
    found : further results that the page of the method shows
    selection : which chunks the question was restricted to, and the page with it
    """

    question: str
    answer: Sequence[tuple[str, float]]
    found: Any
    selection: Selection
