"""`LocalIndexStorage`: the storage of an index in memory, in stores that live with the process or are persisted."""

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from threading import Lock
from typing import Any

import numpy as np
from llama_index.core.schema import BaseNode
from llama_index.core.storage.storage_context import StorageContext
from llama_index.core.vector_stores.types import BasePydanticVectorStore, MetadataFilters
from numpy.typing import NDArray

from llama_index.ragkit.nested_arrays import Arrays
from llama_index.ragkit.steps import Steps, immediate
from llama_index.ragkit.storage.commits import may_be_writing, read_commit
from llama_index.ragkit.storage.external_store import ExternalVectorStore
from llama_index.ragkit.storage.graph.local_graph import LocalGraph
from llama_index.ragkit.storage.index_storage import IndexStorage
from llama_index.ragkit.storage.labels import CountedTexts, LabelledTexts
from llama_index.ragkit.storage.manifest import NodeEntry
from llama_index.ragkit.storage.opening import CHUNKS, check_commit, new_uid, open_records, version_tag
from llama_index.ragkit.storage.persist import remember
from llama_index.ragkit.storage.records import Records
from llama_index.ragkit.storage.struct import DerivedStruct
from llama_index.ragkit.storage.vector_spaces import VectorSpace, open_space
from llama_index.ragkit.text.lexical_index import FullScore, LexicalIndex
from llama_index.ragkit.vectors.kernels import largest
from llama_index.ragkit.vectors.matrix_vector_store import MatrixVectorStore
from llama_index.ragkit.vectors.row_buffer import Storage
from llama_index.ragkit.vectors.snapshot import Snapshot

__all__ = ["LocalIndexStorage", "LocalStores", "LocalWords"]

_LAYOUT = 1  # raised when an array means something else, or what it is made of is read in another way


class LocalWords:
    """The :class:`~llama_index.ragkit.storage.interface.Words` of a lexical index, which a write replaces."""

    def __init__(self, index: LexicalIndex | None = None) -> None:
        self._index = index or LexicalIndex()
        self._lock = Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        return LocalWords, (self._index,)

    def __len__(self) -> int:
        return len(self._index)

    def changed(self, removed: Collection[str], added: Mapping[str, Mapping[str, int]]) -> None:
        """See :meth:`~llama_index.ragkit.storage.interface.Words.changed`."""
        words = {name: {term: count for term, count in terms.items() if count} for name, terms in added.items()}
        with self._lock:
            self._index = self._index.changed(removed, words)

    def load(self, texts: Mapping[str, str] | LexicalIndex) -> None:
        """See :meth:`~llama_index.ragkit.storage.interface.Words.load`."""
        with self._lock:
            self._index = texts if isinstance(texts, LexicalIndex) else LexicalIndex.of(texts)

    def passing(self, filters: MetadataFilters, few: int) -> CountedTexts | None:
        """None: labels are not kept."""
        return None

    def scores(self, question: str, limit: int, only: CountedTexts | None = None) -> dict[str, float]:
        """See :meth:`~llama_index.ragkit.storage.interface.Words.scores`."""
        index = self._counted(only)
        found: list[tuple[float, str]] = []
        for ids, scores in zip(index.ids, index.scores(question), strict=True):
            found += ((-scores[row], ids[row]) for row in _best(scores, limit).tolist())
        return {name: float(-score) for score, name in sorted(found)[:limit]}

    def scores_of(
        self, ids: Sequence[str], questions: Sequence[str], only: CountedTexts | None = None
    ) -> list[dict[str, float]]:
        """See :meth:`~llama_index.ragkit.storage.interface.Words.scores_of`."""
        index = self._counted(only)
        rows, found = index.rows_of(ids), []
        for question in questions:
            scores = np.zeros(len(ids))
            for of_block, own in zip(index.scores(question), rows, strict=True):
                scores += np.where(own >= 0, of_block[own], 0.0)  # each text is in one block
            found.append({name: score for name, score in zip(ids, scores.tolist(), strict=True) if score})
        return found

    def full_scores(self, questions: Sequence[str], only: CountedTexts | None = None) -> list[FullScore]:
        """See :meth:`~llama_index.ragkit.storage.interface.Words.full_scores`."""
        return self._counted(only).full_scores(questions)

    def whole(self) -> LexicalIndex:
        """All texts."""
        return self._index

    def _counted(self, only: CountedTexts | None) -> LexicalIndex:
        if only is None or isinstance(only, LabelledTexts):  # of which there are none
            return self._index
        return self._index.having(only)


def _best(scores: NDArray[np.float64], limit: int) -> NDArray[np.intp]:
    """The rows with the best scores above 0, and all with the last of these."""
    rows = np.flatnonzero(scores)
    if 0 < limit < len(rows):
        rows = rows[scores[rows] >= scores[rows][largest(scores[rows], limit)].min()]
    return rows


class LocalStores:
    """The :class:`~llama_index.ragkit.storage.interface.Stores` of an index in memory, empty at first."""

    def __init__(self) -> None:
        self._words = LocalWords()
        self._graph = LocalGraph()

    def words(self) -> LocalWords:
        """The words of the chunks."""
        return self._words

    def graph(self) -> LocalGraph:
        """The graph."""
        return self._graph

    def connect(self, store: BasePydanticVectorStore) -> None:
        """Nothing: there are no connections to share."""

    @immediate
    def transaction(self) -> AbstractContextManager[None]:
        """A block of writes; those before an error stay."""
        return nullcontext()

    @immediate
    def snapshot(self) -> AbstractContextManager[None]:
        """A block of reads, each of the latest state."""
        return nullcontext()


class LocalIndexStorage(IndexStorage):
    """The storage of an index in memory.

    Arrays lie beside its records, so that it opens at once. They belong to one commit. Those of another commit, or of a
    write that has not ended, do not count: the index is then made of its records, as it is where there are no arrays.
    """

    def __init__(
        self,
        context: StorageContext,
        struct: DerivedStruct,
        records: Records,
        spaces: Mapping[str, VectorSpace],
        external: ExternalVectorStore | None,
    ) -> None:
        super().__init__(context, struct, records, LocalStores())
        self._spaces = spaces
        self.external = external

    @classmethod
    def create(
        cls,
        context: StorageContext,
        method: str,
        space_names: Sequence[str],
        struct: DerivedStruct,
        external: ExternalVectorStore | None,
    ) -> "LocalIndexStorage":
        """The empty storage of a new index; nothing is written yet."""
        struct.uid = new_uid()
        records = open_records(context, method, struct)
        spaces = {}
        for name in space_names:
            namespace = f"{method}_{name}"
            if namespace in context.vector_stores:
                namespace += f"_{struct.uid}"
            store = MatrixVectorStore(stores_text=False, dtype=_dtype(struct), tag=version_tag(struct))
            context.vector_stores[namespace] = store
            struct.spaces[name] = namespace
            spaces[name] = VectorSpace(name, store, records)
        return cls(context, struct, records, spaces, external)

    @classmethod
    def open(
        cls, context: StorageContext, method: str, struct: DerivedStruct, external: ExternalVectorStore | None
    ) -> Steps["LocalIndexStorage"]:
        """The storage of a stored index, after a check that its parts belong together."""
        records = open_records(context, method, struct)
        trusted, tag = (yield from check_commit(struct, records)), version_tag(struct)
        spaces = {}
        for name, namespace in struct.spaces.items():
            spaces[name] = yield from open_space(
                name, namespace, context, records, tag, dtype=_dtype(struct), trusted=trusted
            )
        remember(context, {struct.index_id: struct.token})
        records.paused = yield from may_be_writing(records)  # what a write has done so far must not be repaired
        return cls(context, struct, records, spaces, external)

    def space(self, name: str = CHUNKS) -> VectorSpace:
        """A vector space."""
        return self._spaces[name]

    @property
    def is_empty(self) -> bool:
        """Whether the index has no chunks."""
        return not len(self.space().whole())

    @immediate
    def rows_matching(self, nodes: Sequence[BaseNode]) -> Snapshot:
        """All rows."""
        return self.space().whole()

    def arrays(self, source: str) -> Steps[Arrays]:
        """See :class:`IndexStorage`."""
        found = self.records.arrays
        if found is None or any(space.store.tag != version_tag(self.struct) for space in self._spaces.values()):
            return {}
        return found.arrays if found.about == (yield from self.about_arrays(source)) else {}

    def about_arrays(self, source: str) -> Steps[dict[str, object] | None]:
        """See :class:`IndexStorage`."""
        stored = yield from read_commit(self.records)
        token = stored.get("token", "")
        if not token or token != self.struct.token or stored.get("writer") is not None or self.struct.building:
            return None
        return {"layout": _LAYOUT, "token": token, "source": source}

    def commit(self, documents: Collection[str] = (), nodes: Collection[str] = ()) -> Steps[None]:
        """See :class:`IndexStorage`."""
        yield from self.commits.commit(documents, nodes)
        self._tag()
        yield from self.commits.publish()

    def recover(self) -> Steps[None]:
        """See :class:`IndexStorage`; document stores on a server have the rows."""
        yield from super().recover()
        for space in self._spaces.values():
            yield from space.reload()
        self._tag()

    def _tag(self) -> None:
        """Note the generation of the index in each space, by which parts of different generations are detected."""
        for space in self._spaces.values():
            space.store.tag = version_tag(self.struct)

    def remove_chunks(self, entries: Mapping[str, NodeEntry]) -> Steps[None]:
        """Delete rows of chunks; other nodes of their documents are written again to a store that deletes these."""
        space = self.space()
        if self.external is not None and entries:
            documents = sorted({entry.ref_doc_id or "None" for entry in entries.values()})
            stay = yield from self._others(documents, entries)
            vectors_of = self.external.vectors_of or space.whole().vectors_of
            yield from self.external.delete(list(entries), documents, stay, vectors_of)
        yield from space.remove(entries)

    def _others(self, documents: Sequence[str], entries: Mapping[str, NodeEntry]) -> Steps[list[BaseNode]]:
        """The nodes of documents that are in the index and not among the entries."""
        rows, node_ids = self.snapshot(), (yield from self.manifest.nodes_of_documents(documents))
        return list((yield from self.get_nodes([i for i in node_ids if i not in entries and i in rows])).values())


def _dtype(struct: DerivedStruct) -> Storage:
    """The data type in which the vectors are stored."""
    return "float16" if struct.params.get("dtype") == "float16" else "float32"
