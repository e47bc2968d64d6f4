"""`MatrixVectorStore`: an embedded vector store with exact, deterministic search."""

import asyncio
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from itertools import compress
from pathlib import Path
from typing import Any

import fsspec  # type: ignore[import-untyped]
import numpy as np
from fsspec.core import strip_protocol  # type: ignore[import-untyped]
from fsspec.implementations.local import LocalFileSystem  # type: ignore[import-untyped]
from llama_index.core.bridge.pydantic import ConfigDict, Field, PrivateAttr
from llama_index.core.schema import BaseNode
from llama_index.core.vector_stores.simple import DEFAULT_VECTOR_STORE, NAMESPACE_SEP, SimpleVectorStore
from llama_index.core.vector_stores.types import (
    DEFAULT_PERSIST_DIR,
    DEFAULT_PERSIST_FNAME,
    BasePydanticVectorStore,
    MetadataFilters,
    VectorStoreQuery,
    VectorStoreQueryMode,
    VectorStoreQueryResult,
)
from llama_index.core.vector_stores.utils import metadata_dict_to_node
from typing_extensions import Self

from llama_index.ragkit.errors import ConfigurationError, EmbeddingError, UnsupportedStoreError
from llama_index.ragkit.forks import ProcessLock
from llama_index.ragkit.short_repr import changed_fields
from llama_index.ragkit.validation import check_count, check_number
from llama_index.ragkit.vectors.array_file import array_path, encode_arrays, read_arrays
from llama_index.ragkit.vectors.file_format import (
    decode,
    encode,
    entry_of,
    identity,
    is_persisted_matrix,
    read,
    write_atomically,
)
from llama_index.ragkit.vectors.filters import select
from llama_index.ragkit.vectors.row_buffer import Record, Storage, Vectors, as_records, as_vectors
from llama_index.ragkit.vectors.snapshot import Hits, Snapshot

__all__ = ["MatrixVectorStore"]


class MatrixVectorStore(BasePydanticVectorStore):
    """Vectors in one matrix, with exact search by cosine.

    Scores are cosines in [-1, 1], comparable between queries; a zero vector scores 0. The same rows give bit-identical
    results, regardless of the order of insertion and the number of threads; rows of equal score are ordered by content
    (see :meth:`put`). Reads never wait and never see an incomplete write: each uses one immutable :meth:`snapshot`.
    Rows that are deleted or replaced are overwritten in memory with the write, or when the last snapshot that shows
    them is gone.

    `StorageContext.from_defaults(persist_dir=...)` loads it as a `SimpleVectorStore` without vectors, which finds
    nothing, preserves everything when persisted again, and is converted back by :meth:`from_simple`.

    Parameters
    ----------
    stores_text : whether complete nodes are stored, so that a plain `VectorStoreIndex` works over the store. Otherwise
        only ids, vectors, document ids and metadata are stored, and a query returns ids.
    dtype : data type of the vectors. "float16" halves memory and file size at a precision of three digits; scores are
        exact for the stored vectors
    tag : a JSON-serialisable dictionary that is persisted with the rows; :meth:`clear` keeps it

    Notes
    -----
    Differences from `SimpleVectorStore`: `doc_ids` of a query are respected; filters may be nested (their
    semantics: :mod:`llama_index.ragkit.vectors.filters`); `similarity_top_k=0` finds nothing instead of
    everything; `mmr_threshold` is also read from the query. An empty list of ids finds nothing, except
    that with `stores_text` an empty `node_ids` in :meth:`query` means no restriction, because `VectorStoreIndex`
    always sends one to stores that keep text. As there, `delete("None")` removes the rows without a document, and
    `delete_nodes()` without arguments removes everything.
    """

    model_config = ConfigDict(extra="forbid")

    stores_text: bool = Field(default=True, frozen=True)
    dtype: Storage = Field(default="float32", frozen=True)
    tag: dict[str, Any] = Field(default_factory=dict)

    _snapshot: Snapshot = PrivateAttr(default_factory=Snapshot.empty)
    _write_lock: Any = PrivateAttr(default_factory=ProcessLock)

    def __init__(self, **data: Any) -> None:
        super().__init__(**data)
        self._snapshot = Snapshot.empty(self.dtype)

    def __repr_args__(self) -> Iterator[tuple[str, object]]:
        """What pydantic shows: rows, their length, and the parameters that differ from their defaults."""
        yield from {"rows": len(self), "dim": self.dim}.items()
        yield from changed_fields(self)

    @classmethod
    def class_name(cls) -> str:
        """Name of the class in serialised components."""
        return "MatrixVectorStore"

    @property
    def client(self) -> None:
        """None, since the store is in this process."""
        return

    def __len__(self) -> int:
        return len(self._snapshot)

    def __bool__(self) -> bool:
        return True  # an empty store must be truthy: core uses `vector_store or ...`

    @property
    def dim(self) -> int | None:
        """Length of the vectors; None while there are none."""
        return self._snapshot.dim

    def snapshot(self) -> Snapshot:
        """The current rows, unaffected by later writes."""
        return self._snapshot

    def _write(self, change: Callable[[Snapshot], Snapshot]) -> None:
        with self._write_lock:
            self._snapshot = change(self._snapshot)

    def add(self, nodes: Sequence[BaseNode], **kwargs: Any) -> list[str]:
        """Store nodes with their embeddings, replacing those with the same ids; the last of duplicate ids wins.

        Rows of equal score are ordered by (hash of the node, document, position in it, id).

        Raises
        ------
        EmbeddingError
            If embeddings are missing, not of the store's dimension, or not finite. Nothing is stored.
        """
        nodes = list(nodes)
        missing = [node.node_id for node in nodes if node.embedding is None]
        if missing:
            raise EmbeddingError(
                f"{len(missing)} of {len(nodes)} nodes have no embedding: {missing[:5]}. Embed them first."
            )
        self._put([node.embedding for node in nodes], [self._record(node) for node in nodes])
        return [node.node_id for node in nodes]

    def put(
        self,
        ids: Sequence[str],
        vectors: Vectors,
        *,
        ref_doc_ids: Sequence[str | None] | None = None,
        metadatas: Sequence[Mapping[str, Any]] | None = None,
        keys: Sequence[str] | None = None,
    ) -> None:
        """Store rows without nodes, replacing those with the same ids; the last of duplicate ids wins.

        Parameters
        ----------
        ids : one per row
        vectors : shape (n, dim), stored exactly as float32 (rounded in a float16 store)
        ref_doc_ids : ids of documents for :meth:`delete`; default none
        metadatas : JSON-serialisable metadata for filters; default empty
        keys : order of rows with equal scores, then by id; default the ids

        Raises
        ------
        ConfigurationError
            If the store keeps text, the lengths differ, or metadata is not JSON.
        EmbeddingError
            If vectors are not of the store's dimension, or not finite. Nothing is stored.
        """
        if self.stores_text:
            raise ConfigurationError(
                "Rows of put() have no text, and this store keeps text: use add(), or "
                "MatrixVectorStore(stores_text=False)."
            )
        if len(ids) != len(vectors):
            raise ConfigurationError(f"There are {len(ids)} ids for {len(vectors)} vectors.")
        self._put(vectors, as_records(ids, ref_doc_ids, metadatas, keys))

    def _record(self, node: BaseNode) -> Record:
        fields = node.model_dump(mode="json", exclude={"embedding"})
        metadata = json.dumps(fields["metadata"])
        start = getattr(node, "start_char_idx", None)
        position = "" if start is None else f"{start:012d}"
        key = f"{node.hash}\x1f{node.ref_doc_id or ''}\x1f{position}"
        content = json.dumps(fields, ensure_ascii=False) if self.stores_text else None
        return Record(node.node_id, node.ref_doc_id, key, metadata, node.class_name(), content)

    def _put(self, vectors: Vectors, records: list[Record]) -> None:
        names = [record.id for record in records]
        self._write(lambda rows: rows.append(as_vectors(vectors, rows.dim, names, self.dtype), records))

    def delete(self, ref_doc_id: str, **delete_kwargs: Any) -> None:
        """Remove the rows of a document; "None" stands for rows without a document."""
        self._write(lambda rows: rows.without(np.flatnonzero(select(rows, doc_ids=[ref_doc_id]))))

    def delete_nodes(
        self, node_ids: Sequence[str] | None = None, filters: MetadataFilters | None = None, **delete_kwargs: Any
    ) -> None:
        """Remove the rows that have one of the ids and pass the filters; None does not restrict."""
        self._write(lambda rows: rows.without(np.flatnonzero(select(rows, filters, node_ids))))

    def clear(self) -> None:
        """Remove all rows; later vectors may have another dimension."""
        self._write(lambda rows: rows.without(np.arange(len(rows))))

    def get_nodes(
        self, node_ids: Sequence[str] | None = None, filters: MetadataFilters | None = None
    ) -> list[BaseNode]:
        """Nodes, without embeddings: in the order of `node_ids`, or else by content.

        Unknown ids are ignored.

        Raises
        ------
        UnsupportedStoreError
            If the store keeps no text.
        """
        if not self.stores_text:
            raise UnsupportedStoreError(
                "This MatrixVectorStore keeps no nodes (stores_text=False): take them from the docstore. "
                "snapshot() returns ids, vectors and metadata."
            )
        rows = self._snapshot
        mask = select(rows, filters, node_ids)
        if node_ids is None:
            records = sorted(compress(rows.records, mask), key=lambda record: (record.key, record.id))
        else:
            rows_of_ids = rows.rows_of(list(dict.fromkeys(node_ids)))
            records = [rows.records[row] for row in rows_of_ids if row >= 0 and mask[row]]
        return [_node(record) for record in records]

    def query(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        """The rows nearest to `query.query_embedding` (modes "default" and "mmr"), best first.

        Parameters
        ----------
        query : similarity_top_k, node_ids, doc_ids, filters and mode are respected
        mmr_threshold : keyword, in [0, 1], default 0.5; 1 ranks by similarity to the query alone

        Raises
        ------
        ConfigurationError
            For another mode, or a value out of range.
        EmbeddingError
            If the query's embedding is not of the store's dimension, or not finite.
        """
        if query.query_embedding is None:
            raise ConfigurationError("The query has no query_embedding, which MatrixVectorStore needs.")
        k = check_count("similarity_top_k", query.similarity_top_k, 0)
        rows = self._snapshot
        mask = select(
            rows, query.filters, query.node_ids or None if self.stores_text else query.node_ids, query.doc_ids
        )
        if query.mode == VectorStoreQueryMode.DEFAULT:
            (hits,) = rows.search([query.query_embedding], k, mask)
        elif query.mode == VectorStoreQueryMode.MMR:
            hits = rows.search_mmr(query.query_embedding, k, _mmr_threshold(kwargs, query), mask)
        else:
            raise ConfigurationError(
                f"MatrixVectorStore does not support queries of mode {query.mode!r}, only 'default' and 'mmr'."
            )
        nodes = [_node(rows.record_of(node_id)) for node_id in hits.ids] if self.stores_text else None
        return VectorStoreQueryResult(nodes=nodes, similarities=hits.scores, ids=hits.ids)

    def query_many(
        self,
        vectors: Vectors,
        k: int,
        *,
        filters: MetadataFilters | None = None,
        node_ids: Sequence[str] | None = None,
        doc_ids: Sequence[str] | None = None,
    ) -> list[Hits]:
        """The k rows nearest to each of many vectors, shape (q, dim), by one matrix product in bounded memory.

        The results equal those of q queries; an empty list of ids finds nothing.
        """
        rows = self._snapshot
        return rows.search(vectors, check_count("k", k, 0), select(rows, filters, node_ids, doc_ids))

    async def async_add(self, nodes: Sequence[BaseNode], **kwargs: Any) -> list[str]:
        """As :meth:`add`, in a thread."""
        return await asyncio.to_thread(self.add, nodes, **kwargs)

    async def adelete(self, ref_doc_id: str, **delete_kwargs: Any) -> None:
        """As :meth:`delete`, in a thread."""
        await asyncio.to_thread(self.delete, ref_doc_id)

    async def adelete_nodes(
        self, node_ids: Sequence[str] | None = None, filters: MetadataFilters | None = None, **delete_kwargs: Any
    ) -> None:
        """As :meth:`delete_nodes`, in a thread."""
        await asyncio.to_thread(self.delete_nodes, node_ids, filters)

    async def aclear(self) -> None:
        """As :meth:`clear`, in a thread."""
        await asyncio.to_thread(self.clear)

    async def aget_nodes(
        self, node_ids: Sequence[str] | None = None, filters: MetadataFilters | None = None
    ) -> list[BaseNode]:
        """As :meth:`get_nodes`, in a thread."""
        return await asyncio.to_thread(self.get_nodes, node_ids, filters)

    async def aquery(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        """As :meth:`query`, in a thread."""
        return await asyncio.to_thread(self.query, query, **kwargs)

    # -- files and copies ------------------------------------------------------------------------------------

    def persist(
        self,
        persist_path: str = os.path.join(DEFAULT_PERSIST_DIR, DEFAULT_PERSIST_FNAME),
        fs: fsspec.AbstractFileSystem | None = None,
    ) -> None:
        """Write rows and tag; the old file remains intact until the new one replaces it.

        On the local disk, the rows of a store without text are also written in their memory layout, to a second file
        next to the first; `mapped` opens it.

        Raises
        ------
        ConfigurationError
            If the tag is not JSON.
        """
        rows, path = self._snapshot, str(persist_path)
        is_local = fs is None or isinstance(fs, LocalFileSystem)
        beside = array_path(strip_protocol(path))
        if is_local:  # no copy may outlive the file that is replaced
            Path(beside).unlink(missing_ok=True)
        write_atomically(encode(rows, self.stores_text, self.tag), path, fs)
        if is_local and len(rows) and not self.stores_text:
            about = {"of": identity(strip_protocol(path)), "tag": self.tag}
            write_atomically(encode_arrays(rows.to_arrays(), about), beside)

    @classmethod
    def from_persist_dir(
        cls,
        persist_dir: str = DEFAULT_PERSIST_DIR,
        namespace: str = DEFAULT_VECTOR_STORE,
        fs: fsspec.AbstractFileSystem | None = None,
    ) -> Self:
        """Load one namespace of a folder that `StorageContext.persist` wrote; see :meth:`from_persist_path`."""
        return cls.from_persist_path(f"{persist_dir}/{namespace}{NAMESPACE_SEP}{DEFAULT_PERSIST_FNAME}", fs)

    @classmethod
    def from_persist_path(cls, persist_path: str, fs: fsspec.AbstractFileSystem | None = None) -> Self:
        """Load a file that :meth:`persist` wrote.

        Raises
        ------
        MissingSpaceError
            If there is no such file.
        HalfWrittenError, FormatVersionError, StorageError
            If it is damaged, of another version of the format, or of another kind of store.
        """
        return cls.from_simple(read(str(persist_path), fs))

    @classmethod
    def mapped(cls, persist_path: str) -> "Self | None":
        """Open the copy that :meth:`persist` wrote next to a file; vectors are read when a question needs them.

        Returns
        -------
        None if there is no copy, or if it is damaged or of another state of the file: use :meth:`from_persist_path`.
        """
        found = read_arrays(array_path(persist_path))
        if found is None or found.about["of"] != identity(persist_path):
            return None
        return cls._of(Snapshot.of_arrays(found.arrays), False, found.about["tag"])

    @classmethod
    def is_persisted_matrix(cls, store: object) -> bool:
        """Whether this is a store that core read from a file of :meth:`persist`."""
        return is_persisted_matrix(store)

    @classmethod
    def from_simple(cls, store: SimpleVectorStore) -> Self:
        """Restore a store that core loaded as a `SimpleVectorStore`.

        Raises
        ------
        HalfWrittenError, FormatVersionError
            If it is damaged, or of another version of the format.
        StorageError
            If it is an ordinary `SimpleVectorStore`, or rows were added to it since it was loaded.
        """
        return cls._of(*decode(entry_of(store)))

    @classmethod
    def _of(cls, rows: Snapshot, stores_text: bool, tag: dict[str, Any]) -> Self:
        store = cls(stores_text=stores_text, dtype=rows.dtype, tag=tag)
        store._snapshot = rows
        return store

    def __reduce__(self) -> tuple[Any, ...]:  # core's pickling would leave the rows out
        return (self._of, (self._snapshot, self.stores_text, self.tag))

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        return self._of(deepcopy(self._snapshot), self.stores_text, deepcopy(self.tag))


def _node(record: Record) -> BaseNode:
    return metadata_dict_to_node({"_node_content": record.node, "_node_type": record.node_type})


def _mmr_threshold(kwargs: dict[str, Any], query: VectorStoreQuery) -> float:
    given = [value for value in (kwargs.get("mmr_threshold"), query.mmr_threshold, 0.5) if value is not None]
    return check_number("mmr_threshold", given[0], 0, 1)
