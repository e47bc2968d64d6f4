"""Which system to use, from the scores of all on the same questions. Pure functions."""

from collections.abc import Sequence
from dataclasses import dataclass

from llama_index.ragkit.evaluation import Evaluation

__all__ = ["Recommendation", "agreement", "recommend", "without_labels"]

_FEW = 20  # questions, below which a bootstrap interval is too narrow
_SAME = 0.9  # share of common results from which a method finds what plain search finds


@dataclass(frozen=True)
class Recommendation:
    """A system, and why.

    Attributes
    ----------
    name : of the system
    reason : in words
    is_sure : whether the reason is a significant difference
    """

    name: str
    reason: str
    is_sure: bool

    def __str__(self) -> str:
        return f"{self.name}. {self.reason}"


def recommend(methods: Sequence[Evaluation], baselines: Sequence[Evaluation], metric: str) -> Recommendation:
    """The best method if it is significantly above the best baseline, or else that baseline.

    The paired bootstrap interval of the difference is at the level 95 %, corrected for the number of methods
    (Bonferroni), since the best of several is looked at.
    """
    plain = _best(baselines, metric)
    few = f" There are only {len(plain.ids)} questions, too few to be sure." if len(plain.ids) < _FEW else ""
    if not methods:
        return Recommendation(
            plain.name,
            f"It is the best of plain search; no method was measured.{_tie(plain, baselines, metric)}{few}",
            False,
        )
    best = _best(methods, metric)
    gap = best.difference(plain, metric, level=1 - 0.05 / len(methods))
    shown = f"{gap.mean:+.3f} [{gap.low:+.3f}, {gap.high:+.3f}] {metric}"
    if gap.low > 0:
        than = f"{plain.name}, the best of plain search"
        text = (
            f"It finds more than {than}: {shown} over {len(plain.ids):,} questions.{_tie(best, methods, metric)}{few}"
        )
        return Recommendation(best.name, text, not few)
    tie = _tie(plain, baselines, metric)
    text = (
        f"No method is significantly above it. The best of them, {best.name}, is at {shown} over {len(plain.ids):,} "
        f"questions: plain search is enough for these, or more questions are needed to tell.{tie}{few}"
    )
    return Recommendation(plain.name, text, False)


def _best(measured: Sequence[Evaluation], metric: str) -> Evaluation:
    """The system with the greatest mean; of equal ones that with the greatest MRR, if it is known."""
    return max(measured, key=lambda e: _means(e, metric))


def _tie(named: Evaluation, measured: Sequence[Evaluation], metric: str) -> str:
    """That others are equal to the system that is named, if there are any."""
    same = [e.name for e in measured if e is not named and _means(e, metric) == _means(named, metric)]
    return f" A tie: {', '.join(same)} scored the same, and {named.name} is named since it comes first." if same else ""


def _means(measured: Evaluation, metric: str) -> list[float]:
    return [measured.interval(name, n_resamples=1).mean for name in (metric, "MRR") if name in measured.scores]


def without_labels(agreements: dict[str, float], baseline: str) -> Recommendation:
    """What can be said without knowing which documents answer the questions: by each method's :func:`agreement` with
    the baseline.
    """
    same = sorted(name for name, share in agreements.items() if share >= _SAME)
    other = sorted((name for name, share in agreements.items() if share < _SAME), key=lambda n: agreements[n])
    text = "The questions do not say which documents answer them, so quality cannot be measured."
    if same:
        text += f" {', '.join(same)} find what it finds, and cost more."
    if other:
        text += f" {', '.join(other)} find other passages: look at them side by side, or add labels."
    return Recommendation(baseline, text, False)


def agreement(rankings: Sequence[Sequence[str]], others: Sequence[Sequence[str]]) -> float:
    """The share of results that two systems have in common, averaged over questions, in [0, 1].

    For each question the size of the intersection over that of the union; 1 where both find nothing.
    """
    shares = []
    for one, other in zip(rankings, others, strict=True):
        union = set(one) | set(other)
        shares.append(len(set(one) & set(other)) / len(union) if union else 1.0)
    return sum(shares) / len(shares) if shares else 1.0
