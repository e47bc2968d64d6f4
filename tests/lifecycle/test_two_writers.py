"""Two writers of one index: what either wrote is kept, or the loss is reported."""

import copy
import multiprocessing
import os
from typing import Any

import pytest
from llama_index.core import Document, StorageContext
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.storage.index_store import SimpleIndexStore
from tests.cases import CASES, Case, ask, chunks

from llama_index.ragkit.errors import ConcurrentWriteError, HalfWrittenError
from llama_index.ragkit.processes import is_running, this_process
from llama_index.ragkit.testing import Fault, FaultyKVStore, faulty_context

TOY = CASES[0]


def stores() -> FaultyKVStore:
    return FaultyKVStore({}, Fault())


def records(store: FaultyKVStore) -> Any:
    """What is stored but for the struct, which core stores again whenever an index is loaded."""
    return {name: dict(rows) for name, rows in store.data.items() if not name.startswith("index_store")}


def test_a_writer_that_is_behind_is_refused_before_it_changes_anything(case: Case):
    store = stores()
    case.build(chunks("d", 3), storage_context=faulty_context(store))
    one, other = (case.load(faulty_context(store)) for _ in range(2))
    one.insert_nodes(chunks("e", 2))
    stored = copy.deepcopy(store.data)
    for write in (
        lambda: other.insert_nodes(chunks("f", 2)),
        lambda: other.delete_ref_doc("d", delete_from_docstore=True),
        lambda: other.refresh_ref_docs([Document(text="new", id_="g")]),
    ):
        with pytest.raises(ConcurrentWriteError, match="load_index_from_storage"):
            write()
        assert store.data == stored
    again = case.load(faulty_context(store))
    again.insert_nodes(chunks("f", 2))
    assert {"d", "e", "f"} <= set(again.ref_doc_info)


def test_a_writer_beside_another_is_refused_while_that_one_writes():
    store = stores()
    TOY.build(chunks("d", 3), storage_context=faulty_context(store))
    other = TOY.load(faulty_context(store))
    writer = TOY.load(faulty_context(store))
    refused: list[Any] = []

    class Between(Fault):
        def step(self) -> None:
            super().step()
            if '"process"' in str(store.data) and not refused:
                store.fault = Fault()
                with pytest.raises(ConcurrentWriteError, match=str(os.getpid())) as caught:
                    other.insert_nodes(chunks("f", 2))
                refused.append(caught.value)

    store.fault = Between()
    writer.insert_nodes(chunks("e", 2))
    assert refused
    assert set(writer.ref_doc_info) == {"d", "e"}


def test_a_write_that_another_has_overtaken_says_so():
    """Two machines: neither can tell whether the other's write goes on."""
    store = stores()
    TOY.build(chunks("d", 3), storage_context=faulty_context(store))
    writer = TOY.load(faulty_context(store))
    meta = next(name for name in store.data if name.endswith("/meta"))

    class Overtaken(Fault):
        def step(self) -> None:
            super().step()
            if '"process"' in store.data[meta]["state"] and '"done": false' in str(store.data):
                mine, another = '"writer": {"token": "', '"writer": {"token": "x'
                store.data[meta]["state"] = store.data[meta]["state"].replace(mine, another)

    store.fault = Overtaken()
    with pytest.raises(ConcurrentWriteError, match="refresh"):
        writer.insert_nodes(chunks("e", 2))


def test_stores_of_two_writers_are_not_taken_for_one_index(case: Case, tmp_path):
    """Of equal generations, but not of one write: core's own persist writes file by file."""
    case.build(chunks("d", 3)).storage_context.persist(str(tmp_path / "one"))
    first, second = (StorageContext.from_defaults(persist_dir=str(tmp_path / "one")) for _ in range(2))
    case.load(first).insert_nodes(chunks("e", 2))
    case.load(second).insert_nodes(chunks("f", 2))
    first.persist(str(tmp_path / "one"))
    second.persist(str(tmp_path / "two"))
    mixed = StorageContext.from_defaults(persist_dir=str(tmp_path / "one"))
    mixed.docstore = SimpleDocumentStore.from_persist_dir(str(tmp_path / "two"))
    with pytest.raises(HalfWrittenError, match="token"):
        case.load(mixed)
    mixed = StorageContext.from_defaults(persist_dir=str(tmp_path / "one"))
    mixed.docstore = SimpleDocumentStore.from_persist_dir(str(tmp_path / "two"))
    mixed.index_store = SimpleIndexStore.from_persist_dir(str(tmp_path / "two"))
    with pytest.raises(HalfWrittenError, match="generation"):
        case.load(mixed)


def test_an_index_that_is_opened_while_another_writes_repairs_nothing():
    store = stores()
    TOY.build(chunks("d", 3), storage_context=faulty_context(store))
    writer = TOY.load(faulty_context(store))
    opened: list[Any] = []

    class Opens(Fault):
        def step(self) -> None:
            super().step()
            if self.calls % 3 == 0:
                store.fault = Fault()
                before = records(store)
                opened.append(TOY.load(faulty_context(store)))
                assert ask(opened[-1])
                assert records(store) == before
                store.fault = self

    store.fault = Opens()
    writer.insert_nodes(chunks("e", 2))
    store.fault = Fault()
    assert len(opened) > 3
    assert ask(TOY.load(faulty_context(store))) == ask(TOY.build([*chunks("d", 3), *chunks("e", 2)]))


def _process() -> dict[str, str]:
    return this_process()


def test_whether_a_process_runs():
    assert is_running(this_process())
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        other = pool.apply(_process)
        assert is_running(other)
    assert is_running(other) is False
    assert is_running({**this_process(), "started": "0"}) is False, "another process may get the number"
    assert is_running({**other, "machine": "another"}) is None


def test_a_reader_that_loads_while_a_writer_commits_breaks_nothing():
    """Core stores the struct that it has read again at the end of a load, over the one of the commit."""
    store = stores()
    TOY.build(chunks("d", 3), storage_context=faulty_context(store))
    writer = TOY.load(faulty_context(store))
    stale = copy.deepcopy(store.data["index_store/data"])
    writer.insert_nodes(chunks("e", 2))
    store.data["index_store/data"] = stale
    loaded = TOY.load(faulty_context(store))
    assert loaded.index_struct.counters["chunks"] == 5
    loaded.insert_nodes(chunks("f", 1))
    assert set(loaded.ref_doc_info) == {"d", "e", "f"}
