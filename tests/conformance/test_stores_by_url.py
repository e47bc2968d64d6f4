"""The vector stores that a storage context makes from an URL, held against the public kit."""

import os
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from llama_index.core.vector_stores.types import BasePydanticVectorStore
from tests.sql.conftest import schema

from llama_index.ragkit.sql import storage_context
from llama_index.ragkit.testing import VectorStoreConformance
from llama_index.ragkit.testing.store_kit import (
    VectorDeleteNodesTests,
    VectorEmptyTests,
    VectorFilterTests,
    VectorTextTests,
    VectorThreadTests,
)

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning", "ignore::ResourceWarning")


def made(database: str, vectors: str) -> BasePydanticVectorStore:
    store = storage_context(database, vectors=vectors).space_store("chunks")
    assert store is not None
    return store


class ByURL(VectorStoreConformance, VectorTextTests, VectorDeleteNodesTests, VectorEmptyTests, VectorThreadTests):
    """Of stores in a folder."""

    scheme: str

    @pytest.fixture
    def store(self, tmp_path: Path) -> BasePydanticVectorStore:
        pytest.importorskip(f"llama_index.vector_stores.{self.scheme}")
        return made(f"sqlite:///{tmp_path / 'a.db'}", f"{self.scheme}:///{tmp_path / 'vectors'}")


class TestLanceDB(ByURL):
    """Its adapter does not know all filters."""

    scheme = "lancedb"


class TestQdrant(ByURL, VectorFilterTests):
    scheme = "qdrant"


class TestChroma(ByURL, VectorFilterTests):
    scheme = "chroma"


class TestPGVector(ByURL, VectorFilterTests):
    @pytest.fixture
    def store(self) -> Iterator[BasePydanticVectorStore]:
        if not os.environ.get("PG_DSN"):
            pytest.skip("PG_DSN is not set")
        pytest.importorskip("llama_index.vector_stores.postgres")
        with schema(f"t{uuid4().hex[:8]}") as url:
            yield made(url, "pgvector")
