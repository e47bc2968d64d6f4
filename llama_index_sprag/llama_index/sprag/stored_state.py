"""`StoredSpRAGState`: what one question to an index that is served from stores is answered from."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from llama_index.ragkit import IndexStorage, Record, Selection, Steps
from llama_index.ragkit.errors import ConfigurationError
from llama_index.ragkit.vectors.question_scores import question_cosines
from llama_index.ragkit.vectors.snapshot import Mask
from llama_index.sprag.document_rows import DocumentRows
from llama_index.sprag.state import SpRAGState

__all__ = ["StoredSpRAGState"]


@dataclass(frozen=True)
class StoredSpRAGState(SpRAGState):
    """The chunks near to a question, each with the vector of its header and itself, and the documents that were read.

    Attributes
    ----------
    storage, document_rows : where the rest is
    selection : which chunks count
    placed : the rows of chunks: of all that are near
    passing : chunks of the documents that pass the filter; None where all do
    """

    storage: IndexStorage = field(kw_only=True)
    document_rows: DocumentRows = field(kw_only=True)
    selection: Selection = field(kw_only=True)
    placed: Mapping[str, Record] = field(kw_only=True)
    passing: frozenset[str] | None = None

    @cached_property
    def place_of(self) -> dict[str, tuple[str, int]]:
        """For each chunk its document, and its number in it; 0 in a document that was not read."""
        near = {chunk: (str(row["document"]), 0) for chunk, row in self.placed.items()}
        return {
            **near,
            **{
                chunk: (document.key, number)
                for document in self.documents.values()
                for number, chunk in enumerate(document.chunks)
            },
        }

    def header(self, chunk: str) -> str:
        """The header before a chunk, "" if it has none."""
        return str(self.placed[chunk]["header"]) if chunk in self.placed else ""

    def cosines(self, vector: NDArray[np.float32], context_weight: float) -> NDArray[np.float64]:
        """As in memory.

        Raises
        ------
        ConfigurationError
            If chunks without their headers count: their vectors are not stored.
        """
        if context_weight != 1:
            raise ConfigurationError(
                f"context_weight={context_weight:g} compares a question with chunks without their headers too, whose "
                "vectors an index that is served from stores does not have: leave it at 1, or build the index with "
                'serve_from="memory".'
            )
        return question_cosines(self.chunks, vector)

    def shown(self, allowed: Mask | None) -> Callable[[str], bool] | None:
        """Whether a chunk of the documents may be shown; None for all."""
        return None if self.passing is None else self.passing.__contains__

    def with_documents(self, keys: Iterable[str]) -> Steps[SpRAGState]:
        """With those documents."""
        missing = [key for key in keys if key not in self.documents]
        if not missing:
            return self
        documents = yield from self.document_rows.of(missing)
        passing = self.passing
        if not self.selection.is_whole:
            chunks = [chunk for document in documents.values() for chunk in document.chunks]
            rows = yield from self.storage.stored["chunks"].described(chunks)
            passed = [rows.ids[row] for row in np.flatnonzero(self.selection.mask(rows))] if len(rows) else []
            passing = frozenset(passed) | (passing or frozenset())
        return replace(self, documents={**self.documents, **documents}, passing=passing)

    def with_headers(self, chunks: Iterable[str]) -> Steps[SpRAGState]:
        """With the headers of those chunks."""
        further = yield from self.document_rows.chunks([chunk for chunk in chunks if chunk not in self.placed])
        return replace(self, placed={**self.placed, **further})
