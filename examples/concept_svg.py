"""Small diagrams as SVG: cells in columns with lines between them, and a table of dots.

The picture has its own background and the colours of light and dark pages, and its text stays legible when a phone
shows it at three quarters of its size. Equal input gives equal text.
"""

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

__all__ = ["Cell", "Column", "Line", "columns", "dots"]

WIDTH = 480
MARGIN = 14
GAP = 30  # between columns, for the lines
LINE_HEIGHT = 18
PADDING = 7
BETWEEN = 9  # between cells of a column
CHARACTER = 7.7  # mean width at 14 px, generous
STYLE = """
text { font: 14px system-ui, -apple-system, "Segoe UI", Roboto, Helvetica, Arial, sans-serif; fill: #1d2430; }
.page { fill: #fcfcfd; stroke: #d5d9e0; } .cell { fill: #eef1f5; stroke: #aab3c0; }
.hot { fill: #dcebfa; stroke: #1f6fb2; stroke-width: 1.8; } .head { font-weight: 600; } .soft { fill: #566072; }
.line { fill: none; stroke: #b4bcc8; stroke-width: 1.2; } .way { fill: none; stroke: #1f6fb2; stroke-width: 2.2; }
.dot { fill: #1f6fb2; }
@media (prefers-color-scheme: dark) {
  text { fill: #e6e9ee; } .page { fill: #181c23; stroke: #3a4250; } .cell { fill: #262c36; stroke: #566072; }
  .hot { fill: #1d3c58; stroke: #7fb8ec; } .soft { fill: #a9b2c0; } .line { stroke: #4a5362; } .way { stroke: #7fb8ec; }
  .dot { fill: #7fb8ec; }
}
"""


@dataclass(frozen=True)
class Cell:
    """A box with text. `hot` marks the path to the answer."""

    id: str
    text: str
    hot: bool = False


@dataclass(frozen=True)
class Column:
    """Boxes under a heading; `share` is its part of the width, relative to the others."""

    heading: str
    cells: Sequence[Cell]
    share: float = 1.0


@dataclass(frozen=True)
class Line:
    """A connection of two cells in neighbouring columns, from left to right."""

    start: str
    end: str


def columns(title: str, question: str, parts: Sequence[Column], lines: Sequence[Line], anchor: int = -1) -> str:
    """Columns of boxes and lines between them; lines between two hot boxes are the path to the answer.

    Cells of the column `anchor` stand in their order; those of others at the mean height of what they are connected to.
    """
    top, elements = _heading(question)
    unit = (WIDTH - 2 * MARGIN - GAP * (len(parts) - 1)) / sum(part.share for part in parts)
    boxes: dict[str, tuple[float, float, float, float]] = {}  # x, y, width, height
    hot: set[str] = set()
    drawn: list[str] = []
    bottom, x = top, float(MARGIN)
    heads = [_wrapped(part.heading, unit * part.share + GAP / 2) for part in parts]
    start = top + 12 + LINE_HEIGHT * max(map(len, heads))
    lefts: list[float] = []
    for part, head in zip(parts, heads, strict=True):
        drawn += [_text(x, top + 14 + i * LINE_HEIGHT, line, "head") for i, line in enumerate(head)]
        lefts.append(x)
        x += unit * part.share + GAP
    fixed = anchor % len(parts)
    for number in [*range(fixed, -1, -1), *range(fixed + 1, len(parts))]:
        part, x, y = parts[number], lefts[number], start
        width = unit * part.share
        for cell, middle in _ordered(part.cells, lines, boxes):
            texts = _wrapped(cell.text, width - 2 * PADDING)
            height = len(texts) * LINE_HEIGHT + 2 * PADDING - 3
            y = max(y, middle - height / 2)
            boxes[cell.id] = (x, y, width, height)
            hot.update([cell.id] if cell.hot else [])
            drawn.append(_box(x, y, width, height, "hot" if cell.hot else "cell"))
            drawn += [_text(x + PADDING, y + PADDING + 12 + i * LINE_HEIGHT, line) for i, line in enumerate(texts)]
            y += height + BETWEEN
        bottom = max(bottom, y)
    curves = [(line.start in hot and line.end in hot, _curve(boxes[line.start], boxes[line.end])) for line in lines]
    elements += [f'<path class="{"way" if way else "line"}" d="{path}"/>' for way, path in sorted(curves)]
    return _page(title, bottom + MARGIN - BETWEEN, [*elements, *drawn])


def dots(
    title: str, question: str, heads: Mapping[str, str], rows: Sequence[Cell], sizes: Mapping[str, Sequence[float]]
) -> str:
    """A table of dots with areas `sizes`, shape (columns,) for each row, in [0, 1]; `heads` and what they stand for."""
    top, elements = _heading(question)
    left = 190.0
    step = (WIDTH - MARGIN - left - GAP / 2) / len(heads)
    for head, meaning in heads.items():
        if meaning:
            elements += [_text(MARGIN, top + 8, head, "head"), _text(MARGIN + 20, top + 8, meaning)]
            top += LINE_HEIGHT
    for i, head in enumerate(heads):
        elements.append(_text(left + GAP / 2 + (i + 0.5) * step - CHARACTER * len(head) / 2, top + 16, head, "head"))
    y = top + 12 + LINE_HEIGHT
    for row in rows:
        texts = _wrapped(row.text, left - MARGIN - 2 * PADDING)
        height = len(texts) * LINE_HEIGHT + 2 * PADDING - 3
        elements.append(_box(MARGIN, y, left - MARGIN, height, "hot" if row.hot else "cell"))
        elements += [_text(MARGIN + PADDING, y + PADDING + 12 + i * LINE_HEIGHT, line) for i, line in enumerate(texts)]
        for i, size in enumerate(sizes[row.id]):
            centre = left + GAP / 2 + (i + 0.5) * step
            elements.append(
                f'<circle class="dot" cx="{centre:.0f}" cy="{y + height / 2:.0f}" r="{20 * size**0.5:.0f}"/>'
            )
        y += height + BETWEEN
    return _page(title, y + MARGIN - BETWEEN, elements)


def _heading(question: str) -> tuple[float, list[str]]:
    lines = _wrapped(f"“{question}”", WIDTH - 2 * MARGIN)
    elements = [_text(MARGIN, MARGIN + 13 + i * LINE_HEIGHT, line, "soft") for i, line in enumerate(lines)]
    return MARGIN + LINE_HEIGHT * len(lines) + 12, elements


def _ordered(
    cells: Sequence[Cell], lines: Sequence[Line], boxes: Mapping[str, tuple[float, float, float, float]]
) -> list[tuple[Cell, float]]:
    """The cells by the mean height of the boxes that their lines lead to, and that height; 0 where there are none."""
    found = []
    for place, cell in enumerate(cells):
        ends = [boxes[line.end] for line in lines if line.start == cell.id and line.end in boxes]
        ends += [boxes[line.start] for line in lines if line.end == cell.id and line.start in boxes]
        middle = sum(y + height / 2 for _, y, _, height in ends) / len(ends) if ends else 0.0
        found.append((middle, place, cell))
    return [(cell, middle) for middle, _, cell in sorted(found, key=lambda item: item[:2])]


def _curve(start: tuple[float, float, float, float], end: tuple[float, float, float, float]) -> str:
    x1, y1 = start[0] + start[2], start[1] + start[3] / 2
    x2, y2 = end[0], end[1] + end[3] / 2
    middle = (x1 + x2) / 2
    return f"M{x1:.0f} {y1:.0f}C{middle:.0f} {y1:.0f} {middle:.0f} {y2:.0f} {x2:.0f} {y2:.0f}"


def _wrapped(text: str, width: float) -> list[str]:
    return textwrap.wrap(text, max(6, int(width / CHARACTER)), break_long_words=False) or [""]


def _box(x: float, y: float, width: float, height: float, kind: str) -> str:
    return f'<rect class="{kind}" x="{x:.0f}" y="{y:.0f}" width="{width:.0f}" height="{height:.0f}" rx="6"/>'


def _text(x: float, y: float, text: str, kind: str = "") -> str:
    return f'<text{f" class={kind!r}" if kind else ""} x="{x:.0f}" y="{y:.0f}">{escape(text)}</text>'.replace("'", '"')


def _page(title: str, height: float, elements: Sequence[str]) -> str:
    size = f'viewBox="0 0 {WIDTH} {height:.0f}" width="{WIDTH * 1.2:.0f}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">'
    page = f'<rect class="page" x="0.5" y="0.5" width="{WIDTH - 1}" height="{height - 1:.0f}" rx="10"/>'
    return "\n".join(
        [head, f"<title>{escape(title)}</title>", f"<style>{STYLE}</style>", page, *elements, "</svg>", ""]
    )
