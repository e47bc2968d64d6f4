"""The text before a chunk when it is embedded, searched by words or reranked."""

from collections.abc import Sequence

__all__ = ["contextualised", "header_text", "published_header_text"]


def header_text(title: str, summary: str, terms: Sequence[str] = (), section: Sequence[str] = ()) -> str:
    """Title, terms, summary and section, one per line; empty ones have no line, nor what repeats title or summary.

    It is shorter than the published wording, which repeats its own words before every chunk. These are useless to
    lexical search, and use up the window of small embedding models.

    >>> header_text("Annual report", "", ["tea", "2018"], ["Annual report", "Risks"])
    'Annual report\\ntea, 2018\\nRisks'
    """
    path = " > ".join(name for name in section if name and name != title)
    if summary and (path.startswith(summary) or summary.startswith(path)):
        path = ""  # the first page
    lines = (title, ", ".join(terms), summary, path)
    return "\n".join(line for line in lines if line)


def published_header_text(title: str, summary: str, section: Sequence[str] = (), section_summary: str = "") -> str:
    """The wording of the published code (dsRAG 0.2.0).

    >>> published_header_text("Tea", "This document is about: tea.")
    "Document context: the following excerpt is from a document titled 'Tea'. This document is about: tea."
    """
    header = f"Document context: the following excerpt is from a document titled '{title}'. {summary}"
    if section:
        path = " > ".join(section)
        header += f"\n\nSection context: this excerpt is from the section titled '{path}'. {section_summary}"
    return header.rstrip()


def contextualised(header: str, text: str) -> str:
    """Header, blank line and text; without a header, the text itself."""
    return f"{header}\n\n{text}" if header else text
