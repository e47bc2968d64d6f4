"""The key-value store in SQL databases: complete, shared by threads and processes, and apart by tenant."""

import asyncio
import os
import pickle
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from llama_index.core.storage.docstore.keyval_docstore import KVDocumentStore
from sqlalchemy import event, text
from tests.processes import Worker

from llama_index.ragkit import ExtractionCache, SQLiteKVStore
from llama_index.ragkit.errors import ConfigurationError, StorageError
from llama_index.ragkit.sql import SQLKVStore, reading, writing
from llama_index.ragkit.sql.engine import transaction
from llama_index.ragkit.steps import run_steps
from llama_index.ragkit.testing.store_kit import (
    DocumentStoreConformance,
    KeyValueIsolationTests,
    KeyValuePersistTests,
    KeyValueStoreConformance,
)

CANARY = "Xylocopa-violacea-canary"


@pytest.fixture
def store(url: str) -> Iterator[SQLKVStore]:
    made = SQLKVStore(url)
    yield made
    made.engine.dispose()


def on_disk(folder: Path) -> list[str]:
    return [path.name for path in folder.rglob("*") if path.is_file() and CANARY.encode() in path.read_bytes()]


class TestSQLKVStore(KeyValueStoreConformance, KeyValueIsolationTests, KeyValuePersistTests):
    @pytest.fixture
    def store(self, url: str) -> Iterator[SQLKVStore]:
        made = SQLKVStore(url)
        yield made
        made.engine.dispose()

    def reopen(self, store: Any, folder: Path) -> SQLKVStore:
        return SQLKVStore(store.engine.url.render_as_string(hide_password=False))


class TestSQLKVStoreOfATenant(KeyValueStoreConformance):
    @pytest.fixture
    def store(self, url: str) -> Iterator[SQLKVStore]:
        made = SQLKVStore(url, tenant="Ωmega %_'; --")
        other = SQLKVStore(made.engine, tenant="other")
        other.put_all([("k", {"of": "another"}), ("shared", {"of": "another"})])
        yield made
        assert other.get_all() == {"k": {"of": "another"}, "shared": {"of": "another"}}
        made.engine.dispose()


class TestDocumentStoreOverSQL(DocumentStoreConformance):
    @pytest.fixture
    def store(self, url: str) -> Iterator[KVDocumentStore]:
        kv = SQLKVStore(url)
        yield KVDocumentStore(kv)
        kv.engine.dispose()


def statements(store: SQLKVStore) -> list[str]:
    """Fills with the statements that the store sends."""
    sent: list[str] = []
    event.listen(store.engine, "before_cursor_execute", lambda *args: sent.append(args[2]))
    return sent


def test_many_values_are_read_in_the_order_asked_for(store: SQLKVStore) -> None:
    many = {f"k{i}": {"i": i} for i in range(1300)}
    store.put_all(list(many.items()))
    wanted = ["k7", "nowhere", *reversed(many), "k7"]
    found = store.get_many(wanted)
    assert list(found) == ["k7", *(key for key in reversed(many) if key != "k7")]
    assert found == many
    assert asyncio.run(store.aget_many(["k1", "x"])) == {"k1": {"i": 1}}
    assert store.get_many([]) == {}
    assert store.get_many(["k1"], "elsewhere") == {}


def test_many_values_are_deleted_at_once(store: SQLKVStore) -> None:
    store.put_all([(f"k{i}", {}) for i in range(10)])
    store.put("k1", {}, collection="other")
    assert store.delete_all(["k1", "k1", "nowhere", "k3"]) == 2
    assert sorted(store.get_all()) == ["k0", "k2", "k4", "k5", "k6", "k7", "k8", "k9"]
    assert store.get_all("other") == {"k1": {}}


def test_many_keys_cost_one_statement_on_a_server(store: SQLKVStore) -> None:
    if store.engine.dialect.name == "sqlite":
        pytest.skip("a file has no round trips")
    store.get("k")
    sent = statements(store)
    store.put_all([(f"k{i}", {}) for i in range(400)])
    assert len(store.get_many(f"k{i}" for i in range(2000))) == 400
    assert store.delete_all([f"k{i}" for i in range(2000)]) == 400
    assert len(sent) == 3
    store.put_all([(f"k{i}", {}) for i in range(1200)], batch_size=700)
    assert len(sent) == 5


def test_a_change_reads_and_writes_in_one_transaction(store: SQLKVStore) -> None:
    store.put_all([("kept", {"n": 1}), ("changed", {"n": 1}), ("gone", {"n": 1})])

    def one_more(old: dict[str, Any] | None) -> dict[str, Any]:
        return {"n": (old or {"n": 0})["n"] + 1}

    changes = {
        "new": one_more,
        "kept": lambda old: old,
        "changed": one_more,
        "gone": lambda _: None,
        "no": lambda _: None,
    }
    after = store.update(changes)
    assert after == {"new": {"n": 1}, "kept": {"n": 1}, "changed": {"n": 2}, "gone": None, "no": None}
    assert store.get_all() == {"changed": {"n": 2}, "kept": {"n": 1}, "new": {"n": 1}}

    def fails(old: dict[str, Any] | None) -> dict[str, Any]:
        raise KeyError

    with pytest.raises(KeyError):
        store.update({"new": one_more, "other": fails})
    assert store.get_all() == {"changed": {"n": 2}, "kept": {"n": 1}, "new": {"n": 1}}


def add_one(old: dict[str, Any] | None) -> dict[str, Any]:
    return {"n": 1 if old is None else old["n"] + 1}


def test_changes_of_threads_do_not_overlap(store: SQLKVStore) -> None:
    keys = [f"k{i}" for i in range(5)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda i: store.update(dict.fromkeys(keys[i % 3 :] + keys[: i % 3], add_one)), range(60)))
    assert store.get_all() == {key: {"n": 60} for key in keys}


def test_tasks_of_one_transaction_take_turns(store: SQLKVStore) -> None:
    """Tasks run in threads, and a connection that two use at once gives statements each other's parameters."""

    async def write(task: int) -> None:
        for i in range(200):
            await store.aput(f"{task}-{i}", {"task": task, "i": i}, f"collection{task}")
            assert await store.aget(f"{task}-{i}", f"collection{task}") == {"task": task, "i": i}

    async def write_all() -> None:
        with transaction(store.engine):
            await asyncio.gather(*(write(task) for task in range(4)))

    asyncio.run(write_all())
    for task in range(4):
        assert store.get_all(f"collection{task}") == {f"{task}-{i}": {"task": task, "i": i} for i in range(200)}


def test_a_task_that_outlives_its_transaction_is_refused(store: SQLKVStore) -> None:
    async def main() -> None:
        go = asyncio.Event()

        async def late() -> None:
            await go.wait()
            await store.aput("a", {}, "data")

        with transaction(store.engine):
            task = asyncio.create_task(late())
        go.set()
        with pytest.raises(StorageError, match="has ended"):
            await task

    asyncio.run(main())
    assert store.get_all("data") == {}


def test_changes_and_deletes_of_processes_do_not_overlap(store: SQLKVStore, url: str) -> None:
    code = (
        "import sys\nfrom llama_index.ragkit.sql import SQLKVStore\nstore = SQLKVStore(sys.argv[1])\n"
        "def add(old): return {'n': 1 if old is None else old['n'] + 1}\n"
        "total = 0\n"
        "for i in range(60):\n"
        "    store.update({'a': add, 'b': add})\n"
        "    store.update({f'c{i % 2}': add})\n"
        "    store.delete_all(['c0', 'c1'])\n"
    )
    running = [Worker(code, url) for _ in range(3)]
    assert [process.wait() for process in running] == [0, 0, 0]
    assert store.get_many(["a", "b"]) == {"a": {"n": 180}, "b": {"n": 180}}


def test_many_processes_may_make_the_tables_at_once(url: str) -> None:
    code = "import sys\nfrom llama_index.ragkit.sql import SQLKVStore\nSQLKVStore(sys.argv[1]).put(sys.argv[2], {})\n"
    running = [Worker(code, url, f"k{i}") for i in range(4)]
    assert [process.wait() for process in running] == [0] * 4
    assert sorted(SQLKVStore(url).get_all()) == ["k0", "k1", "k2", "k3"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_fork_may_use_the_store(store: SQLKVStore) -> None:
    store.put("parent", {})
    child = os.fork()
    if child == 0:
        try:
            store.put("child", {})
            os._exit(0 if store.get("parent") == {} else 1)
        finally:
            os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    store.put("after", {})
    assert sorted(store.get_all()) == ["after", "child", "parent"]


def test_a_pickled_store_opens_the_same_database(store: SQLKVStore) -> None:
    mine = SQLKVStore(store.engine, tenant="a")
    mine.put("k", {"a": 1})
    again = pickle.loads(pickle.dumps(mine))
    assert again.get_all() == {"k": {"a": 1}}
    assert again.tenant == "a"
    again.engine.dispose()


def test_a_tenant_is_dropped_in_one_call(store: SQLKVStore, tmp_path: Path) -> None:
    tenants = {name: SQLKVStore(store.engine, tenant=name) for name in ("a", "a2", "b")}
    for name, each in [*tenants.items(), ("", store)]:
        each.put_all([(f"k{i}", {"of": name, "text": CANARY if name == "a" else ""}) for i in range(3)])
        each.put("k", {"of": name}, collection="more")
    assert store.tenants() == ["", "a", "a2", "b"]
    assert tenants["a"].drop() == 4
    assert tenants["a"].get_all() == tenants["a"].get_all("more") == {}
    assert tenants["a"].drop() == 0
    assert store.tenants() == ["", "a2", "b"]
    assert store.drop() == 4
    for name in ("a2", "b"):
        assert tenants[name].get_many(["k0", "k2"]) == {"k0": {"of": name, "text": ""}, "k2": {"of": name, "text": ""}}
        assert tenants[name].get_all("more") == {"k": {"of": name}}
    assert on_disk(tmp_path) == []


def test_a_thousand_tenants_share_the_tables(store: SQLKVStore) -> None:
    for i in range(1000):
        SQLKVStore(store.engine, tenant=f"t{i}").put("k", {"i": i})
    names = (
        "SELECT count(*) FROM sqlite_master WHERE type = 'table'"
        if store.engine.dialect.name == "sqlite"
        else "SELECT count(*) FROM information_schema.tables WHERE table_schema = current_schema()"
    )
    with reading(store.engine, single=True) as connection:
        assert connection.execute(text(names)).scalar_one() <= 3
    assert SQLKVStore(store.engine, tenant="t707").get_all() == {"k": {"i": 707}}
    assert len(store.tenants()) == 1000


@pytest.mark.parametrize("name", ["a\x1fb", "\x1f", "a\x00"])
def test_a_name_that_could_be_taken_for_another_is_refused(url: str, store: SQLKVStore, name: str) -> None:
    with pytest.raises(ConfigurationError, match="tenant"):
        SQLKVStore(store.engine, tenant=name)
    with pytest.raises(ConfigurationError, match="collection"):
        store.put("k", {}, collection=name)
    with pytest.raises(ConfigurationError, match="collection"):
        store.get("k", collection=name)


def test_a_long_key_and_one_that_a_server_cannot_hold(store: SQLKVStore) -> None:
    store.put("x" * 10_000, {"a": 1})
    assert store.get("x" * 10_000) == {"a": 1}
    if store.engine.dialect.name == "postgresql":
        with pytest.raises(StorageError, match="NUL"):
            store.put("a\x00b", {})


def test_a_delete_compares_no_rows_with_each_other(store: SQLKVStore) -> None:
    """Of a collection that the same transaction has written, a planner knows no size."""
    if store.engine.dialect.name != "postgresql":
        pytest.skip("SQLite has one plan")
    plans: list[str] = []

    def explain(connection: Any, cursor: Any, statement: str, parameters: Any, *args: Any) -> None:
        if "DELETE" in statement:
            cursor.execute(f"EXPLAIN {statement}", parameters)
            plans.append(str(cursor.fetchall()))

    store.put_all([(f"k{i}", {}) for i in range(2000)], "known")
    with writing(store.engine) as connection:
        connection.execute(text("ANALYZE ragkit_records"))
    event.listen(store.engine, "before_cursor_execute", explain)
    with writing(store.engine):
        store.put_all([(f"k{i}", {}) for i in range(2000)], "new")
        assert store.delete_all([f"k{i}" for i in range(1999)], "new") == 1999
    assert store.get_all("new") == {"k1999": {}}
    (plan,) = plans
    assert "Index Scan" in plan
    assert "Nested Loop" not in plan


def test_the_file_is_that_of_a_sqlite_key_value_store(tmp_path: Path) -> None:
    SQLiteKVStore(tmp_path / "x.db").put("k", {"a": 1})
    store = SQLKVStore(f"sqlite:///{tmp_path}/x.db")
    store.put("l", {"a": 2})
    assert SQLiteKVStore(tmp_path / "x.db").get_all() == {"k": {"a": 1}, "l": {"a": 2}}


def test_nothing_of_deleted_values_is_left_in_the_file(tmp_path: Path) -> None:
    store = SQLKVStore(f"sqlite:///{tmp_path}/x.db", tenant="t")
    store.put_all([(f"{CANARY}{i}", {"text": CANARY * i}) for i in range(300)])
    store.put_all([(f"k{i}", {"text": "x" * i}) for i in range(300)])
    with writing(store.engine) as connection:
        connection.execute(text("CREATE TABLE beside (a INTEGER)"))
    assert on_disk(tmp_path)
    assert store.delete_all(f"{CANARY}{i}" for i in range(300)) == 300
    assert on_disk(tmp_path) == []
    assert len(store.get_all()) == 300


def test_what_is_deleted_while_the_file_is_cleaned_is_removed_by_the_next_call(tmp_path: Path) -> None:
    store = SQLKVStore(f"sqlite:///{tmp_path}/x.db")
    store.put_all([("a", {"text": "a"}), (CANARY, {"text": CANARY})])
    store.delete_all(["a"], clean=False)
    file: Any = store._records
    own = file._connection

    def execute(statement: str) -> Any:
        rows = own.execute(statement).fetchall()
        if "checkpoint" in statement:
            store.delete_all([CANARY], clean=False)
        return SimpleNamespace(fetchone=lambda: rows[0], fetchall=lambda: rows)

    file._connection = SimpleNamespace(execute=execute)
    assert store.clean()
    file._connection = own
    assert on_disk(tmp_path)
    assert store.clean()
    assert on_disk(tmp_path) == []


def test_an_extraction_cache_changes_its_entries_in_the_database(url: str) -> None:
    caches = [ExtractionCache(SQLKVStore(url)), ExtractionCache(SQLKVStore(url))]
    run_steps(caches[0].put("key", ["reply"], "a"))
    assert run_steps(caches[1].get("key", "b")) == ["reply"]
    run_steps(caches[0].release("a"))
    assert run_steps(caches[0].get("key", "b")) == ["reply"]
    run_steps(caches[1].release("b"))
    assert run_steps(caches[0].get("key", "a")) is None
    assert run_steps(caches[0].identity()) == run_steps(caches[1].identity())


def test_two_processes_release_entries_of_a_cache_without_losing_any(url: str) -> None:
    cache = ExtractionCache(SQLKVStore(url))
    for i in range(40):
        for user in "ab":
            run_steps(cache.put(f"k{i}", i, user))
    code = (
        "import sys\nfrom llama_index.ragkit import ExtractionCache\nfrom llama_index.ragkit.steps import run_steps\n"
        "from llama_index.ragkit.sql import SQLKVStore\ncache = ExtractionCache(SQLKVStore(sys.argv[1]))\n"
        "run_steps(cache.release_many({sys.argv[2]: [f'k{i}' for i in range(40)]}))\n"
    )
    running = [Worker(code, url, user) for user in "ab"]
    assert [process.wait() for process in running] == [0, 0]
    assert SQLKVStore(url).get_all("ragkit_extractions") == {}
