"""Deletes of many chunks on an SQLite file: few transactions, no byte left, repeatable wherever they were cut off."""

import asyncio
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from llama_index.core import StorageContext
from llama_index.core.schema import Document
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.storage.docstore.keyval_docstore import KVDocumentStore
from llama_index.core.storage.docstore.types import BaseDocumentStore
from llama_index.core.storage.index_store.keyval_index_store import KVIndexStore
from tests.cases import Case, ask, chunks

from llama_index.ragkit.llm.cache import SQLiteKVStore
from llama_index.ragkit.steps import arun_steps, run_steps
from llama_index.ragkit.storage.records import Records, delete_from_docstore

CANARY = "Kilimanjaro"


def context_on(kv: SQLiteKVStore) -> StorageContext:
    return StorageContext.from_defaults(docstore=KVDocumentStore(kv), index_store=KVIndexStore(kv))


def transactions(kv: SQLiteKVStore) -> list[str]:
    """A list to which "COMMIT" is appended at the end of each transaction, and the statement of each checkpoint."""
    found: list[str] = []
    kv._open().set_trace_callback(lambda t: found.append(t) if "COMMIT" in t or "checkpoint" in t else None)
    return found


def on_disk(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir() if CANARY.encode() in path.read_bytes()]


@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
def test_the_transactions_of_a_delete_do_not_grow_with_the_chunks(case: Case, asynchronous: bool, tmp_path: Path):
    counts = []
    for number in (20, 60):
        folder = tmp_path / str(number)
        kv = SQLiteKVStore(folder / "store.db")
        index = case.build(chunks("e", 6), storage_context=context_on(kv))
        doomed = chunks("d", number)
        for node in doomed:
            node.text = f"{CANARY} {node.node_id}. {node.text}"
        index.insert_nodes(doomed)
        kv.clean()
        assert on_disk(folder)
        seen = transactions(kv)
        if asynchronous:
            asyncio.run(index.adelete_ref_doc("d", delete_from_docstore=True))
        else:
            index.delete_ref_doc("d", delete_from_docstore=True)
        counts.append(len(seen))
        assert on_disk(folder) == []
        assert set(index.ref_doc_info) == {"e"}
        assert ask(index)
    assert counts[1] <= counts[0] + 15  # what a method derives from more chunks may take some more calls
    assert counts[1] < 60


class StoppedError(RuntimeError):
    """Stands for the end of the process."""


def stopping_at(kv: SQLiteKVStore, call: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the `call`-th write of the store, counted from 0, be the last: it and all later ones fail."""
    calls = itertools.count()

    def stopping(method: Callable[..., Any]) -> Callable[..., Any]:
        def step(*args: Any, **kwargs: Any) -> Any:
            if next(calls) >= call:
                raise StoppedError
            return method(*args, **kwargs)

        return step

    for name in ("put_all", "delete_all", "clean"):
        monkeypatch.setattr(kv, name, stopping(getattr(kv, name)))


def filled(kv: SQLiteKVStore) -> BaseDocumentStore:
    docstore = KVDocumentStore(kv)
    for name in ("d", "e"):
        docstore.add_documents([Document(id_=name, text=f"{CANARY} whole {name}")])
        docstore.set_document_hash(name, "hash")
        nodes = chunks(name, 5)
        for node in nodes:
            node.text = f"{CANARY} {node.text}" if name == "d" else node.text
        docstore.add_documents(nodes)
    docstore.delete_document("e")
    return docstore


def test_a_document_can_be_deleted_wherever_an_earlier_delete_was_cut_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    cut = 0
    for call in range(20):
        path = tmp_path / str(call) / "store.db"
        kv = SQLiteKVStore(path)
        docstore = filled(kv)
        with monkeypatch.context() as patch:
            stopping_at(kv, call, patch)
            try:
                run_steps(delete_from_docstore(docstore, [], ["d"]))
            except StoppedError:
                cut += 1
        kv.close()
        kv = SQLiteKVStore(path)
        docstore = KVDocumentStore(kv)
        # What names the document goes last: as long as anything of it is left, it is found.
        held = {key: value for key, value in docstore.docs.items() if key.startswith("d")}
        assert not held or docstore.get_ref_doc_info("d") is not None
        run_steps(delete_from_docstore(docstore, [], ["d"]))
        assert on_disk(path.parent) == []
        assert sorted(docstore.docs) == [f"e-{i}" for i in range(5)]
        assert docstore.get_all_document_hashes().keys().isdisjoint({"d"})
        assert docstore.get_ref_doc_info("d") is None
        assert len(docstore.get_ref_doc_info("e").node_ids) == 5
    assert 4 <= cut < 20


@pytest.mark.parametrize("kind", ["sqlite", "memory"])
def test_single_nodes_leave_the_entry_of_their_document(kind: str, tmp_path: Path):
    docstore = SimpleDocumentStore() if kind == "memory" else KVDocumentStore(SQLiteKVStore(tmp_path / "store.db"))
    docstore.add_documents(chunks("d", 4))
    run_steps(delete_from_docstore(docstore, ["d-1", "d-3", "unknown"], []))
    assert docstore.get_ref_doc_info("d").node_ids == ["d-0", "d-2"]
    asyncio.run(arun_steps(delete_from_docstore(docstore, ["d-0", "d-2"], [])))
    assert docstore.get_ref_doc_info("d") is None
    assert docstore.docs == {}


def two_deletes(records: Records):
    yield from records.delete("a", ["k"])
    yield from records.delete("b", ["k"])


def test_a_write_cleans_the_file_once(tmp_path: Path):
    kv = SQLiteKVStore(tmp_path / "store.db")
    records = Records(KVDocumentStore(kv), "index")
    for wrapped, checkpoints in ((False, 2), (True, 1)):
        for name in "ab":
            run_steps(records.put(name, [("k", {"text": CANARY})]))
        seen = transactions(kv)
        run_steps(records.cleaned_once(two_deletes(records)) if wrapped else two_deletes(records))
        assert sum("checkpoint" in statement for statement in seen) == checkpoints
        assert on_disk(tmp_path) == []


@pytest.mark.parametrize("how", ["fails", "is cancelled"])
def test_a_write_that_ends_early_cleans_the_file_as_well(how: str, tmp_path: Path):
    kv = SQLiteKVStore(tmp_path / "store.db")
    records = Records(KVDocumentStore(kv), "index")
    run_steps(records.put("a", [("k", {"text": CANARY})]))

    def write():
        yield from records.delete("a", ["k"])
        if how == "fails":
            raise StoppedError
        yield from records.get("a", "k")

    steps = records.cleaned_once(write())
    if how == "fails":
        with pytest.raises(StoppedError):
            run_steps(steps)
    else:
        next(steps).run()  # the delete
        steps.send(1)
        steps.close()
    assert on_disk(tmp_path) == []
    run_steps(records.put("a", [("k", {"text": CANARY})]))
    run_steps(records.delete("a", ["k"]))  # and the next delete cleans by itself again
    assert on_disk(tmp_path) == []


def test_replaced_values_leave_the_log_with_the_write_that_replaced_them(tmp_path: Path):
    kv = SQLiteKVStore(tmp_path / "store.db")
    records = Records(KVDocumentStore(kv), "index")
    run_steps(records.put("a", [("k", {"text": CANARY})]))
    run_steps(records.cleaned_once(records.put("a", [("k", {"text": "new"})])))
    assert on_disk(tmp_path) == []
