"""The immutable state that a query reads: chunks, their contexts, and the documents that they make."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from llama_index.ragkit.steps import Steps
from llama_index.ragkit.text.aligned_words import AlignedWords
from llama_index.ragkit.text.lexical_index import LexicalIndex
from llama_index.ragkit.vectors.question_scores import question_cosines
from llama_index.ragkit.vectors.snapshot import Mask, Snapshot
from llama_index.sprag.documents.entry import DocumentEntry

__all__ = ["SpRAGState"]

_ROWS = 4096  # of the matrix that are looked at together


@dataclass(frozen=True)
class SpRAGState:
    """The state of the index.

    Attributes
    ----------
    chunks : vectors of the chunks themselves; rows of zeros where a chunk was only embedded with its header
    contexts : vectors of chunks with their headers, under the ids of the chunks; chunks without a header have none
    documents : by key
    lexical : the terms of chunks and headers
    """

    chunks: Snapshot = field(default_factory=Snapshot.empty)
    contexts: Snapshot = field(default_factory=Snapshot.empty)
    documents: Mapping[str, DocumentEntry] = field(default_factory=dict)
    lexical: LexicalIndex = field(default_factory=LexicalIndex)

    @cached_property
    def place_of(self) -> dict[str, tuple[str, int]]:
        """For each chunk its document, and its number in it."""
        return {
            chunk: (document.key, number)
            for document in self.documents.values()
            for number, chunk in enumerate(document.chunks)
        }

    def header(self, chunk: str) -> str:
        """The header before a chunk, "" if it has none."""
        return str(self.contexts.metadata_of(chunk)["header"]) if chunk in self.contexts else ""

    @cached_property
    def _context_rows(self) -> NDArray[np.intp]:
        """For each row of `contexts` the row of its chunk, -1 where the chunk changed since."""
        rows = self.chunks.rows_of(self.contexts.ids)
        known = self.chunks.records
        same = [
            row >= 0 and known[row].key == record.key for row, record in zip(rows, self.contexts.records, strict=True)
        ]
        return np.where(same, rows, -1)

    @cached_property
    def _is_embedded(self) -> NDArray[np.bool_]:
        """Which chunks were embedded without a header, shape (n,)."""
        parts = [block.any(axis=1) for block in self.chunks.blocks(_ROWS)]
        return np.concatenate([np.zeros(0, np.bool_), *parts])

    def without_vector(self, context_weight: float) -> list[str]:
        """Chunks that a search with this weight needs the vector of without a header, and that have none."""
        missing = ~self._is_embedded
        if context_weight == 1:
            rows = self._context_rows
            missing[rows[rows >= 0]] = False
        return [self.chunks.ids[row] for row in np.flatnonzero(missing)]

    @cached_property
    def _words(self) -> AlignedWords:
        return AlignedWords(self.lexical, self.chunks.rows_of, len(self.chunks))

    def cosines(self, vector: NDArray[np.float32], context_weight: float) -> NDArray[np.float64]:
        """Cosine of a question with each chunk, shape (n,).

        Parameters
        ----------
        context_weight : weight of the vector of header and chunk together; the rest is that of the chunk alone, which
            counts fully where a chunk has no header. Where there is only one of the two, that one counts
        """
        plain = question_cosines(self.chunks, vector)
        if len(self.contexts):
            known = self._context_rows >= 0
            rows = self._context_rows[known]
            weight = np.where(self._is_embedded[rows], context_weight, 1.0)
            plain[rows] += weight * (question_cosines(self.contexts, vector)[known] - plain[rows])
        return plain

    def lexical_scores(self, question: str, allowed: NDArray[np.bool_] | None = None) -> NDArray[np.float64]:
        """BM25 score of each chunk, shape (n,); chunks that are not allowed score 0 and do not count."""
        return self._words.scores(question, allowed)

    def full_score(self, question: str, allowed: NDArray[np.bool_] | None = None) -> float:
        """The BM25 score of a chunk of mean length that has each word of the question once."""
        return self._words.full_score(question, allowed)

    def shown(self, allowed: Mask | None) -> Callable[[str], bool] | None:
        """Whether a chunk of the documents may be shown; None for all.

        Parameters
        ----------
        allowed : shape (n,), the chunks that may be shown; None for all
        """
        if allowed is None:
            return None
        hidden = {self.chunks.ids[row] for row in np.flatnonzero(~allowed)}
        return lambda chunk: chunk not in hidden

    def described(self, keys: Iterable[str], allowed: Mask | None) -> dict[str, DocumentEntry]:
        """Some of its documents with the chunks that may be shown: title, summary and headers are of whole documents.

        Parameters
        ----------
        allowed : see :meth:`shown`
        """
        shown = self.shown(allowed)
        return {key: self.documents[key] if shown is None else self.documents[key].only(shown) for key in keys}

    def only(self, allowed: Mask | None) -> "SpRAGState":
        """With the chunks of its documents that may be shown, and what is said about documents that are shown whole.

        Parameters
        ----------
        allowed : see :meth:`shown`
        """
        if self.shown(allowed) is None:
            return self
        documents = self.described(self.documents, allowed)
        return replace(self, documents={key: document for key, document in documents.items() if document.chunks})

    def counters(self) -> dict[str, int]:
        """How many documents there are, chunks, chunks with a header, and documents that were not described."""
        chunks = list(self.place_of)
        return {
            "documents": len(self.documents),
            "chunks": len(chunks),
            "contexts": sum(bool(self.header(chunk)) for chunk in chunks),
            "failed": len(self.undescribed),
        }

    def with_documents(self, keys: Iterable[str]) -> Steps["SpRAGState"]:
        """With those documents; a state in memory has all of them."""
        return self
        yield

    def with_headers(self, chunks: Iterable[str]) -> Steps["SpRAGState"]:
        """With the headers of those chunks; a state in memory has all of them."""
        return self
        yield

    @property
    def undescribed(self) -> list[str]:
        """Keys of the documents that were not described, sorted."""
        return sorted(key for key, document in self.documents.items() if document.error)
