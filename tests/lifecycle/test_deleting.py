"""Deletes, beyond what the conformance kit says of them."""

from collections.abc import Sequence
from typing import Any

from llama_index.core import Document, StorageContext
from llama_index.core.schema import BaseNode, NodeRelationship, RelatedNodeInfo, TextNode, TransformComponent
from llama_index.core.storage.kvstore import SimpleKVStore
from tests.cases import TEXTS, Case, ask, chunks


class Unchanged(TransformComponent):
    """The documents themselves as nodes."""

    def __call__(self, nodes: Sequence[BaseNode], **kwargs: Any) -> Sequence[BaseNode]:
        return nodes


def test_unknown_documents_are_passed_over(case: Case, caplog):
    index = case.build(chunks("d", 2))
    index.delete_ref_doc("nowhere", delete_from_docstore=True)
    assert "nowhere" in caplog.text
    assert len(ask(index)) >= 2


def test_an_index_forgets_what_another_has_deleted_from_the_shared_docstore(case: Case):
    context = StorageContext.from_defaults()
    nodes = [*chunks("d", 4), *chunks("e", 2)]
    one, other = case.build(nodes, storage_context=context), case.build(nodes, storage_context=context)
    one.delete_ref_doc("d", delete_from_docstore=True)
    assert len(ask(other, doc_ids=["d"])) == 0  # not told yet, but the docstore has no such texts any more
    other.delete_ref_doc("d", delete_from_docstore=True)
    assert set(other.ref_doc_info) == {"e"}
    assert ask(one) == ask(other)


def test_a_node_that_has_moved_to_another_document_is_not_deleted_with_the_old_one(case: Case):
    def of(document: str, *node_ids: str) -> list[TextNode]:
        source = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id=document)}
        return [TextNode(text=f"the lamp {node_id}", id_=node_id, relationships=dict(source)) for node_id in node_ids]

    index = case.build(of("old", "a", "b"))
    index.insert_nodes(of("new", "a"))
    assert {name: info.node_ids for name, info in index.ref_doc_info.items()} == {"old": ["b"], "new": ["a"]}
    index.delete_ref_doc("old", delete_from_docstore=True)
    assert list(index.docstore.docs) == ["a"]
    assert "the lamp a" in str(ask(index))
    index.delete_ref_doc("new", delete_from_docstore=True)
    assert not index.docstore.docs
    assert not ask(index)


def test_a_document_that_was_not_split_is_deleted(case: Case):
    documents = [Document(text=text, id_=f"D{i}") for i, text in enumerate(TEXTS[:4])]
    index = case.from_documents(documents, transformations=[Unchanged()])
    index.delete_ref_doc("D0", delete_from_docstore=True)
    assert set(index.docstore.docs) == {"D1", "D2", "D3"}
    assert index.index_struct.counters["chunks"] == 3
    for name in ("D1", "D2", "D3"):
        index.delete_ref_doc(name)
    assert not ask(index)


def test_deleting_a_document_of_many_nodes_is_not_quadratic(case: Case, monkeypatch):
    # Core rewrites the document's entry, with all its node ids, for every node: 125 s for 10,000 nodes.
    index = case.build(chunks("d", 120))
    written = []
    put = SimpleKVStore.put
    monkeypatch.setattr(SimpleKVStore, "put", lambda *a, **k: (written.append(len(str(a))), put(*a, **k))[1])
    index.delete_ref_doc("d", delete_from_docstore=True)
    assert sum(written) < 20_000
    assert index.docstore.docs == {}
