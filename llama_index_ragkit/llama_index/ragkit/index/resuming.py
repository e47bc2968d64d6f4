"""Finding an index whose build ended early, so that a script that is run again resumes it."""

import json
import logging
import weakref
from collections.abc import Collection, Mapping
from typing import Any

from llama_index.core.storage.storage_context import StorageContext

from llama_index.ragkit.errors import ConfigurationError
from llama_index.ragkit.steps import Steps
from llama_index.ragkit.storage.index_storage import IndexStorage
from llama_index.ragkit.storage.struct import DerivedStruct

__all__ = ["check_resumed", "hold", "incomplete_struct", "resumable"]

logger = logging.getLogger(__name__)

_held: "weakref.WeakValueDictionary[str, Any]" = weakref.WeakValueDictionary()  # uid -> an index of this process


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

    Raises
    ------
    ConfigurationError
        If it was built with other parameters.
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
    """Check that a resumed index holds nothing but what it is about to be built from.

    Parameters
    ----------
    documents : ids of the documents of the build; None for a build from nodes
    nodes : ids of the nodes of such a build

    Raises
    ------
    ConfigurationError
    """
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
