"""Private parts of adapters of vector stores and of the clients under them; no other file touches these.

Adapters make their connections themselves and have no public way to tell them of a fork, or to share an engine.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, suppress
from typing import Any

from llama_index.core.vector_stores.types import BasePydanticVectorStore
from sqlalchemy import Engine
from sqlalchemy.orm import Session

__all__ = [
    "is_pgvector",
    "lacks_async_client",
    "pgvector_session",
    "pgvector_without_engine",
    "renew_connections",
    "use_engine",
]

_PGVECTOR = "llama_index.vector_stores.postgres.base"
_QDRANT = "llama_index.vector_stores.qdrant.base"

_inherited: list[Any] = []  # connections of the parents of this process: closing one may tell the server to end it


def is_pgvector(store: BasePydanticVectorStore) -> bool:
    """Whether a store is a `PGVectorStore`, and not of a class derived from it."""
    return type(store).__module__ == _PGVECTOR


def lacks_async_client(store: BasePydanticVectorStore) -> bool:
    """Whether a store is a `QdrantVectorStore` whose asynchronous methods fail, since it has no client for them."""
    return type(store).__module__ == _QDRANT and getattr(store, "_aclient", None) is None


def pgvector_without_engine(store: BasePydanticVectorStore) -> bool:
    """Whether a store is a `PGVectorStore` that is to make its engines itself, as it likes, and has not yet."""
    known: Any = store
    return is_pgvector(store) and known._engine is None and not known.create_engine_kwargs


def use_engine(store: Any, engine: Engine, session: Callable[[], AbstractContextManager[Session]]) -> None:
    """Let a `PGVectorStore` that :func:`pgvector_without_engine` set up its table by an engine, and use these sessions.

    Its asynchronous methods still make an engine of their own when they are first called.
    """
    store._engine = engine
    store._initialize()
    store._session = session


def pgvector_session(store: Any) -> AbstractContextManager[Session]:
    """A session of a `PGVectorStore`, as its own methods use it."""
    session: AbstractContextManager[Session] = store._session()
    return session


def renew_connections(store: Any) -> None:
    """Give a store in a forked process connections of its own, where they are those of SQLAlchemy or HTTPX.

    Those that were inherited are neither used nor closed.
    """
    for value in [*vars(store).values(), *(getattr(store, "__pydantic_private__", None) or {}).values()]:
        engine = getattr(value, "sync_engine", value)  # that of an `AsyncEngine`
        if isinstance(engine, Engine):
            _inherited.append(engine.pool)
            engine.dispose(close=False)
    for transport in _http_transports(store):
        pool: Any = getattr(transport, "_pool", None)
        with suppress(AttributeError):
            _inherited.append([*pool._connections, *pool._requests])
            pool._connections, pool._requests = [], []
            pool._optional_thread_lock = type(pool._optional_thread_lock)()


def _http_transports(store: Any) -> Iterator[Any]:
    """Those of the HTTPX clients of Qdrant, synchronous and asynchronous, and of Chroma."""
    names = (
        ("_client", "_client", "openapi_client", "client", "_client"),
        ("_aclient", "_client", "openapi_client", "client", "_async_client"),
        ("_collection", "_client", "_session"),
    )
    for path in names:
        client = store
        for name in path:
            client = getattr(client, name, None)
        if client is not None:
            yield getattr(client, "_transport", None)
            yield from getattr(client, "_mounts", {}).values()
