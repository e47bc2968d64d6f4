"""`persist` and `load_storage_context`: a folder that holds one complete state, whatever happens to its writer."""

import logging
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from llama_index.core.constants import DATA_KEY, TYPE_KEY
from llama_index.core.storage.docstore.simple_docstore import SimpleDocumentStore
from llama_index.core.storage.index_store.simple_index_store import SimpleIndexStore
from llama_index.core.storage.kvstore.simple_kvstore import SimpleKVStore
from llama_index.core.storage.storage_context import StorageContext
from llama_index.core.vector_stores.types import BasePydanticVectorStore

from llama_index.ragkit.core_internals import docstore_tables, index_entries
from llama_index.ragkit.errors import ConfigurationError, HalfWrittenError, MissingSpaceError
from llama_index.ragkit.redaction import redact
from llama_index.ragkit.storage.folders import (
    complete_state,
    exclusive,
    is_temporary,
    real_folder,
    replace_contents,
    signature,
    temporary_folder,
)
from llama_index.ragkit.storage.persisted_states import refuse_newer, remember

__all__ = ["load_storage_context", "persist"]

logger = logging.getLogger(__name__)

_OWN_FILES = frozenset({"docstore.json", "index_store.json", "graph_store.json", "property_graph_store.json"})
_OF_FILE_SYSTEM = "lost+found"  # in the root of a volume
_ATTEMPTS = 20
_LONGEST_WAIT = 0.5


def persist(storage_context: StorageContext, persist_dir: str | Path = "./storage") -> None:
    """Write a storage context to a temporary folder, then swap it with `persist_dir`.

    `StorageContext.persist` writes file by file into the folder: killed midway, it leaves a mixture of old and new
    files. Here the folder holds the old state until the new one is complete and on disk. It is read by the standard
    `StorageContext.from_defaults(persist_dir=...)`, or by :func:`load_storage_context`, which can read it while it is
    being swapped.

    The swap is atomic on Linux and macOS. Where the folder is a mount point, or its file system or parent folder does
    not permit the swap, the complete new files are moved in one by one; if the process is killed meanwhile, only
    :func:`load_storage_context` reads the folder, and the next `persist` repairs it.

    Modes and owners of the folder and its files are kept. A symbolic link stays one, and the folder that it points to
    is written.

    Parameters
    ----------
    persist_dir : a folder for this storage context alone, since it is replaced as a whole; it need not exist. `~` is
        expanded

    Raises
    ------
    ConfigurationError
        If the folder holds files that do not belong to a storage context, or is a file. Nothing is written.
    ConcurrentWriteError
        If another process has saved an index of the context since it was read. The folder is not changed.
    """
    folder = real_folder(persist_dir)
    if folder.exists() and not folder.is_dir():
        raise ConfigurationError(f"{folder} is a file, not a folder. Choose a separate folder.")
    foreign = sorted(p.name for p in folder.iterdir() if not _is_own(p)) if folder.exists() else []
    if foreign:
        raise ConfigurationError(
            f"{folder} holds {foreign[:5]}, which do not belong to a storage context, and persist() replaces the "
            "whole folder. Choose a separate folder."
        )
    refuse_newer(storage_context, folder)
    with temporary_folder(folder) as new:
        storage_context.persist(new)
        with exclusive(folder):
            refuse_newer(storage_context, folder)
            replace_contents(new, folder)
    remember(storage_context)


def load_storage_context(
    persist_dir: str | Path = "./storage",
    *,
    vector_store: BasePydanticVectorStore | None = None,
    vector_stores: Mapping[str, BasePydanticVectorStore] | None = None,
    **kwargs: Any,
) -> StorageContext:
    """Read a folder of :func:`persist`, also while another process writes it.

    `StorageContext.from_defaults` opens file after file, and fails, or mixes two states, when the folder is swapped
    in between. Here the folder is read again until it did not change meanwhile. With `vector_store=` or
    `vector_stores=` it reads no vector store from the folder; here those that are passed are put beside what is read.

    Parameters
    ----------
    persist_dir : the folder
    vector_store : the store in the namespace "default"
    vector_stores : stores by namespace
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
    folder = real_folder(persist_dir)
    for attempt in range(_ATTEMPTS):
        before, source = signature(folder), folder
        context, error = None, None
        try:
            source = complete_state(folder)
            read = StorageContext.from_defaults(persist_dir=str(source), **kwargs)
            _check_entries(read)
            context = read
        except Exception as failure:  # core has no error class for a damaged file: its readers raise many kinds
            error = failure
        if signature(folder) == before and (source.exists() or before is None):
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


def _check_entries(context: StorageContext) -> None:
    """Check the entries of what core has read: it looks at them when they are asked for."""
    docstore, index_store = context.docstore, context.index_store
    if isinstance(docstore, SimpleDocumentStore):
        kvstore = docstore_tables(docstore).kvstore
        tables = kvstore.to_dict() if isinstance(kvstore, SimpleKVStore) else {}
        if not all(isinstance(entry, dict) for table in tables.values() for entry in table.values()):
            raise TypeError("an entry of the document store is no object")
    if isinstance(index_store, SimpleIndexStore):
        for entry in index_entries(index_store).values():
            if not isinstance(entry[TYPE_KEY], str) or not isinstance(entry[DATA_KEY], str | dict):
                raise TypeError("an entry of the index store has no type or no data")


def _is_own(path: Path) -> bool:
    if path.name == _OF_FILE_SYSTEM or is_temporary(path):
        return True
    return path.is_file() and (path.name in _OWN_FILES or path.name.endswith("vector_store.json"))
