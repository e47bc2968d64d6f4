"""Map and reduce: batches of reports, the points that a model finds in each, and the points of the answer.

The answer depends on the points, not on the order in which batches are answered. A failed batch does not affect the
others.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from llama_index.graphrag.reports.report import check_findings

__all__ = ["BatchResult", "Collected", "Point", "checked_points", "collected", "read_score"]

_FRACTION = re.compile(r"\s*(-?\d+(?:\.\d+)?)(?:\s*(?:(/|out of|von|sur|de)\s*(\d+(?:\.\d+)?)|(%)))?\s*", re.IGNORECASE)


class Point(NamedTuple):
    """One point that a batch of reports makes about a question.

    Attributes
    ----------
    text : a sentence or a paragraph
    score : importance, 0 to 100
    nodes : ids of the nodes on which it rests
    """

    text: str
    score: float
    nodes: tuple[str, ...]


class BatchResult(NamedTuple):
    """The result of a batch.

    Attributes
    ----------
    batch : its number
    points : the points that the model found
    error : why the call or the reading of its reply failed; empty otherwise
    """

    batch: int
    points: tuple[Point, ...] = ()
    error: str = ""


@dataclass(frozen=True)
class Collected:
    """The points for an answer.

    Attributes
    ----------
    points : the points within the budget, most important first
    without_score : number of points that were dropped for a score of zero
    left_out : number of points that did not fit
    failed : number of a batch -> why it failed
    """

    points: tuple[Point, ...]
    without_score: int
    left_out: int
    failed: Mapping[int, str]


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


def checked_points(
    given: Iterable[tuple[str, Any, Iterable[Any]]], sources: Mapping[int, Sequence[str]]
) -> tuple[tuple[Point, ...], int, int]:
    """The points of a model that rest on sources and have a score.

    Parameters
    ----------
    given : text, score and citations of each point
    sources : number -> ids of the nodes on which the source rests

    Returns
    -------
    points, number of citations without a source, number of points dropped for lack of a source or a score
    """
    points = []
    citations = dropped = 0
    for text, value, cited in given:
        score, found = read_score(value), check_findings([(text, cited)], sources)
        citations += found.dropped_citations
        if score is None or not found.findings:
            dropped += 1
        else:
            points.append(Point(found.findings[0].text, score, found.findings[0].nodes))
    return tuple(points), citations, dropped


def collected(results: Iterable[BatchResult], budget: int, count: Callable[[str], int]) -> Collected:
    """The points for an answer: by score, then by text, while they fit.

    Points with the same text become one, with the highest score and all nodes.

    Parameters
    ----------
    budget : tokens; a point that does not fit is skipped
    count : tokens of a text
    """
    ordered = sorted(results, key=lambda result: result.batch)
    merged: dict[str, Point] = {}
    for point in sorted((point for result in ordered for point in result.points), key=lambda p: (-p.score, p)):
        first = merged.setdefault(point.text, point)
        merged[point.text] = first._replace(nodes=tuple(dict.fromkeys((*first.nodes, *point.nodes))))
    scored = [point for point in merged.values() if point.score > 0]
    kept: list[Point] = []
    for point in sorted(scored, key=lambda point: (-point.score, point.text)):
        cost = count(point.text) + 1
        if cost <= budget:
            kept.append(point)
            budget -= cost
    failed = {result.batch: result.error for result in ordered if result.error}
    return Collected(tuple(kept), len(merged) - len(scored), len(scored) - len(kept), failed)
