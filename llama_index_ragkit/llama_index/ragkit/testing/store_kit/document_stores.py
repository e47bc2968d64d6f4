"""Does a document store keep nodes, the lists of their documents, and hashes?"""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from llama_index.core import Document
from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.core.storage.docstore.types import BaseDocumentStore

from llama_index.ragkit.testing.corpus import chunks
from llama_index.ragkit.testing.store_kit.harness import StoreHarness

__all__ = [
    "DocumentAsyncDeleteTests",
    "DocumentAsyncTests",
    "DocumentDeleteTests",
    "DocumentHashTests",
    "DocumentIsolationTests",
    "DocumentPersistTests",
    "DocumentReadWriteTests",
    "DocumentStoreConformance",
    "DocumentStoreHarness",
    "ReferenceDocumentTests",
]

IDS = ["../../outside", "a/b__c", "two words", "x" * 300, "漢字", "'quoted' \"twice\"", "%s", "None"]


class DocumentStoreHarness(StoreHarness):
    """What a test class says about its document store. Override the fixture `store`."""

    @staticmethod
    def listed(store: BaseDocumentStore) -> dict[str, list[str]]:
        """The nodes of each document that the store knows."""
        return {name: list(info.node_ids) for name, info in (store.get_all_ref_doc_info() or {}).items()}


class DocumentReadWriteTests(DocumentStoreHarness):
    """`add_documents` and the ways to get nodes back."""

    def test_nodes_come_back_whole(self, store: BaseDocumentStore) -> None:
        """With text, metadata, hidden keys, relationships and hash."""
        source, following = NodeRelationship.SOURCE, NodeRelationship.NEXT
        node = TextNode(
            id_="n",
            text="漢字 'quoted' {braces} \n 👩‍👩‍👧",
            metadata={"page": 1, "deep": {"a": [1, {"b": None}]}, "third": 1 / 3},
            excluded_embed_metadata_keys=["page"],
            excluded_llm_metadata_keys=["deep"],
            relationships={source: RelatedNodeInfo(node_id="d"), following: RelatedNodeInfo(node_id="n2")},
        )
        document = Document(id_="whole", text="A document.", metadata={"page": 2})
        store.add_documents([node, document])
        for given in (node, document):
            got = store.get_document(given.node_id)
            assert got is not None
            assert got.model_dump() == given.model_dump()
            assert got.hash == given.hash

    def test_all_nodes_are_listed(self, store: BaseDocumentStore) -> None:
        """By id in `docs`, and in the order asked for by `get_nodes`."""
        nodes = [*chunks("d", 3), *chunks("e", 2)]
        store.add_documents(nodes)
        assert {name: node.hash for name, node in store.docs.items()} == {node.node_id: node.hash for node in nodes}
        assert [node.node_id for node in store.get_nodes(["e-1", "d-0"])] == ["e-1", "d-0"]

    def test_a_node_that_is_not_there_is_an_error_unless_none_is_wanted(self, store: BaseDocumentStore) -> None:
        """`raise_error` decides."""
        store.add_documents(chunks("d", 1))
        assert store.document_exists("d-0")
        assert not store.document_exists("nowhere")
        assert store.get_document("nowhere", raise_error=False) is None
        with pytest.raises(ValueError, match="nowhere"):
            store.get_document("nowhere")

    def test_a_node_that_comes_again_replaces_the_old(self, store: BaseDocumentStore) -> None:
        """If updates are allowed, as they are by default; else it is an error and the old node stays."""
        store.add_documents(chunks("d", 2))
        new = chunks("d", 1)[0].model_copy(update={"text": "Other words."})
        store.add_documents([new])
        assert store.get_node("d-0").get_content() == "Other words."
        assert self.listed(store) == {"d": ["d-0", "d-1"]}
        with pytest.raises(ValueError, match="d-0"):
            store.add_documents(chunks("d", 1), allow_update=False)
        assert store.get_node("d-0").get_content() == "Other words."

    def test_unusual_ids_are_ids(self, store: BaseDocumentStore) -> None:
        """Of nodes and of documents."""
        nodes = [
            TextNode(id_=f"{odd}#", text=odd, relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=odd)})
            for odd in IDS
        ]
        store.add_documents(nodes)
        assert {name: node.get_content() for name, node in store.docs.items()} == {f"{odd}#": odd for odd in IDS}
        assert self.listed(store) == {odd: [f"{odd}#"] for odd in IDS}
        for odd in IDS:
            store.delete_document(f"{odd}#")
            assert not store.document_exists(f"{odd}#")


class ReferenceDocumentTests(DocumentStoreHarness):
    """The store knows which nodes a document has."""

    def test_a_document_lists_its_nodes(self, store: BaseDocumentStore) -> None:
        """In the order in which they came, in one call or several."""
        store.add_documents([*chunks("d", 2), *chunks("e", 1)])
        store.add_documents(chunks("d", 2, start=2))
        info = store.get_ref_doc_info("d")
        assert info is not None
        assert list(info.node_ids) == ["d-0", "d-1", "d-2", "d-3"]
        assert self.listed(store) == {"d": ["d-0", "d-1", "d-2", "d-3"], "e": ["e-0"]}
        assert store.get_ref_doc_info("nowhere") is None

    def test_a_node_without_a_document_is_on_no_list(self, store: BaseDocumentStore) -> None:
        """But it is in the store."""
        store.add_documents([TextNode(id_="n", text="words")])
        assert store.document_exists("n")
        assert self.listed(store) == {}


class DocumentDeleteTests(DocumentStoreHarness):
    """`delete_document` removes a node, `delete_ref_doc` all nodes of a document."""

    def test_a_deleted_node_leaves_its_document_s_list(self, store: BaseDocumentStore) -> None:
        """And the document goes with its last node."""
        store.add_documents([*chunks("d", 3), *chunks("e", 1)])
        store.delete_document("d-1")
        assert self.listed(store) == {"d": ["d-0", "d-2"], "e": ["e-0"]}
        assert set(store.docs) == {"d-0", "d-2", "e-0"}
        store.delete_document("d-0")
        store.delete_document("d-2")
        assert self.listed(store) == {"e": ["e-0"]}
        assert store.get_ref_doc_info("d") is None

    def test_every_node_of_a_deleted_document_goes(self, store: BaseDocumentStore) -> None:
        """With their hashes, and no other document."""
        store.add_documents([*chunks("d", 7), *chunks("e", 2)])
        store.delete_ref_doc("d")
        assert set(store.docs) == {"e-0", "e-1"}
        assert self.listed(store) == {"e": ["e-0", "e-1"]}
        assert [store.get_document_hash(f"d-{i}") for i in range(7)] == [None] * 7

    def test_what_is_not_there_is_an_error_unless_it_is_to_be_passed_over(self, store: BaseDocumentStore) -> None:
        """`raise_error` decides."""
        store.add_documents(chunks("d", 1))
        store.delete_document("nowhere", raise_error=False)
        store.delete_ref_doc("nowhere", raise_error=False)
        with pytest.raises(ValueError, match="nowhere"):
            store.delete_document("nowhere")
        with pytest.raises(ValueError, match="nowhere"):
            store.delete_ref_doc("nowhere")
        assert set(store.docs) == {"d-0"}


class DocumentHashTests(DocumentStoreHarness):
    """The hashes of documents, which a refresh compares."""

    def test_a_hash_is_kept_until_it_is_set_anew(self, store: BaseDocumentStore) -> None:
        """One by one or many at once; there is none for what nobody set."""
        store.set_document_hash("D0", "h0")
        store.set_document_hashes({"D1": "h1", "D2": "h2"})
        store.set_document_hash("D0", "new")
        assert [store.get_document_hash(f"D{i}") for i in range(4)] == ["new", "h1", "h2", None]
        assert store.get_all_document_hashes() == {"new": "D0", "h1": "D1", "h2": "D2"}

    def test_a_node_s_hash_is_kept_with_it(self, store: BaseDocumentStore) -> None:
        """Without being set."""
        (node,) = chunks("d", 1)
        store.add_documents([node])
        assert store.get_document_hash("d-0") == node.hash


class DocumentAsyncTests(DocumentStoreHarness):
    """The asynchronous methods write and read what the synchronous ones do, on any event loop."""

    def test_asynchronous_calls_equal_synchronous_ones(self, store: BaseDocumentStore) -> None:
        """Each sees what the others wrote."""

        async def write() -> None:
            await store.async_add_documents([*chunks("d", 3), *chunks("e", 2)])
            await store.async_add_documents([chunks("d", 1)[0].model_copy(update={"text": "Other words."})])
            await store.aset_document_hash("D0", "h0")
            await store.aset_document_hashes({"D1": "h1"})

        async def read() -> list[Any]:
            node, missing = await store.aget_document("d-0"), await store.aget_document("nowhere", raise_error=False)
            assert node is not None
            assert missing is None
            info = await store.aget_ref_doc_info("e")
            listed = await store.aget_all_ref_doc_info()
            return [
                node.get_content(),
                await store.adocument_exists("d-1"),
                await store.adocument_exists("nowhere"),
                list(info.node_ids) if info else None,
                sorted(listed or {}),
                [await store.aget_document_hash(name) for name in ("D0", "D1", "D2")],
                [node.node_id for node in await store.aget_nodes(["e-1", "d-0"])],
            ]

        asyncio.run(write())
        assert self.listed(store) == {"d": ["d-0", "d-1", "d-2"], "e": ["e-0", "e-1"]}
        assert asyncio.run(read()) == [
            "Other words.",
            True,
            False,
            ["e-0", "e-1"],
            ["d", "e"],
            ["h0", "h1", None],
            ["e-1", "d-0"],
        ]


class DocumentAsyncDeleteTests(DocumentStoreHarness):
    """The asynchronous deletes remove what the synchronous ones do. Core's `KVDocumentStore` leaves stale lists."""

    def test_an_asynchronous_delete_leaves_no_stale_list(self, store: BaseDocumentStore) -> None:
        """A node leaves the list of its document, a document all lists."""
        store.add_documents([*chunks("d", 3), *chunks("e", 7)])
        asyncio.run(store.adelete_document("d-1"))
        assert self.listed(store)["d"] == ["d-0", "d-2"]
        asyncio.run(store.adelete_ref_doc("e"))
        assert self.listed(store) == {"d": ["d-0", "d-2"]}
        assert set(store.docs) == {"d-0", "d-2"}


class DocumentIsolationTests(DocumentStoreHarness):
    """Nodes are copies: changing what was added or got changes nothing in the store."""

    def test_nodes_that_were_added_or_got_may_be_changed(self, store: BaseDocumentStore) -> None:
        """In their text, and in the keys of their metadata."""
        (given,) = chunks("d", 1)
        store.add_documents([given])
        for node in (given, store.get_node("d-0"), store.docs["d-0"]):
            assert isinstance(node, TextNode)
            node.text = "Other words."
            node.metadata["written"] = "by the user"
        assert store.get_node("d-0").model_dump() == chunks("d", 1)[0].model_dump()


class DocumentPersistTests(DocumentStoreHarness):
    """A store comes back from where it was kept. Override `reopen`."""

    def test_a_reopened_store_holds_the_same(self, store: BaseDocumentStore, tmp_path: Path) -> None:
        """Nodes, lists and hashes; and no byte of what was deleted."""
        nodes = [*chunks("d", 3), *chunks("e", 2)]
        store.add_documents([*nodes, *[node.model_copy(update={"text": "qzxcanary"}) for node in chunks("f", 2)]])
        store.set_document_hash("D0", "h0")
        store.delete_ref_doc("f")
        again = self.reopen(store, tmp_path)
        assert {name: node.model_dump() for name, node in again.docs.items()} == {
            node.node_id: node.model_dump() for node in nodes
        }
        assert self.listed(again) == {"d": ["d-0", "d-1", "d-2"], "e": ["e-0", "e-1"]}
        assert again.get_document_hash("D0") == "h0"
        assert not any(b"qzxcanary" in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())


class DocumentStoreConformance(
    DocumentReadWriteTests,
    ReferenceDocumentTests,
    DocumentDeleteTests,
    DocumentHashTests,
    DocumentAsyncTests,
):
    """The part of `BaseDocumentStore` on which the packages, and core's indexes in the same context, rely.

    An index writes nodes with `add_documents` and `async_add_documents`, reads them with `get_document` and
    `aget_document`, and sets the hashes of documents. It keeps its own records in the key-value store below, so the
    store must be a `KVDocumentStore` over a store that passes `KeyValueStoreConformance`. It also deletes there, since
    core's asynchronous deletes leave stale lists (`DocumentAsyncDeleteTests`). Besides this class, inherit further
    capabilities: `DocumentIsolationTests`, `DocumentPersistTests`, `DocumentAsyncDeleteTests`.
    """
