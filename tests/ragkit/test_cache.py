"""The SQLite key-value store and the cache that counts users: complete, durable, shared, and forgetful."""

import asyncio
import multiprocessing
import os
import pickle
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from llama_index.core.storage.docstore.keyval_docstore import KVDocumentStore
from llama_index.core.storage.kvstore import SimpleKVStore
from llama_index.core.storage.kvstore.types import BaseKVStore

from llama_index.ragkit.cache import ExtractionCache, SQLiteKVStore, cache_key
from llama_index.ragkit.driver import Steps, arun_steps, gather, run_steps
from llama_index.ragkit.errors import ConcurrentWriteError, ConfigurationError, StorageError

CANARY = "Xylocopa-violacea-canary"


@pytest.fixture
def store(tmp_path: Path) -> SQLiteKVStore:
    return SQLiteKVStore(tmp_path / "folder" / "cache.db")


def on_disk(folder: Path, word: str = CANARY) -> list[str]:
    return [path.name for path in folder.rglob("*") if path.is_file() and word.encode() in path.read_bytes()]


# -- SQLiteKVStore -------------------------------------------------------------------------------------


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


def test_the_asynchronous_twins_do_the_same(store: SQLiteKVStore) -> None:
    async def use() -> None:
        await store.aput("k", {"a": 1})
        await store.aput_all([("l", {}), ("m", {})], batch_size=10)
        assert await store.aget("k") == {"a": 1}
        assert await store.aget_all() == {"k": {"a": 1}, "l": {}, "m": {}}
        assert await store.adelete("k") is True
        assert await store.adelete("k") is False
        assert await store.aupdate(["l", "x"], lambda old: {"old": old}) == [{"old": {}}, {"old": None}]
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
        store.update(["a", "b"], fail)
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
            store.update(["count"], lambda old: {"n": (old or {"n": 0})["n"] + 1})

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
from llama_index.ragkit.cache import SQLiteKVStore
store = SQLiteKVStore(sys.argv[1])
for i in range(100_000):
    store.put(str(i), {"text": "x" * 2000})
    print(i, flush=True)
"""


def test_a_killed_process_leaves_every_put_that_returned(tmp_path: Path) -> None:
    path = tmp_path / "cache.db"
    process = subprocess.Popen([sys.executable, "-c", KILLED, str(path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    for line in process.stdout:
        if int(line) == 30:
            break
    process.send_signal(signal.SIGKILL)
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


# -- ExtractionCache -----------------------------------------------------------------------------------


class Elsewhere(SimpleKVStore):
    """A store behind a network: its methods take a moment, and the two worlds must not be mixed."""

    def __init__(self) -> None:
        super().__init__()
        self.used: set[str] = set()

    def get(self, key: str, collection: str = "data") -> dict[str, Any] | None:
        self.used.add("sync")
        threading.Event().wait(0.001)
        return super().get(key, collection)

    async def aget(self, key: str, collection: str = "data") -> dict[str, Any] | None:
        self.used.add("async")
        await asyncio.sleep(0.001)
        return super().get(key, collection)

    async def aput(self, key: str, val: dict[str, Any], collection: str = "data") -> None:
        await asyncio.sleep(0.001)
        super().put(key, val, collection)


@pytest.fixture(params=["file", "memory", "simple", "elsewhere"])
def cache(request: pytest.FixtureRequest, tmp_path: Path) -> ExtractionCache:
    stores: dict[str, Callable[[], BaseKVStore | Path | None]] = {
        "file": lambda: tmp_path / "cache.db",
        "memory": lambda: None,
        "simple": SimpleKVStore,
        "elsewhere": Elsewhere,
    }
    return ExtractionCache(stores[request.param]())


@pytest.fixture(params=["sync", "async"])
def drive(request: pytest.FixtureRequest) -> Callable[[Steps[Any]], Any]:
    return run_steps if request.param == "sync" else lambda steps: asyncio.run(arun_steps(steps))


def test_an_entry_stays_until_its_last_user_releases_it(cache: ExtractionCache, drive: Any) -> None:
    drive(cache.put("k", {"q": ["é", 1]}, "index-a:n1"))
    assert drive(cache.get("k", "index-b:n1")) == {"q": ["é", 1]}
    assert drive(cache.get("k", "index-b:n1")) == {"q": ["é", 1]}
    drive(cache.release("index-a:n1", ["k"]))
    drive(cache.release("a stranger", ["k", "no such key"]))
    assert drive(cache.get("k", "index-b:n1")) == {"q": ["é", 1]}
    drive(cache.release("index-b:n1", ["k", "k"]))
    assert drive(cache.get("k", "index-c:n1")) is None


def test_looking_for_what_is_not_there_leaves_nothing(cache: ExtractionCache, drive: Any) -> None:
    assert drive(cache.get("k", "u")) is None
    drive(cache.put("k", "v", "w"))
    drive(cache.release("w", ["k"]))
    assert drive(cache.get("k", "w")) is None


def test_a_second_put_replaces_the_value_and_keeps_the_users(cache: ExtractionCache, drive: Any) -> None:
    drive(cache.put("k", 1, "u"))
    drive(cache.put("k", 2, "v"))
    drive(cache.release("v", ["k"]))
    assert drive(cache.get("k", "u")) == 2


def test_all_of_a_user_s_entries_can_be_released_without_their_keys(cache: ExtractionCache, drive: Any) -> None:
    for key in "abc":
        drive(cache.put(key, key, "u"))
    drive(cache.get("b", "v"))
    drive(cache.release("u"))
    assert [drive(cache.get(key, "w")) for key in "abc"] == [None, "b", None]


def test_values_that_callers_change_stay_as_they_were(cache: ExtractionCache, drive: Any) -> None:
    drive(cache.put("k", {"q": [1]}, "u"))
    drive(cache.get("k", "u"))["q"].append(2)
    assert drive(cache.get("k", "u")) == {"q": [1]}


def test_many_workers_lose_no_user(cache: ExtractionCache, drive: Any) -> None:
    users = [f"user-{i}" for i in range(24)]
    drive(cache.put("k", "v", "first"))
    drive(gather([partial(cache.get, "k", user) for user in users], num_workers=8))
    drive(gather([partial(cache.release, user, ["k"]) for user in [*users[1:], "first"]], num_workers=8))
    assert drive(cache.get("k", users[0])) == "v"
    drive(cache.release(users[0], ["k"]))
    assert drive(cache.get("k", "late")) is None


def test_two_caches_over_one_store_lose_no_user() -> None:
    store = Elsewhere()
    caches = [ExtractionCache(store), ExtractionCache(store)]
    run_steps(caches[0].put("k", "v", "first"))
    jobs = [partial(caches[i % 2].get, "k", f"user-{i}") for i in range(16)]
    asyncio.run(arun_steps(gather(jobs, num_workers=8)))
    assert store.used == {"sync", "async"}
    for i in range(16):
        run_steps(caches[0].release(f"user-{i}", ["k"]))
    assert run_steps(caches[1].get("k", "first")) == "v"
    run_steps(caches[1].release("first", ["k"]))
    assert store.get_all("ragkit_extractions") == {}


def test_each_world_uses_its_own_methods_of_a_store() -> None:
    for drive, used in ((run_steps, "sync"), (lambda steps: asyncio.run(arun_steps(steps)), "async")):
        store = Elsewhere()
        drive(ExtractionCache(store).get("k", "u"))
        assert store.used == {used}


def test_a_synchronous_use_that_would_wait_for_its_own_loop_is_refused() -> None:
    store = Elsewhere()
    cache = ExtractionCache(store)

    async def both() -> None:
        other = asyncio.ensure_future(arun_steps(cache.get("k", "u")))
        await asyncio.sleep(0)  # it holds the lock and awaits the store
        with pytest.raises(ConcurrentWriteError):
            run_steps(cache.get("k", "v"))
        await other

    asyncio.run(both())


def _share(path: Path, worker: int) -> None:
    store = SQLiteKVStore(path)
    cache = ExtractionCache(store)
    for i in range(20):
        store.update(["count"], lambda old: {"n": (old or {"n": 0})["n"] + 1})
        run_steps(cache.put("k", "v", f"{worker}-{i}"))
        run_steps(cache.release(f"{worker}-{i}", ["k"]))
    run_steps(cache.put("k", "v", f"{worker}-stays"))


def test_processes_that_start_together_on_one_new_file_lose_nothing(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    path = tmp_path / "new.db"
    workers = [context.Process(target=_share, args=(path, i)) for i in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0] * 3
    store = SQLiteKVStore(path)
    assert store.get("count") == {"n": 60}
    (entry,) = store.get_all("ragkit_extractions").values()
    assert sorted(entry["users"]) == ["0-stays", "1-stays", "2-stays"]


def test_what_is_released_is_gone_from_the_bytes_of_every_file(tmp_path: Path, drive: Any) -> None:
    cache = ExtractionCache(tmp_path / "cache.db")
    long = " ".join([CANARY] * 3000)  # more than a page
    for i in range(20):
        drive(cache.put(f"kept-{i}", f"kept {i}", "u"))
        drive(cache.put(f"gone-{i}", {"text": f"{CANARY} {i}", "long": long if i == 7 else ""}, "u"))
    drive(cache.put("gone-3", f"replaced, once {CANARY}", "u"))
    drive(cache.put("gone-3", "replaced", "u"))
    assert on_disk(tmp_path)
    drive(cache.release("u", [f"gone-{i}" for i in range(20)]))
    assert on_disk(tmp_path) == []
    assert drive(cache.get("kept-19", "u")) == "kept 19"


def test_a_delete_from_the_store_leaves_no_bytes_either(tmp_path: Path) -> None:
    store = SQLiteKVStore(tmp_path / "cache.db")
    store.put("k", {"text": CANARY})
    store.put(CANARY, {})
    assert on_disk(tmp_path)
    store.delete("k")
    store.delete(CANARY)
    assert on_disk(tmp_path) == []


def test_a_reader_elsewhere_delays_the_forgetting_and_does_not_break_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("llama_index.ragkit.sqlite_store._BUSY_SECONDS", 0.1)
    store = SQLiteKVStore(tmp_path / "cache.db")
    store.put("k", {"text": CANARY})
    reader = sqlite3.connect(tmp_path / "cache.db", isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT * FROM entries").fetchall()
    assert store.delete("k")
    assert "being read elsewhere" in caplog.text
    reader.close()
    store.put("l", {})
    store.delete("l")
    assert on_disk(tmp_path) == []


def test_keys_go_by_every_part_and_by_where_parts_end() -> None:
    keys = {cache_key("a", "b"), cache_key("ab"), cache_key("ab", ""), cache_key("b", "a"), cache_key('a", "b')}
    assert len(keys) == 5
    assert cache_key("é\ud800") == cache_key("é\ud800")
    assert len(cache_key()) == 64


def test_what_is_no_cache_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="not a int"):
        ExtractionCache(7)  # type: ignore[arg-type]
