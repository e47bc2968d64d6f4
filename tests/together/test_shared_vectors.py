"""Several indexes of one storage context embed their chunks once."""

from pathlib import Path
from typing import Any

import pytest
from llama_index.core.schema import TextNode
from llama_index.core.storage import StorageContext
from tests.cases import CASES, Case, HashHeads, ask, chunks

from llama_index.hipporag import HippoRAGIndex, NounPhraseExtractor
from llama_index.mrag import MRAGIndex
from llama_index.ragkit import MatrixVectorStore, persist
from llama_index.ragkit.sql import storage_context
from llama_index.ragkit.testing import HashEmbedding
from llama_index.sprag import RuleContext, SpRAGIndex

METHODS = [case for case in CASES if case.name not in ("toy", "mrag", "sprag")]

each_case = pytest.mark.parametrize("case", METHODS, ids=lambda case: case.name)
each_place = pytest.mark.parametrize("in_stores", [False, True], ids=["memory", "stores"])


def context(tmp_path: Path, in_stores: bool) -> StorageContext:
    if not in_stores:
        return StorageContext.from_defaults()
    spaces: dict[str, MatrixVectorStore] = {}
    url = f"sqlite:///{tmp_path / 'index.db'}"
    return storage_context(url, vectors=lambda name, dim: spaces.setdefault(name, MatrixVectorStore()))


def first_index(where: StorageContext, model: HashEmbedding, nodes: list[TextNode]) -> HippoRAGIndex:
    options: dict[str, Any] = {"extractor": NounPhraseExtractor(), "embed_model": model}
    return HippoRAGIndex([node.model_copy(deep=True) for node in nodes], storage_context=where, **options)


@each_place
@each_case
def test_a_second_index_embeds_no_chunk_and_answers_as_if_it_were_alone(
    case: Case, in_stores: bool, tmp_path, caplog: pytest.LogCaptureFixture
) -> None:
    nodes, where = chunks("d", 6), context(tmp_path, in_stores)
    first_index(where, case.embed_model(), nodes)
    model = case.embed_model()
    with caplog.at_level("INFO", logger="llama_index.ragkit"):
        second = case.build([node.model_copy(deep=True) for node in nodes], embed_model=model, storage_context=where)
    assert "6 are embedded already, in another index of the context." in caplog.text
    assert not {node.get_content(metadata_mode="embed") for node in nodes} & set(model.texts)
    alone = case.build([node.model_copy(deep=True) for node in nodes], embed_model=case.embed_model())
    assert sorted(ask(second)) == sorted(ask(alone))


@each_place
def test_chunks_that_differ_are_embedded(in_stores: bool, tmp_path) -> None:
    nodes, where, model = chunks("d", 6), context(tmp_path, in_stores), HashHeads()
    first_index(where, HashHeads(), nodes)
    changed = [node.model_copy(deep=True) for node in nodes]
    changed[2].set_content("Something else altogether.")
    case = next(case for case in METHODS if case.name == "pgrag")
    case.build(changed, embed_model=model, storage_context=where)
    texts = {node.get_content(metadata_mode="embed") for node in changed}
    assert [text for text in model.texts if text in texts] == ["Something else altogether."]


@each_place
def test_chunks_that_are_embedded_without_their_metadata_are_others(in_stores: bool, tmp_path) -> None:
    """Their hash is the same."""
    nodes, where, model = chunks("d", 6), context(tmp_path, in_stores), HashEmbedding()
    for node in nodes:
        node.metadata = {"shelf": "red"}
    first_index(where, HashEmbedding(), nodes)
    for node in nodes:
        node.excluded_embed_metadata_keys = ["shelf"]
    case = next(case for case in METHODS if case.name == "pgrag")
    case.build(nodes, embed_model=model, storage_context=where)
    assert {node.text for node in nodes} <= set(model.texts)


@each_place
def test_another_model_embeds_all(in_stores: bool, tmp_path) -> None:
    nodes, where = chunks("d", 6), context(tmp_path, in_stores)
    first_index(where, HashEmbedding(salt="other"), nodes)
    case = next(case for case in METHODS if case.name == "pgrag")
    model = HashEmbedding()
    case.build(chunks("d", 6), embed_model=model, storage_context=where)
    assert {node.get_content(metadata_mode="embed") for node in nodes} <= set(model.texts)


def test_vectors_in_another_data_type_are_not_shared(tmp_path) -> None:
    where, models = context(tmp_path, False), (HashHeads(), HashHeads(), HashHeads())
    for model, dtype in zip(models, ("float32", "float32", "float16"), strict=True):
        MRAGIndex(chunks("d", 6), embed_model=model, storage_context=where, dtype=dtype)
    texts = {node.get_content(metadata_mode="embed") for node in chunks("d", 6)}
    assert [len(texts & set(model.texts)) for model in models] == [6, 0, 6]


@pytest.mark.parametrize(
    "struct", [{"__type__": "llama_index.absent", "__data__": "{}"}, None], ids=["absent", "damaged"]
)
@each_place
def test_an_index_that_cannot_be_read_stops_no_write(in_stores: bool, struct: Any, tmp_path) -> None:
    where = context(tmp_path, in_stores)
    index = first_index(where, HashEmbedding(), chunks("d", 6))
    store: Any = where.index_store
    other = struct or {"__type__": index.index_struct.get_type(), "__data__": '{"params": []}'}
    store._kvstore.put("other", other, collection=store._collection)
    index.insert_nodes(chunks("e", 3))
    assert {text for text, _ in ask(index, top_k=20)} >= {node.text for node in chunks("e", 3)}


def test_vectors_of_chunks_with_headers_are_not_shared(tmp_path) -> None:
    where, model = context(tmp_path, False), HashEmbedding()
    SpRAGIndex(chunks("d", 6), extractor=RuleContext(), embed_model=HashEmbedding(), storage_context=where)
    first_index(where, model, chunks("d", 6))
    assert len(set(model.texts)) > 6


def test_an_insert_into_both_embeds_once(tmp_path) -> None:
    where = context(tmp_path, False)
    models = HashEmbedding(), HashEmbedding()
    case = next(case for case in METHODS if case.name == "pgrag")
    first = first_index(where, models[0], chunks("d", 6))
    second = case.build(chunks("d", 6), embed_model=models[1], storage_context=where)
    before = len(models[0].texts), len(models[1].texts)
    for index in (first, second):
        index.insert_nodes(chunks("e", 3))
    assert (len(models[0].texts) - before[0], len(models[1].texts) - before[1]) == (3, 0)


def test_vectors_of_an_index_that_is_not_open_are_read_from_the_folder(tmp_path) -> None:
    where = context(tmp_path, False)
    first_index(where, HashEmbedding(), chunks("d", 6))
    persist(where, tmp_path / "folder")
    model = HashEmbedding()
    again = StorageContext.from_defaults(persist_dir=str(tmp_path / "folder"))
    case = next(case for case in METHODS if case.name == "pgrag")
    case.build(chunks("d", 6), embed_model=model, storage_context=again)
    assert not {node.get_content(metadata_mode="embed") for node in chunks("d", 6)} & set(model.texts)
