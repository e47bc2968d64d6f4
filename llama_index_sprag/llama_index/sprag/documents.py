"""Documents as sequences of chunks: which chunks form one, in which order, and what is known of it."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from llama_index.ragkit.ids import content_id, reading_key

__all__ = ["ChunkPlace", "DocumentEntry", "document_key", "entry_of", "in_order", "page_of"]

_PAGE_KEY = "page_label"
_FILE_KEY = "file_path"
_OF_STORES = ("doc_id", "ref_doc_id", "document_id")  # keys that stores add to the metadata
_DIGITS = re.compile(r"(\d+)")


class ChunkPlace(NamedTuple):
    """The place of a chunk."""

    id: str  # of the node
    ref_doc_id: str  # the LlamaIndex document from which it was cut; "" if there is none
    page: str  # its label; "" if there is none
    key: str  # canonical sort key of the node, which holds its offset in the LlamaIndex document

    @property
    def offset(self) -> int:
        """Where it begins in the LlamaIndex document, in characters; 0 if unknown."""
        return int(reading_key(self.key)[0].rsplit("|", 1)[-1])


def document_key(node_id: str, ref_doc_id: str | None, metadata: Mapping[str, object], group_by: str | None) -> str:
    """The document that a chunk belongs to, as a UUID.

    Readers of PDF files make one LlamaIndex document of each page. By default, chunks with a page and a file belong to
    one document if they agree in all other metadata, so that equal file names of two tenants stay apart; other chunks
    belong to the LlamaIndex document from which they were cut. With `group_by`, the value of that metadata key names
    the document of the chunks that have it.
    """
    if group_by is not None and metadata.get(group_by) is not None:
        return content_id("group", group_by, str(metadata[group_by]))
    if group_by is None and _PAGE_KEY in metadata and _FILE_KEY in metadata:
        shared = {name: value for name, value in metadata.items() if name not in (_PAGE_KEY, *_OF_STORES)}
        return content_id("file", json.dumps(shared, sort_keys=True, default=str))
    return content_id("document", ref_doc_id) if ref_doc_id else content_id("chunk", node_id)


def page_of(metadata: Mapping[str, object]) -> str:
    """The label of the page of a chunk, "" if there is none."""
    page = metadata.get(_PAGE_KEY)
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


@dataclass(frozen=True)
class DocumentEntry:
    """A document in the index."""

    key: str  # its id
    chunks: tuple[str, ...]  # ids in reading order
    goes_on: tuple[bool, ...]  # whether each chunk continues the one before
    tokens: NDArray[np.int64]  # of each chunk, shape (n_chunks,)
    characters: NDArray[np.int64]  # of each chunk, shape (n_chunks,)
    description: Mapping[str, Any] = field(default_factory=dict)  # as it is stored; empty if it was not described

    def as_json(self) -> list[Any]:
        """Everything but its key, for :meth:`of_json`."""
        lengths = self.tokens.tolist(), self.characters.tolist()
        return [self.chunks, self.goes_on, *lengths, dict(self.description), self.error]

    @classmethod
    def of_json(cls, key: str, found: Sequence[Any]) -> "DocumentEntry":
        """The entry of :meth:`as_json`."""
        chunks, goes_on, tokens, characters, description = found[:5]
        lengths = np.array(tokens, np.int64), np.array(characters, np.int64)
        return cls(key, tuple(chunks), tuple(goes_on), *lengths, description)

    @property
    def title(self) -> str:
        """Its title, "" if there is none."""
        return str(self.description.get("title", ""))

    @property
    def summary(self) -> str:
        """Its summary, "" if there is none."""
        return str(self.description.get("summary", ""))

    @property
    def error(self) -> str:
        """Why it was not described; "" otherwise."""
        return str(self.description.get("error", ""))

    @property
    def by(self) -> str:
        """The class that described it, or its sections, after another failed; "" if none did."""
        return str(self.description.get("by", ""))

    @cached_property
    def numbers(self) -> dict[str, int]:
        """The number of each chunk."""
        return {chunk: number for number, chunk in enumerate(self.chunks)}

    def only(self, shown: Callable[[str], bool]) -> "DocumentEntry":
        """The document as if only some chunks were known: without its description, unless these are all chunks."""
        kept = [number for number, chunk in enumerate(self.chunks) if shown(chunk)]
        if len(kept) == len(self.chunks):
            return self
        before = [-1, *kept]
        return DocumentEntry(
            self.key,
            tuple(self.chunks[number] for number in kept),
            tuple(self.goes_on[n] and previous == n - 1 for previous, n in zip(before, kept, strict=False)),
            self.tokens[kept],
            self.characters[kept],
        )

    def section(self, chunk: int) -> tuple[str, ...]:
        """The titles of the sections of a chunk, from the highest."""
        sections: Sequence[Sequence[str]] = self.description.get("sections", ())
        return tuple(sections[chunk]) if chunk < len(sections) else ()


def entry_of(
    key: str, places: Sequence[ChunkPlace], records: Mapping[str, Mapping[str, Any]], description: Mapping[str, Any]
) -> DocumentEntry:
    """A document from its chunks in any order, and what was extracted from each, by its id."""
    ordered, goes_on = in_order(places)
    tokens, characters = (
        np.array([int(records[i].get(name, 1)) for i in ordered], np.int64) for name in ("tokens", "characters")
    )
    return DocumentEntry(key, tuple(ordered), tuple(goes_on), tokens, characters, description)
