"""Headings of Markdown and HTML, and the sections to which a place in a text belongs."""

import re
from collections.abc import Sequence
from html import unescape
from typing import NamedTuple

__all__ = ["Heading", "headings_of", "html_headings", "markdown_headings", "section_paths"]

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_NUMBER_SIGNS = re.compile(r" {0,3}(#{1,6})(?=[ \t]|$)")
_UNDERLINE = re.compile(r" {0,3}(={3,}|-{3,})[ \t]*$")  # CommonMark takes one sign, as tables of plain text have
_BLOCK = re.compile(r" {0,3}(?:[>|]|[-+*][ \t]|\d{1,9}[.)][ \t])| {4}|\t")  # a quotation, table, list or code
# No expression looks beyond the next "<", so broken markup costs no more than sound markup.
_TOKEN = re.compile(r"<!--|-->|<(/?)(h[1-6]|script|style)\b[^<>]*>", re.IGNORECASE)
_TAG = re.compile(r"<[^<>]*>")
_LONGEST = 500  # characters of a title, which stands before every chunk of its section


class Heading(NamedTuple):
    """A heading."""

    offset: int  # where it begins in the text, in characters
    level: int  # 1 for the highest; a section ends at the next heading of its level or a higher one
    title: str  # in one line and without marks


def headings_of(text: str) -> list[Heading]:
    """The marked headings of a text: those of HTML if it has any, else those of Markdown."""
    return html_headings(text) or markdown_headings(text)


def markdown_headings(text: str) -> list[Heading]:
    """Headings with number signs, or underlined by at least three signs; none inside fenced or indented code.

    >>> [heading[1:] for heading in markdown_headings("# Tea\\n\\nGreen\\n-----\\n```\\n# no\\n```\\n")]
    [(1, 'Tea'), (2, 'Green')]
    """
    found: list[Heading] = []
    fence = ""
    candidate: tuple[int, str] | None = None  # a line of its own, which an underline makes a heading: offset and text
    after_blank = True
    offset = 0
    for line in text.splitlines(keepends=True):
        body = line.rstrip("\r\n")
        mark = _FENCE.match(body)
        previous, candidate = candidate, None
        if fence:
            if mark and mark[1].startswith(fence) and not body.strip(" \t" + fence[0]):
                fence = ""
        elif mark:
            fence = mark[1]
        elif signs := _NUMBER_SIGNS.match(body):
            if title := _without_closing_signs(body[signs.end() :]):
                found.append(Heading(offset, len(signs[1]), title))
        elif previous and (underline := _UNDERLINE.match(body)):
            found.append(Heading(previous[0], 1 if underline[1][0] == "=" else 2, previous[1]))
        elif after_blank and body.strip() and not _BLOCK.match(body):
            # In CommonMark an underlined paragraph of several lines is a heading too; here it is a table or a rule.
            candidate = (offset, _one_line(body))
        after_blank = not body.strip()
        offset += len(line)
    return found


def html_headings(text: str) -> list[Heading]:
    """The elements h1 to h6.

    >>> html_headings("<h2 id='a'>Tea &amp; <em>cups</em></h2>")
    [Heading(offset=0, level=2, title='Tea & cups')]
    """
    found = []
    inside = ""  # the element or comment that hides its content, or the heading that is open
    start = end = 0
    for token in _TOKEN.finditer(text):
        mark, closing, element = token[0], token[1] == "/", (token[2] or "").lower()
        if inside in ("<!--", "script", "style"):
            if mark == "-->" if inside == "<!--" else closing and element == inside:
                inside = ""
        elif mark == "<!--" or (element in ("script", "style") and not closing):
            inside = mark if mark == "<!--" else element
        elif element and not closing:
            inside, start, end = element, token.start(), token.end()
        elif element and element == inside:
            if title := _one_line(unescape(_TAG.sub(" ", text[end : token.start()]))):
                found.append(Heading(start, int(element[1]), title))
            inside = ""
    return found


def section_paths(headings: Sequence[Heading]) -> list[tuple[str, ...]]:
    """For each heading, by offset, the titles of the sections that begin or continue there, from the highest.

    >>> section_paths([Heading(0, 1, "Tea"), Heading(9, 2, "Green"), Heading(30, 2, "Black")])
    [('Tea',), ('Tea', 'Green'), ('Tea', 'Black')]
    """
    path: list[Heading] = []
    paths = []
    for heading in headings:
        while path and path[-1].level >= heading.level:
            path.pop()
        path.append(heading)
        paths.append(tuple(above.title for above in path))
    return paths


def _without_closing_signs(title: str) -> str:
    line = title.strip()
    bare = line.rstrip("#")
    return _one_line(bare if not bare or bare[-1] in " \t" else line)


def _one_line(text: str) -> str:
    return " ".join(text.split())[:_LONGEST].rstrip()
