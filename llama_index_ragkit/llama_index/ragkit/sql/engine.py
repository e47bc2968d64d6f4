"""SQLAlchemy engines for the databases that these packages store in: SQLite files and PostgreSQL."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from importlib.util import find_spec
from pathlib import Path
from threading import RLock
from types import SimpleNamespace
from typing import Any
from urllib.parse import unquote
from weakref import WeakSet

from sqlalchemy import URL, Connection, Engine, Pool, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from llama_index.ragkit.errors import ConfigurationError, StorageError
from llama_index.ragkit.llm import sqlite_layout
from llama_index.ragkit.redaction import redact

__all__ = ["is_joined", "make_engine", "reading", "shown_url", "snapshot", "transaction", "writing"]

_DRIVERS = {"sqlite": ("pysqlite",), "postgresql": ("psycopg", "psycopg2")}
_SUPPORTED = (
    "sqlite:///file.db, postgresql://user@host/database (also postgresql+psycopg:// and postgresql+psycopg2://)"
)
_BEGIN = "ragkit_begin"  # the execution option that says how a transaction begins on SQLite

_engines: WeakSet[Engine] = WeakSet()
_inherited: list[Pool] = []


class _Block:
    """The connection of a block of `snapshot` or `transaction`, which the reads and writes within it join.

    The tasks of a block run in threads, and neither SQLAlchemy's connections nor SQLite's may be used by two at a time:
    statements would be given each other's parameters. So they take turns.
    """

    def __init__(self, engine: Engine, connection: Connection, *, writes: bool) -> None:
        self.engine = engine
        self.writes = writes
        self._connection = connection
        self._turn = RLock()
        self._ended = False

    @contextmanager
    def use(self) -> Iterator[Connection]:
        with self._turn, _errors(self.engine):
            if self._ended:
                raise StorageError("The transaction of this task has ended: it was begun by a block that did not wait.")
            yield self._connection

    def end(self) -> None:
        """Wait for what is under way, such as the statement of a task that was cancelled, and forbid more."""
        with self._turn:
            self._ended = True


_joined: ContextVar[tuple[_Block, ...]] = ContextVar("ragkit_joined", default=())


def make_engine(url: str | URL, *, pool_size: int = 5) -> Engine:
    """An engine for a database, for many threads and several processes, forked ones too.

    SQLite is set to the write-ahead log, waits a minute for other writers, overwrites what is deleted
    (`secure_delete`) and checks foreign keys. On PostgreSQL a connection is tested before it is used, so that a server
    may be restarted. Nothing is connected to yet. Use the engine through :func:`reading` and :func:`writing`.

    Parameters
    ----------
    url : `sqlite:///file.db` (the folder is created), or `postgresql://user:password@host/database`, for which
        psycopg is used, or psycopg2 where only that is installed. Databases that speak PostgreSQL's protocol and name
        themselves so (Citus, YugabyteDB) work by the same URL
    pool_size : connections to PostgreSQL that are kept open; twice as many more are opened when needed

    Raises
    ------
    ConfigurationError
        For a URL of another kind: another database, an asynchronous driver, SQLite in memory.
    StorageError
        If the folder of an SQLite file cannot be made.
    ImportError
        If no driver for PostgreSQL is installed.
    """
    parsed = _check(url)
    if parsed.get_backend_name() == "sqlite":
        engine = _sqlite(parsed)
    else:
        options = {"max_overflow": 2 * pool_size, "pool_pre_ping": True, "pool_recycle": 1800}
        try:
            engine = create_engine(parsed, pool_size=pool_size, **options)
        except ArgumentError as error:
            raise ConfigurationError(f"{shown_url(parsed)} is no URL of PostgreSQL: {_reason(parsed, error)}") from None
    _engines.add(engine)
    return engine


def shown_url(url: URL) -> str:
    """A URL as messages show it, without user, password and the values of its query."""
    return redact(url.render_as_string(hide_password=True))


def _check(url: str | URL) -> URL:
    try:
        parsed = make_url(url)
        shown_url(parsed).encode()  # UTF-8 has no lone surrogates
    except (ArgumentError, ValueError):  # a port that is no number is a ValueError
        raise ConfigurationError(
            f"{_unread(url)} is not the URL of a database; give one such as {_SUPPORTED}."
        ) from None
    if "\0" in unquote(parsed.render_as_string(hide_password=False)):
        raise ConfigurationError(f"{_unread(url)} contains a NUL character, which no name of a database can have.")
    if parsed.drivername == "postgres":  # as many hosting services write it
        parsed = parsed.set(drivername="postgresql")
    shown = shown_url(parsed)
    backend, _, driver = parsed.drivername.partition("+")
    if backend not in _DRIVERS:
        raise ConfigurationError(
            f"{shown} names a database that is not supported, {backend!r}; these are: {_SUPPORTED}."
        )
    if driver and driver not in _DRIVERS[backend]:
        raise ConfigurationError(
            f"{shown} names the driver {driver!r}; those for {backend} are {', '.join(_DRIVERS[backend])}. "
            "Asynchronous methods run the synchronous driver in threads."
        )
    if backend == "sqlite":
        if parsed.database in (None, "", ":memory:") or "mode" in parsed.query or "file:" in (parsed.database or ""):
            raise ConfigurationError(
                f"{shown} is not a plain file. A database in memory is seen by one connection alone; "
                "give a file, such as sqlite:///index.db."
            )
        return parsed.set(database=str(Path(parsed.database or "").expanduser().absolute()))
    return parsed if driver else parsed.set(drivername=f"postgresql+{_installed_driver()}")


def _unread(url: str | URL) -> str:
    """What can be shown of a URL that cannot be read: before an @ and behind a ? there may be passwords."""
    _, at, rest = str(url).partition("?")[0].rpartition("@")
    return repr(redact(f"***@{rest}" if at else rest))


def _reason(url: URL, error: Exception) -> str:
    """What an error says, without what the URL does not show."""
    return redact(str(error), SimpleNamespace(password=url.password, secrets=dict(url.query)))


def _installed_driver() -> str:
    for driver in _DRIVERS["postgresql"]:
        if find_spec(driver) is not None:
            return driver
    raise ImportError('PostgreSQL needs psycopg: pip install "psycopg[binary]"')


def _sqlite(url: URL) -> Engine:
    folder = Path(url.database or "").parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(f"The folder of {shown_url(url)} cannot be made: {error.strerror}.") from error
    engine = create_engine(
        url, connect_args={"timeout": sqlite_layout.BUSY_SECONDS, "check_same_thread": False}, max_overflow=-1
    )

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, _: object) -> None:
        # Transactions are begun explicitly: the driver would begin them at the first change, after reads that a
        # writer of another process may have made invalid.
        connection.isolation_level = None
        sqlite_layout.prepare(connection)
        connection.execute("PRAGMA foreign_keys=ON").fetchall()

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        statement = connection.get_execution_options().get(_BEGIN, "BEGIN")
        if statement:
            connection.exec_driver_sql(statement)

    return engine


@contextmanager
def reading(engine: Engine, *, single: bool = False, latest: bool = False) -> Iterator[Connection]:
    """A connection for reads that all see the same state of the database: that of a block of `snapshot` or
    `transaction`, if it is within one.

    Parameters
    ----------
    single : for one statement alone, which needs no transaction: on PostgreSQL that saves two round trips
    latest : whether the state is the latest, even within a block of `snapshot`

    Raises
    ------
    StorageError
        From any error of the database.
    """
    joined = _block(engine)
    if joined is not None and (joined.writes or not latest):
        with joined.use() as connection:
            yield connection
        return
    if engine.dialect.name == "sqlite":
        # A single statement sees one state anyway; in a transaction, all do in the write-ahead log.
        options: dict[str, Any] = {_BEGIN: "" if single else "BEGIN"}
    else:
        options = {"isolation_level": "AUTOCOMMIT" if single else "REPEATABLE READ"}
    with _errors(engine), engine.execution_options(**options).connect() as connection:
        yield connection


@contextmanager
def writing(engine: Engine) -> Iterator[Connection]:
    """A connection in a transaction, which is committed at the end, and rolled back if the block raises.

    On SQLite it is the only writer from the start; on PostgreSQL it sees what others commit meanwhile (READ
    COMMITTED), and locks the rows that it writes. Within a block of `transaction` it is part of that one.

    Raises
    ------
    StorageError
        From any error of the database.
    """
    joined = _block(engine)
    if joined is not None and joined.writes:
        with joined.use() as connection:
            yield connection
        return
    with _errors(engine), engine.execution_options(**{_BEGIN: "BEGIN IMMEDIATE"}).begin() as connection:
        yield connection


@contextmanager
def snapshot(engine: Engine) -> Iterator[None]:
    """All reads of the block, in this thread and the tasks that it starts, see the same state of the database."""
    if is_joined(engine):
        yield
    else:
        with reading(engine) as connection, _joining(_Block(engine, connection, writes=False)):
            yield


@contextmanager
def transaction(engine: Engine) -> Iterator[None]:
    """All reads and writes of the block are one transaction, which is rolled back if the block raises."""
    outer = _block(engine)
    if outer is not None and outer.writes:
        yield
    else:
        with writing(engine) as connection, _joining(_Block(engine, connection, writes=True)):
            yield


@contextmanager
def _joining(block: _Block) -> Iterator[None]:
    before = _joined.get()
    _joined.set((*before, block))
    try:
        yield
    finally:
        _joined.set(before)
        block.end()


def is_joined(engine: Engine) -> bool:
    """Whether this is within a block of `snapshot` or `transaction`."""
    return _block(engine) is not None


def _block(engine: Engine) -> _Block | None:
    """The innermost block for an engine that this is within."""
    return next((block for block in reversed(_joined.get()) if block.engine is engine), None)


@contextmanager
def _errors(engine: Engine) -> Iterator[None]:
    try:
        yield
    except SQLAlchemyError as error:
        reason = _reason(engine.url, error)
        raise StorageError(f"The database {shown_url(engine.url)} cannot be used: {reason}") from error
    except UnicodeEncodeError as error:
        raise StorageError(
            f"The database {shown_url(engine.url)} holds no texts with lone surrogates, such as "
            f'{error.object[error.start]!r}; decode files with errors="replace".'
        ) from error


def _forked() -> None:
    """Give the engines of a forked process connections of their own."""
    for engine in list(_engines):
        if engine.dialect.name == "sqlite":
            _inherited.append(engine.pool)  # SQLite forbids even closing a connection that was inherited
        engine.dispose(close=False)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
