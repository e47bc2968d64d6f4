"""SQLAlchemy engines for the databases that these packages store in: SQLite files and PostgreSQL."""

import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from threading import RLock
from types import SimpleNamespace
from typing import Any
from urllib.parse import unquote
from weakref import WeakKeyDictionary

from sqlalchemy import URL, Connection, Engine, Pool, create_engine, event, make_url, text
from sqlalchemy.exc import ArgumentError, DBAPIError, InvalidatePoolError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from llama_index.ragkit.errors import ConfigurationError, ReadOnlyError, StorageError
from llama_index.ragkit.forks import renew_in_children
from llama_index.ragkit.llm import sqlite_layout
from llama_index.ragkit.lock import Slots
from llama_index.ragkit.redaction import redact
from llama_index.ragkit.steps import Steps
from llama_index.ragkit.validation import check_count

__all__ = [
    "in_turn",
    "is_joined",
    "joined_snapshot",
    "make_engine",
    "reading",
    "shown_url",
    "snapshot",
    "transaction",
    "writing",
]

_DRIVERS = {"sqlite": ("pysqlite",), "postgresql": ("psycopg", "psycopg2")}
_SUPPORTED = (
    "sqlite:///file.db, postgresql://user@host/database (also postgresql+psycopg:// and postgresql+psycopg2://)"
)
_BEGIN = "ragkit_begin"  # the execution option that says how a transaction begins on SQLite
_FORBIDDEN = ("25006", "42501")  # PostgreSQL's codes: a read-only transaction, a user without the right
_TOO_MANY = re.compile("too many (connections|clients)|connection slots")  # as PostgreSQL and poolers say it

_SESSION = text("SELECT pg_backend_pid()")

_slots: WeakKeyDictionary[Engine, Slots] = WeakKeyDictionary()
_direct: WeakKeyDictionary[Engine, bool] = WeakKeyDictionary()
_inherited: list[Pool] = []

Block = Callable[[Engine], AbstractContextManager[None]]


class _Block:
    """The connection of a `snapshot` or `transaction` block, shared by the reads and writes within it.

    The tasks of a block run in threads, but two threads must not use SQLAlchemy's or SQLite's connections at the same
    time: statements would get each other's parameters. So they take turns.
    """

    def __init__(self, engine: Engine, connection: Connection, *, writes: bool) -> None:
        self.engine = engine
        self.writes = writes
        self._connection = connection
        self._turn = RLock()
        self._ended = False

    @contextmanager
    def use(self) -> Iterator[Connection]:
        with _errors(self.engine, writes=self.writes), self.turn() as connection:
            yield connection

    @contextmanager
    def turn(self) -> Iterator[Connection]:
        with self._turn:
            if self._ended:
                raise StorageError("The transaction of this task has ended: the block that began it did not wait.")
            yield self._connection

    def end(self) -> None:
        """Wait for what is under way, such as a statement of a cancelled task, and forbid anything further."""
        with self._turn:
            self._ended = True


_joined: ContextVar[tuple[_Block, ...]] = ContextVar("ragkit_joined", default=())


def make_engine(url: str | URL, *, pool_size: int = 10, pool_timeout: float = 60.0) -> Engine:
    """An engine for a database, for many threads and several processes, forked ones included.

    SQLite uses the write-ahead log, waits a minute for other writers, overwrites what is deleted (`secure_delete`) and
    checks foreign keys. If its file is replaced, for example by a back-up, the next use opens the new one; if it is
    removed, the next use is an error. A connection to PostgreSQL is tested before use, so you may restart the server.
    Nothing is kept in a server session, so a pooler may give each transaction another one (PgBouncer's `pool_mode =
    transaction`). This function does not connect yet. Use the engine through :func:`reading` and :func:`writing`.

    Parameters
    ----------
    url : `sqlite:///file.db` (the folder is created), or `postgresql://user:password@host/database`, which uses
        psycopg, or psycopg2 where only that is installed. Databases that speak PostgreSQL's protocol and name
        themselves so (Citus, YugabyteDB) work with the same URL
    pool_size : maximum number of connections to PostgreSQL, at least 2; they are opened when needed, and kept. A
        question takes one; so does a write, which briefly takes up to four more. One connection is kept free for those
        moments, and other callers wait
    pool_timeout : seconds that a caller waits for a connection

    Raises
    ------
    ConfigurationError
        For a URL of another kind: another database, an asynchronous driver, SQLite in memory. For a `pool_size`
        below 2.
    StorageError
        If the folder of an SQLite file cannot be made.
    ImportError
        If no driver for PostgreSQL is installed.
    """
    parsed = _check(url)
    if parsed.get_backend_name() == "sqlite":
        engine = _sqlite(parsed)
    else:
        options = {"max_overflow": 0, "pool_timeout": pool_timeout, "pool_pre_ping": True, "pool_recycle": 1800}
        check_count("pool_size", pool_size, 2)
        try:
            engine = create_engine(parsed, connect_args=_unprepared(parsed), pool_size=pool_size, **options)
        except ArgumentError as error:
            raise ConfigurationError(f"{shown_url(parsed)} is not a PostgreSQL URL: {_reason(parsed, error)}") from None
        # A caller that holds a connection may briefly need another. The last one is kept for that.
        _slots[engine] = Slots(pool_size - 1, pool_timeout, partial(_all_taken, parsed))
    renew_in_children(engine, _reconnect)
    return engine


def _unprepared(url: URL) -> dict[str, Any]:
    """Keep psycopg from preparing statements on the server: with a pooler, the next transaction may get a session that
    lacks them.
    """
    return {"prepare_threshold": None} if url.get_driver_name() == "psycopg" else {}


def _all_taken(url: URL) -> StorageError:
    return StorageError(
        f"All connections to the database {shown_url(url)} that this process may open are in use, and none became free "
        "in time. Do less at once, or give make_engine() a larger pool_size= or pool_timeout=."
    )


def shown_url(url: URL) -> str:
    """A URL as messages show it: without user, password and query values."""
    return redact(url.render_as_string(hide_password=True))


def _check(url: str | URL) -> URL:
    try:
        parsed = make_url(url)
        shown_url(parsed).encode()  # UTF-8 has no lone surrogates
    except (ArgumentError, ValueError):  # a port that is not a number raises ValueError
        raise ConfigurationError(
            f"{_unread(url)} is not the URL of a database; give one such as {_SUPPORTED}."
        ) from None
    if "\0" in unquote(parsed.render_as_string(hide_password=False)):
        raise ConfigurationError(f"{_unread(url)} contains a NUL character, which no database name can have.")
    if parsed.drivername == "postgres":  # as many hosting services write it
        parsed = parsed.set(drivername="postgresql")
    shown = shown_url(parsed)
    backend, _, driver = parsed.drivername.partition("+")
    if backend not in _DRIVERS:
        raise ConfigurationError(
            f"{shown} names a database that is not supported, {backend!r}; supported are: {_SUPPORTED}."
        )
    if driver and driver not in _DRIVERS[backend]:
        raise ConfigurationError(
            f"{shown} names the driver {driver!r}; those for {backend} are {', '.join(_DRIVERS[backend])}. "
            "Asynchronous methods run the synchronous driver in threads."
        )
    if backend == "sqlite":
        if parsed.database in (None, "", ":memory:") or "mode" in parsed.query or "file:" in (parsed.database or ""):
            raise ConfigurationError(
                f"{shown} is not a plain file. Only one connection can see a database in memory; "
                "give a file, such as sqlite:///index.db."
            )
        return parsed.set(database=str(Path(parsed.database or "").expanduser().absolute()))
    return parsed if driver else parsed.set(drivername=f"postgresql+{_installed_driver()}")


def _unread(url: str | URL) -> str:
    """The part of an unreadable URL that can be shown: passwords may stand before an @ or after a ?."""
    _, at, rest = str(url).partition("?")[0].rpartition("@")
    return repr(redact(f"***@{rest}" if at else rest))


def _reason(url: URL, error: BaseException | None) -> str:
    """The message of an error, without the parts of the URL that are not shown."""
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
    file = str(url.database)
    seen: list[bool] = []  # whether this engine has opened the file before

    def open_file() -> sqlite3.Connection:
        if seen and sqlite_layout.identity(file) is None:
            raise StorageError(f"The file of {shown_url(url)} was removed while it was in use. Put it back.")
        connection = sqlite_layout.open_file(file)
        seen[:] = [True]
        return connection

    engine = create_engine(url, creator=open_file, max_overflow=-1)

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, record: Any) -> None:
        connection.execute("PRAGMA foreign_keys=ON").fetchall()
        record.info["file"] = sqlite_layout.identity(file)

    @event.listens_for(engine, "checkout")
    def look_for_file(connection: Any, record: Any, _: object) -> None:
        if sqlite_layout.identity(file) != record.info["file"]:  # removed or replaced
            raise InvalidatePoolError  # SQLAlchemy opens the file that is there now

    @event.listens_for(engine, "checkin")
    def look_again(connection: Any, record: Any) -> None:
        if isinstance(connection, sqlite_layout.UnchangingFile):  # it may have changed by the next read
            record.invalidate()

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        statement = connection.get_execution_options().get(_BEGIN, "BEGIN")
        if statement:
            connection.exec_driver_sql(statement)

    return engine


@contextmanager
def reading(engine: Engine, *, single: bool = False) -> Iterator[Connection]:
    """A connection whose reads all see the same state of the database. Within a block of `snapshot` or `transaction`,
    it is the connection of the block.

    Parameters
    ----------
    single : for a single statement, which needs no transaction; on PostgreSQL this saves two round trips

    Raises
    ------
    StorageError
        If the database raises any error.
    """
    joined = _block(engine)
    if joined is not None:
        with joined.use() as connection:
            yield connection
        return
    if engine.dialect.name == "sqlite":
        # A single statement sees one state anyway. With the write-ahead log, so do all statements of a transaction.
        options: dict[str, Any] = {_BEGIN: "" if single else "BEGIN"}
    else:
        options = {"isolation_level": "AUTOCOMMIT" if single else "REPEATABLE READ"}
    with _errors(engine), engine.execution_options(**options).connect() as connection:
        yield connection


@contextmanager
def writing(engine: Engine) -> Iterator[Connection]:
    """A connection in a transaction, which is committed at the end, or rolled back if the block raises.

    On SQLite it is the only writer from the start. On PostgreSQL it sees what others commit meanwhile (READ COMMITTED),
    and locks the rows that it writes. Within a block of `transaction` it is part of that transaction.
    """
    joined = _block(engine)
    if joined is not None and joined.writes:
        with joined.use() as connection:
            yield connection
        return
    options = engine.execution_options(**{_BEGIN: "BEGIN IMMEDIATE"})
    with _errors(engine, writes=True), options.begin() as connection:
        yield connection


@contextmanager
def snapshot(engine: Engine) -> Iterator[None]:
    """All reads of the block, in this thread and in the tasks that it starts, see the same state of the database."""
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


def in_turn(block: Block, engine: Engine) -> Steps[AbstractContextManager[None]]:
    """A block of `snapshot` or `transaction` that can be entered at once: waits until there is a connection for it."""
    slots = _slots.get(engine)
    if slots is None or is_joined(engine):
        return block(engine)
    place = yield from slots.acquire()
    return _both(place, block(engine))


@contextmanager
def _both(outer: AbstractContextManager[None], inner: AbstractContextManager[None]) -> Iterator[None]:
    with outer, inner:
        yield


@contextmanager
def joined_snapshot(engine: Engine) -> Iterator[Connection | None]:
    """The connection of the `snapshot` block around the caller; errors are SQLAlchemy's. None outside such a block,
    within a `transaction`, or if another connection can be used instead: one is free, and no pooler stands between here
    and the server (it might have none left for callers that already hold one).
    """
    block = _block(engine)
    if block is None or block.writes:
        yield None
        return
    slots = _slots.get(engine)
    place = slots.spare() if slots is not None and _is_direct(block) else None
    if place is None:
        with block.turn() as connection:
            yield connection
    else:
        with place:
            yield None


def _is_direct(block: _Block) -> bool:
    """Whether a block's connection leads to the server itself: a pooler reports the number of a session of its own."""
    if block.engine not in _direct:
        with block.turn() as connection:
            driver: Any = connection.connection.driver_connection
            _direct[block.engine] = connection.execute(_SESSION).scalar() == driver.info.backend_pid
    return _direct[block.engine]


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
    """Whether the caller is within a block of `snapshot` or `transaction`."""
    return _block(engine) is not None


def _block(engine: Engine) -> _Block | None:
    """The innermost block of an engine around the caller."""
    return next((block for block in reversed(_joined.get()) if block.engine is engine), None)


@contextmanager
def _errors(engine: Engine, *, writes: bool = False) -> Iterator[None]:
    try:
        yield
    except PoolTimeoutError as error:
        raise _all_taken(engine.url) from error
    except (SQLAlchemyError, sqlite3.Error) as error:  # `SQLKVStore` uses the connections of SQLite themselves
        cause = error.orig if isinstance(error, DBAPIError) else error
        if writes and _is_forbidden(cause):
            reason = _reason(engine.url, cause).strip().partition("\n")[0]
            raise ReadOnlyError(
                f"The database {shown_url(engine.url)} can only be read here: {reason}. Write to it as a user who may, "
                "on the primary server, or where its folder is writable."
            ) from error
        reason = _reason(engine.url, error)
        hint = " Give make_engine() a smaller pool_size=." if _TOO_MANY.search(reason) else ""
        raise StorageError(f"The database {shown_url(engine.url)} cannot be used: {reason}{hint}") from error
    except UnicodeEncodeError as error:
        raise StorageError(
            f"The database {shown_url(engine.url)} cannot hold texts with lone surrogates, such as "
            f'{error.object[error.start]!r}; decode files with errors="replace".'
        ) from error


def _is_forbidden(error: BaseException | None) -> bool:
    """Whether an error of a driver says that writing is forbidden."""
    code = getattr(error, "sqlstate", None) or getattr(error, "pgcode", None)
    return code in _FORBIDDEN or sqlite_layout.is_readonly(error)


def _reconnect(engine: Engine) -> None:
    """Give an engine of a forked process its own connections. Inherited ones are neither used nor closed."""
    _inherited.append(engine.pool)
    engine.dispose(close=False)
    _joined.set(())  # the block in which this process was forked is its parent's
