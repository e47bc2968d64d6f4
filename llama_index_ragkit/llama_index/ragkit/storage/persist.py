"""`persist` and `load_storage_context`: a folder that holds one complete state, whatever happens to its writer."""

import logging
import os
import re
import time
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import fsspec  # type: ignore[import-untyped]
from fsspec.core import strip_protocol  # type: ignore[import-untyped]
from fsspec.implementations.local import LocalFileSystem  # type: ignore[import-untyped]
from llama_index.core.constants import DATA_KEY, TYPE_KEY
from llama_index.core.storage.docstore.simple_docstore import SimpleDocumentStore
from llama_index.core.storage.index_store.simple_index_store import SimpleIndexStore
from llama_index.core.storage.index_store.types import BaseIndexStore
from llama_index.core.storage.kvstore.simple_kvstore import SimpleKVStore
from llama_index.core.storage.storage_context import StorageContext
from llama_index.core.vector_stores.simple import NAMESPACE_SEP, SimpleVectorStore
from llama_index.core.vector_stores.types import BasePydanticVectorStore

from llama_index.ragkit.core_internals import docstore_tables, index_entries
from llama_index.ragkit.errors import ConcurrentWriteError, ConfigurationError, HalfWrittenError, MissingSpaceError
from llama_index.ragkit.redaction import redact
from llama_index.ragkit.storage.file_kvstore import FileKVStore
from llama_index.ragkit.storage.folders import (
    RemoteFolder,
    complete_state,
    exclusive,
    is_temporary,
    real_folder,
    replace_contents,
    signature,
    temporary_folder,
)
from llama_index.ragkit.storage.struct import DerivedStruct
from llama_index.ragkit.vectors.array_file import ARRAYS, array_path
from llama_index.ragkit.vectors.matrix_vector_store import MatrixVectorStore

__all__ = ["load_storage_context", "persist", "refuse_newer", "remember"]


# The token of each index when it was last read from, or written to, a folder.
_last_read: "weakref.WeakKeyDictionary[BaseIndexStore, dict[str, str]]" = weakref.WeakKeyDictionary()

logger = logging.getLogger(__name__)

_VECTORS = "vector_store.json"
_OWN_FILES = frozenset(
    {"docstore.json", "docstore.arrays", "index_store.json", "graph_store.json", "property_graph_store.json"}
)
_OF_FILE_SYSTEM = "lost+found"  # in the root of a volume
_PROTOCOL = re.compile(r"(\w[\w+.-]+)://")
_ATTEMPTS = 20
_LONGEST_WAIT = 0.5


def remember(context: StorageContext, tokens: Mapping[str, str] | None = None) -> None:
    """The context and the folder hold the same state now."""
    store = context.index_store
    _last_read.setdefault(store, {}).update(_tokens(store) if tokens is None else tokens)


def refuse_newer(context: StorageContext, folder: Path, name: str = "") -> None:
    """Raise a `ConcurrentWriteError` if another process has saved an index of the context since this one last did."""
    path = folder / "index_store.json"
    if not path.exists():
        return
    try:
        saved = _tokens(SimpleIndexStore.from_persist_path(str(path)))
    except Exception:  # damaged: there is nothing in it that could be lost
        return
    own, read = _tokens(context.index_store), _last_read.get(context.index_store, {})
    for index_id, token in saved.items():
        if token and index_id in own and token not in (own[index_id], read.get(index_id)):
            raise ConcurrentWriteError(
                f"Another process has saved index {index_id!r} to {name or folder} since it was read here, and would "
                "lose what it wrote. Load the folder again and repeat the writes, or persist to another folder. The "
                "folder was not changed."
            )


def _tokens(store: BaseIndexStore) -> dict[str, str]:
    structs = store.index_structs()
    return {struct.index_id: struct.token for struct in structs if isinstance(struct, DerivedStruct)}


def persist(
    storage_context: StorageContext,
    persist_dir: str | Path = "./storage",
    *,
    fs: fsspec.AbstractFileSystem | None = None,
) -> None:
    """Write a storage context to a temporary folder, then swap it with `persist_dir`.

    `StorageContext.persist` writes file by file into the folder. If it is killed midway, it leaves a mixture of old and
    new files. Here the folder has the old state until the new one is complete and on disk. Read it with core's
    `StorageContext.from_defaults(persist_dir=...)`, or with :func:`load_storage_context`, which can also read it while
    it is being swapped.

    The swap is atomic on Linux and macOS. If the folder is a mount point, or if its file system or parent folder does
    not permit the swap, the complete new files are moved in one by one. If the process is killed meanwhile, only
    :func:`load_storage_context` reads the folder, and the next `persist` repairs it.

    The folder and its files keep their modes and owners. A symbolic link stays one, and the folder that it points to is
    written.

    On a file system of fsspec, complete new files are written next to the old ones and then copied into their places.
    If the process is killed meanwhile, only :func:`load_storage_context` reads the folder, and the next `persist`
    repairs it. Such a folder cannot be locked: if two processes save at the same moment, one state may be lost.

    Parameters
    ----------
    persist_dir : a folder for this storage context alone, since it is replaced as a whole; it need not exist. `~` is
        expanded
    fs : the file system that the folder is on, such as `fsspec.filesystem("s3")`; default that of this machine

    Raises
    ------
    ConfigurationError
        If the folder holds files that do not belong to a storage context, or is a file. Nothing is written.
    ConcurrentWriteError
        If another process has saved an index of the context since it was read. The folder is not changed.
    """
    if fs is not None and not isinstance(fs, LocalFileSystem):
        _persist_remotely(storage_context, RemoteFolder(fs, persist_dir))
        return
    folder = _local(persist_dir)
    if folder.exists() and not folder.is_dir():
        raise ConfigurationError(f"{folder} is a file, not a folder. Choose a separate folder.")
    foreign = sorted(p.name for p in folder.iterdir() if not _is_own(p)) if folder.exists() else []
    _refuse_foreign(folder, foreign)
    refuse_newer(storage_context, folder)
    with temporary_folder(folder) as new:
        storage_context.persist(new)
        with exclusive(folder):
            refuse_newer(storage_context, folder)
            replace_contents(new, folder)
    remember(storage_context)


def _refuse_foreign(folder: Path | RemoteFolder, foreign: Sequence[str]) -> None:
    if foreign:
        raise ConfigurationError(
            f"{folder} holds {foreign[:5]}, which do not belong to a storage context, and persist() replaces the "
            "whole folder. Choose a separate folder."
        )


def _local(path: str | Path) -> Path:
    protocol = _PROTOCOL.match(str(path))
    if protocol is not None and protocol[1] not in ("file", "local"):
        raise ConfigurationError(
            f"{path!r} is not on this machine: pass its file system, fs=fsspec.filesystem({protocol[1]!r})."
        )
    return real_folder(strip_protocol(str(path)) if protocol else path)


def _persist_remotely(storage_context: StorageContext, folder: RemoteFolder) -> None:
    _refuse_foreign(folder, folder.foreign(_is_own_name))
    with TemporaryDirectory() as old, TemporaryDirectory() as new:
        if folder.entries():
            folder.read(Path(old))
        refuse_newer(storage_context, Path(old), str(folder))
        storage_context.persist(new)
        for path in Path(new).glob(f"*{ARRAYS}"):  # nobody maps a file that is elsewhere
            path.unlink()
        folder.replace(Path(new))
    remember(storage_context)


def load_storage_context(
    persist_dir: str | Path = "./storage",
    *,
    fs: fsspec.AbstractFileSystem | None = None,
    vector_store: BasePydanticVectorStore | None = None,
    vector_stores: Mapping[str, BasePydanticVectorStore] | None = None,
    mapped: bool = True,
    **kwargs: Any,
) -> StorageContext:
    """Read a folder of :func:`persist`, also while another process writes it.

    `StorageContext.from_defaults` opens file after file. If the folder is swapped in between, it fails or mixes two
    states. Here the folder is read again until it did not change meanwhile. With `vector_store=` or `vector_stores=`
    core reads no vector store from the folder; here the stores that you pass are added to those that are read.

    Parameters
    ----------
    persist_dir : the folder
    fs : the file system that it is on, as for :func:`persist`
    vector_store : the store in the namespace "default"
    vector_stores : stores by namespace
    mapped : whether vectors and texts stay in their files until a question needs them, on a disk of this machine. Such
        an index opens at once; its files are read later, and must not be changed in place: `persist` replaces them.
        False reads everything now
    kwargs : further arguments of `StorageContext.from_defaults`

    Raises
    ------
    ConfigurationError
        If there can be no such folder.
    MissingSpaceError
        If there is none.
    HalfWrittenError
        If a file in it is damaged, or the folder changed during every attempt to read it.
    """
    remote = None if fs is None or isinstance(fs, LocalFileSystem) else RemoteFolder(fs, persist_dir)
    folder = _local(persist_dir) if remote is None else remote
    for attempt in range(_ATTEMPTS):
        before = _signature(folder)
        context, error = None, None
        try:
            context, whole = _read(folder, kwargs, mapped=mapped)
        except Exception as failure:  # core has no error class for a damaged file: its readers raise many kinds
            error, whole = failure, True
        if whole and _signature(folder) == before:
            if context is not None:
                given = {} if vector_store is None else {"default": vector_store}
                context.vector_stores.update({**(vector_stores or {}), **given})
                return context
            if before is None:
                raise MissingSpaceError(f"There is no folder {folder}.") from error
            raise HalfWrittenError(
                f"{folder} cannot be read ({type(error).__name__}: {redact(str(error))[:200]}): a file in it is "
                "damaged or missing. Restore a copy, or build the index again."
            ) from error
        logger.debug("%s was replaced while it was read; attempt %d", folder, attempt + 1)
        time.sleep(min(_LONGEST_WAIT, 0.01 * 2**attempt))
    raise HalfWrittenError(
        f"{folder} was replaced during each of {_ATTEMPTS} attempts to read it. Load it when its writer pauses."
    )


def _signature(folder: Path | RemoteFolder) -> object:
    """A value that changes when the folder or a file in it is replaced; None without a folder."""
    return signature(folder) if isinstance(folder, Path) else folder.entries() or None


def _read(folder: Path | RemoteFolder, kwargs: Mapping[str, Any], *, mapped: bool) -> tuple[StorageContext, bool]:
    """What the folder holds, and whether it was still there when it had been read."""
    if isinstance(folder, Path):
        source = complete_state(folder)
        given = {**(_mapped(source) if mapped else {}), **kwargs}
        return _opened(source, given), source.exists()
    with TemporaryDirectory() as copy:
        folder.read(Path(copy))
        return _opened(Path(copy), kwargs), True


def _mapped(folder: Path) -> dict[str, Any]:
    """The stores of a folder that can be opened without being read, and those beside them that core would read too."""
    if os.name == "nt":  # an open file there could not be replaced
        return {}
    kvstore = FileKVStore.opened(str(folder / "docstore.json"))
    spaces = {path: MatrixVectorStore.mapped(str(path)) for path in sorted(folder.glob(f"*{NAMESPACE_SEP}{_VECTORS}"))}
    stores = {
        path.name.split(NAMESPACE_SEP)[0]: SimpleVectorStore.from_persist_path(str(path)) if found is None else found
        for path, found in spaces.items()
    }
    given: dict[str, Any] = {} if kvstore is None else {"docstore": SimpleDocumentStore(kvstore)}
    return (
        {**given, "vector_stores": stores}
        if any(isinstance(store, MatrixVectorStore) for store in stores.values())
        else given
    )


def _opened(folder: Path, kwargs: Mapping[str, Any]) -> StorageContext:
    """What core reads, after a check of its entries, which core looks at when they are asked for."""
    context = StorageContext.from_defaults(persist_dir=str(folder), **kwargs)
    docstore, index_store = context.docstore, context.index_store
    if isinstance(docstore, SimpleDocumentStore):
        kvstore = docstore_tables(docstore).kvstore
        # A FileKVStore checks what it reads.
        tables = kvstore.to_dict() if type(kvstore) is SimpleKVStore else {}
        if not all(isinstance(entry, dict) for table in tables.values() for entry in table.values()):
            raise TypeError("an entry of the document store is not an object")
    if isinstance(index_store, SimpleIndexStore):
        for entry in index_entries(index_store).values():
            if not isinstance(entry[TYPE_KEY], str) or not isinstance(entry[DATA_KEY], str | dict):
                raise TypeError("an entry of the index store has no type or no data")
    return context


def _is_own(path: Path) -> bool:
    return path.name == _OF_FILE_SYSTEM or is_temporary(path) or (path.is_file() and _is_own_name(path.name))


def _is_own_name(name: str) -> bool:
    return name in _OWN_FILES or name.endswith((_VECTORS, array_path(_VECTORS)))
