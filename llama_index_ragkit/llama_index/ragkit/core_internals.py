"""The only file that touches private parts of llama-index-core and of its LLM packages.

Each function explains why no public part serves. `tests/ragkit/test_core_internals.py` fails when core changes one of
them. Protected attributes of `BaseIndex` are used only in :mod:`llama_index.ragkit.index.derived_index`.
"""

import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from inspect import isgeneratorfunction
from typing import Any

from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.llms import LLM
from llama_index.core.settings import Settings
from llama_index.core.storage.docstore.keyval_docstore import KVDocumentStore
from llama_index.core.storage.docstore.types import BaseDocumentStore
from llama_index.core.storage.index_store.keyval_index_store import KVIndexStore
from llama_index.core.storage.index_store.types import BaseIndexStore
from llama_index.core.storage.kvstore.simple_kvstore import SimpleKVStore
from llama_index.core.storage.kvstore.types import BaseKVStore

from llama_index.ragkit.errors import UnsupportedStoreError

__all__ = [
    "DocstoreTables",
    "collections_of",
    "docstore_tables",
    "index_entries",
    "may_send_json_schema",
    "own_tokenizer",
    "replace_kvstore",
    "set_llm",
    "with_system_prompt",
    "without_step_spans",
]

_encoders: dict[int, Callable[[str], Sequence[object]] | None] = {}  # by the id of a model that lives; some are loaded


@dataclass(frozen=True)
class DocstoreTables:
    """The key-value store below a document store, and the names of its collections."""

    kvstore: BaseKVStore
    nodes: str
    metadata: str
    ref_docs: str
    batch_size: int  # records in one call of `put_all`


def docstore_tables(docstore: BaseDocumentStore) -> DocstoreTables:
    """Access the key-value store below a document store.

    Private, since core offers no way to keep records of one's own beside the nodes, and its deletes are unusable:
    `delete_document` rewrites the document's entry for every node (quadratic in the nodes of a document), and its
    asynchronous twin looks the entry up under the wrong key and leaves it stale.
    """
    if not isinstance(docstore, KVDocumentStore):
        raise UnsupportedStoreError(
            f"{type(docstore).__name__} keeps no key-value store, which the records of the index need. "
            "Use a document store derived from KVDocumentStore (SimpleDocumentStore, PostgresDocumentStore, "
            "RedisDocumentStore, MongoDocumentStore, ...)."
        )
    return DocstoreTables(
        kvstore=docstore._kvstore,
        nodes=docstore._node_collection,
        metadata=docstore._metadata_collection,
        ref_docs=docstore._ref_doc_collection,
        batch_size=docstore._batch_size,
    )


def without_step_spans(cls: type) -> None:
    """Remove the spans that core puts around the steps of a class.

    Private, since core opens a span for each implementation of an abstract method, and closes it when the method
    returns. A generator returns before its work begins: its span would take no time, and have no calls of models in it.
    """
    for name, method in list(vars(cls).items()):
        steps = getattr(method, "__wrapped__", None)
        if isgeneratorfunction(steps) and hasattr(method, "__dispatcher_span_decorated__"):
            setattr(cls, name, steps)


def collections_of(kvstore: SimpleKVStore) -> dict[str, Any]:
    """The collections of a key-value store in memory by name, not copied.

    Private, since core's `to_dict` returns a copy, in which later values would be missing.
    """
    return kvstore._collections_mappings


def replace_kvstore(docstore: BaseDocumentStore, kvstore: BaseKVStore) -> None:
    """Put another key-value store with the same values below a document store.

    Private, since core lets nobody else decide how a document store is written: a `SimpleDocumentStore` that a
    storage context makes has core's own key-value store, which writes JSON that can only be read as a whole.
    """
    if isinstance(docstore, KVDocumentStore):
        docstore._kvstore = kvstore


def index_entries(index_store: BaseIndexStore) -> dict[str, Any]:
    """The entries of an index store by index id, with type and data of each struct; none if it has other ones.

    Private, since core makes structs of all entries at once, and fails at one whose package is not imported.
    """
    if not isinstance(index_store, KVIndexStore):
        return {}
    return index_store._kvstore.get_all(collection=index_store._collection)


def with_system_prompt(llm: LLM, messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """The messages that `llm.predict` would send, which include the LLM's own system prompt.

    Private, since `chat_with_tools` sends messages as they are, without `llm.system_prompt`.
    """
    return llm._extend_messages(list(messages))


def may_send_json_schema(llm: LLM) -> bool:
    """Whether `structured_predict` of an LLM with its own implementation sends a JSON schema.

    Private, since the OpenAI classes decide it by `_should_use_structure_outputs`, and otherwise fall back to function
    calls or plain text with parameters that other servers reject. LLMs without that method are assumed to send one.
    """
    decides = getattr(llm, "_should_use_structure_outputs", None)
    return bool(decides()) if callable(decides) else True


def own_tokenizer(llm: LLM) -> Callable[[str], Sequence[object]] | None:
    """What encodes a text with the tokenizer of a model; None where LlamaIndex has none for it.

    Private, since core has no tokenizer of a model: OpenAI-like classes that were given one (`tokenizer=`) have it in
    `_tokenizer`, and so has `HuggingFaceLLM`. That of OpenAI's own classes is not used, since it may be downloaded.
    """
    kind = type(llm)
    is_given = "tokenizer" in kind.model_fields and getattr(llm, "tokenizer", None)
    if not is_given and "_tokenizer" not in (kind.__private_attributes__ or {}):
        return None
    if id(llm) not in _encoders:
        encode = getattr(getattr(llm, "_tokenizer", None), "encode", None)
        weakref.finalize(llm, _encoders.pop, id(llm), None)
        _encoders[id(llm)] = encode if callable(encode) else None
    return _encoders[id(llm)]


def set_llm() -> LLM | None:
    """The language model that was set in `Settings`, if any.

    Private, since `Settings.llm` looks for one of OpenAI where none was set.
    """
    return Settings._llm
