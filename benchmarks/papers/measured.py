"""What was measured of a system on a part of an experiment."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from llama_index.ragkit.evaluation import Evaluation

__all__ = ["Measured", "joined"]


@dataclass(frozen=True)
class Measured:
    """A system on a part of an experiment.

    Attributes
    ----------
    scores : column -> a score in [0, 1] for every question
    build_s, question_ms : seconds of the build, and milliseconds of a question on average, the reader included
    build, questions, grading : what the LLM was asked for each: calls, tokens read and written
    embedded : different texts that were embedded
    numbers : column -> a number of the whole
    answers : question id -> the answer, where answers were graded
    points : places in the plane, for a figure
    """

    ids: Sequence[str]
    scores: Mapping[str, Sequence[float]]
    build_s: float
    question_ms: float
    build: Mapping[str, int]
    questions: Mapping[str, int]
    embedded: int
    grading: Mapping[str, int] = field(default_factory=dict)
    numbers: Mapping[str, float] = field(default_factory=dict)
    answers: Mapping[str, str] = field(default_factory=dict)
    points: Sequence[Sequence[float]] = ()

    def evaluation(self, name: str) -> Evaluation:
        """The scores, for intervals and differences."""
        return Evaluation(name, tuple(self.ids), {column: tuple(each) for column, each in self.scores.items()})


def joined(parts: Sequence[Measured]) -> Measured:
    """What was measured on several corpora, as one; numbers are summed."""
    count = sum(len(part.ids) for part in parts)

    def spent(kind: str) -> dict[str, int]:
        return dict(sum((Counter(getattr(part, kind)) for part in parts), Counter()))

    return Measured(
        [query_id for part in parts for query_id in part.ids],
        {name: [score for part in parts for score in part.scores[name]] for name in parts[0].scores},
        round(sum(part.build_s for part in parts), 2),
        round(sum(part.question_ms * len(part.ids) for part in parts) / max(1, count), 1),
        spent("build"),
        spent("questions"),
        sum(part.embedded for part in parts),
        spent("grading"),
        {name: sum(part.numbers[name] for part in parts) for name in parts[0].numbers},
        {query_id: answer for part in parts for query_id, answer in part.answers.items()},
        [point for part in parts for point in part.points],
    )
