"""Means with their intervals as an SVG: a method against the best of plain search, a row each."""

import html
from collections.abc import Sequence
from typing import NamedTuple

from llama_index.ragkit.evaluation import Interval

__all__ = ["Row", "interval_chart"]

_WIDTH, _ROW, _LEFT, _RIGHT, _TOP = 440, 58, 12, 12, 26
_STYLE = """
.chart { font: 13px system-ui, sans-serif; fill: #1f2733; --own: #2c5d8f; --plain: #8a93a1; --grid: #8883; }
.chart .soft { fill: #5c6678; font-size: 11px; } .chart .grid { stroke: var(--grid); }
.chart .own { fill: var(--own); stroke: var(--own); } .chart .plain { fill: var(--plain); stroke: var(--plain); }
.chart line.own, .chart line.plain { stroke-width: 3; stroke-linecap: round; opacity: .55; }
@media (prefers-color-scheme: dark) {
  .chart { fill: #e6e9ee; --own: #8fb8e8; --plain: #98a1ae; } .chart .soft { fill: #a2abba; }
}
"""


class Row(NamedTuple):
    """A method on questions of one kind, and the best of plain search on the same questions.

    Attributes
    ----------
    label : the method
    note : the questions
    own, plain : shares in [0, 1] with their intervals
    best : which plain search that is
    """

    label: str
    note: str
    own: Interval
    plain: Interval
    best: str


def interval_chart(rows: Sequence[Row], measure: str) -> str:
    """The chart as an SVG element that carries its style; it adapts to a dark page."""
    height = _TOP + _ROW * len(rows) + 26
    grid = "".join(
        f'<line class="grid" x1="{_x(i / 4):.1f}" x2="{_x(i / 4):.1f}" y1="{_TOP}" y2="{height - 22}"/>'
        f'<text class="soft" x="{_x(i / 4):.1f}" y="{height - 8}" text-anchor="{anchor}">{i / 4:g}</text>'
        for i, anchor in enumerate(("start", "middle", "middle", "middle", "end"))
    )
    legend = (
        f'<circle class="own" cx="{_LEFT + 5}" cy="11" r="4"/>'
        f'<text class="soft" x="{_LEFT + 14}" y="15">the method</text>'
        f'<circle class="plain" cx="{_LEFT + 95}" cy="11" r="4"/>'
        f'<text class="soft" x="{_LEFT + 104}" y="15">the best of dense, BM25 and both</text>'
        f'<text class="soft" x="{_WIDTH - _RIGHT}" y="15" text-anchor="end">{html.escape(measure)}</text>'
    )
    body = "".join(_row(row, _TOP + _ROW * i) for i, row in enumerate(rows))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="chart" viewBox="0 0 {_WIDTH} {height}" role="img" '
        f'aria-label="{html.escape(measure)} of each method and of plain search">'
        f"<style>{_STYLE}</style>{grid}{legend}{body}</svg>"
    )


def _x(share: float) -> float:
    return _LEFT + share * (_WIDTH - _LEFT - _RIGHT)


def _row(row: Row, top: int) -> str:
    said = f"{row.label}: {row.own}; {row.best}: {row.plain}"
    return (
        f"<g><title>{html.escape(said)}</title>"
        f'<text x="{_LEFT}" y="{top + 18}">{html.escape(row.label)}'
        f'<tspan class="soft" dx="8">{html.escape(row.note)}</tspan></text>'
        f"{_mark(row.own, top + 30, 'own')}{_mark(row.plain, top + 43, 'plain')}</g>"
    )


def _mark(interval: Interval, y: int, name: str) -> str:
    return (
        f'<line class="{name}" x1="{_x(interval.low):.1f}" x2="{_x(interval.high):.1f}" y1="{y}" y2="{y}"/>'
        f'<circle class="{name}" cx="{_x(interval.mean):.1f}" cy="{y}" r="4.5"/>'
    )
