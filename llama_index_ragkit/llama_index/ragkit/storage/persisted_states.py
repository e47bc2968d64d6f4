"""Which state of an index a persisted folder holds, so that a process does not overwrite what another has saved."""

import weakref
from collections.abc import Mapping
from pathlib import Path

from llama_index.core.storage.index_store import SimpleIndexStore
from llama_index.core.storage.index_store.types import BaseIndexStore
from llama_index.core.storage.storage_context import StorageContext

from llama_index.ragkit.errors import ConcurrentWriteError
from llama_index.ragkit.storage.struct import DerivedStruct

__all__ = ["refuse_newer", "remember"]

# The token of each index when it was last read from, or written to, a folder.
_read: "weakref.WeakKeyDictionary[BaseIndexStore, dict[str, str]]" = weakref.WeakKeyDictionary()


def remember(context: StorageContext, tokens: Mapping[str, str] | None = None) -> None:
    """The context and the folder hold the same state now.

    Parameters
    ----------
    tokens : of the indexes that were read, by id; None for all of the context
    """
    store = context.index_store
    _read.setdefault(store, {}).update(_tokens(store) if tokens is None else tokens)


def refuse_newer(context: StorageContext, folder: Path, name: str = "") -> None:
    """Check that a folder holds what the context was read from or last saved as.

    Parameters
    ----------
    name : what to call the folder in an error [its path]

    Raises
    ------
    ConcurrentWriteError
        If another process has saved an index of the context since then.
    """
    path = folder / "index_store.json"
    if not path.exists():
        return
    try:
        saved = _tokens(SimpleIndexStore.from_persist_path(str(path)))
    except Exception:  # damaged: there is nothing in it that could be lost
        return
    own, read = _tokens(context.index_store), _read.get(context.index_store, {})
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
