"""Labelled questions, and the scores of a system on them."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from llama_index.ragkit.errors import ConfigurationError
from llama_index.ragkit.validation import check_count, check_number

__all__ = [
    "Evaluation",
    "Interval",
    "LabelledQuery",
    "bootstrap_interval",
    "comparison_table",
    "difference_table",
    "markdown_table",
    "paired_bootstrap",
]

_DRAWS_AT_ONCE = 4_000_000  # bounds the memory of one block of resamples to 64 MB


@dataclass(frozen=True)
class Interval:
    """A mean and its confidence interval; `str()` gives `0.700 [0.612, 0.780]`."""

    mean: float
    low: float
    high: float

    @property
    def excludes_zero(self) -> bool:
        """Whether zero lies outside: for a difference, whether the two systems differ at this level."""
        return self.low > 0 or self.high < 0

    def __str__(self) -> str:
        return f"{self.mean:.3f} [{self.low:.3f}, {self.high:.3f}]"


def bootstrap_interval(values: ArrayLike, *, level: float = 0.95, n_resamples: int = 10_000, seed: int = 0) -> Interval:
    """Percentile bootstrap interval of a mean (Efron & Tibshirani 1993, section 13.3).

    The questions are drawn with replacement, as many as there are, `n_resamples` times; the interval lies between the
    ``(1 - level) / 2`` and ``(1 + level) / 2`` quantiles of the means. It applies to other questions of the same kind
    over the same corpus, and is too narrow below some 20 questions.

    Parameters
    ----------
    values : array_like, shape (n_questions,), the score of every question
    level : confidence level, in (0, 1)
    n_resamples : how many resamples, at least 1
    seed : the same seed, number of questions and number of resamples draw the same questions

    Raises
    ------
    ConfigurationError
        If `values` is empty, has another number of axes, or contains NaN or infinity; if a parameter is out of range.
    """
    scores = np.asarray(values, dtype=np.float64)
    if scores.ndim != 1 or scores.size == 0:
        raise ConfigurationError(f"values must be a non-empty sequence of numbers, but has the shape {scores.shape}.")
    if not np.isfinite(scores).all():
        raise ConfigurationError("values contain NaN or infinity; leave out questions without a score.")
    check_number("level", level, 0, 1, above=True, below=True)
    check_count("n_resamples", n_resamples, 1)
    low, high = np.quantile(_means(scores, n_resamples, seed), [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(scores.mean()), float(low), float(high))


def paired_bootstrap(
    first: Sequence[float] | NDArray[np.float64],
    second: Sequence[float] | NDArray[np.float64],
    *,
    level: float = 0.95,
    n_resamples: int = 10_000,
    seed: int = 0,
) -> Interval:
    """Interval of the mean difference `first - second` of two systems on the same questions.

    Both systems are resampled with the same questions, so that the difficulty of a question for both cancels: the
    interval is that of the mean of the differences (parameters and errors: :func:`bootstrap_interval`).
    """
    a, b = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if a.shape != b.shape:
        raise ConfigurationError(f"The two systems have {a.size} and {b.size} scores; pass one per question for both.")
    return bootstrap_interval(a - b, level=level, n_resamples=n_resamples, seed=seed)


def _means(scores: NDArray[np.float64], n_resamples: int, seed: int) -> NDArray[np.float64]:
    rng = np.random.default_rng(seed)
    block = max(1, _DRAWS_AT_ONCE // scores.size)
    means = np.empty(n_resamples)
    for start in range(0, n_resamples, block):
        rows = min(block, n_resamples - start)
        means[start : start + rows] = scores[rng.integers(scores.size, size=(rows, scores.size))].mean(axis=1)
    return means


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
        second = [theirs[query_id] for query_id in self.ids]
        return paired_bootstrap(self._column(metric), second, level=level, n_resamples=n_resamples, seed=seed)

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
    return markdown_table(["system", "questions", *names], rows)


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
    return markdown_table(["difference", *names], rows)


def _metrics(evaluations: Sequence[Evaluation], metrics: Sequence[str] | None) -> list[str]:
    if not evaluations:
        raise ConfigurationError("evaluations must not be empty.")
    return list(evaluations[0].scores) if metrics is None else list(metrics)


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Rows of cells as a table of markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
