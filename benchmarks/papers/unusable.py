"""Replies that cannot be used are counted and a run goes on: no passages, an empty answer, or a tie.

Errors after which every further call would fail too, such as a server that is not there, end the run as before.
"""

from collections.abc import Callable, Sequence
from typing import TypeVar

from benchmarks.papers.kept_llm import KeptLLM
from llama_index.ragkit.errors import ParseError
from llama_index.ragkit.evaluation import PairwiseJudge, Reader
from llama_index.ragkit.evaluation.reader import ReaderAnswer
from llama_index.ragkit.steps import Steps

__all__ = ["CountingJudge", "CountingReader", "or_else"]

T = TypeVar("T")


def or_else(llm: KeptLLM | None, ask: Callable[[], T], instead: T) -> T:
    """What a step gives, or something else if no reply of the LLM to it can be used."""
    try:
        return ask()
    except ParseError:
        if llm is None:
            raise
        llm.count_unusable()
        return instead


class CountingReader(Reader):
    """A reader whose answer is empty if no reply can be used."""

    def steps(self, question: str, passages: Sequence[str], options: Sequence[str] = ()) -> Steps[ReaderAnswer]:
        """See :class:`Reader`."""
        try:
            return (yield from super().steps(question, passages, options))
        except ParseError:
            self.llm.count_unusable()
            return ReaderAnswer("", "")


class CountingJudge(PairwiseJudge):
    """A judge that prefers neither answer if no reply can be used."""

    def _outcome(self, criterion: str, question: str, first: str, second: str) -> Steps[float]:
        try:
            return (yield from super()._outcome(criterion, question, first, second))
        except ParseError:
            self.llm.count_unusable()
            return 0.5
