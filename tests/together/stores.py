"""Real stores, each opened as a new process would open it.

A `Backend` needs nothing of what an earlier `open` gave but the tag, which names its tables and collections.
"""

import json
import os
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from llama_index.core import StorageContext

DIM = 32  # of `HashEmbedding`


@dataclass(frozen=True)
class Opened:
    """Stores at hand.

    context : as a user would make it
    options : what the index must be given beside it
    dump : everything that is kept outside the context's folder, as text
    """

    context: StorageContext
    options: dict[str, Any]
    dump: Callable[[], str]


@dataclass(frozen=True)
class Backend:
    """Where an index is kept.

    remote : whether it opens without a folder
    """

    name: str
    open: Callable[[str, Path, ExitStack], Opened]
    variable: str | None = None
    remote: bool = False

    def address(self) -> str:
        return os.environ[self.variable or ""]

    def skip_unless_there(self) -> None:
        if self.variable and not os.environ.get(self.variable):
            pytest.skip(f"{self.variable} is not set")


def postgres(tag: str, folder: Path, stack: ExitStack) -> Opened:
    pytest.importorskip("llama_index.storage.docstore.postgres")
    pytest.importorskip("llama_index.vector_stores.postgres")
    from llama_index.storage.docstore.postgres import PostgresDocumentStore
    from llama_index.storage.index_store.postgres import PostgresIndexStore
    from llama_index.storage.kvstore.postgres import PostgresKVStore
    from llama_index.vector_stores.postgres import PGVectorStore
    from sqlalchemy import create_engine, text
    from sqlalchemy.ext.asyncio import create_async_engine
    from sqlalchemy.pool import NullPool

    url = os.environ["PG_DSN"].split("://", 1)[1]
    engine = create_engine(f"postgresql+psycopg2://{url}")
    stack.callback(engine.dispose)
    # Without a pool, so that no connection outlives the event loop that it was made on.
    engines = {"engine": engine, "async_engine": create_async_engine(f"postgresql+asyncpg://{url}", poolclass=NullPool)}
    kv = PostgresKVStore(table_name=f"kv_{tag}", **engines)

    def dump() -> str:
        with engine.connect() as connection:
            tables = [f"data_kv_{tag}", f"data_chunks_{tag}"]
            return "\n".join(str(row) for table in tables for row in connection.execute(text(f"TABLE {table}")))

    return Opened(
        StorageContext.from_defaults(docstore=PostgresDocumentStore(kv), index_store=PostgresIndexStore(kv)),
        {"vector_store": PGVectorStore(table_name=f"chunks_{tag}", embed_dim=DIM, **engines)},
        dump,
    )


def redis(tag: str, folder: Path, stack: ExitStack) -> Opened:
    pytest.importorskip("llama_index.storage.docstore.redis")
    from llama_index.storage.docstore.redis import RedisDocumentStore
    from llama_index.storage.index_store.redis import RedisIndexStore
    from llama_index.storage.kvstore.redis import RedisKVStore

    kv = RedisKVStore(os.environ["REDIS_URL"])
    client = kv._redis_client
    stack.callback(client.close)

    def dump() -> str:
        return "\n".join(str(client.hgetall(key)) for key in client.scan_iter())

    return Opened(
        StorageContext.from_defaults(
            docstore=RedisDocumentStore(kv, namespace=f"nodes_{tag}"),
            index_store=RedisIndexStore(kv, namespace=f"indexes_{tag}"),
        ),
        {},
        dump,
    )


def lancedb(tag: str, folder: Path, stack: ExitStack) -> Opened:
    store = lancedb_store(uri=str(folder / "lance"), table_name=f"chunks_{tag}")

    def dump() -> str:
        return json.dumps(store.table.to_arrow().to_pylist())

    return Opened(_local(folder), {"vector_store": store}, dump)


def lancedb_store(**options: Any) -> Any:
    """A store of LanceDB that deletes: the adapter 0.6.0 quotes values as SQL quotes names, and deletes nothing."""
    pytest.importorskip("llama_index.vector_stores.lancedb")
    from llama_index.vector_stores.lancedb import LanceDBVectorStore

    class QuotedLanceDB(LanceDBVectorStore):
        def delete(self, ref_doc_id: str, **kwargs: Any) -> None:
            self.table.delete(f"{self.doc_id_key} = {quoted(ref_doc_id)}")

        def delete_nodes(self, node_ids: list[str] | None = None, filters: Any = None, **kwargs: Any) -> None:
            self.table.delete(f"id in ({', '.join(map(quoted, node_ids or []))})")

    return QuotedLanceDB(**options)


def quoted(value: str) -> str:
    escaped = value.replace("'", "''")
    return f"'{escaped}'"


def qdrant(tag: str, folder: Path, stack: ExitStack) -> Opened:
    pytest.importorskip("llama_index.vector_stores.qdrant")
    from llama_index.vector_stores.qdrant import QdrantVectorStore
    from qdrant_client import QdrantClient

    client = QdrantClient(path=str(folder / "qdrant"))
    stack.callback(client.close)

    def dump() -> str:
        return str(client.scroll(f"chunks_{tag}", limit=10_000, with_payload=True))

    return Opened(_local(folder), {"vector_store": QdrantVectorStore(f"chunks_{tag}", client=client)}, dump)


def milvus(tag: str, folder: Path, stack: ExitStack) -> Opened:
    pytest.importorskip("milvus_lite")
    pytest.importorskip("llama_index.vector_stores.milvus")
    from llama_index.vector_stores.milvus import MilvusVectorStore

    store = MilvusVectorStore(
        uri=str(folder / "milvus.db"),
        collection_name=f"chunks_{tag}",
        dim=DIM,
        similarity_metric="COSINE",
        consistency_level="Strong",
    )
    stack.callback(store.client.close)

    def dump() -> str:
        return str(store.client.query(f"chunks_{tag}", filter="", limit=10_000, output_fields=["*"]))

    return Opened(_local(folder), {"vector_store": store}, dump)


def _local(folder: Path) -> StorageContext:
    stored = folder / "stored"
    return StorageContext.from_defaults(persist_dir=str(stored)) if stored.exists() else StorageContext.from_defaults()


BACKENDS = [
    Backend("postgres", postgres, "PG_DSN", remote=True),
    Backend("redis", redis, "REDIS_URL", remote=True),
    Backend("lancedb", lancedb),
    Backend("qdrant", qdrant),
    Backend("milvus", milvus),
]
