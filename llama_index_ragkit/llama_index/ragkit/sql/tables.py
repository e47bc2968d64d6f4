"""`Tables`: tables created when a database is first used, by however many processes at once."""

import re
from collections.abc import Sequence
from contextlib import AbstractContextManager
from contextvars import Context
from weakref import WeakSet

from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import IntegrityError, OperationalError, ProgrammingError

from llama_index.ragkit.errors import StorageError
from llama_index.ragkit.forks import ProcessLock
from llama_index.ragkit.sql.engine import is_joined, reading, writing

__all__ = ["Tables"]

_NAME = re.compile(r"(?:TABLE|INDEX) IF NOT EXISTS (\w+)")


class Tables:
    """Statements that create missing tables and indexes."""

    def __init__(self, *statements: str, sqlite: Sequence[str] = ()) -> None:
        self._statements, self._sqlite = statements, sqlite or statements
        self._made: WeakSet[Engine] = WeakSet()
        self._lock = ProcessLock()

    def make(self, engine: Engine) -> None:
        """Create them, once per engine."""
        with self._lock:
            if engine in self._made:
                return
            # Checked outside any surrounding transaction, which may be rolled back with its tables.
            if Context().run(self._are_there, engine):
                self._made.add(engine)
                return
            for attempt in range(3):
                try:
                    with writing(engine) as connection:
                        for statement in self._for(engine):
                            connection.execute(text(statement))
                    break
                except StorageError as error:
                    # On PostgreSQL, IF NOT EXISTS fails if another process creates the same table at that moment.
                    if attempt == 2 or not isinstance(
                        error.__cause__, IntegrityError | OperationalError | ProgrammingError
                    ):
                        raise
            if not is_joined(engine):
                self._made.add(engine)

    def reading(self, engine: Engine, *, single: bool = False) -> AbstractContextManager[Connection]:
        """As :func:`~llama_index.ragkit.sql.reading`; the tables are there."""
        self.make(engine)
        return reading(engine, single=single)

    def writing(self, engine: Engine) -> AbstractContextManager[Connection]:
        """As :func:`~llama_index.ragkit.sql.writing`; the tables are there."""
        self.make(engine)
        return writing(engine)

    def _for(self, engine: Engine) -> Sequence[str]:
        return self._sqlite if engine.dialect.name == "sqlite" else self._statements

    def _are_there(self, engine: Engine) -> bool:
        """Whether all of them exist. Then there is nothing to write, and no other writer to wait for."""
        names = {name for statement in self._for(engine) for name in _NAME.findall(statement)}
        query = (
            "SELECT name FROM sqlite_master"
            if engine.dialect.name == "sqlite"
            else "SELECT relname FROM pg_class WHERE pg_table_is_visible(oid)"
        )
        with reading(engine, single=True) as connection:
            return names <= set(connection.execute(text(query)).scalars())
