"""The beginnings of documents and pages, below running lines: headers and footers that repeat on many pages."""

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Sequence
from html import unescape

__all__ = [
    "first_lines",
    "page_openings",
    "running_lines",
    "shortened",
    "without_ornaments",
    "without_running_lines",
    "without_title",
]

_DIGITS = re.compile(r"\d+")
_SHARE = 0.25  # least share of the pages with the line at an edge: pages of a chapter often have its title
_LEAST_PAGES = 3  # in any case
_RULE = re.compile(r"([^\w\s])\1{2,}|_{3,}")  # a line drawn with signs
_TAG = re.compile(r"</?[a-zA-Z][^<>]*>")
_MARK = re.compile(r"(?<!\S)[#>|*`]+(?!\S)")  # of headings, quotations, tables and lists in Markdown
# Check boxes, bullets of symbol fonts, emoji, control characters; no currencies, no operators.
_SYMBOLS = ("So", "Sk", "Co", "Cn", "Cc")
_LETTERS = re.compile(r"[^\W\d_]+")
_LEAST_WORDS = 3  # of a line that reads like prose


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


def without_running_lines(page: str, running: Collection[str], *, edge: int = 3) -> list[str]:
    """The other lines of a page, without white space around them; blank lines are kept.

    >>> pages = [f"ACME annual report {year}\\nBody of {year}.\\n{year}" for year in (2020, 2021, 2022)]
    >>> without_running_lines(pages[0], running_lines(pages, edge=1), edge=1)
    ['Body of 2020.']
    """
    lines = [line.strip() for line in page.splitlines()]
    filled = [place for place, line in enumerate(lines) if line]
    edges = {*filled[:edge], *filled[max(edge, len(filled) - edge) :]}
    return [line for place, line in enumerate(lines) if place not in edges or _key(line) not in running]


def _key(line: str) -> str:
    return _DIGITS.sub("#", " ".join(line.split()).casefold())


def page_openings(pages: Sequence[str], *, length: int, running: Collection[str] | None = None) -> list[str]:
    """The first `length` characters of each page in one line, without headers and footers.

    In reports, slides and manuals a page begins with its subject. If it continues a sentence, its first words describe
    the rest of the page about as well as a heading. A page of only headers and footers has the opening `""`. `running`
    are the :func:`running_lines`, computed if None.

    >>> page_openings(["Cash flows\\n  2018  2017\\nNet income 5 4"], length=22)
    ['Cash flows 2018 2017']
    """
    known = running_lines(pages) if running is None else running
    return [_opening(without_running_lines(page, known), length) for page in pages]


def first_lines(
    pages: Sequence[str], *, length: int, running: Collection[str] | None = None, letterhead: bool = True
) -> str:
    """The opening of the first page that has one, `""` if none has; other parameters as for :func:`page_openings`.

    An opening of mostly numbers, as in a table, says nothing about the document and becomes `""`. Without `letterhead`
    it begins with the first line of that page that reads like prose, if the text above fills at least half of the
    length: names, addresses and titles of forms are the same on many documents. A line reads like prose if it has three
    words, of which at most half begin with a capital letter.

    >>> page = "HARBOUR AUTHORITY\\nForm 7 (Mark One)\\nReport for the year ended in May 1931\\nThe quay was mended."
    >>> first_lines([page], length=37, letterhead=False)
    'Report for the year ended in May 1931'
    """
    known = running_lines(pages) if running is None else running
    for page in pages:
        lines = without_running_lines(page, known)
        if opening := _opening(lines, length):
            above = 0 if letterhead else next((place for place, line in enumerate(lines) if _is_prose(line)), 0)
            if 2 * len(without_ornaments(" ".join(lines[:above]))) >= length:
                opening = _opening(lines[above:], length) or opening
            return "" if _is_data(opening) else opening
    return ""


def without_ornaments(text: str) -> str:
    """A text in one line, without tags, marks of Markdown, check boxes, other symbols, and lines drawn with signs.

    >>> without_ornaments("☒ ANNUAL REPORT ______ 2018 .......... $ 5")
    'ANNUAL REPORT 2018 $ 5'
    >>> without_ornaments("## Tea &amp; <em>cups</em>")
    'Tea & cups'
    """
    untagged = unescape(_TAG.sub(" ", text))
    plain = "".join(" " if unicodedata.category(sign) in _SYMBOLS else sign for sign in untagged)
    return " ".join(_MARK.sub(" ", _RULE.sub(" ", plain)).split())


def _opening(lines: Sequence[str], length: int) -> str:
    # Text beyond these characters would be cut off again; pages may be long.
    return shortened(without_ornaments(" ".join(lines)[: 20 * length]), length)


def _is_data(text: str) -> bool:
    words = text.split()
    return 2 * sum(any(map(str.isalpha, word)) for word in words) < len(words)


def _is_prose(line: str) -> bool:
    words = _LETTERS.findall(line)
    capitals = sum(word[0].isupper() for word in words)
    return len(words) >= _LEAST_WORDS and 2 * capitals <= len(words)


def without_title(opening: str, title: str) -> str:
    """An opening without the title that it begins with.

    >>> without_title("# Tea Tea grows in hills.", "Tea")
    'Tea grows in hills.'
    """
    bare = opening.lstrip("#= \t")
    return bare[len(title) :].lstrip("#= \t") if title and bare.startswith(title) else opening


def shortened(text: str, length: int) -> str:
    """A text in one line, cut after a word to at most `length` characters; inside a word if there is no space.

    >>> shortened("one two  three", 9), shortened("onetwothree", 6)
    ('one two', 'onetwo')
    """
    line = " ".join(text.split())
    if len(line) <= length:
        return line
    return line[: length + 1].rpartition(" ")[0] or line[:length]
