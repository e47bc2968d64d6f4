"""The label of a passage on a page: its title, or its heading or file and page, before its beginning."""

import re
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

__all__ = ["passage_label"]

_LENGTH = 120  # characters; the page cuts labels to the available room
_MARKS = re.compile(r"^[ \t]*(?:#{1,6}[ \t]+|>[ \t]?|[-*+][ \t]+)", re.MULTILINE)  # of a heading, quotation, list
_HEADING = re.compile(r"\s*#{1,6}[ \t]+(\S.*)")
_TITLES = ("title", "document_title", "file_name")


def passage_label(text: str, metadata: Mapping[str, Any]) -> str:
    """One line that names a passage.

    >>> passage_label("It burned whale oil.", {"file_name": "lights.pdf", "page_label": "3"})
    'lights.pdf, p. 3: It burned whale oil.'
    >>> passage_label("The lamp. It burned whale oil.", {"title": "The lamp"})
    'The lamp. It burned whale oil.'
    >>> passage_label("## The lamp\\n\\n- It burned whale oil.", {"file_name": "lights.md"})
    'lights.md: The lamp: It burned whale oil.'
    >>> passage_label("# The lamp\\n\\nIt burned whale oil.", {"file_name": "the-lamp.md"})
    'The lamp: It burned whale oil.'
    """
    title = next((str(metadata[key]).strip() for key in _TITLES if metadata.get(key)), "")
    text = text[: 4 * _LENGTH]
    heading = _HEADING.match(text)
    beginning = " ".join(_MARKS.sub("", text[heading.end() :] if heading else text).split())
    if heading:
        named = heading[1].rstrip(" \t#")
        beginning = f"{named}: {beginning}" if beginning else named
        if _letters(named) in (_letters(title), _letters(PurePath(title).stem)):
            return beginning[:_LENGTH]
    if title and metadata.get("page_label"):
        title = f"{title}, p. {metadata['page_label']}"
    if title and not beginning.startswith(title):
        beginning = f"{title}: {beginning}"
    return beginning[:_LENGTH]


def _letters(name: str) -> str:
    return "".join(character for character in name.casefold() if character.isalnum())
