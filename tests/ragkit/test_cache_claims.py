"""Claims of writes in a cache: what a write that died has bought is found and released."""

import multiprocessing
import os
import time
from pathlib import Path
from typing import Any

import pytest
from llama_index.core.storage.kvstore import SimpleKVStore

from llama_index.ragkit import ExtractionCache
from llama_index.ragkit.llm.cache import Claims, SQLiteKVStore
from llama_index.ragkit.processes import this_process
from llama_index.ragkit.steps import Steps, run_steps


def entries(path: Path) -> dict[str, Any]:
    return SQLiteKVStore(path).get_all("ragkit_extractions")


def buy(cache: ExtractionCache, prefix: str, *keys: str) -> Steps[None]:
    """What a write does for each key: ask the cache, then the model."""
    for key in keys:
        if (yield from cache.get(key, f"{prefix}n-{key}")) is None:
            yield from cache.put(key, f"reply {key}", f"{prefix}n-{key}")


def write(cache: ExtractionCache, prefix: str, *keys: str, keeps: bool = True) -> None:
    with Claims(cache, prefix) as claims:
        run_steps(claims.begin())
        run_steps(buy(cache, prefix, *keys))
        if keeps:
            run_steps(claims.keep())


def die(path: str, prefix: str, *keys: str) -> None:
    cache = ExtractionCache(path)
    with Claims(cache, prefix) as claims:
        run_steps(claims.begin())
        run_steps(buy(cache, prefix, *keys))
        os._exit(1)


def in_a_process_that_dies(path: Path, prefix: str, *keys: str) -> None:
    process = multiprocessing.get_context("spawn").Process(target=die, args=(str(path), prefix, *keys))
    process.start()
    process.join()


@pytest.mark.parametrize("dies", [True, False], ids=["the process dies", "the write fails"])
def test_what_a_write_that_ended_early_has_bought_is_swept(tmp_path: Path, dies: bool) -> None:
    path = tmp_path / "cache.db"
    cache = ExtractionCache(path)
    write(cache, "one:", "a", "b")
    if dies:
        in_a_process_that_dies(path, "two:", "b", "c")
    else:
        write(cache, "two:", "b", "c", keeps=False)
    assert set(entries(path)) == {"a", "b", "c"}
    run_steps(cache.sweep())
    assert {key: entry["users"] for key, entry in entries(path).items()} == {"a": ["one:n-a"], "b": ["one:n-b"]}
    run_steps(cache.release_many({"one:n-a": ["a"], "one:n-b": ["b"]}))
    assert entries(path) == {}


def test_a_write_that_resumes_another_keeps_what_that_one_has_bought(tmp_path: Path) -> None:
    path = tmp_path / "cache.db"
    in_a_process_that_dies(path, "one:", "a", "b")
    cache = ExtractionCache(path)
    write(cache, "one:", "a")
    run_steps(cache.sweep())
    assert set(entries(path)) == {"a"}, "b was given up"


def test_a_user_of_long_standing_remains_one_when_a_later_write_dies(tmp_path: Path) -> None:
    path = tmp_path / "cache.db"
    cache = ExtractionCache(path)
    write(cache, "one:", "a")
    in_a_process_that_dies(path, "one:", "a", "b")
    run_steps(cache.sweep())
    assert set(entries(path)) == {"a"}


def test_a_write_that_goes_on_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "cache.db"
    cache = ExtractionCache(path)
    with Claims(cache, "one:") as claims:
        run_steps(claims.begin())
        run_steps(buy(cache, "one:", "a"))
        run_steps(ExtractionCache(path).sweep())
        assert set(entries(path)) == {"a"}
        run_steps(claims.keep())
    run_steps(cache.sweep())
    assert set(entries(path)) == {"a"}


def test_a_write_of_another_machine_counts_as_ended_after_a_day(monkeypatch: pytest.MonkeyPatch) -> None:
    store = SimpleKVStore()
    cache = ExtractionCache(store)
    elsewhere = {**this_process(), "machine": "another"}
    monkeypatch.setattr("llama_index.ragkit.llm.cache.this_process", lambda: elsewhere)
    write(cache, "one:", "a", keeps=False)
    monkeypatch.undo()
    run_steps(cache.sweep())
    assert set(store.get_all("ragkit_extractions")) == {"a"}
    now = time.time()
    monkeypatch.setattr("llama_index.ragkit.llm.cache.time.time", lambda: now + 25 * 3600)
    run_steps(cache.sweep())
    assert store.get_all("ragkit_extractions") == {}


def test_a_cache_has_an_identity(tmp_path: Path) -> None:
    first, second, same = (ExtractionCache(tmp_path / name) for name in ("a.db", "b.db", "a.db"))
    assert run_steps(first.identity()) == run_steps(same.identity())
    assert run_steps(first.identity()) != run_steps(second.identity())
