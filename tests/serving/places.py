"""Databases with vector stores, each opened as a new process would open it."""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import pytest
from llama_index.core.vector_stores.types import BasePydanticVectorStore
from sqlalchemy import Engine, text
from tests.sql.conftest import schema

from llama_index.ragkit import MatrixVectorStore
from llama_index.ragkit.sql import SQLStorageContext, make_engine, reading, storage_context

__all__ = ["EVERYWHERE", "PLACES", "Place", "everything_in"]

Factory = Callable[[str, int], BasePydanticVectorStore]


def in_memory(tag: str, folder: Path) -> Factory:
    """Stores that live as long as this process, by folder."""
    made = _stores.setdefault(str(folder / tag), {})
    return lambda space, dimension: made.setdefault(space, MatrixVectorStore())


_stores: dict[str, dict[str, BasePydanticVectorStore]] = {}


def by_url(scheme: str) -> Callable[[str, Path], str]:
    """The URL of a store of a kind in the folder."""

    def url(tag: str, folder: Path) -> str:
        pytest.importorskip(f"llama_index.vector_stores.{scheme}")
        return f"{scheme}:///{folder / tag}"

    return url


def milvus(tag: str, folder: Path) -> Factory:
    pytest.importorskip("milvus_lite")
    pytest.importorskip("llama_index.vector_stores.milvus")
    from llama_index.vector_stores.milvus import MilvusVectorStore

    path = str(folder / f"{tag}.db")
    return lambda space, dimension: MilvusVectorStore(
        uri=path, collection_name=space, dim=dimension, similarity_metric="COSINE", consistency_level="Strong"
    )


def pgvector(tag: str, folder: Path) -> str:
    pytest.importorskip("llama_index.vector_stores.postgres")
    return "pgvector"


@dataclass(frozen=True)
class Kind:
    """A database and a kind of vector store."""

    name: str
    vectors: Callable[[str, Path], Factory | str]
    on_server: bool = False


PLACES = [
    Kind("sqlite", in_memory),
    Kind("sqlite-lancedb", by_url("lancedb")),
    Kind("sqlite-milvus", milvus),
    Kind("postgres-pgvector", pgvector, on_server=True),
]


EVERYWHERE = [*PLACES, Kind("sqlite-qdrant", by_url("qdrant")), Kind("sqlite-chroma", by_url("chroma"))]
"""All that there are; the folders of the last two are slow to open."""


class Place:
    """Where one test keeps its indexes."""

    def __init__(self, kind: Kind, folder: Path, stack: ExitStack, tag: str = "") -> None:
        self.kind = kind
        self.tag = tag or f"t{uuid4().hex[:8]}"
        self.folder = folder
        self._stack = stack
        self._url = f"sqlite:///{folder / 'index.db'}"
        if kind.on_server:
            if not os.environ.get("PG_DSN"):
                pytest.skip("PG_DSN is not set")
            there = f"{os.environ['PG_DSN']}?options=-csearch_path%3D{self.tag},public"
            self._url = there if tag else stack.enter_context(schema(self.tag))

    def engine(self) -> Engine:
        made = make_engine(self._url)
        self._stack.callback(made.dispose)
        return made

    def open(self, tenant: str = "") -> SQLStorageContext:
        """The context, as a process that has just started opens it."""
        return storage_context(self.engine(), vectors=self.kind.vectors(self.tag, self.folder), tenant=tenant)


def everything_in(engine: Engine) -> str:
    """All rows of the database as text."""
    return "\n".join(_rows(engine))


def _rows(engine: Engine) -> Iterator[str]:
    sqlite = engine.dialect.name == "sqlite"
    names = (
        "SELECT name FROM sqlite_master WHERE type = 'table'"
        if sqlite
        else "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()"
    )
    with reading(engine) as connection:
        for (name,) in connection.execute(text(names)).all():
            for row in connection.execute(text(f"SELECT * FROM {name}")):
                yield f"{name} {tuple(row)}"
