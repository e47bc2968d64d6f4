"""Headers and footers that repeat on many pages: they are neither titles nor summaries."""

import re
from collections import Counter
from collections.abc import Collection, Sequence

__all__ = ["running_lines", "without_running_lines"]

_DIGITS = re.compile(r"\d+")
_SHARE = 0.25  # least share of the pages with the line at an edge: pages of a chapter often have its title
_LEAST_PAGES = 3  # in any case


def running_lines(pages: Sequence[str], *, edge: int = 3) -> frozenset[str]:
    """The repeated lines among the first and last `edge` filled lines of pages, for :func:`without_running_lines`.

    Lines that differ only in white space, case and numbers, such as "Page 3 of 90" and "Page 4 of 90", are equal.
    """
    counts: Counter[str] = Counter()
    for page in pages:
        lines = [_key(line) for line in page.splitlines() if line.strip()]
        counts.update({*lines[:edge], *lines[max(edge, len(lines) - edge) :]})
    needed = max(_LEAST_PAGES, _SHARE * len(pages))
    return frozenset(key for key, count in counts.items() if count >= needed)


def without_running_lines(page: str, running: Collection[str], *, edge: int = 3) -> list[tuple[int, str]]:
    """The other lines of a page with their offsets in it, without white space around them; blank lines are kept.

    >>> pages = [f"ACME annual report {year}\\nBody of {year}.\\n{year}" for year in (2020, 2021, 2022)]
    >>> without_running_lines(pages[0], running_lines(pages, edge=1), edge=1)
    [(24, 'Body of 2020.')]
    """
    lines = []
    offset = 0
    for line in page.splitlines(keepends=True):
        stripped = line.strip()
        lines.append((offset + line.find(stripped), stripped))
        offset += len(line)
    filled = [place for place, (_, line) in enumerate(lines) if line]
    edges = {*filled[:edge], *filled[max(edge, len(filled) - edge) :]}
    return [entry for place, entry in enumerate(lines) if place not in edges or _key(entry[1]) not in running]


def _key(line: str) -> str:
    return _DIGITS.sub("#", " ".join(line.split()).casefold())
