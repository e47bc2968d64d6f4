"""The text before a chunk when it is embedded, searched by words or reranked."""

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["DocumentContext", "contextualised", "header_text", "published_header_text"]


@dataclass(frozen=True)
class DocumentContext:
    """The description of a document before each of its chunks.

    Attributes
    ----------
    title : `""` if there is none
    summary : a sentence, or the beginning of the document; `""` if there is none
    terms : words that set it apart
    """

    title: str = ""
    summary: str = ""
    terms: Sequence[str] = ()


def header_text(document: DocumentContext, section: Sequence[str] = ()) -> str:
    """Title, terms, summary and section, one per line; empty ones have no line.

    It is shorter than the published wording, which repeats its own words before every chunk. These are useless to
    lexical search, and use up the window of small embedding models.

    Parameters
    ----------
    section : titles of the sections of the chunk, from the highest, or the beginning of its page; repetitions of the
        title or the summary are left out

    >>> header_text(DocumentContext("Annual report", terms=["tea", "2018"]), ["Annual report", "Risks"])
    'Annual report\\ntea, 2018\\nRisks'
    """
    path = " > ".join(title for title in section if title and title != document.title)
    if document.summary and (path.startswith(document.summary) or document.summary.startswith(path)):
        path = ""  # the first page
    lines = (document.title, ", ".join(document.terms), document.summary, path)
    return "\n".join(line for line in lines if line)


def published_header_text(document: DocumentContext, section: Sequence[str] = (), section_summary: str = "") -> str:
    """The wording of the published code (dsRAG 0.2.0).

    >>> published_header_text(DocumentContext("Tea", "This document is about: tea."))
    "Document context: the following excerpt is from a document titled 'Tea'. This document is about: tea."
    """
    header = f"Document context: the following excerpt is from a document titled '{document.title}'. {document.summary}"
    if section:
        title = " > ".join(section)
        header += f"\n\nSection context: this excerpt is from the section titled '{title}'. {section_summary}"
    return header.rstrip()


def contextualised(header: str, text: str) -> str:
    """Header, blank line and text; without a header, the text itself."""
    return f"{header}\n\n{text}" if header else text
