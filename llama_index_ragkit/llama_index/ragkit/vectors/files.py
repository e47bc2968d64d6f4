"""Saving and loading a :class:`~llama_index.ragkit.MatrixVectorStore`."""

import os
from copy import deepcopy
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import fsspec  # type: ignore[import-untyped]
from fsspec.core import strip_protocol  # type: ignore[import-untyped]
from fsspec.implementations.local import LocalFileSystem  # type: ignore[import-untyped]
from llama_index.core.vector_stores.simple import DEFAULT_VECTOR_STORE, NAMESPACE_SEP, SimpleVectorStore
from llama_index.core.vector_stores.types import DEFAULT_PERSIST_DIR, DEFAULT_PERSIST_FNAME

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
from llama_index.ragkit.vectors.row_buffer import Storage
from llama_index.ragkit.vectors.snapshot import Snapshot

__all__ = ["StoredMatrix"]

S = TypeVar("S", bound="StoredMatrix")


class StoredMatrix:
    """The part of the store that reads and writes files, and makes copies."""

    stores_text: bool
    tag: dict[str, Any]
    _snapshot: Snapshot

    if TYPE_CHECKING:

        def __init__(self, *, stores_text: bool, dtype: Storage, tag: dict[str, Any]) -> None: ...

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
        cls: type[S],
        persist_dir: str = DEFAULT_PERSIST_DIR,
        namespace: str = DEFAULT_VECTOR_STORE,
        fs: fsspec.AbstractFileSystem | None = None,
    ) -> S:
        """Load one namespace of a folder that `StorageContext.persist` wrote; see :meth:`from_persist_path`."""
        return cls.from_persist_path(f"{persist_dir}/{namespace}{NAMESPACE_SEP}{DEFAULT_PERSIST_FNAME}", fs)

    @classmethod
    def from_persist_path(cls: type[S], persist_path: str, fs: fsspec.AbstractFileSystem | None = None) -> S:
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
    def mapped(cls: type[S], persist_path: str) -> S | None:
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
    def from_simple(cls: type[S], store: SimpleVectorStore) -> S:
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
    def _of(cls: type[S], rows: Snapshot, stores_text: bool, tag: dict[str, Any]) -> S:
        store = cls(stores_text=stores_text, dtype=rows.dtype, tag=tag)
        store._snapshot = rows
        return store

    def __reduce__(self) -> tuple[Any, ...]:  # core's pickling would leave the rows out
        return (self._of, (self._snapshot, self.stores_text, self.tag))

    def __deepcopy__(self: S, memo: dict[int, Any] | None = None) -> S:
        return self._of(deepcopy(self._snapshot), self.stores_text, deepcopy(self.tag))
