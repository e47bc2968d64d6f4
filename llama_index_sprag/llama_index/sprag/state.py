"""The immutable state that a query reads: chunks with their headers, and the documents that they form."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from llama_index.ragkit.nested_arrays import Arrays, nested, part_of
from llama_index.ragkit.text.layered_mapping import with_changes
from llama_index.ragkit.text.lexical_index import AlignedWords, FullScore, LexicalIndex
from llama_index.ragkit.text.packed_words import PackedMapping
from llama_index.ragkit.vectors.question_scores import Nearness, best_rows, question_cosines
from llama_index.ragkit.vectors.snapshot import Mask, Snapshot
from llama_index.sprag.config import SearchConfig
from llama_index.sprag.documents import DocumentEntry

__all__ = ["SpRAGState"]


@dataclass(frozen=True)
class SpRAGState:
    """Chunks and the documents that they form: all of an index, or the part that a question needs.

    In a part, `documents` are those that were read, and `document_of` has the chunks near to the question and theirs.
    """

    chunks: Snapshot = field(default_factory=Snapshot.empty)  # vectors of chunks with their headers, if they have one
    documents: Mapping[str, DocumentEntry] = field(default_factory=dict)  # by key
    document_of: Mapping[str, str] = field(default_factory=dict)  # chunk -> key of its document
    headers: Mapping[str, str] = field(default_factory=dict)  # of the chunks that have one
    plain: Snapshot = field(default_factory=Snapshot.empty)  # known vectors, without header, of chunks that have one
    lexical: LexicalIndex | None = None  # the terms of chunks and headers; None in a part
    passing: frozenset[str] | None = None  # chunks of documents that may be shown; None for all

    @property
    def is_whole(self) -> bool:
        """Whether it is the whole index."""
        return self.lexical is not None

    def arrays(self) -> Arrays:
        """The data of a whole index besides its vectors, as arrays."""
        return nested(
            {
                "documents": PackedMapping.to_arrays(self.documents, DocumentEntry.as_json),
                "document_of": PackedMapping.to_arrays(self.document_of),
                "headers": PackedMapping.to_arrays(self.headers),
                "lexical": (self.lexical or LexicalIndex()).arrays,
            }
        )

    @classmethod
    def of_arrays(cls, arrays: Arrays, chunks: Snapshot, plain: Snapshot) -> "SpRAGState":
        """The state of :meth:`arrays`, over the same memory."""
        document_of, headers = (
            PackedMapping[str].of_arrays(part_of(arrays, name)) for name in ("document_of", "headers")
        )
        documents = PackedMapping.of_arrays(part_of(arrays, "documents"), DocumentEntry.of_json)
        lexical = LexicalIndex.of_arrays(part_of(arrays, "lexical"))
        return cls(chunks, documents, document_of, headers, plain, lexical)

    def changed(
        self,
        chunks: Snapshot,
        plain: Snapshot,
        lexical: LexicalIndex,
        removed: Collection[str],
        documents: Mapping[str, DocumentEntry | None],
        headers: Mapping[str, str],
    ) -> "SpRAGState":
        """The state of a whole index after a write.

        `documents` are the written ones, None for removed ones, `headers` those of written chunks, "" for none.
        """
        forget = bool(removed)
        gone: dict[str, str | None] = {i: None for i in removed if i not in headers}
        placed = {i: key for key, entry in documents.items() if entry is not None for i in entry.chunks}
        return SpRAGState(
            chunks,
            with_changes(self.documents, documents, forget),
            with_changes(self.document_of, {**placed, **gone}, forget),
            with_changes(self.headers, {**gone, **{i: header or None for i, header in headers.items()}}, forget),
            plain,
            lexical,
        )

    def place(self, chunk: str) -> tuple[str, int] | None:
        """The document of a chunk and its number in it (0 if the document was not read); None for an unknown chunk."""
        key = self.document_of.get(chunk)
        if key is None or key not in self.documents:
            return None if key is None else (key, 0)
        number = self.documents[key].numbers.get(chunk)
        return None if number is None else (key, number)

    def header(self, chunk: str) -> str:
        """The header before a chunk, "" if it has none."""
        return self.headers.get(chunk, "")

    def cosines(self, vector: NDArray[np.float32], context_weight: float) -> NDArray[np.float64]:
        """Cosine of a question with each chunk, shape (n,).

        `context_weight` is that of header and chunk together; the vector without header has the rest, if it is known.
        """
        cosines = question_cosines(self.chunks, vector)
        if context_weight < 1 and len(self.plain):
            rows = self._plain_rows
            known = rows >= 0
            plain = question_cosines(self.plain, vector)[known]
            cosines[rows[known]] += (1 - context_weight) * (plain - cosines[rows[known]])
        return cosines

    @cached_property
    def _plain_rows(self) -> NDArray[np.intp]:
        """For each row of `plain`, that of its chunk; -1 if there is none."""
        return self.chunks.rows_of(self.plain.ids)

    @cached_property
    def without_plain(self) -> list[str]:
        """The chunks with a header that have no vector without it."""
        return [i for i in self.chunks.ids if i in self.headers and i not in self.plain]

    @cached_property
    def _words(self) -> AlignedWords:
        return AlignedWords(self.lexical or LexicalIndex(), self.chunks.rows_of, len(self.chunks))

    def scored(self, question: str, allowed: Mask | None = None) -> tuple[NDArray[np.float64], FullScore]:
        """The BM25 score of each chunk, shape (n,); chunks that are not allowed score 0 and do not count. And the score
        of a chunk of mean length that has each word of the question once, with that length.
        """
        return self._words.scored(question, allowed)

    def nearness(
        self,
        question: str,
        vector: NDArray[np.float32],
        words: Callable[[str, Mask | None], tuple[NDArray[np.float64], FullScore]],
        options: SearchConfig,
        allowed: Mask | None,
        advantage: float = 0.0,
    ) -> Nearness:
        """The nearness of every chunk to a question.

        Parameters
        ----------
        words : :meth:`scored`, or that of an index of which a question has read a part
        advantage : of words over cosines, see :class:`~llama_index.ragkit.text.lexical_index.FullScore`
        """
        cosines = self.cosines(vector, options.context_weight)
        if not options.lexical_weight:
            return Nearness.of(cosines, np.zeros(len(cosines)), 0.0, allowed)
        lexical, full_score = words(question, allowed)
        return Nearness.of(cosines, lexical, options.lexical_weight, allowed, full_score._replace(advantage=advantage))

    def nearest(self, nearness: NDArray[np.float64], k: int) -> list[tuple[str, float]]:
        """The k nearest chunks with their nearness, rounded as for :func:`best_rows`, best first."""
        rows = best_rows(nearness, k, self.chunks)
        return [(self.chunks.ids[row], round(float(nearness[row]), 9)) for row in rows]

    @property
    def shown(self) -> Callable[[str], bool] | None:
        """Whether a chunk of the documents may be shown; None for all."""
        return None if self.passing is None else self.passing.__contains__

    def described(self, keys: Iterable[str]) -> dict[str, DocumentEntry]:
        """Some of its documents with the chunks that may be shown; a document is described only if all may be."""
        shown = self.shown
        return {key: self.documents[key] if shown is None else self.documents[key].only(shown) for key in keys}

    def only(self) -> "SpRAGState":
        """The state with the chunks that may be shown, and the descriptions of documents that are shown whole."""
        documents = {key: document for key, document in self.described(self.documents).items() if document.chunks}
        return replace(self, documents=documents)

    def counters(self) -> dict[str, int]:
        """The numbers of documents, chunks, chunks with a header, and documents that were not described."""
        chunks = [chunk for document in self.documents.values() for chunk in document.chunks]
        return {
            "documents": len(self.documents),
            "chunks": len(chunks),
            "contexts": sum(chunk in self.headers for chunk in chunks),
            "failed": sum(bool(document.error) for document in self.documents.values()),
        }
