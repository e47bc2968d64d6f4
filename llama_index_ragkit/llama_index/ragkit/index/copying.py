"""Copies of an index, by `copy.deepcopy`, by pickling, and so in processes that are spawned.

A copy of an index in memory has its contents as they were between two writes. One whose storage context is a database,
with or without vector stores, is opened again there: copies are further views of the same index.
"""

from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any

from llama_index.core import Settings
from llama_index.core.storage.storage_context import StorageContext

from llama_index.ragkit.lock import WriterLock
from llama_index.ragkit.steps import Steps, run_steps

__all__ = ["reduced"]


def reduced(index: Any, lock: WriterLock, given: Mapping[str, Any]) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """What a copy of an index is made from: a function and its arguments.

    Parameters
    ----------
    lock : that of its writer
    given : the keywords of its constructor
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
