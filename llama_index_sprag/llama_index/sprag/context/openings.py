"""How documents and pages begin, below their running headers."""

from collections.abc import Collection, Sequence

from llama_index.sprag.context.running_lines import running_lines, without_running_lines

__all__ = ["first_lines", "page_openings", "shortened", "without_title"]


def page_openings(pages: Sequence[str], *, length: int, running: Collection[str] | None = None) -> list[str]:
    """The first characters of each page in one line, without headers and footers.

    In reports, slides and manuals a page begins with its subject; where it goes on with a sentence, its first words say
    what the rest of the page is about about as well as a heading does. A page of nothing else than headers and
    footers has the opening `""`.

    Parameters
    ----------
    pages : texts of one document's pages, in order
    length : characters at most, at least 1
    running : what :func:`~llama_index.sprag.context.running_lines.running_lines` gives for the pages [computed]

    >>> page_openings(["Cash flows\\n  2018  2017\\nNet income 5 4"], length=22)
    ['Cash flows 2018 2017']
    """
    known = running_lines(pages) if running is None else running
    return [shortened(" ".join(line for _, line in without_running_lines(page, known)), length) for page in pages]


def first_lines(pages: Sequence[str], *, length: int, running: Collection[str] | None = None) -> str:
    """The opening of the first page that has one, `""` if none has; parameters as for :func:`page_openings`."""
    known = running_lines(pages) if running is None else running
    for page in pages:
        if found := page_openings([page], length=length, running=known)[0]:
            return found
    return ""


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
