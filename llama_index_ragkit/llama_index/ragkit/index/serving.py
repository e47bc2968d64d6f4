"""How an index comes to its storage: a new one, one that is opened, resumed after its build ended early, or copied."""

import gc
import json
import logging
import weakref
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from functools import partial
from typing import Any

from llama_index.core import Settings
from llama_index.core.storage.storage_context import StorageContext
from llama_index.core.vector_stores.types import BasePydanticVectorStore

from llama_index.ragkit.errors import ConfigurationError
from llama_index.ragkit.index.builder import Builder
from llama_index.ragkit.lock import WriterLock
from llama_index.ragkit.sql.context import SQLStorageContext, find_stores
from llama_index.ragkit.steps import Steps, run_steps
from llama_index.ragkit.storage.index_storage import IndexStorage
from llama_index.ragkit.storage.local_storage import LocalIndexStorage
from llama_index.ragkit.storage.opening import CHUNKS, check_commit, find_external_store, new_uid, open_records
from llama_index.ragkit.storage.stored_storage import StoredIndexStorage
from llama_index.ragkit.storage.struct import DerivedStruct
from llama_index.ragkit.storage.vector_spaces import stored_matrix
from llama_index.ragkit.vectors.snapshot import Snapshot

__all__ = [
    "check_place",
    "check_resumed",
    "hold",
    "incomplete_struct",
    "new_storage",
    "no_collection",
    "open_storage",
    "reduced",
    "resumable",
    "stored_chunks",
]

logger = logging.getLogger(__name__)

_held: "weakref.WeakValueDictionary[str, Any]" = weakref.WeakValueDictionary()  # uid -> an index of this process


def check_place(
    owner: str,
    given: Mapping[str, Any],
    context: StorageContext,
    stored: DerivedStruct | None,
    builder: type[Builder[Any, Any]],
) -> bool:
    """Whether an index is in stores rather than in memory: as it was built, or as its storage context says.

    `owner` is the name of the index class, `given` are its keywords.
    """
    says = isinstance(context, SQLStorageContext) and context.in_stores
    in_stores = says if stored is None else stored.in_stores
    if in_stores and builder.state_of is Builder.state_of:
        raise ConfigurationError(f"{owner} is served only from memory: make its storage context without vectors=.")
    if in_stores and given.get("vector_store") is not None:
        raise ConfigurationError(
            "The vectors of this index are in the stores of the storage context: pass vectors= to "
            "llama_index.ragkit.sql.storage_context in place of vector_store=."
        )
    return in_stores


def new_storage(
    context: StorageContext,
    method: str,
    space_names: Sequence[str],
    struct: DerivedStruct,
    chunk_store: BasePydanticVectorStore | None,
    *,
    in_stores: bool,
) -> IndexStorage:
    """The storage of a new index; `chunk_store` is the user's store for chunks of an index in memory."""
    if not in_stores:
        external, mirrored = find_external_store(context, method, chunk_store)
        struct.params["mirrored"] = mirrored
        return LocalIndexStorage.create(context, method, space_names, struct, external)
    struct.uid = new_uid()
    struct.params["serve_from"] = "stores"
    struct.spaces = {name: name for name in space_names}
    return _in_stores(context, method, struct)


def open_storage(
    context: StorageContext, method: str, struct: DerivedStruct, chunk_store: BasePydanticVectorStore | None
) -> Steps[IndexStorage]:
    """The storage of a stored index."""
    if struct.in_stores:
        yield from check_commit(struct, open_records(context, method, struct))
        return _in_stores(context, method, struct)
    external, _ = find_external_store(context, method, chunk_store, struct)
    return (yield from LocalIndexStorage.open(context, method, struct, external))


def stored_chunks(
    context: StorageContext, method: str, struct: DerivedStruct, node_ids: Sequence[str]
) -> Steps[Snapshot]:
    """The rows of those chunks that an index of the context has, and perhaps others; the index is not opened."""
    if struct.in_stores:
        return (yield from _in_stores(context, method, struct).space().fetch(node_ids))
    stored = stored_matrix(context, struct.spaces.get(CHUNKS, ""))
    return Snapshot.empty() if stored is None or stored.tag.get("uid") != struct.uid else stored.snapshot()


def _in_stores(context: StorageContext, method: str, struct: DerivedStruct) -> StoredIndexStorage:
    stores = find_stores(context, method, struct.uid)
    records = open_records(context, method, struct)
    return StoredIndexStorage(context, struct, records, stores, partial(stores.spaces, records=records))


def hold(uid: str, index: Any) -> None:
    """An index object is in use: no build resumes its index, even if nothing has been written to it."""
    _held[uid] = index


def resumable(uid: str, build: Steps[None]) -> Steps[None]:
    """The steps of a build; if they end early, another build in this process may resume it."""
    try:
        yield from build
    except BaseException:
        _held.pop(uid, None)
        raise


def incomplete_struct(
    context: StorageContext, struct_cls: type[DerivedStruct], method: str, parameters: Mapping[str, Any]
) -> DerivedStruct | None:
    """The struct of an index of this kind whose build ended early, or that was never written to; None if there is none.

    One with other parameters is refused.
    """
    for struct in context.index_store.index_structs():
        if type(struct) is not struct_cls or struct.uid in _held or (struct.generation and not struct.building):
            continue
        stored = struct.parameters_of(method)
        given = json.loads(json.dumps(dict(parameters)))
        other = {name: value for name, value in given.items() if stored.get(name, value) != value}
        if other and struct.generation:
            raise ConfigurationError(
                f"The storage context holds an incomplete index of this kind, {struct.index_id!r}, with other "
                f"parameters: { {name: stored[name] for name in other} } instead of {other}. Pass those to resume its "
                "build, or use another storage context."
            )
        logger.warning("Resuming index %s, whose build is incomplete.", struct.index_id)
        return struct
    return None


def check_resumed(
    storage: IndexStorage, *, documents: Collection[str] | None = None, nodes: Collection[str] = ()
) -> Steps[None]:
    """Check that a resumed index holds nothing but what it is about to be built from: documents, or else nodes."""
    if documents is None:
        others = [i for i in (yield from storage.manifest.entries()) if i not in set(nodes)]
    else:
        others = [i for i in (yield from storage.manifest.documents()) if i not in set(documents)]
    if others:
        raise ConfigurationError(
            f"The storage context holds an incomplete index of this kind, {storage.struct.index_id!r}, with "
            f"{', '.join(map(repr, others[:5]))}, which this build does not have. Resume its build with "
            "load_index_from_storage(storage_context, index_id=...).refresh_ref_docs(documents), delete what it holds, "
            "or use another storage context."
        )


@contextmanager
def no_collection() -> Iterator[None]:
    """Suspend cyclic garbage collection, which takes a sixth of the time of opening a large index.

    The new objects all stay in use, so a collection would find nothing. Reference counting continues, and collection
    that was off before remains off.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def reduced(index: Any, lock: WriterLock, given: Mapping[str, Any]) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """What a copy of an index is made from, by `copy.deepcopy` or by pickling: a function and its arguments.

    A copy of an index in memory has its contents as they were between two writes. One whose storage context is a
    database, with or without vector stores, is opened again there: copies are further views of the same index.
    """
    context: StorageContext = index.storage_context
    if not index.storage.records.outlives_the_process:
        context = run_steps(_between_writes(context, lock))
    defaults = (Settings.callback_manager, Settings.transformations)
    own = {name: None if any(value is default for default in defaults) else value for name, value in given.items()}
    return _opened, (type(index), context, index.index_id, own, index.object_map)


def _between_writes(context: StorageContext, lock: WriterLock) -> Steps[StorageContext]:
    with (yield from lock.acquire()):
        return deepcopy(context)


def _opened(
    cls: type[Any], context: StorageContext, index_id: str, given: Mapping[str, Any], objects: Mapping[str, Any]
) -> Any:
    index = cls(index_struct=context.index_store.get_index_struct(index_id), storage_context=context, **given)
    index.object_map.update(objects)
    return index
