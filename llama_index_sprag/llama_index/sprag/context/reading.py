"""Reads a document by rules: a description of it, and the section or page of each of its chunks."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from llama_index.sprag.config import ContextConfig
from llama_index.sprag.context.headings import headings_of, section_paths
from llama_index.sprag.context.openings import first_lines, page_openings, running_lines
from llama_index.sprag.context.titles import document_title, is_source_code

__all__ = ["ReadDocument", "read_chunks", "read_document"]

_HEADINGS_PER_PAGE = 0.1  # if there are fewer distinct ones, they are plain text that begins with a number sign


@dataclass(frozen=True)
class ReadDocument:
    """What the rules found in one document, independently of the rest of the corpus."""

    title: str  # "" if it has none
    opening: str  # its first lines, "" if it is empty
    section_starts: Sequence[int]  # in the pages laid end to end; empty without headings
    section_paths: Sequence[tuple[str, ...]]  # titles of each section and those above it, from the highest
    page_starts: Sequence[int]  # in the pages laid end to end
    page_openings: Sequence[str]  # if there are several pages and no headings; else empty

    def section(self, page: int, offset: int) -> tuple[str, ...]:
        """The titles of the sections at an offset in a page, both from 0, or else the opening of the page, if any."""
        if self.section_starts:
            number = bisect_right(self.section_starts, self.page_starts[page] + offset)
            return self.section_paths[number - 1] if number else ()
        return tuple(opening for opening in self.page_openings[page : page + 1] if opening)


def read_document(pages: Sequence[str], metadata: Mapping[str, object], config: ContextConfig) -> ReadDocument:
    """Title, first lines and sections of a document, from the texts of its pages in order and its metadata."""
    starts = [0, *accumulate(len(page) + 1 for page in pages)][: len(pages)]
    has_headings = config.sections and not is_source_code(metadata)
    headings = [
        heading._replace(offset=start + heading.offset)
        for start, page in zip(starts, pages, strict=True)
        for heading in (headings_of(page) if has_headings else ())
    ]
    if len({heading.title for heading in headings}) < _HEADINGS_PER_PAGE * len(pages):
        headings = []
    running = running_lines(pages)
    openings: list[str] = []
    if config.sections and config.page_opening and not headings and len(pages) > 1:
        openings = page_openings(pages, length=config.page_opening, running=running)
    title = document_title(metadata, headings)
    opening = ""
    if config.first_lines:
        # A document without a given title often has one among its first lines.
        opening = first_lines(pages, length=config.first_lines, running=running, letterhead=not title)
    return ReadDocument(
        title=title,
        opening=opening,
        section_starts=[heading.offset for heading in headings],
        section_paths=section_paths(headings),
        page_starts=starts,
        page_openings=openings,
    )


def read_chunks(
    texts: Sequence[str],
    pages: Sequence[str],
    goes_on: Sequence[bool],
    metadata: Mapping[str, object],
    config: ContextConfig,
) -> tuple[ReadDocument, list[tuple[str, ...]]]:
    """The document, and for each chunk the titles of its sections, from the highest, or the opening of its page.

    A document of a single chunk has no opening, which would repeat the chunk; nor has a document of unknown order.

    Parameters
    ----------
    texts : of the chunks, in reading order
    pages : the id of the LlamaIndex document from which each chunk was cut
    goes_on : whether each chunk continues the one before
    """
    if len(texts) < 2 or not all(goes_on[1:]):
        return read_document([], metadata, config), [()] * len(texts)
    page_texts: list[str] = []
    places: list[tuple[int, int]] = []
    last: str | None = None
    for text, page in zip(texts, pages, strict=True):
        if page != last:
            page_texts.append("")
            last = page
        elif page_texts[-1]:
            page_texts[-1] += "\n"
        places.append((len(page_texts) - 1, len(page_texts[-1])))
        page_texts[-1] += text
    document = read_document(page_texts, metadata, config)
    return document, [document.section(page, offset) for page, offset in places]
