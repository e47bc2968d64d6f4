"""What users see of writes that ended early, and of input that is refused before a write."""

import asyncio
import datetime
from typing import Any

import numpy as np
import pytest
from llama_index.core import Document, StorageContext
from llama_index.core.schema import TextNode
from tests.cases import CASES, Case, ask, chunks

from llama_index.ragkit import ExtractionCache
from llama_index.ragkit.errors import CacheRequiredError, ConfigurationError
from llama_index.ragkit.testing import Fault, FaultyKVStore, faulty_context
from llama_index.ragkit.testing.faults import InjectedError, Killed

TOY = CASES[0]
DOCUMENTS = [Document(text=f"Otto Lindqvist founded glassworks number {i}.", id_=f"D{i}") for i in range(4)]


class OnceItIsKnown(Fault):
    """Ends the first call after a document has come into the manifest."""

    def __init__(self, store: FaultyKVStore, ref_doc_id: str) -> None:
        super().__init__()
        self.store, self.ref_doc_id = store, ref_doc_id

    def step(self) -> None:
        documents = next(rows for name, rows in self.store.data.items() if name.endswith("/documents"))
        if self.ref_doc_id in documents:
            self.store.fault = Fault()
            raise InjectedError("no space left on device")


def broken_build(case: Case, store: FaultyKVStore, kind: str = "kill", at: int = 40) -> None:
    store.fault = Fault(kind, at)  # type: ignore[arg-type]
    with pytest.raises((Killed, InjectedError)):
        case.from_documents(DOCUMENTS, storage_context=faulty_context(store))
    store.fault = Fault()


@pytest.mark.parametrize("kind", ["kill", "error"])
def test_a_script_that_is_run_again_resumes_its_build(case: Case, kind: str):
    store = FaultyKVStore({}, Fault())
    broken_build(case, store, kind)
    index = case.from_documents(DOCUMENTS, storage_context=faulty_context(store))
    assert index.unfinished == []
    assert len(index.storage_context.index_store.index_structs()) == 1
    loaded = case.load(faulty_context(store))
    assert ask(loaded) == ask(index) == ask(case.from_documents(DOCUMENTS))
    index.delete_ref_doc("D1", delete_from_docstore=True)
    assert "number 1" not in str(store.data)


def test_a_script_with_other_documents_or_parameters_is_told_of_the_incomplete_index(monkeypatch):
    case = next(case for case in CASES if case.name == "raptor")
    store = FaultyKVStore({}, Fault())
    index = case.from_documents(DOCUMENTS[:2], storage_context=faulty_context(store))
    store.fault = OnceItIsKnown(store, "D2")
    with pytest.raises(InjectedError):
        index.insert(DOCUMENTS[2])
    monkeypatch.setattr("llama_index.ragkit.index.serving._held", {})  # as in a new process: in this one it is in use
    assert case.load(faulty_context(store)).unfinished == ["D2"]
    with pytest.raises(ConfigurationError, match="'D2'"):
        case.from_documents([DOCUMENTS[0], DOCUMENTS[3]], storage_context=faulty_context(store))
    with pytest.raises(ConfigurationError, match="summary_tokens"):
        case.from_documents(DOCUMENTS, storage_context=faulty_context(store), summary_tokens=31)
    index = case.from_documents(DOCUMENTS, storage_context=faulty_context(store))
    assert set(index.ref_doc_info) == {"D0", "D1", "D2", "D3"}


def test_two_complete_or_empty_indexes_of_one_context_stay_two(case: Case):
    context = StorageContext.from_defaults()
    first, second = (case.build(storage_context=context) for _ in range(2))
    first.insert_nodes(chunks("d", 3))
    second.insert_nodes(chunks("e", 3))
    third = case.from_documents(DOCUMENTS, storage_context=context)
    assert [set(index.ref_doc_info) for index in (first, second, third)] == [{"d"}, {"e"}, {"D0", "D1", "D2", "D3"}]


def test_what_is_unfinished_stays_so_until_it_is_written_or_deleted(case: Case):
    store = FaultyKVStore({}, Fault())
    index = case.from_documents(DOCUMENTS[:1], storage_context=faulty_context(store))
    store.fault = OnceItIsKnown(store, "D1")
    with pytest.raises(InjectedError):
        index.insert(DOCUMENTS[1])
    index.insert(DOCUMENTS[2])
    assert index.unfinished == ["D1"]
    assert index.index_struct.building
    loaded = case.load(faulty_context(store))
    loaded.insert(DOCUMENTS[3])
    assert loaded.unfinished == ["D1"]
    assert loaded.refresh_ref_docs(DOCUMENTS) == [False, True, False, False]
    assert loaded.unfinished == []
    assert not loaded.index_struct.building


def test_a_request_that_times_out_leaves_an_index_that_works(case: Case):
    """`asyncio.wait_for`, as a server does it: the embedding model does not answer in time."""

    class Slow(case.embed_model):  # type: ignore[name-defined, misc]
        async def _aget_text_embeddings(self, texts: list[str]) -> list[list[float]]:
            if any("Quillaja" in text for text in texts):
                await asyncio.sleep(60)
            return await super()._aget_text_embeddings(texts)

    index = case.from_documents(DOCUMENTS, embed_model=Slow())
    new = Document(text="Quillaja bark comes from Chile.", id_="D1")

    async def update() -> None:
        await asyncio.wait_for(index.aupdate_ref_doc(new), 0.2)

    with pytest.raises(asyncio.TimeoutError):
        asyncio.run(update())
    index.insert(Document(text="Konrad Zuse built the Plankalkul.", id_="E"))
    assert any("Plankalkul" in text for text, _ in ask(index, "Plankalkul"))
    index.delete_ref_doc("D1", delete_from_docstore=True)
    assert not any("number 1" in text or "Quillaja" in text for text, _ in ask(index))


@pytest.mark.parametrize(
    "value",
    [datetime.date(2026, 1, 2), {"a", "b"}, b"bytes", np.float32(1.0), [datetime.datetime(2026, 1, 2)], object()],
    ids=lambda value: type(value).__name__,
)
def test_metadata_that_cannot_be_stored_are_refused_before_anything_is_written(value: Any, tmp_path):
    index = TOY.build(chunks("d", 3))
    index.storage_context.persist(str(tmp_path))
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    for write in (
        lambda: index.insert(Document(text="words", id_="W", metadata={"fine": 1, "bad": value})),
        lambda: index.insert_nodes([TextNode(text="words", id_="W", metadata={"bad": value})]),
        lambda: index.refresh_ref_docs([Document(text="words", id_="W", metadata={"bad": value})]),
    ):
        with pytest.raises(ConfigurationError, match=r"'W'.*'bad'.*Nothing was changed"):
            write()
    index.storage_context.persist(str(tmp_path))
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_metadata_of_json_values_are_stored(case: Case, tmp_path):
    metadata = {"text": "a", "number": 1.5, "flag": True, "none": None, "list": [1, "b"], "dict": {"key": [None]}}
    index = case.build([TextNode(text="Otto Lindqvist founded glassworks.", id_="W", metadata=metadata)])
    assert index.docstore.get_document("W").metadata == metadata
    index.storage_context.persist(str(tmp_path))
    loaded = case.load(StorageContext.from_defaults(persist_dir=str(tmp_path)))
    assert loaded.docstore.get_document("W").metadata == metadata


def test_a_wrong_cache_is_refused_as_a_missing_one_is(tmp_path):
    index = TOY.build(chunks("d", 3), cache=tmp_path / "cache.db")
    index.storage_context.persist(str(tmp_path / "index"))

    def load(**kwargs: Any) -> Any:
        return TOY.load(StorageContext.from_defaults(persist_dir=str(tmp_path / "index")), **kwargs)

    for cache in ({}, {"cache": tmp_path / "another.db"}, {"cache": ExtractionCache()}):
        index = load(**cache)
        with pytest.raises(CacheRequiredError, match="Nothing was changed"):
            index.delete_ref_doc("d", delete_from_docstore=True)
        assert set(index.ref_doc_info) == {"d"}
    with pytest.raises(CacheRequiredError, match="another cache"):
        load(cache=tmp_path / "another.db").insert_nodes(chunks("e", 1))
    index = load(cache=tmp_path / "cache.db")
    index.delete_ref_doc("d", delete_from_docstore=True)
    assert index.ref_doc_info == {}
    index = load()
    index.forget_cache()  # it no longer exists
    index.delete_ref_doc("d", delete_from_docstore=True)
    assert index.ref_doc_info == {}
