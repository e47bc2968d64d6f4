"""A passage: its title, and its text without hard line breaks, repeated lines, headers of mails and printed pages."""

import re
from collections.abc import Set
from typing import NamedTuple

from llama_index.ragkit.text.headings import split_heading
from llama_index.ragkit.text.mail_headers import without_mail_headers
from llama_index.ragkit.text.mentions import normalise
from llama_index.ragkit.text.print_lines import without_print_lines
from llama_index.ragkit.text.repeated_lines import without_lines
from llama_index.ragkit.text.unprinted import without_unprinted
from llama_index.ragkit.text.unwrapping import unwrap

__all__ = ["PassageText", "read_passage"]

_EMPHASIS = re.compile(r"(\*{1,3})(\S(?:.{0,200}?\S)?)\1")


class PassageText(NamedTuple):
    """A title, "" if there is none, and the text below it, one paragraph per line."""

    title: str
    body: str


def read_passage(
    text: str,
    title: str = "",
    *,
    headings: bool = True,
    repeated: Set[str] = frozenset(),
    is_chunk: bool = False,
) -> PassageText:
    """The title of a text, given or read from its heading, and its body without hard line breaks.

    Parameters
    ----------
    title : the title, if known; marks of emphasis are left out. A first line with the same words is not part of the
        body
    headings : whether a heading becomes the title if none is given; otherwise it stays in the body
    repeated : keys of lines to remove, unless the text has no others; see
        :func:`~llama_index.ragkit.text.repeated_lines.repeated_lines`
    is_chunk : whether the text begins in the middle of a document, possibly in the middle of a line

    >>> read_passage("The Lamp\\n\\nIt burned\\noil.")
    PassageText(title='The Lamp', body='It burned oil.')
    """
    text = without_mail_headers(without_print_lines(without_unprinted(text)))
    body = without_lines(text, repeated).strip() or text.strip()
    title = _EMPHASIS.sub(r"\2", " ".join(title.split()))
    heading, rest = split_heading(body, is_chunk)
    if title:
        first, _, below = body.partition("\n")
        if heading and normalise(heading) == normalise(title):
            body = rest
        elif below.strip() and normalise(first) == normalise(title):
            body = below
    elif headings and heading:
        title, body = heading, rest
    return PassageText(title, unwrap(body.strip()))
