"""Creating the parts of a new index in a storage context, and opening those of a stored one."""

import logging
from collections.abc import Sequence
from typing import Any
from uuid import uuid4

from llama_index.core.storage.storage_context import StorageContext
from llama_index.core.vector_stores.simple import SimpleVectorStore
from llama_index.core.vector_stores.types import BasePydanticVectorStore

from llama_index.ragkit.errors import FormatVersionError, HalfWrittenError
from llama_index.ragkit.steps import Steps
from llama_index.ragkit.storage.commits import read_commit, read_unfinished
from llama_index.ragkit.storage.external_store import ExternalVectorStore
from llama_index.ragkit.storage.manifest import Manifest
from llama_index.ragkit.storage.records import Records
from llama_index.ragkit.storage.struct import FORMAT_VERSION, DerivedStruct
from llama_index.ragkit.storage.vector_spaces import VectorSpace, open_space
from llama_index.ragkit.vectors.matrix_vector_store import MatrixVectorStore
from llama_index.ragkit.vectors.row_buffer import Storage

__all__ = ["CHUNKS", "find_external_store", "new_spaces", "new_uid", "open_records", "open_spaces", "version_tag"]

logger = logging.getLogger(__name__)

CHUNKS = "chunks"


def new_uid() -> str:
    """8 random hexadecimal digits that distinguish an index from others of its kind."""
    return uuid4().hex[:8]


def version_tag(struct: DerivedStruct) -> dict[str, Any]:
    """The tag that every part of an index stores, by which parts of different generations are detected."""
    tag = {"uid": struct.uid, "generation": struct.generation}
    return {**tag, "token": struct.token} if struct.token else tag  # written by a version that knew no tokens


def open_records(context: StorageContext, method: str, struct: DerivedStruct) -> Records:
    """The records of an index, in the key-value store of the docstore."""
    return Records(context.docstore, f"{method}_{struct.uid}")


def find_external_store(
    context: StorageContext, method: str, given: BasePydanticVectorStore | None
) -> ExternalVectorStore | None:
    """The user's own store for chunks: the one passed, or else one in the namespace `<method>_chunks`.

    The `default` namespace is never used: core's own indexes keep their vectors there.
    """
    store = given if given is not None else context.vector_stores.get(f"{method}_{CHUNKS}")
    if store is None or (isinstance(store, (SimpleVectorStore, MatrixVectorStore)) and given is None):
        default = context.vector_stores.get("default")
        if not isinstance(default, (SimpleVectorStore, type(None))):
            logger.info(
                "The default vector store (%s) of the storage context is reserved for core's indexes; "
                "pass vector_store= to have the chunks written to it.",
                type(default).__name__,
            )
        return None
    return ExternalVectorStore(store)


def _dtype(struct: DerivedStruct) -> Storage:
    """The data type in which the vectors are stored."""
    return "float16" if struct.params.get("dtype") == "float16" else "float32"


def new_spaces(
    context: StorageContext,
    method: str,
    names: Sequence[str],
    struct: DerivedStruct,
    records: Records,
    external: ExternalVectorStore | None,
) -> dict[str, VectorSpace]:
    """Empty spaces of a new index: `<method>_<space>`, with the uid appended where that name is taken."""
    spaces = {}
    for name in names:
        plain = f"{method}_{name}"
        namespace = plain if plain not in context.vector_stores else f"{plain}_{struct.uid}"
        store = MatrixVectorStore(stores_text=False, dtype=_dtype(struct))
        store.tag = version_tag(struct)
        context.vector_stores[namespace] = store
        struct.spaces[name] = namespace
        spaces[name] = VectorSpace(name, store, records, external if name == CHUNKS else None)
    return spaces


def open_spaces(
    context: StorageContext, struct: DerivedStruct, records: Records, external: ExternalVectorStore | None
) -> Steps[dict[str, VectorSpace]]:
    """The spaces of a stored index, checked against its struct.

    Raises
    ------
    FormatVersionError, MissingSpaceError, HalfWrittenError
    """
    if struct.format_version != FORMAT_VERSION:
        raise FormatVersionError(
            f"The index was written in format {struct.format_version}; this version reads format {FORMAT_VERSION}. "
            "Build it again, or install the version that wrote it."
        )
    trusted = yield from _check_commit(struct, records)
    spaces = {}
    for name, namespace in struct.spaces.items():
        spaces[name] = yield from open_space(
            name,
            namespace,
            context,
            records,
            version_tag(struct),
            external if name == CHUNKS else None,
            dtype=_dtype(struct),
            trusted=trusted,
        )
    return spaces


def _check_commit(struct: DerivedStruct, records: Records) -> Steps[bool]:
    """Compare the struct with the last commit; returns whether all parts must be of one generation.

    A write that was killed has stored some parts and not others: the last commit counts, and loading repairs the rest.
    On a server the commit counts in any case, since core stores the struct again whenever an index is loaded, and may
    so replace the one that another process has stored meanwhile.
    """
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
    if struct.building:
        logger.warning(
            "The last write to index %s is incomplete; call refresh_ref_docs() with its documents to resume it. "
            "Unfinished: %s.", struct.index_id, ", ".join([*left.documents, *left.nodes][:5]) or "unknown",
        )  # fmt: skip
    return not incomplete
