"""`StorageContext.from_defaults(vector_store=X)`: X serves the chunks, or the reason why not is told."""

import logging
from pathlib import Path

import pytest
from llama_index.core import Document, StorageContext, VectorStoreIndex
from tests.cases import CASES, Case, ask, chunks
from tests.lifecycle.test_stores import Deaf, Minimal

from llama_index.ragkit import MatrixVectorStore, load_storage_context
from llama_index.ragkit.errors import MissingSpaceError, UnsupportedStoreError
from llama_index.ragkit.testing import HashEmbedding


def test_the_store_of_the_context_holds_the_chunks(case: Case, tmp_path: Path):
    store = Minimal()
    context = StorageContext.from_defaults(vector_store=store)
    index = case.build([*chunks("d", 4), *chunks("e", 2)], storage_context=context)
    assert store.ids == {"d-0", "d-1", "d-2", "d-3", "e-0", "e-1"}
    assert ask(index) == ask(case.build([*chunks("d", 4), *chunks("e", 2)]))
    core = VectorStoreIndex.from_vector_store(store, embed_model=HashEmbedding())
    assert {text for text, _ in ask(core)} == {node.text for node in [*chunks("d", 4), *chunks("e", 2)]}
    index.delete_nodes(["d-3"])
    assert store.ids == {"d-0", "d-1", "d-2", "e-0", "e-1"}

    context.persist(str(tmp_path))
    again = case.load(load_storage_context(tmp_path, vector_store=store))
    assert ask(again) == ask(index)
    again.insert(Document(text="Zanzibar exports cloves.", id_="z"))
    assert len(store.ids) == 6
    again.delete_ref_doc("d", delete_from_docstore=True)
    again.delete_ref_doc("z", delete_from_docstore=True)
    assert store.ids == {"e-0", "e-1"}

    with pytest.raises(MissingSpaceError, match="load_storage_context"):
        case.load(StorageContext.from_defaults(persist_dir=str(tmp_path), vector_store=store))
    without = case.load(StorageContext.from_defaults(persist_dir=str(tmp_path)))
    assert ask(without) == ask(index)
    with pytest.raises(UnsupportedStoreError, match="vector_store="):
        without.insert(Document(text="new"))


def test_a_store_of_the_context_that_cannot_delete_is_refused_by_name(case: Case):
    with pytest.raises(UnsupportedStoreError, match="Deaf"):
        case.build(chunks("d", 2), storage_context=StorageContext.from_defaults(vector_store=Deaf()))


def test_a_matrix_store_of_the_context_is_persisted_and_found_again(case: Case, tmp_path: Path):
    context = StorageContext.from_defaults(vector_store=MatrixVectorStore())
    index = case.build(chunks("d", 3), storage_context=context)
    assert set(context.vector_store.snapshot().ids) == {"d-0", "d-1", "d-2"}
    context.persist(str(tmp_path))
    loaded = StorageContext.from_defaults(persist_dir=str(tmp_path))
    again = case.load(loaded)
    again.delete_nodes(["d-1"])
    assert set(loaded.vector_store.snapshot().ids) == {"d-0", "d-2"}
    index.delete_nodes(["d-1"])
    assert ask(again) == ask(index)


def test_the_store_that_core_makes_is_left_alone(case: Case):
    context = StorageContext.from_defaults()
    case.build(chunks("d", 3), storage_context=context)
    assert context.vector_store.to_dict()["embedding_dict"] == {}


@pytest.mark.parametrize("first", [*CASES[:2], None], ids=lambda each: "core" if each is None else each.name)
def test_a_second_index_of_a_context_says_that_it_does_not_write_to_the_store(
    case: Case, first: Case | None, caplog: pytest.LogCaptureFixture
):
    store = MatrixVectorStore()
    context = StorageContext.from_defaults(vector_store=store)
    if first is None:
        VectorStoreIndex(chunks("d", 3), storage_context=context, embed_model=HashEmbedding())
    else:
        first.build(chunks("d", 3), storage_context=context)
    index = case.build(chunks("d", 3), storage_context=context)
    assert "MatrixVectorStore) holds the chunks of index" in caplog.text
    assert ask(index) == ask(case.build(chunks("d", 3)))
    index.delete_nodes(["d-0", "d-1"])
    assert set(store.snapshot().ids) == {"d-0", "d-1", "d-2"}


def test_an_index_that_was_built_without_the_store_says_so(
    case: Case, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    index = case.build(chunks("d", 3))
    index.storage_context.persist(str(tmp_path))
    store = Minimal()
    again = case.load(load_storage_context(tmp_path, vector_store=store))
    assert "Minimal) is not used" in caplog.text
    again.insert(Document(text="Zanzibar exports cloves.", id_="z"))
    assert store.ids == set()


def test_what_the_store_is_used_for_is_told(case: Case, caplog: pytest.LogCaptureFixture):
    with caplog.at_level(logging.INFO, logger="llama_index.ragkit"):
        case.build(storage_context=StorageContext.from_defaults(vector_store=Minimal()))
    assert "Chunks are also written to Minimal; queries are answered from memory" in caplog.text
