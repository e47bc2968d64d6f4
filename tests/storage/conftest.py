"""Where an index is stored: in this process, and in a database of every supported kind."""

from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from tests.sql.conftest import database

from llama_index.ragkit import MatrixVectorStore
from llama_index.ragkit.sql import make_engine
from llama_index.ragkit.sql.context import SQLStores
from llama_index.ragkit.storage.interface import Stores
from llama_index.ragkit.storage.local_storage import LocalStores


@pytest.fixture(params=["memory", "sqlite", "postgresql"])
def new_stores(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], Stores]]:
    """Makes stores of new indexes, which are empty."""
    if request.param == "memory":
        yield LocalStores
        return
    with database(request.param, tmp_path) as url:
        engine = make_engine(url)
        yield lambda: SQLStores(engine, uuid4().hex, lambda _: MatrixVectorStore())
        engine.dispose()
