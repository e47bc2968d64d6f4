"""The cache that counts users: none is lost, and nothing stays without one."""

import asyncio
import multiprocessing
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from llama_index.core.storage.kvstore import SimpleKVStore
from llama_index.core.storage.kvstore.types import BaseKVStore

from llama_index.ragkit.errors import ConcurrentWriteError, ConfigurationError
from llama_index.ragkit.llm.cache import ExtractionCache, SQLiteKVStore, cache_key
from llama_index.ragkit.steps import arun_steps, gather, run_steps

CANARY = "Xylocopa-violacea-canary"


def on_disk(folder: Path, word: str = CANARY) -> list[str]:
    return [path.name for path in folder.rglob("*") if path.is_file() and word.encode() in path.read_bytes()]


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


def test_many_users_are_released_at_once_each_from_its_own_entries(cache: ExtractionCache, drive: Any) -> None:
    for key in "abc":
        for user in "uv":
            drive(cache.put(key, key, user))
    drive(cache.release_many({"u": ["a", "b"], "v": iter(["b", "c", "c"]), "w": [], "x": ["a", "nothing"]}))
    assert [drive(cache.get(key, "v")) for key in "abc"] == ["a", None, "c"]
    drive(cache.release_many({"v": "abc"}))
    assert [drive(cache.get(key, "w")) for key in "abc"] == [None, None, "c"]


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
        while not store.used:
            await asyncio.sleep(0)
        # It holds the lock and awaits the store.
        with pytest.raises(ConcurrentWriteError):
            run_steps(cache.get("k", "v"))
        await other

    asyncio.run(both())


def _share(path: Path, worker: int) -> None:
    store = SQLiteKVStore(path)
    cache = ExtractionCache(store)
    for i in range(20):
        store.update({"count": lambda old: {"n": (old or {"n": 0})["n"] + 1}})
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


def test_threads_that_open_a_new_file_at_once_all_can(tmp_path: Path) -> None:
    """SQLite refuses all but one of those who change a new file to a write-ahead log at once; one file in forty."""
    for n in range(60):
        path, together = tmp_path / f"{n}.db", threading.Barrier(8)

        def write(i: int, path: Path = path, together: threading.Barrier = together) -> None:
            together.wait()
            SQLiteKVStore(path).put(str(i), {"by": i})

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(write, range(8)))  # raises what a thread raised
        assert len(SQLiteKVStore(path).get_all()) == 8


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


def test_keys_go_by_every_part_and_by_where_parts_end() -> None:
    keys = {cache_key("a", "b"), cache_key("ab"), cache_key("ab", ""), cache_key("b", "a"), cache_key('a", "b')}
    assert len(keys) == 5
    assert cache_key("é\ud800") == cache_key("é\ud800")
    assert len(cache_key()) == 64


def test_what_is_no_cache_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="not a int"):
        ExtractionCache(7)  # type: ignore[arg-type]
