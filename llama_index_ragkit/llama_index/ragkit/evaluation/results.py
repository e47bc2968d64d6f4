"""Labelled questions, and the scores of a system on them."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from llama_index.ragkit.errors import ConfigurationError
from llama_index.ragkit.evaluation.bootstrap import Interval, bootstrap_interval, paired_bootstrap

__all__ = ["Evaluation", "LabelledQuery", "comparison_table", "difference_table"]


@dataclass(frozen=True)
class LabelledQuery:
    """A question with the ids that answer it (for retrievers) or the correct answers (for query engines and readers).

    Attributes
    ----------
    options : of a multiple-choice question; `answers` holds the right one
    """

    id: str
    question: str
    gold: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()
    options: tuple[str, ...] = ()


@dataclass(frozen=True)
class Evaluation:
    """The scores of one system, question by question.

    Attributes
    ----------
    name : the system
    ids : ids of the scored questions
    scores : for every metric, one score per question, in the order of `ids`
    failures : id -> error of the questions that the system failed on; they have no score
    answers : id -> the answer that was scored, if answers were
    """

    name: str
    ids: tuple[str, ...]
    scores: Mapping[str, tuple[float, ...]]
    failures: Mapping[str, str] = field(default_factory=dict)
    answers: Mapping[str, str] = field(default_factory=dict)

    def interval(self, metric: str, *, level: float = 0.95, n_resamples: int = 10_000, seed: int = 0) -> Interval:
        """Mean of a metric with its bootstrap interval."""
        return bootstrap_interval(self._column(metric), level=level, n_resamples=n_resamples, seed=seed)

    def difference(
        self, other: "Evaluation", metric: str, *, level: float = 0.95, n_resamples: int = 10_000, seed: int = 0
    ) -> Interval:
        """Mean of `self - other` for a metric, with its paired bootstrap interval.

        Raises
        ------
        ConfigurationError
            If the two systems were not scored on the same questions.
        """
        if sorted(self.ids) != sorted(other.ids):
            odd = sorted(set(self.ids) ^ set(other.ids))
            raise ConfigurationError(
                f"{self.name!r} and {other.name!r} were not scored on the same questions "
                f"({len(odd)} only in one, such as {odd[:3]}): a paired comparison needs both for each."
            )
        theirs = dict(zip(other.ids, other._column(metric), strict=True))
        pairs = [(mine, theirs[query_id]) for query_id, mine in zip(self.ids, self._column(metric), strict=True)]
        first, second = zip(*pairs, strict=True)
        return paired_bootstrap(first, second, level=level, n_resamples=n_resamples, seed=seed)

    def only(self, ids: Collection[str]) -> "Evaluation":
        """The same with only some of the questions; unknown ids are ignored."""
        kept = [place for place, query_id in enumerate(self.ids) if query_id in ids]
        scores = {name: tuple(column[place] for place in kept) for name, column in self.scores.items()}
        return replace(self, ids=tuple(self.ids[place] for place in kept), scores=scores)

    def table(self, *, level: float = 0.95, n_resamples: int = 10_000, seed: int = 0) -> str:
        """The means with their intervals as a markdown table of one row."""
        return comparison_table([self], level=level, n_resamples=n_resamples, seed=seed)

    def _column(self, metric: str) -> tuple[float, ...]:
        if metric not in self.scores:
            raise ConfigurationError(f"There is no metric {metric!r}; {self.name!r} has {', '.join(self.scores)}.")
        return self.scores[metric]


def comparison_table(
    evaluations: Sequence[Evaluation],
    metrics: Sequence[str] | None = None,
    *,
    level: float = 0.95,
    n_resamples: int = 10_000,
    seed: int = 0,
) -> str:
    """A markdown table of means with bootstrap intervals: one row per system, one column per metric.

    Parameters
    ----------
    metrics : the columns; None for all metrics of the first system
    """
    names = _metrics(evaluations, metrics)
    rows = []
    for evaluation in evaluations:
        failed = f" ({len(evaluation.failures)} failed)" if evaluation.failures else ""
        cells = ["-"] * len(names)  # every question failed
        if evaluation.ids:
            cells = [str(evaluation.interval(m, level=level, n_resamples=n_resamples, seed=seed)) for m in names]
        rows.append([evaluation.name, f"{len(evaluation.ids)}{failed}", *cells])
    return _markdown(["system", "questions", *names], rows)


def difference_table(
    evaluations: Sequence[Evaluation],
    baseline: Evaluation,
    metrics: Sequence[str] | None = None,
    *,
    level: float = 0.95,
    n_resamples: int = 10_000,
    seed: int = 0,
) -> str:
    """A markdown table of the differences to a baseline; bold where the paired interval excludes zero."""
    names = _metrics(evaluations, metrics)
    rows = []
    for evaluation in evaluations:
        cells = []
        for metric in names:
            gap = evaluation.difference(baseline, metric, level=level, n_resamples=n_resamples, seed=seed)
            cell = f"{gap.mean:+.3f} [{gap.low:+.3f}, {gap.high:+.3f}]"
            cells.append(f"**{cell}**" if gap.excludes_zero else cell)
        rows.append([f"{evaluation.name} - {baseline.name}", *cells])
    return _markdown(["difference", *names], rows)


def _metrics(evaluations: Sequence[Evaluation], metrics: Sequence[str] | None) -> list[str]:
    if not evaluations:
        raise ConfigurationError("evaluations must not be empty.")
    return list(evaluations[0].scores) if metrics is None else list(metrics)


def _markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
