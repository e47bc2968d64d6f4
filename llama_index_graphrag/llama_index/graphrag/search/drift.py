"""The course of a search with follow-up questions: which question is next, and when the search ends.

The published search starts from five answers made from the reports nearest to a hypothetical answer. It then asks up to
20 follow-up questions in each of 3 rounds, in an order that is not seeded, and ends after the rounds. Here a round asks
the follow-ups of the best answers first, none twice. The search also ends when a round brings no new node, or when only
the call for the answer is left.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple, TypeVar

from llama_index.graphrag.config import SearchConfig
from llama_index.ragkit.text.characters import normalise

__all__ = ["Drift", "DriftAnswer"]

T = TypeVar("T")


class DriftAnswer(NamedTuple):
    """An answer to the question itself or to a follow-up.

    Attributes
    ----------
    question, answer : texts
    score : how well the answer meets the user's question, 0 to 100
    follow_ups : questions to which it leads
    nodes : ids of the nodes on which it rests
    """

    question: str
    answer: str
    score: float
    follow_ups: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Drift:
    """A running search. It is immutable; each round makes a new one.

    It has ended if the last round of follow-ups brought no new node, or all rounds are done.
    """

    config: SearchConfig
    answers: tuple[DriftAnswer, ...] = ()
    calls: int = 0
    round: int = 0
    ended: bool = False

    def primer_batches(self, reports: Sequence[T]) -> list[Sequence[T]]:
        """The first reports, divided among calls that leave one for the answer: consecutive ones, as published.

        >>> from llama_index.graphrag import PublishedOptions
        >>> Drift(SearchConfig(published=PublishedOptions(primer_reports=5, primer_calls=2))).primer_batches("abcdefg")
        ['abc', 'de']
        """
        published = self.config.published
        used = reports[: published.primer_reports]
        count = min(published.primer_calls, max(1, self.config.max_calls - 1 - self.calls), len(used))
        ends = [-(-i * len(used) // count) for i in range(count + 1)]
        return [used[start:end] for start, end in pairwise(ends)]

    def next_questions(self) -> tuple[str, ...]:
        """The follow-ups of the next round, those of the best answers first, none asked before; empty at the end."""
        room = min(self.config.follow_ups, self.config.max_calls - 1 - self.calls)
        asked = {normalise(answer.question) for answer in self.answers}
        found: dict[str, str] = {}
        ranked = sorted(self.answers, key=lambda answer: (-answer.score, answer.question))
        for follow_up in (follow_up for answer in ranked for follow_up in answer.follow_ups):
            key = normalise(follow_up)
            if key and key not in asked:
                found.setdefault(key, follow_up)
        return () if self.ended else tuple(found.values())[: max(room, 0)]

    def answered(self, answers: Iterable[DriftAnswer], calls: int) -> "Drift":
        """The search after a round of calls, failed ones included, with its answers in any order."""
        new = tuple(sorted(answers, key=lambda answer: (answer.question, answer)))
        seen = {node for answer in self.answers for node in answer.nodes}
        rounds = self.round + bool(self.answers)  # the first answers are no round
        found_new = any(not seen.issuperset(answer.nodes) for answer in new)
        ended = not found_new or rounds >= self.config.rounds
        return replace(self, answers=self.answers + new, calls=self.calls + calls, round=rounds, ended=ended)

    @property
    def nodes(self) -> tuple[str, ...]:
        """The nodes of all answers, those of the best answers first, each once."""
        ranked = sorted(self.answers, key=lambda answer: (-answer.score, answer.question))
        return tuple(dict.fromkeys(node for answer in ranked for node in answer.nodes))
