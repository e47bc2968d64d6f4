"""Reads a document that is known by its chunks, and the section or page of each chunk, by rules."""

from collections.abc import Mapping, Sequence

from llama_index.sprag.config import ContextConfig
from llama_index.sprag.context.reading import ReadDocument, read_document

__all__ = ["read_chunks"]

_SEPARATOR = "\n"


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
    metadata : of the document
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
            page_texts[-1] += _SEPARATOR
        places.append((len(page_texts) - 1, len(page_texts[-1])))
        page_texts[-1] += text
    document = read_document(page_texts, metadata, config)
    return document, [document.section(page, offset) for page, offset in places]
