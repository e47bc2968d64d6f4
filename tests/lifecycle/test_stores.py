"""Stores of the user: a vector store beside ours, and key-value stores that outlive the process."""

import asyncio
import time
from typing import Any

import pytest
from llama_index.core import Document, StorageContext, VectorStoreIndex
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.storage.docstore.keyval_docstore import KVDocumentStore
from llama_index.core.storage.index_store.keyval_index_store import KVIndexStore
from llama_index.core.vector_stores.types import BasePydanticVectorStore, VectorStoreQuery, VectorStoreQueryResult
from tests.cases import TEXTS, Case, HashHeads, ask, chunks
from tests.processes import Worker

from llama_index.ragkit import MatrixVectorStore, SQLiteKVStore
from llama_index.ragkit.errors import StorageError, UnsupportedStoreError
from llama_index.ragkit.testing import HashEmbedding

pytestmark = pytest.mark.pairs


class Minimal(BasePydanticVectorStore):
    """A store that has the mandatory methods and no others, like several on PyPI."""

    stores_text: bool = True
    _inner: MatrixVectorStore = PrivateAttr(default_factory=MatrixVectorStore)

    @property
    def client(self) -> Any:
        return None

    def add(self, nodes, **kwargs: Any) -> list[str]:
        assert not [n.node_id for n in nodes if n.node_id in self._inner.snapshot()], "doubles"
        return self._inner.add(nodes)

    def delete(self, ref_doc_id: str, **kwargs: Any) -> None:
        self._inner.delete(ref_doc_id)

    def query(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        result = self._inner.query(query)
        result.similarities = [1000 - 3 * s for s in result.similarities or []]  # what a score means differs
        return result

    @property
    def ids(self) -> set[str]:
        return set(self._inner.snapshot().ids)


class Deaf(Minimal):
    """A store that cannot delete, like FAISS."""

    def delete(self, ref_doc_id: str, **kwargs: Any) -> None:
        raise NotImplementedError


@pytest.mark.parametrize("make", [Minimal, MatrixVectorStore])
def test_chunks_are_mirrored_whole_in_the_users_store(case: Case, make, tmp_path):
    store = make()

    def ids() -> set[str]:
        return store.ids if isinstance(store, Minimal) else set(store.snapshot().ids)

    plain = case.build([*chunks("d", 6), *chunks("e", 2)])
    index = case.build([*chunks("d", 6), *chunks("e", 2)], vector_store=store)
    assert ask(index) == ask(plain)
    core = VectorStoreIndex.from_vector_store(store, embed_model=HashEmbedding())
    assert {text for text, _ in ask(core)} == {node.text for node in [*chunks("d", 6), *chunks("e", 2)]}
    index.delete_nodes(["d-0", "d-3"])
    assert ids() == {"d-1", "d-2", "d-4", "d-5", "e-0", "e-1"}
    index.insert_nodes(
        [chunks("x", 1)[0].model_copy(update={"id_": "d-1", "relationships": chunks("d", 1)[0].relationships})]
    )
    assert ids() == {"d-1", "d-2", "d-4", "d-5", "e-0", "e-1"}
    asyncio.run(index.adelete_ref_doc("d", delete_from_docstore=True))
    assert ids() == {"e-0", "e-1"}
    index.storage_context.persist(str(tmp_path))
    again = StorageContext.from_defaults(persist_dir=str(tmp_path))
    assert ask(case.load(again, vector_store=store)) == ask(index)
    without = case.load(StorageContext.from_defaults(persist_dir=str(tmp_path)))
    assert ask(without) == ask(index)
    with pytest.raises(UnsupportedStoreError, match="vector_store="):
        without.insert(Document(text="new"))


def test_a_store_that_cannot_delete_is_refused_by_name(case: Case):
    with pytest.raises(UnsupportedStoreError, match="Deaf"):
        case.build(chunks("d", 2), vector_store=Deaf())


class Broken(Minimal):
    """A store whose delete is there and fails once there is a table, like LanceDB's adapter 0.6.0."""

    def delete(self, ref_doc_id: str, **kwargs: Any) -> None:
        raise ValueError(f"no field named {ref_doc_id}" if self.ids else "no table yet")


@pytest.mark.parametrize("how", ["sync", "async"])
def test_a_store_whose_delete_turns_out_broken_is_refused_after_its_first_row(case: Case, how: str):
    store = Broken()
    index = case.build(vector_store=store)
    insert = {"sync": index.insert_nodes, "async": lambda nodes: asyncio.run(index.ainsert_nodes(nodes))}[how]
    with pytest.raises(UnsupportedStoreError, match=r"Broken cannot delete.*no field named") as caught:
        insert(chunks("d", 4))
    assert isinstance(caught.value.__cause__, ValueError)
    assert len(store.ids) == 1


class Moody(Minimal):
    """A store that fails when told to."""

    _failing: str = PrivateAttr(default="")

    def add(self, nodes, **kwargs: Any) -> list[str]:
        self._fail("add")
        return super().add(nodes)

    def delete(self, ref_doc_id: str, **kwargs: Any) -> None:
        self._fail("delete")
        super().delete(ref_doc_id)

    def _fail(self, what: str) -> None:
        if self._failing == what:
            raise OSError(f"no {what} today\nand a long traceback")


def test_what_the_store_raises_is_told_by_name_and_the_write_can_be_repeated(case: Case):
    store = Moody()
    index = case.build(chunks("d", 3), vector_store=store)
    before = ask(index)
    new = Document(text="Zanzibar exports cloves.", id_="z")
    store._failing = "add"
    with pytest.raises(StorageError, match=r"Moody could not store 1 chunks.*no add today\. The write is incomplete"):
        index.insert(new)
    assert ask(index) == before
    store._failing = "delete"
    with pytest.raises(StorageError, match=r"Moody could not delete 3 chunks.*no delete today\. They are still"):
        index.delete_ref_doc("d", delete_from_docstore=True)
    assert ask(index) == before
    store._failing = ""
    assert index.refresh_ref_docs([new]) == [True]
    index.delete_ref_doc("d", delete_from_docstore=True)
    assert set(index.ref_doc_info) == {"z"}
    assert len(store.ids) == 1
    assert ask(index)[0][0] == "Zanzibar exports cloves."


def test_rows_of_others_in_the_users_store_are_not_ours(case: Case):
    store = MatrixVectorStore()
    foreign = chunks("f", 5)
    for node in foreign:
        node.embedding = HashEmbedding().vector(node.text)
    store.add(foreign)
    index = case.build(chunks("d", 5), vector_store=store)
    assert not any(" f " in text for text, _ in ask(index, top_k=5))
    index.delete_ref_doc("d")
    assert set(store.snapshot().ids) == {node.node_id for node in foreign}


def test_a_users_store_in_the_namespace_of_the_method_serves_as_well(case: Case):
    store = Minimal()
    context = StorageContext.from_defaults(vector_stores={f"{case.cls.method}_chunks": store})
    index = case.build(chunks("d", 3), storage_context=context)
    assert store.ids == {"d-0", "d-1", "d-2"}
    assert context.vector_stores[f"{case.cls.method}_chunks"] is store
    assert len(ask(index)) >= 3


def remote(path) -> StorageContext:
    kv = SQLiteKVStore(path)
    return StorageContext.from_defaults(docstore=KVDocumentStore(kv), index_store=KVIndexStore(kv))


def test_an_index_whose_stores_are_all_remote_opens_without_a_folder(case: Case, tmp_path):
    index = case.build([*chunks("d", 8), *chunks("e", 3)], storage_context=remote(tmp_path / "kv.db"))
    index.delete_nodes(["d-2"])
    expected = ask(index)
    again = case.load(remote(tmp_path / "kv.db"))
    assert ask(again) == expected
    again.insert(Document(text="Zanzibar exports cloves.", id_="z"))
    asyncio.run(again.adelete_ref_doc("d", delete_from_docstore=True))
    assert ask(case.load(remote(tmp_path / "kv.db"))) == ask(again)
    data = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert b"Zanzibar" in data
    assert b" d 5" not in data


WORKER = """
import sys
from llama_index.core import Document
from llama_index.core.base.base_retriever import BaseRetriever
from tests.cases import CASES, TEXTS
from tests.lifecycle.test_stores import SLOW, Slow, documents, remote

case = next(c for c in CASES if c.name == sys.argv[1])
context = remote(sys.argv[2])
known = context.index_store.index_structs()
index = case.load(context, embed_model=Slow()) if known else case.build(storage_context=context, embed_model=Slow())
print("ready", flush=True)
for document in documents():
    index.refresh_ref_docs([document])
print("done", flush=True)
"""


class Slow(HashHeads):
    """Slow enough to be killed at any point of a write."""

    def _get_text_embedding(self, text: str) -> list[float]:
        time.sleep(0.002)
        return super()._get_text_embedding(text)


SLOW = 0.002


def documents() -> list[Document]:
    return [Document(text=" ".join([*TEXTS[i % 6 :], f"Note {i}."]), id_=f"D{i}") for i in range(6)]


@pytest.mark.slow
def test_builds_killed_at_any_point_resume_with_nothing_lost_and_no_doubles(case: Case, tmp_path):
    path, attempts, done = tmp_path / "kv.db", 0, False
    delays = [0.01, 0.05, 0.09, 0.2, 0.4]
    while not done:
        run = Worker(WORKER, case.name, str(path))
        assert run.stdout.readline().strip() == "ready"
        if attempts < len(delays):
            time.sleep(delays[attempts])
            run.kill()
        done = "done" in run.stdout.read()
        run.wait()
        attempts += 1
        assert attempts < 20
    index = case.load(remote(path))
    assert index.refresh_ref_docs(documents()) == [False] * 6
    reference = case.build()
    for document in documents():
        reference.refresh_ref_docs([document])
    assert sorted(index.docstore.docs) == sorted(reference.docstore.docs)
    everything = [
        chunk for chunk in ask(index, top_k=200) if chunk[0] in {n.get_content() for n in index.docstore.docs.values()}
    ]
    wanted = [
        c for c in ask(reference, top_k=200) if c[0] in {n.get_content() for n in reference.docstore.docs.values()}
    ]
    assert everything == wanted
