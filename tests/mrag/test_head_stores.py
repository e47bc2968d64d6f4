"""The heads in vector stores of the user's: the same answers, kept up with every write."""

import asyncio

import pytest
from llama_index.core import StorageContext, load_index_from_storage
from llama_index.core.schema import TextNode
from llama_index.core.vector_stores.simple import SimpleVectorStore
from tests.cases import TEXTS, chunks

from llama_index.mrag import MRAGIndex
from llama_index.ragkit import MatrixVectorStore
from llama_index.ragkit.errors import ConfigurationError, UnsupportedStoreError

STORY = "The Analytical Engine used punched cards. The loom wove silk in Lyon."


class Counting(SimpleVectorStore):
    """Counts its searches; deletes by document only, which every store can."""

    asked: list[int] = []  # noqa: RUF012

    def query(self, query, **kwargs):
        self.asked.append(query.similarity_top_k)
        return super().query(query, **kwargs)

    def delete_nodes(self, *args, **kwargs):
        raise NotImplementedError


class Tableless(MatrixVectorStore):
    """Refuses deletes before its first row, as LanceDB does."""

    def delete_nodes(self, *args, **kwargs):
        self._need_rows()
        super().delete_nodes(*args, **kwargs)

    def delete(self, *args, **kwargs):
        self._need_rows()
        super().delete(*args, **kwargs)

    def _need_rows(self):
        if not len(self.snapshot()):
            raise LookupError("there is no table")


def told(index, **kwargs):
    return [(r.node_id, r.score) for r in index.as_retriever(similarity_top_k=5, **kwargs).retrieve(STORY)]


def stores(kind=Counting):
    return [kind(asked=[]) if kind is Counting else kind() for _ in range(4)]


@pytest.mark.parametrize("kind", [Counting, MatrixVectorStore, Tableless])
def test_the_answers_are_those_of_the_exact_search(kind):
    mine = stores(kind)
    index, plain = MRAGIndex(chunks("d", 12), head_stores=mine), MRAGIndex(chunks("d", 12))
    assert told(index) == told(plain)
    index.insert_nodes(chunks("e", 5))
    index.delete_nodes(["d-3"])
    index.delete_ref_doc("e", delete_from_docstore=True)
    plain.delete_nodes(["d-3"])
    assert told(index) == told(plain)
    assert asyncio.run(index.as_retriever().aretrieve(STORY))
    if kind is Counting:
        assert all(len(store.data.embedding_dict) == 11 for store in mine)
        assert all(len(next(iter(store.data.embedding_dict.values()))) == 8 for store in mine)
        assert all(store.asked for store in mine)


def test_filters_are_answered_exactly():
    mine = stores()
    index = MRAGIndex(chunks("d", 6), head_stores=mine)
    assert {name for name, _ in told(index, node_ids=["d-1", "d-2"])} == {"d-1", "d-2"}
    assert not any(store.asked for store in mine)


def test_a_store_that_lost_rows_is_not_believed():
    mine = stores()
    index = MRAGIndex(chunks("d", 6), head_stores=mine)
    before = told(index)
    mine[2].data.embedding_dict.clear()
    mine[2].data.text_id_to_ref_doc_id.clear()
    assert told(index) == before


def test_the_stores_of_the_build_are_needed_to_write_and_not_to_read(tmp_path):
    mine = stores()
    index = MRAGIndex(chunks("d", 6), head_stores=mine)
    index.storage_context.persist(str(tmp_path))
    loaded = load_index_from_storage(StorageContext.from_defaults(persist_dir=str(tmp_path)))
    assert told(loaded) == told(index)
    with pytest.raises(UnsupportedStoreError, match="head_stores"):
        loaded.insert_nodes([TextNode(text=TEXTS[0])])
    with pytest.raises(UnsupportedStoreError, match="head_stores"):
        loaded.delete_nodes(["d-1"])
    again = load_index_from_storage(StorageContext.from_defaults(persist_dir=str(tmp_path)), head_stores=mine)
    again.delete_nodes(["d-1"])
    assert all(len(store.data.embedding_dict) == 5 for store in mine)


def test_stores_that_cannot_do_are_refused():
    with pytest.raises(ConfigurationError, match="3 head_stores for 4 heads"):
        MRAGIndex(chunks("d", 2), head_stores=stores()[:3])
    one = SimpleVectorStore()
    with pytest.raises(ConfigurationError, match="different"):
        MRAGIndex([], head_stores=[one, one])
