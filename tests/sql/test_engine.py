"""Engines: which URLs they take, and that threads, processes and forks do not disturb each other."""

import contextlib
import os
import sqlite3
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, event, text
from sqlalchemy.exc import IntegrityError
from tests.processes import Worker

from llama_index.ragkit.errors import ConfigurationError, RagKitError, StorageError
from llama_index.ragkit.index.description import ObjectDescription
from llama_index.ragkit.short_repr import ReprText, ShortRepr
from llama_index.ragkit.sql import SQLKVStore, make_engine, reading, storage_context, writing
from llama_index.ragkit.sql import engine as engine_module
from llama_index.ragkit.sql.context import find_stores


def make_table(engine: Engine) -> None:
    with writing(engine) as connection:
        connection.execute(text("CREATE TABLE counters (name VARCHAR(10) PRIMARY KEY, n INTEGER NOT NULL)"))
        connection.execute(text("INSERT INTO counters VALUES ('a', 0)"))


def count(engine: Engine) -> int:
    with reading(engine, single=True) as connection:
        return int(connection.execute(text("SELECT n FROM counters WHERE name = 'a'")).scalar_one())


def add_one(engine: Engine) -> None:
    with writing(engine) as connection:
        connection.execute(text("UPDATE counters SET n = n + 1 WHERE name = 'a'"))


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("mysql://u:secret@host/db", "'mysql'"),
        ("postgresql+asyncpg://u:secret@host/db", "'asyncpg'"),
        ("sqlite+aiosqlite:///x.db", "'aiosqlite'"),
        ("sqlite://", "in memory"),
        ("sqlite:///:memory:", "in memory"),
        ("sqlite:///file:x?mode=memory&uri=true", "in memory"),
        ("index.db", "not the URL"),
    ],
)
def test_other_urls_are_refused_by_name_without_their_password(given: str, told: str) -> None:
    with pytest.raises(ConfigurationError, match=told) as error:
        make_engine(given)
    assert "secret" not in str(error.value)


SECRET = "Zk81Rq3vTn0Xw7"
URL_WITH_SECRETS = (
    f"postgresql://{SECRET}:{SECRET} {SECRET}@127.0.0.1:1/db?password={SECRET}&sslpassword={SECRET}"
    f"&options=-csearch_path%3D{SECRET}&sslkey=/keys/{SECRET}&connect_timeout={SECRET}"
)
WITH_A_WRONG_PORT = "postgresql://h/db?port=abc"


class Component(ShortRepr):
    def __init__(self, url: str, others: Sequence[str] = ()) -> None:
        self.url, self.others = url, others


@pytest.mark.parametrize(
    "show",
    [
        lambda url: SQLKVStore(url),
        lambda url: storage_context(url),
        lambda url: find_stores(storage_context(url), "raptor", "0"),
        lambda url: SQLKVStore(url).get_all(),
        lambda url: make_engine(url.replace("postgresql", "mysql")),
        lambda url: make_engine(url.replace("postgresql", "postgresql+asyncpg")),
        lambda url: make_engine(url.replace("postgresql:", "sqlite:", 1).replace("/db", "/")),
        lambda url: make_engine(url.replace(":1/", ":one/")),
        lambda url: make_engine(url.replace("://", ":")),
        lambda url: make_engine(url + "&port=one"),
        lambda url: make_engine(url + "&user=%00"),
        lambda url: Component(url, [url]),
        lambda url: ReprText(str(ObjectDescription("Index", {"url": url, "urls": [url]}))),
        lambda url: ReprText(ObjectDescription("Index", {"url": url}).as_html()),
    ],
)
def test_no_secret_of_a_url_is_shown(show: Callable[[str], object]) -> None:
    """Neither the password nor what stands in the query, where a database takes passwords and key files too."""
    try:
        shown = repr(show(URL_WITH_SECRETS))
    except (RagKitError, ImportError) as error:  # without psycopg, what to install
        shown = str(error)
    assert SECRET not in shown


@pytest.mark.parametrize(
    "given",
    [
        "",
        "\0",
        "postgresql://h:port/db",
        "postgresql://[::1/db",
        WITH_A_WRONG_PORT,
        "postgresql://h\0/db",
        "postgresql://h/d%00b",
        "postgresql://u%00:p@h/db",
        "postgresql://\ud800:p@h/db",
        "postgresql://h/\ud800",
        "sqlite:///a\0b.db",
        "sqlite:///\ud800.db",
        f"sqlite:///{'a' * 5000}/b.db",
        "sqlite:////dev/null/folder/a.db",
        3,
        None,
        b"sqlite:///a.db",
    ],
    ids=lambda given: ascii(given)[:40],
)
def test_a_url_that_cannot_be_used_is_an_error_of_ours(given: Any) -> None:
    if given == WITH_A_WRONG_PORT:  # which psycopg finds
        pytest.importorskip("psycopg")
    with pytest.raises(RagKitError) as error:
        storage_context(given)
    str(error.value).encode()


@pytest.mark.parametrize("tenant", ["a\0", "\x1f", "\ud800", 3, None], ids=ascii)
def test_a_tenant_that_no_database_can_hold_is_refused(engine: Engine, tenant: Any) -> None:
    with pytest.raises(ConfigurationError, match="tenant"):
        storage_context(engine, tenant=tenant)


def test_text_that_a_database_cannot_hold_is_an_error_of_ours(url: str) -> None:
    store = SQLKVStore(url)
    with contextlib.suppress(StorageError):  # SQLite files hold any key
        assert store.get("\ud800") is None
    with contextlib.suppress(StorageError):
        store.put("\ud800", {"v": 1})


@pytest.mark.parametrize("given", ["postgresql://u@host/db", "postgres://u@host/db"])
@pytest.mark.parametrize("installed", ["psycopg", "psycopg2"])
def test_postgresql_uses_the_driver_that_is_installed(
    given: str, installed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip(installed)
    monkeypatch.setattr(engine_module, "find_spec", lambda name: name if name == installed else None)
    assert make_engine(given).url.drivername == f"postgresql+{installed}"


def test_a_missing_driver_is_an_error_that_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_module, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"psycopg\[binary\]"):
        make_engine("postgresql://u@host/db")


def test_sqlite_is_set_up(tmp_path: Path) -> None:
    engine = make_engine(f"sqlite:///{tmp_path}/folder/x.db")
    with reading(engine) as connection:
        found = {
            name: connection.execute(text(f"PRAGMA {name}")).scalar()
            for name in ("journal_mode", "secure_delete", "foreign_keys", "busy_timeout")
        }
    assert found == {"journal_mode": "wal", "secure_delete": 1, "foreign_keys": 1, "busy_timeout": 60_000}


def test_a_write_is_committed_or_rolled_back_as_a_whole(engine: Engine) -> None:
    make_table(engine)
    add_one(engine)
    with contextlib.suppress(KeyError), writing(engine) as connection:
        connection.execute(text("UPDATE counters SET n = 100"))
        raise KeyError
    assert count(engine) == 1


def test_reads_see_one_state_while_others_write(engine: Engine) -> None:
    make_table(engine)
    with reading(engine) as connection:
        before = connection.execute(text("SELECT n FROM counters")).scalar_one()
        add_one(engine)
        assert connection.execute(text("SELECT n FROM counters")).scalar_one() == before == 0
    assert count(engine) == 1


def test_threads_lose_no_write(engine: Engine) -> None:
    make_table(engine)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: add_one(engine), range(80)))
    assert count(engine) == 80


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_process_and_its_parent_go_on(engine: Engine) -> None:
    make_table(engine)
    with reading(engine) as inherited:
        inherited.execute(text("SELECT 1"))
        child = os.fork()
        if child == 0:
            try:
                add_one(engine)
                os._exit(0 if count(engine) == 1 else 1)
            finally:
                os._exit(2)
        assert os.waitpid(child, 0)[1] == 0
        assert inherited.execute(text("SELECT 1")).scalar_one() == 1
    add_one(engine)
    assert count(engine) == 2


def test_processes_lose_no_write(engine: Engine, url: str) -> None:
    make_table(engine)
    code = (
        "import sys\nfrom sqlalchemy import text\nfrom llama_index.ragkit.sql import make_engine, writing\n"
        "engine = make_engine(sys.argv[1])\n"
        "for _ in range(50):\n"
        "    with writing(engine) as connection:\n"
        "        connection.execute(text(\"UPDATE counters SET n = n + 1 WHERE name = 'a'\"))\n"
    )
    running = [Worker(code, url) for _ in range(2)]
    assert [process.wait() for process in running] == [0, 0]
    assert count(engine) == 100


def test_an_error_of_the_database_is_a_storage_error(engine: Engine) -> None:
    make_table(engine)
    with pytest.raises(StorageError, match=r"index\.db|postgresql") as error, writing(engine) as connection:
        connection.execute(text("INSERT INTO counters VALUES ('a', 1)"))
    assert isinstance(error.value.__cause__, IntegrityError)


def test_an_unusable_file_is_a_storage_error(tmp_path: Path) -> None:
    (tmp_path / "x.db").write_text("not a database, and long enough to be read as the header of one" * 20)
    engine = make_engine(f"sqlite:///{tmp_path}/x.db")
    with pytest.raises(StorageError, match=r"x\.db"), reading(engine):
        pass


def test_a_file_that_is_replaced_is_opened_anew_and_one_that_is_removed_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "x.db"
    store = SQLKVStore(make_engine(f"sqlite:///{file}"))
    store.put("a", {"v": 1})
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("VACUUM INTO ?", (str(tmp_path / "copy.db"),))
    for suffix in ("", "-wal", "-shm"):
        (tmp_path / f"x.db{suffix}").unlink(missing_ok=True)
    for _ in range(2):
        with pytest.raises(StorageError, match=r"x\.db was removed"):
            store.put("b", {"v": 2})
    (tmp_path / "copy.db").rename(file)
    store.put("b", {"v": 2})
    assert store.get_all() == SQLKVStore(make_engine(f"sqlite:///{file}")).get_all() == {"a": {"v": 1}, "b": {"v": 2}}


def test_a_full_disk_is_a_storage_error_and_nothing_of_the_write_stays(tmp_path: Path) -> None:
    engine = make_engine(f"sqlite:///{tmp_path}/x.db")
    event.listen(engine, "begin", lambda connection: connection.exec_driver_sql("PRAGMA max_page_count = 40"))
    store = SQLKVStore(engine)
    store.put("a", {"v": 1})
    with pytest.raises(StorageError, match=r"x\.db cannot be used: database or disk is full"):
        store.put_all([("a", {"v": 2}), ("b", {"v": "x" * 10**6})])
    assert store.get_all() == {"a": {"v": 1}}


def test_a_foreign_key_is_checked(tmp_path: Path) -> None:
    engine = make_engine(f"sqlite:///{tmp_path}/x.db")
    with writing(engine) as connection:
        connection.execute(text("CREATE TABLE a (id INTEGER PRIMARY KEY)"))
        connection.execute(text("CREATE TABLE b (a INTEGER REFERENCES a (id))"))
    with pytest.raises(StorageError), writing(engine) as connection:
        connection.execute(text("INSERT INTO b VALUES (1)"))
    assert sqlite3.connect(tmp_path / "x.db").execute("SELECT * FROM b").fetchall() == []
