"""A document of an index as a sequence of chunks."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from llama_index.sprag.documents.order import ChunkPlace, in_order

__all__ = ["DocumentEntry", "entry_of"]


@dataclass(frozen=True)
class DocumentEntry:
    """A document in the index.

    Attributes
    ----------
    key : its id
    chunks : ids of its chunks in reading order
    goes_on : whether each chunk continues the one before
    tokens, characters : int64, shape (n_chunks,), lengths of each
    description : title, summary and sections as the index stores them; empty if it was not described
    error : why it was not described; "" otherwise
    """

    key: str
    chunks: tuple[str, ...]
    goes_on: tuple[bool, ...]
    tokens: NDArray[np.int64]
    characters: NDArray[np.int64]
    description: Mapping[str, Any] = field(default_factory=dict)
    error: str = ""

    def as_json(self) -> list[Any]:
        """Everything but its key, for :meth:`of_json`."""
        lengths = self.tokens.tolist(), self.characters.tolist()
        return [self.chunks, self.goes_on, *lengths, dict(self.description), self.error]

    @classmethod
    def of_json(cls, key: str, found: Sequence[Any]) -> "DocumentEntry":
        """The entry of :meth:`as_json`."""
        chunks, goes_on, tokens, characters, description, error = found
        lengths = np.array(tokens, np.int64), np.array(characters, np.int64)
        return cls(key, tuple(chunks), tuple(goes_on), *lengths, description, error)

    @property
    def title(self) -> str:
        """Its title, "" if there is none."""
        return str(self.description.get("title", ""))

    @property
    def summary(self) -> str:
        """Its summary, "" if there is none."""
        return str(self.description.get("summary", ""))

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
    """A document from its chunks in any order.

    Parameters
    ----------
    records : what was extracted from each chunk, by its id
    description : as the index stores it; empty if it was not described
    """
    ordered, goes_on = in_order(places)
    tokens, characters = (
        np.array([int(records[i].get(name, 1)) for i in ordered], np.int64) for name in ("tokens", "characters")
    )
    error = str(description.get("error", ""))
    return DocumentEntry(key, tuple(ordered), tuple(goes_on), tokens, characters, description, error)
