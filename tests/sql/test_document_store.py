"""The docstore in SQL databases: core's, with few statements."""

import asyncio
from collections.abc import Iterator

import pytest
from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.core.storage.docstore.keyval_docstore import KVDocumentStore
from sqlalchemy import event

from llama_index.ragkit.sql import SQLKVStore
from llama_index.ragkit.sql.context import SQLDocumentStore
from llama_index.ragkit.testing.store_kit import DocumentStoreConformance


class TestSQLDocumentStore(DocumentStoreConformance):
    @pytest.fixture
    def store(self, url: str) -> Iterator[KVDocumentStore]:
        kv = SQLKVStore(url)
        yield SQLDocumentStore(kv)
        kv.engine.dispose()


def nodes(first: int, last: int, documents: int) -> list[TextNode]:
    return [
        TextNode(
            text=f"Text {i}.",
            id_=f"n{i}",
            metadata={"i": i},
            relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=f"d{i % documents}")},
        )
        for i in range(first, last)
    ]


def everything(kv: SQLKVStore, store: KVDocumentStore) -> dict[str, object]:
    return {name: kv.get_all(f"docstore/{name}") for name in ("data", "metadata", "ref_doc_info")}


@pytest.mark.parametrize("documents", [3, 100])
def test_the_entries_are_those_of_core(url: str, documents: int) -> None:
    kv, twin = SQLKVStore(url, "ours"), SQLKVStore(url, "core")
    store, core = SQLDocumentStore(kv), KVDocumentStore(twin)
    for each in (store, core):
        each.add_documents(nodes(0, 20, documents))
        asyncio.run(each.async_add_documents(nodes(15, 40, documents)))
        each.add_documents([TextNode(text="of no document", id_="alone")])
    assert everything(kv, store) == everything(twin, core)
    assert store.get_ref_doc_info("d1") == core.get_ref_doc_info("d1")
    assert asyncio.run(store.aget_ref_doc_info("d1")) == core.get_ref_doc_info("d1")
    kv.engine.dispose()
    twin.engine.dispose()


def test_a_write_of_many_documents_takes_few_statements(url: str) -> None:
    kv = SQLKVStore(url)
    store, sent = SQLDocumentStore(kv), []
    store.add_documents(nodes(0, 1, 1))
    event.listen(kv.engine, "before_cursor_execute", lambda *args: sent.append(args[2]))
    store.add_documents(nodes(0, 400, 400))
    assert len(sent) <= 10
    kv.engine.dispose()
