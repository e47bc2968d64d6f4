"""`SQLiteKVStore`: a LlamaIndex key-value store in one SQLite file."""

import json
import logging
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from llama_index.core.storage.kvstore.types import DEFAULT_BATCH_SIZE, DEFAULT_COLLECTION

from llama_index.ragkit.errors import ReadOnlyError, StorageError
from llama_index.ragkit.forks import ProcessLock
from llama_index.ragkit.llm import sqlite_layout
from llama_index.ragkit.llm.bulk_kvstore import BulkKVStore, CacheEntry, EntryChange
from llama_index.ragkit.short_repr import ShortRepr

__all__ = ["SQLiteKVStore"]

logger = logging.getLogger(__name__)
_MEMORY = ":memory:"
_READER_SECONDS = 5.0  # how long a delete waits for readers of the log; after that it is emptied in the background
_RETRY_SECONDS = 0.2


class SQLiteKVStore(ShortRepr, BulkKVStore):
    """A key-value store in one SQLite file, for many threads and several processes at once.

    Every write is one transaction, on disk when the method returns; a killed process leaves the file readable. A
    delete overwrites the data with zeros and truncates the write-ahead log, so no byte of deleted or replaced values
    remains in the file or in the files next to it. If another process is reading the log, that happens as soon as it
    has finished; if a process was killed, when the file is next opened. Hashes of keys may remain.

    Parameters
    ----------
    path : the file; it and its folder are created. ":memory:" keeps everything in memory. Network file systems are not
        supported: SQLite's write-ahead log needs shared memory. If the file or its folder may not be written to, the
        file can still be read

    Raises
    ------
    StorageError
        If the file cannot be opened, read or written, or is not an SQLite database.
    """

    def __init__(self, path: str | Path) -> None:
        self._path = _MEMORY if str(path) == _MEMORY else str(Path(path).expanduser().absolute())
        self._lock = ProcessLock(reentrant=True)
        self._connection: sqlite3.Connection | None = None
        self._file: tuple[int, int] | None = None  # of the connection
        self._inherited: sqlite3.Connection | None = None
        self._pid = os.getpid()
        self._unclean = False  # whether the log may hold deleted or replaced values
        self._cleaner: threading.Thread | None = None
        with self._transaction():
            pass

    def __reduce__(self) -> tuple[type["SQLiteKVStore"], tuple[str]]:
        return type(self), (self._path,)

    def _open(self) -> sqlite3.Connection:
        if self._pid != os.getpid() and self._path != _MEMORY:
            # SQLite forbids using, or even closing, a connection inherited through a fork.
            self._inherited, self._connection, self._pid = self._connection, None, os.getpid()
            self._cleaner = None
        found = None if self._path == _MEMORY else sqlite_layout.identity(self._path)
        if self._connection is not None and self._file is not None and found is None:
            raise StorageError(f"The SQLite file {self._path} was removed while it was in use. Put it back.")
        if self._file != found or isinstance(self._connection, sqlite_layout.UnchangingFile):  # it may have changed
            self.close()
        if self._connection is None:
            if self._path != _MEMORY:
                Path(self._path).parent.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite_layout.connect(self._path)
            self._file = None if self._path == _MEMORY else sqlite_layout.identity(self._path)
            self._unclean = True  # a process may have been killed between a delete and the emptying of the log
            self._clean(seconds=0.0)
        return self._connection

    @contextmanager
    def _using(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            try:
                yield self._open()
            except (sqlite3.Error, OSError) as error:
                if sqlite_layout.is_readonly(error):
                    raise ReadOnlyError(
                        f"The SQLite file {self._path} can only be read here: {error}. Write to it as a user who "
                        "may write to the file and its folder."
                    ) from error
                raise StorageError(
                    f"The SQLite file {self._path} cannot be used: {error}. It must be a new file or one that this "
                    "class made, in a folder that can be written, and not locked by another process for a minute."
                ) from error

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._using() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    def _reading(self) -> AbstractContextManager[sqlite3.Connection]:
        """A connection to read values by."""
        return self._using()

    def _writing(self) -> AbstractContextManager[sqlite3.Connection]:
        """A connection to write values by, in a transaction."""
        return self._transaction()

    def close(self) -> None:
        """Close the file; the next use opens it again. A store in memory is emptied."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def get_many(self, keys: Iterable[str], collection: str = DEFAULT_COLLECTION) -> dict[str, CacheEntry]:
        """The values of those keys that exist, in the order of `keys`."""
        with self._reading() as connection:
            rows = sqlite_layout.find_many(connection, list(keys), collection)
        return {key: json.loads(value) for key, value in rows.items()}

    def get_all(self, collection: str = DEFAULT_COLLECTION) -> dict[str, CacheEntry]:
        """All values of a collection by key, in the order of the keys."""
        with self._reading() as connection:
            rows = sqlite_layout.find_all(connection, collection)
        return {key: json.loads(value) for key, value in rows}

    def put_all(
        self,
        kv_pairs: list[tuple[str, CacheEntry]],
        collection: str = DEFAULT_COLLECTION,
        batch_size: int = DEFAULT_BATCH_SIZE,
    ) -> None:
        """Write many values in one transaction, whatever the `batch_size`.

        The bytes of values that are replaced are removed from the log by the next delete or :meth:`clean`.
        """
        rows = [(key, json.dumps(value)) for key, value in kv_pairs]
        with self._writing() as connection:
            for key, value in rows:
                self._unclean |= sqlite_layout.put(connection, key, value, collection)

    def delete_all(self, keys: Iterable[str], collection: str = DEFAULT_COLLECTION, *, clean: bool = True) -> int:
        """Delete many keys in one transaction; returns how many of them existed.

        Parameters
        ----------
        clean : whether the log is emptied afterwards; otherwise :meth:`clean` must be called
        """
        with self._writing() as connection:
            found = sum(sqlite_layout.empty(connection, key, collection) for key in keys)
            self._unclean |= found > 0
        if clean and found:
            self.clean()
        return found

    def collections(self) -> list[str]:
        """The names of all collections that have values."""
        with self._reading() as connection:
            return sqlite_layout.collections_of(connection)

    def drop(self, doomed: Callable[[str], bool]) -> int:
        """Delete all values of the collections with a doomed name in one transaction; returns their number.

        :meth:`clean` must be called afterwards.
        """
        with self._writing() as connection:
            found = sum(
                sqlite_layout.empty(connection, key, collection)
                for collection in filter(doomed, sqlite_layout.collections_of(connection))
                for key, _ in sqlite_layout.find_all(connection, collection)
            )
            self._unclean |= found > 0
        return found

    def update(
        self, changes: Mapping[str, EntryChange], collection: str = DEFAULT_COLLECTION
    ) -> dict[str, CacheEntry | None]:
        """Read, change and write entries in one transaction."""
        after = self._update(changes, collection)
        if any(value is None for value in after.values()):
            self.clean()
        return after

    def _update(self, changes: Mapping[str, EntryChange], collection: str) -> dict[str, CacheEntry | None]:
        with self._writing() as connection:
            after, gone = sqlite_layout.update(connection, changes, collection)
            self._unclean |= gone
        return after

    def check_writable(self) -> None:
        """Check that values may be written.

        Raises
        ------
        ReadOnlyError
        """
        with self._using() as connection:
            sqlite_layout.check_writable(connection)

    def clean(self) -> bool:
        """Remove the bytes of deleted and replaced values from the files.

        Returns
        -------
        Whether that is done. If not, a process has been reading the file for seconds; a thread waits until it ends.

        Raises
        ------
        StorageError
            If the files cannot be written. The next call tries again.
        """
        with self._using():
            waits = self._cleaner is not None
            if self._clean(0.0 if waits else _READER_SECONDS):
                return True
            if not waits:
                logger.warning("%s is being read elsewhere; its log keeps deleted entries until then.", self._path)
            return False

    def _clean(self, seconds: float) -> bool:
        """Empty the log, after a wait of some seconds for its readers; start the thread that does it otherwise."""
        connection = self._connection
        if not self._unclean or connection is None:
            return True
        connection.execute(f"PRAGMA busy_timeout = {round(1000 * seconds)}").fetchall()
        self._unclean = False  # before: what is deleted meanwhile, over another connection, is for the next call
        busy = True
        try:
            try:
                sqlite_layout.rewrite(connection)
                busy = bool(connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0])
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) and not sqlite_layout.is_readonly(error):
                    raise
                busy = "locked" in str(error)  # else it is left to those who may write
        finally:
            self._unclean |= busy
            connection.execute(f"PRAGMA busy_timeout = {round(1000 * sqlite_layout.BUSY_SECONDS)}").fetchall()
        if busy and self._cleaner is None:
            self._cleaner = threading.Thread(target=self._clean_later, args=(os.getpid(),), daemon=True)
            self._cleaner.start()
        return not busy

    def _clean_later(self, pid: int) -> None:
        done = False
        while not done:
            time.sleep(_RETRY_SECONDS)
            with self._lock:
                try:
                    done = pid != os.getpid() or self._clean(0.0)
                except sqlite3.Error as error:
                    logger.warning("%s cannot be cleaned of deleted entries: %s", self._path, error)
                    done = True
                if done:
                    self._cleaner = None
