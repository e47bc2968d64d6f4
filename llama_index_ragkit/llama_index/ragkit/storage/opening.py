"""Creating the parts of a new index in a storage context, and opening those of a stored one."""

import logging
from typing import Any
from uuid import uuid4

from llama_index.core.data_structs.data_structs import IndexDict
from llama_index.core.storage.storage_context import StorageContext
from llama_index.core.vector_stores.simple import SimpleVectorStore
from llama_index.core.vector_stores.types import BasePydanticVectorStore

from llama_index.ragkit.errors import HalfWrittenError
from llama_index.ragkit.steps import Steps
from llama_index.ragkit.storage.commits import read_commit, read_unfinished
from llama_index.ragkit.storage.external_store import ExternalVectorStore
from llama_index.ragkit.storage.file_kvstore import keep_in_file
from llama_index.ragkit.storage.manifest import Manifest
from llama_index.ragkit.storage.records import Records
from llama_index.ragkit.storage.struct import DerivedStruct, check_format
from llama_index.ragkit.storage.vector_spaces import stored_matrix
from llama_index.ragkit.vectors.matrix_vector_store import MatrixVectorStore

__all__ = ["CHUNKS", "DEFAULT", "check_commit", "find_external_store", "new_uid", "open_records", "version_tag"]

logger = logging.getLogger(__name__)

CHUNKS = "chunks"
DEFAULT = "default"  # the namespace of the store that a storage context is made with


def new_uid() -> str:
    """8 random hexadecimal digits that distinguish an index from others of its kind."""
    return uuid4().hex[:8]


def version_tag(struct: DerivedStruct) -> dict[str, Any]:
    """The tag that every part of an index stores, by which parts of different generations are detected."""
    tag = {"uid": struct.uid, "generation": struct.generation}
    return {**tag, "token": struct.token} if struct.token else tag  # written by a version that knew no tokens


def open_records(context: StorageContext, method: str, struct: DerivedStruct) -> Records:
    """The records of an index, in the key-value store of the docstore."""
    keep_in_file(context.docstore)
    return Records(context.docstore, f"{method}_{struct.uid}")


def find_external_store(
    context: StorageContext, method: str, given: BasePydanticVectorStore | None, stored: DerivedStruct | None = None
) -> tuple[ExternalVectorStore | None, bool | str]:
    """The user's own store for chunks: the one passed, or one of the storage context.

    In a context, that is the store in the namespace `<method>_chunks`, or else the one that it was made with,
    `StorageContext.from_defaults(vector_store=...)`. The `SimpleVectorStore` that core makes where none is passed is
    never used. Nor is a store that another index of the context writes to, since both would write and delete the same
    chunks; a warning says so.

    Returns
    -------
    The store, and what the struct says of it: whether there is one, or "default" for that of the context
    """
    own = context.vector_stores.get(f"{method}_{CHUNKS}")
    if given is None and not isinstance(own, (SimpleVectorStore, MatrixVectorStore)):
        given = own
    if given is not None:
        return ExternalVectorStore(given), True
    default = _default_store(context, stored)
    if default is None:
        return None, False
    name = type(default).__name__
    if stored is not None and stored.params.get("mirrored") != DEFAULT:
        logger.warning(
            "The vector store of the storage context (%s) is not used by index %s, which was built without it: it "
            "holds none of its chunks. Build the index again to have them written there.", name, stored.index_id,
        )  # fmt: skip
        return None, False
    other = None if stored is not None else _writer_of_default(context)
    if other is not None:
        logger.warning(
            "The vector store of the storage context (%s) holds the chunks of index %s; this index writes none there. "
            "To have them in a store as well, pass another one as vector_store=.", name, other,
        )  # fmt: skip
        return None, False
    logger.info("Chunks are also written to %s; queries are answered from memory, exactly.", name)
    return ExternalVectorStore(default), DEFAULT


def _default_store(context: StorageContext, stored: DerivedStruct | None) -> BasePydanticVectorStore | None:
    """The store that the context was made with, if it is the user's."""
    default = context.vector_stores.get(DEFAULT)
    if not isinstance(default, SimpleVectorStore):
        return default
    written = stored is not None and stored.params.get("mirrored") == DEFAULT
    return stored_matrix(context, DEFAULT) if written else None


def _writer_of_default(context: StorageContext) -> str | None:
    """The id of an index of the context that writes to its default vector store."""
    for struct in context.index_store.index_structs():
        mirrored = struct.params.get("mirrored") == DEFAULT if isinstance(struct, DerivedStruct) else False
        if mirrored or isinstance(struct, IndexDict):  # that of core's VectorStoreIndex
            return struct.index_id
    return None


def check_commit(struct: DerivedStruct, records: Records) -> Steps[bool]:
    """Compare the struct with the last commit; returns whether all parts must be of one generation.

    A write that was killed has stored some parts and not others: the last commit counts, and loading repairs the rest.
    On a server the commit counts in any case: an index store elsewhere may have been left behind.
    """
    check_format(struct.format_version)
    stored = yield from read_commit(records)
    if records.outlives_the_process and stored["generation"] >= struct.generation:
        vars(struct).update(stored.get("struct", {}))
    elif not struct.building and (stored["generation"], stored.get("token", "")) != (struct.generation, struct.token):
        raise HalfWrittenError(
            f"The index store holds generation {struct.generation} of index {struct.index_id!r}, the document store "
            f"{stored['generation']} (tokens {struct.token!r} and {stored.get('token', '')!r}): the storage context "
            "was persisted only in part, or by two processes at once. Load an older copy, or build the index again; "
            "llama_index.ragkit.persist() never leaves such a state."
        )
    left = yield from read_unfinished(records, Manifest(records))
    incomplete = struct.building
    struct.generation, struct.token = stored["generation"], stored.get("token", "")
    struct.building = bool(left) or (incomplete and "token" not in stored)  # written by a version that knew no tokens
    struct.check()
    if struct.building:
        logger.warning(
            "The last write to index %s is incomplete; call refresh_ref_docs() with its documents to resume it. "
            "Unfinished: %s.", struct.index_id, ", ".join([*left.documents, *left.nodes][:5]) or "unknown",
        )  # fmt: skip
    return not incomplete
