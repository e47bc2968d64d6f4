"""Copies of an index, by `copy.deepcopy`, by `pickle`, and so in processes that are spawned.

A copy of an index in memory has its contents as they were between two writes. One whose storage context is a database,
with or without vector stores, is opened again there: copies are further views of the same index.
"""

import pickle
from collections.abc import Callable
from typing import Any

from llama_index.core import Settings
from llama_index.core.storage.storage_context import StorageContext

from llama_index.ragkit.lock import WriterLock
from llama_index.ragkit.steps import Steps, run_steps

__all__ = ["reduced"]

_Reduced = tuple[Callable[..., Any], tuple[Any, ...]]


def reduced(index: Any, lock: WriterLock, given: dict[str, Any]) -> _Reduced:
    """What `pickle` and `copy` make a copy of an index from.

    Parameters
    ----------
    lock : that of its writer
    given : the keywords that it was made with, beside those of LlamaIndex
    """
    context: StorageContext = index.storage_context
    own = {
        "callback_manager": _unless(index.callback_manager, Settings.callback_manager),
        "transformations": _unless(index._transformations, Settings.transformations),
        "show_progress": index._show_progress,
        **given,
    }
    whole = context if index.storage.records.outlives_the_process else run_steps(_pickled(context, lock))
    return _restored, (type(index), whole, index.index_id, own, index.object_map)


def _unless(value: Any, default: Any) -> Any:
    return None if value is default else value


def _pickled(context: StorageContext, lock: WriterLock) -> Steps[bytes]:
    with (yield from lock.acquire()):
        return pickle.dumps(context)


def _restored(
    cls: type[Any], context: StorageContext | bytes, index_id: str, given: dict[str, Any], objects: dict[str, Any]
) -> Any:
    opened: StorageContext = pickle.loads(context) if isinstance(context, bytes) else context
    index = cls(index_struct=opened.index_store.get_index_struct(index_id), storage_context=opened, **given)
    index.object_map.update(objects)
    return index
