"""Which chunks form a document, and in which order."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from llama_index.ragkit.ids import content_id, reading_key

__all__ = ["PAGE_KEY", "ChunkPlace", "document_key", "in_order", "page_of"]

PAGE_KEY = "page_label"
_FILE_KEY = "file_path"
_OF_STORES = ("doc_id", "ref_doc_id", "document_id")  # keys that stores add to the metadata
_DIGITS = re.compile(r"(\d+)")


class ChunkPlace(NamedTuple):
    """The place of a chunk.

    Attributes
    ----------
    id : of the node
    ref_doc_id : the LlamaIndex document from which it was cut; "" if there is none
    page : label of its page; "" if there is none
    key : canonical sort key of the node, which holds its offset in the LlamaIndex document
    """

    id: str
    ref_doc_id: str
    page: str
    key: str

    @property
    def offset(self) -> int:
        """Where it begins in the LlamaIndex document, in characters; 0 if unknown."""
        return int(reading_key(self.key)[0].rsplit("|", 1)[-1])


def document_key(node_id: str, ref_doc_id: str | None, metadata: Mapping[str, object], group_by: str | None) -> str:
    """The document that a chunk belongs to, as a UUID.

    Readers of PDF files make one LlamaIndex document of each page. By default, chunks with a page and a file belong to
    one document if they agree in all other metadata, so that equal file names of two tenants stay apart; other chunks
    belong to the LlamaIndex document from which they were cut.

    Parameters
    ----------
    group_by : metadata key whose value names the document, for chunks that have one; None for the default
    """
    if group_by is not None and metadata.get(group_by) is not None:
        return content_id("group", group_by, str(metadata[group_by]))
    if group_by is None and PAGE_KEY in metadata and _FILE_KEY in metadata:
        shared = {name: value for name, value in metadata.items() if name not in (PAGE_KEY, *_OF_STORES)}
        return content_id("file", json.dumps(shared, sort_keys=True, default=str))
    return content_id("document", ref_doc_id) if ref_doc_id else content_id("chunk", node_id)


def page_of(metadata: Mapping[str, object]) -> str:
    """The label of the page of a chunk, "" if there is none."""
    page = metadata.get(PAGE_KEY)
    return "" if page is None else str(page)


def in_order(places: Sequence[ChunkPlace]) -> tuple[list[str], list[bool]]:
    """The chunks of one document in reading order, and whether each continues the one before.

    They are sorted by page, LlamaIndex document and offset; numbers in labels and ids count as numbers. If offsets are
    missing or equal, the order is unknown: such chunks are sorted by content, and do not continue each other.

    >>> last = ChunkPlace("b", "p10", "10", "h|p10|000000000000|b")
    >>> first = ChunkPlace("a", "p9", "9", "h|p9|000000000000|a")
    >>> in_order([last, first])
    (['a', 'b'], [False, True])
    """
    ordered = sorted(
        places, key=lambda place: (_natural(place.page), _natural(place.ref_doc_id), reading_key(place.key))
    )
    goes_on = [False] * len(ordered)
    for i in range(1, len(ordered)):
        last, this = ordered[i - 1], ordered[i]
        goes_on[i] = last.ref_doc_id != this.ref_doc_id or last.offset < this.offset
    return [place.id for place in ordered], goes_on


def _natural(text: str) -> list[tuple[int, int, str]]:
    """A sort key in which runs of digits count as numbers."""
    parts = [part for part in _DIGITS.split(text) if part]
    return [(0, int(part), part) if part.isdecimal() else (1, 0, part) for part in parts]
