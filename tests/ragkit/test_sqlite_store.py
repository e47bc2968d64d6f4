"""The SQLite key-value store: complete, durable, shared by threads and processes, and forgetful."""

import asyncio
import os
import pickle
import re
import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from llama_index.core.storage.docstore.keyval_docstore import KVDocumentStore
from llama_index.core.storage.kvstore import SimpleKVStore
from tests.processes import Worker

from llama_index.ragkit.errors import StorageError
from llama_index.ragkit.llm.cache import ExtractionCache, SQLiteKVStore
from llama_index.ragkit.steps import run_steps

CANARY = "Xylocopa-violacea-canary"


@pytest.fixture
def store(tmp_path: Path) -> SQLiteKVStore:
    return SQLiteKVStore(tmp_path / "folder" / "cache.db")


def on_disk(folder: Path, word: str = CANARY) -> list[str]:
    return [path.name for path in folder.rglob("*") if path.is_file() and word.encode() in path.read_bytes()]


def test_the_store_does_what_a_kv_store_does(store: SQLiteKVStore) -> None:
    assert store.get("k") is None
    assert store.get_all() == {}
    assert store.delete("k") is False
    store.put("k", {"a": [1, None, "é"]})
    store.put("k", {"b": 2}, collection="other")
    store.put_all([("l", {}), ("m", {"": ""}), ("k", {"a": 0})], batch_size=2)
    assert store.get("k") == {"a": 0}
    assert store.get("k", collection="other") == {"b": 2}
    assert store.get_all() == {"k": {"a": 0}, "l": {}, "m": {"": ""}}
    assert store.delete("k") is True
    assert store.get("k") is None
    assert store.get("k", collection="other") == {"b": 2}


def test_a_file_that_is_removed_or_replaced_while_it_is_in_use_loses_no_write(
    store: SQLiteKVStore, tmp_path: Path
) -> None:
    store.put("k", {"a": 1})
    for path in (tmp_path / "folder").iterdir():
        path.unlink()
    with pytest.raises(StorageError, match=r"cache\.db was removed"):
        store.put("l", {"a": 2})
    again = SQLiteKVStore(tmp_path / "folder" / "cache.db")
    store.put("l", {"a": 2})
    assert store.get_all() == again.get_all() == {"l": {"a": 2}}


def test_the_asynchronous_twins_do_the_same(store: SQLiteKVStore) -> None:
    async def use() -> None:
        await store.aput("k", {"a": 1})
        await store.aput_all([("l", {}), ("m", {})], batch_size=10)
        assert await store.aget("k") == {"a": 1}
        assert await store.aget_all() == {"k": {"a": 1}, "l": {}, "m": {}}
        assert await store.adelete("k") is True
        assert await store.adelete("k") is False
        assert await store.aupdate({key: lambda old: {"old": old} for key in "lx"}) == {
            "l": {"old": {}},
            "x": {"old": None},
        }
        assert await store.adelete("x") is True

    asyncio.run(use())
    asyncio.run(use())  # nothing is bound to an event loop


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.tuples(st.sampled_from(["put", "delete"]), st.text(max_size=2), st.sampled_from(["c", "d"]), st.integers()),
        max_size=12,
    )
)
def test_the_store_behaves_like_core_s_in_memory_store(operations: list[tuple[str, str, str, int]]) -> None:
    ours, theirs = SQLiteKVStore(":memory:"), SimpleKVStore()
    for name, key, collection, number in operations:
        for one in (ours, theirs):
            if name == "put":
                one.put(key, {"n": number}, collection)
            else:
                one.delete(key, collection)
    for collection in ("c", "d"):
        assert ours.get_all(collection) == theirs.get_all(collection)


def test_values_are_copies(store: SQLiteKVStore) -> None:
    value = {"a": [1]}
    store.put("k", value)
    value["a"].append(2)
    store.get("k")["a"].append(3)  # type: ignore[index]
    assert store.get("k") == {"a": [1]}


def test_a_batch_is_written_whole_or_not_at_all(store: SQLiteKVStore) -> None:
    with pytest.raises(TypeError):
        store.put_all([("a", {}), ("b", {"x": object()})])
    assert store.get_all() == {}

    def fail(old: Any) -> dict[str, Any]:
        if old == {"n": 2}:
            raise RuntimeError("half-way")
        return {"n": 0}

    store.put_all([("a", {"n": 1}), ("b", {"n": 2})])
    with pytest.raises(RuntimeError):
        store.update({"a": fail, "b": fail})
    assert store.get_all() == {"a": {"n": 1}, "b": {"n": 2}}


def test_it_can_hold_a_document_store_of_llama_index(store: SQLiteKVStore) -> None:
    from llama_index.core.schema import TextNode

    docstore = KVDocumentStore(store)
    docstore.add_documents([TextNode(id_="n", text="hello")])
    assert docstore.get_node("n").get_content() == "hello"


def test_many_threads_lose_no_write(store: SQLiteKVStore) -> None:
    def work(worker: int) -> None:
        for i in range(20):
            store.put(f"{worker}-{i}", {"n": i})
            store.update({"count": lambda old: {"n": (old or {"n": 0})["n"] + 1}})

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    assert store.get("count") == {"n": 160}
    assert len(store.get_all()) == 161


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_process_uses_a_connection_of_its_own(store: SQLiteKVStore) -> None:
    store.put("before", {})
    child = os.fork()
    if child == 0:
        try:
            store.put("child", {})
            os._exit(0)
        except BaseException:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    store.put("after", {})
    assert sorted(store.get_all()) == ["after", "before", "child"]


KILLED = """
import sys
from llama_index.ragkit.llm.cache import SQLiteKVStore
store = SQLiteKVStore(sys.argv[1])
for i in range(100_000):
    store.put(str(i), {"text": "x" * 2000})
    print(i, flush=True)
"""


def test_a_killed_process_leaves_every_put_that_returned(tmp_path: Path) -> None:
    path = tmp_path / "cache.db"
    process = Worker(KILLED, str(path))
    for line in process.stdout:
        if int(line) == 30:
            break
    process.kill()
    process.wait()
    kept = SQLiteKVStore(path).get_all()
    assert {str(i) for i in range(31)} <= set(kept)
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


@pytest.mark.parametrize("what", ["a folder", "another file", "below a file", "no name"])
def test_paths_that_cannot_be_used_are_refused_at_once(tmp_path: Path, what: str) -> None:
    (tmp_path / "text").write_text("This is no database. " * 100)
    paths = {
        "a folder": tmp_path,
        "another file": tmp_path / "text",
        "below a file": tmp_path / "text" / "c.db",
        "no name": "",
    }
    with pytest.raises(StorageError, match="cannot be used"):
        ExtractionCache(paths[what])


def test_a_closed_store_opens_again(store: SQLiteKVStore) -> None:
    store.put("k", {})
    store.close()
    store.close()
    assert store.get("k") == {}


def test_a_store_travels_to_another_process_as_its_path(store: SQLiteKVStore) -> None:
    store.put("k", {"a": 1})
    assert pickle.loads(pickle.dumps(store)).get("k") == {"a": 1}
    assert run_steps(pickle.loads(pickle.dumps(ExtractionCache(store))).get("k", "u")) is None


def test_a_delete_from_the_store_leaves_no_bytes_either(tmp_path: Path) -> None:
    store = SQLiteKVStore(tmp_path / "cache.db")
    store.put("k", {"text": CANARY})
    store.put(CANARY, {})
    assert on_disk(tmp_path)
    store.delete("k")
    store.delete(CANARY)
    assert on_disk(tmp_path) == []


def statements(store: SQLiteKVStore) -> list[str]:
    """A list to which the statements that the store runs are appended."""
    found: list[str] = []
    store._open().set_trace_callback(found.append)
    return found


def test_many_keys_are_deleted_in_one_transaction_with_one_checkpoint(store: SQLiteKVStore) -> None:
    store.put_all([(str(i), {"n": i}) for i in range(1000)])
    store.put("0", {}, collection="other")
    run = statements(store)
    assert store.delete_all([str(i) for i in range(990)] + ["unknown"]) == 990
    assert run.count("COMMIT") == 1
    assert sum("checkpoint" in statement for statement in run) == 1
    assert list(store.get_all()) == [str(i) for i in range(990, 1000)]
    assert store.get("0", "other") == {}
    assert asyncio.run(store.adelete_all(["990", "unknown"])) == 1


def test_a_delete_of_many_keys_is_whole_or_not_at_all(store: SQLiteKVStore) -> None:
    store.put_all([("a", {}), ("b", {})])

    def keys() -> Any:
        yield "a"
        raise RuntimeError("half-way")

    with pytest.raises(RuntimeError):
        store.delete_all(keys())
    assert store.get_all() == {"a": {}, "b": {}}


@pytest.mark.parametrize("seed", range(12))
def test_no_byte_of_deleted_or_replaced_values_remains_whatever_the_order_and_sizes(seed: int, tmp_path: Path) -> None:
    """SQLite copies rows between pages; `secure_delete` alone leaves such copies."""
    random = Random(seed)
    store = SQLiteKVStore(tmp_path / "cache.db")
    longest = 10 ** random.uniform(1, 4.3)
    live: dict[str, str] = {}
    for step in range(8):
        keys = {f"{random.choice('abc')}{random.randrange(300)}" for _ in range(random.randrange(1, 120))}
        new = {key: f"<{CANARY}-{step}-{key}>" for key in sorted(keys)}
        store.put_all([(k, {"t": tag * 2 + "x" * int(random.uniform(0, longest))}) for k, tag in new.items()])
        live.update(new)
        doomed = random.sample(sorted(live), random.randrange(1, len(live)))
        assert store.delete_all(doomed) == len(doomed)
        for key in doomed:
            del live[key]
        data = b"".join(path.read_bytes() for path in tmp_path.iterdir())
        found = {text.decode() for text in re.findall(rf"<{CANARY}-\d+-[abc]\d+>".encode(), data)}
        assert found == set(live.values())
        assert sorted(store.get_all()) == sorted(live)


def test_a_file_of_deleted_values_shrinks(tmp_path: Path) -> None:
    path = tmp_path / "cache.db"
    store = SQLiteKVStore(path)
    for part in range(12):
        store.put_all([(str(i), {"part": part, "text": "x" * 1000}) for i in range(500)])
        store.put("kept", {"part": part})
        store.delete_all([str(i) for i in range(500)])
    assert path.stat().st_size < 3_000_000  # more than 6 MB were written
    assert store.get_all() == {"kept": {"part": 11}}


DELETED = """
import os, sys
from llama_index.ragkit.llm.cache import SQLiteKVStore
store = SQLiteKVStore(sys.argv[1])
store.put_all([(str(i), {"text": sys.argv[2]}) for i in range(50)])
store.clean = lambda: os._exit(9)
store.delete_all([str(i) for i in range(50)])
"""


def test_a_process_that_dies_between_delete_and_cleaning_is_cleaned_up_after(tmp_path: Path) -> None:
    path = tmp_path / "cache.db"
    assert Worker(DELETED, str(path), CANARY).wait() == 9
    assert on_disk(tmp_path)
    assert SQLiteKVStore(path).get_all() == {}
    assert on_disk(tmp_path) == []


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("llama_index.ragkit.llm.sqlite_kvstore._READER_SECONDS", 0.1)
    monkeypatch.setattr("llama_index.ragkit.llm.sqlite_kvstore._RETRY_SECONDS", 0.02)


def reading(path: Path) -> sqlite3.Connection:
    reader = sqlite3.connect(path, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT * FROM data").fetchall()
    return reader


def wait_until_clean(store: SQLiteKVStore) -> None:
    end = time.monotonic() + 30
    while store._cleaner is not None and time.monotonic() < end:
        time.sleep(0.02)


@pytest.mark.usefixtures("impatient")
def test_a_reader_elsewhere_delays_the_forgetting_until_it_ends(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = SQLiteKVStore(tmp_path / "cache.db")
    store.put("k", {"text": CANARY})
    reader = reading(tmp_path / "cache.db")
    assert store.delete("k")
    assert store.clean() is False
    assert caplog.text.count("being read elsewhere") == 1
    assert on_disk(tmp_path)
    store.put("l", {})  # other work goes on
    assert store.get_all() == {"l": {}}
    reader.execute("COMMIT")
    wait_until_clean(store)
    assert on_disk(tmp_path) == []
    assert store.clean() is True
    reader.close()


@pytest.mark.usefixtures("impatient")
def test_a_store_opened_beside_a_reader_is_cleaned_when_it_ends(tmp_path: Path) -> None:
    path = tmp_path / "cache.db"
    first = SQLiteKVStore(path)
    first.put("k", {"text": CANARY})
    reader = reading(path)
    first.delete_all(["k"], clean=False)
    second = SQLiteKVStore(path)
    assert second.get("k") is None
    reader.close()
    wait_until_clean(second)
    assert on_disk(tmp_path) == []


@pytest.mark.usefixtures("impatient")
def test_a_store_closed_while_a_reader_is_elsewhere_is_cleaned_at_its_next_use(tmp_path: Path) -> None:
    path = tmp_path / "cache.db"
    store = SQLiteKVStore(path)
    store.put("k", {"text": CANARY})
    reader = reading(path)
    store.delete("k")
    store.close()
    wait_until_clean(store)
    reader.close()
    assert store.get("k") is None
    assert on_disk(tmp_path) == []
