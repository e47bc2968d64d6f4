"""Vectors of a `PGVectorStore` are read from its table, and by its own methods where that does not work."""

import os
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import numpy as np
import pytest
from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.vector_stores.types import MetadataFilter, MetadataFilters, VectorStoreQuery
from sqlalchemy import create_engine, event, text
from sqlalchemy.orm import sessionmaker

from llama_index.ragkit import MatrixVectorStore, Records, SpaceRows
from llama_index.ragkit.errors import StorageError
from llama_index.ragkit.steps import run_steps
from llama_index.ragkit.storage import external_store
from llama_index.ragkit.storage.external_store import ExternalVectorStore
from llama_index.ragkit.storage.postgres_vectors import PostgresVectors
from llama_index.ragkit.storage.selection import Selection
from llama_index.ragkit.storage.stored_space import StoredSpace

VECTORS = np.random.default_rng(0).normal(size=(40, 8)).astype(np.float32)
IDS = [f"row '{i}' é" for i in range(40)]


def pgvector(tag: str, **options: Any) -> Any:
    pytest.importorskip("llama_index.vector_stores.postgres")
    from llama_index.vector_stores.postgres import PGVectorStore
    from sqlalchemy import create_engine
    from sqlalchemy.ext.asyncio import create_async_engine
    from sqlalchemy.pool import NullPool

    url = os.environ["PG_DSN"].split("://", 1)[1]
    # Without a pool, so that no connection outlives the event loop that it was made on.
    engines: dict[str, Any] = {
        "engine": create_engine(f"postgresql+psycopg2://{url}", poolclass=NullPool),
        "async_engine": create_async_engine(f"postgresql+asyncpg://{url}", poolclass=NullPool),
    }
    return PGVectorStore(table_name=f"Chunks_{tag}", embed_dim=8, **engines, **options)


def served(**options: Any) -> Any:
    if not os.environ.get("PG_DSN"):
        pytest.skip("PG_DSN is not set")
    made: Any = pgvector(f"t{uuid4().hex[:8]}", **options)
    run_steps(ExternalVectorStore(made).add_vectors(IDS, VECTORS))
    return made


@pytest.fixture
def store() -> Any:
    return served()


def refuse(*_: Any, **__: Any) -> Any:
    raise AssertionError("the adapter was asked")


def test_rows_are_read_from_the_table_as_they_were_written(store: Any, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(type(store), "get_nodes", refuse)
    found = run_steps(ExternalVectorStore(store).fetch_vectors([*IDS[5:30], "unknown"]))
    assert sorted(found) == sorted(IDS[5:30])
    np.testing.assert_array_equal([found[i] for i in IDS[5:30]], VECTORS[5:30])
    assert {vector.dtype for vector in found.values()} == {np.dtype(np.float32)}
    assert run_steps(ExternalVectorStore(store).fetch_vectors([])) == {}


@pytest.mark.parametrize(("top_k", "candidates"), [(12, 100), (50, 400), (125, 800), (2_000, 800)])
def test_few_rows_are_searched_for_among_fewer_candidates(top_k: int, candidates: int):
    made = served(hnsw_kwargs={"hnsw_m": 8, "hnsw_ef_construction": 32, "hnsw_ef_search": 800})
    told: list[str] = []
    event.listen(made.client, "before_cursor_execute", lambda _, __, *statement: told.append(str(statement[:2])))
    found = PostgresVectors(made).search(VECTORS[3:4], top_k)
    assert found is not None
    assert found[0][0] == IDS[3]
    (setting,) = (each for each in told if "hnsw.ef_search" in each)
    assert f"'{candidates}'" in setting


@pytest.mark.parametrize("hnsw", [None, {"hnsw_m": 8, "hnsw_ef_construction": 32, "hnsw_ef_search": 70}])
def test_the_nearest_rows_are_those_of_the_adapter(hnsw: Any, monkeypatch: pytest.MonkeyPatch):
    given = hnsw and {**hnsw, "hnsw_dist_method": "vector_cosine_ops"}
    made = served(hnsw_kwargs=given)
    asked = [VectorStoreQuery(query_embedding=vector.tolist(), similarity_top_k=12) for vector in VECTORS[3:7]]
    wanted = [made.query(each).ids for each in asked]
    told: list[str] = []
    event.listen(made.client, "before_cursor_execute", lambda _, __, *statement: told.append(str(statement[:2])))
    monkeypatch.setattr(type(made), "query", refuse)
    assert run_steps(ExternalVectorStore(made).search(VECTORS[3:7], 12)) == wanted
    assert [ids[0] for ids in wanted] == IDS[3:7]
    assert any("hnsw.ef_search" in each and "70" in each for each in told) == bool(hnsw)


def test_what_the_user_makes_of_queries_and_filters_holds(store: Any):
    where = MetadataFilters(filters=[MetadataFilter(key="year", value="none")])
    assert run_steps(ExternalVectorStore(store).search(VECTORS[3:4], 12, where)) == [[]]
    assert run_steps(ExternalVectorStore(store).search(VECTORS[3:4], 12))[0][0] == IDS[3]
    store._customize_query_fn = lambda statement, table, **kwargs: statement.where(table.node_id != IDS[3])
    assert IDS[3] not in run_steps(ExternalVectorStore(store).search(VECTORS[3:4], 12))[0]
    assert PostgresVectors(store).search(VECTORS[3:4], 12) is None


def test_a_table_of_another_form_is_read_by_the_adapter(store: Any):
    external, sessions = ExternalVectorStore(store), store._session
    store._session = sessionmaker(create_engine("sqlite://"))
    assert external._postgres.search(VECTORS[:1], 3) is None
    assert external._postgres.fetch(IDS) is None
    store._session = sessions
    found = run_steps(external.fetch_vectors(IDS))
    np.testing.assert_array_equal([found[i] for i in IDS], VECTORS)


def test_a_server_that_failed_once_is_read_again(store: Any):
    read = PostgresVectors(store)

    def fail(*_: Any) -> None:
        raise ConnectionError("gone")

    event.listen(store.client, "before_cursor_execute", fail)
    assert read.search(VECTORS[:1], 3) is None
    event.remove(store.client, "before_cursor_execute", fail)
    found = read.search(VECTORS[:1], 3)
    assert found is not None
    assert found[0][0] == IDS[0]
    store.schema_name = "nowhere"
    assert read.search(VECTORS[:1], 3) is None
    store.schema_name = "public"
    assert read.search(VECTORS[:1], 3) is None  # what is missing is not asked for at every question


@pytest.mark.parametrize("options", [{}, {"use_jsonb": True}, {"use_halfvec": True}, {"hybrid_search": True}])
def test_rows_are_written_as_the_adapter_writes_them(options: Any, monkeypatch: pytest.MonkeyPatch):
    pages = [
        TextNode(
            id_=f"page {i}",
            text="It's 5 % of {all} \\ :colons, ümlauts",
            metadata={"year": 1900 + i, "tags": ["a", 'b"'], "none": None},
            relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id="report's")},
        )
        for i in range(4)
    ]
    theirs, ours = (ExternalVectorStore(served(**options)) for _ in range(2))
    for external in (theirs, ours):
        run_steps(external.add_vectors(["first"], VECTORS[4:5]))
    monkeypatch.setattr(theirs._postgres, "add", lambda *_: None)
    run_steps(theirs.add(pages, VECTORS[:4]))
    monkeypatch.setattr(type(ours.store), "add", refuse)
    run_steps(ours.add(pages, VECTORS[:4]))
    read = []
    for external in (theirs, ours):
        store: Any = external.store
        with store.client.connect() as connection:
            columns = "node_id, text, metadata_, embedding"
            table = f"data_{store.table_name}"
            rows = connection.execute(text(f"SELECT {columns} FROM {table} WHERE node_id LIKE 'page %' ORDER BY id"))
            read.append([(*row[:3], np.asarray(row[3]).tolist()) for row in rows])
    assert read[0] == read[1]
    assert [row[0] for row in read[1]] == [page.node_id for page in pages]
    found: Any = ours.store
    assert [each.metadata for each in found.get_nodes(["page 2"])] == [pages[2].metadata]
    found.delete("report's")
    assert found.get_nodes([page.node_id for page in pages]) == []


def test_many_rows_are_written_in_parts_beside_each_other(store: Any, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(external_store, "_LEAST_PART", 7)
    external = ExternalVectorStore(store)
    run_steps(external.add_vectors(["first"], VECTORS[:1]))
    monkeypatch.setattr(type(store), "add", refuse)
    ids = [f"more {i}" for i in range(40)]
    run_steps(external.add_vectors(ids, VECTORS))
    found = run_steps(external.fetch_vectors(ids))
    np.testing.assert_array_equal([found[i] for i in ids], VECTORS)


def test_rows_that_the_table_refuses_are_not_written(store: Any):
    external = ExternalVectorStore(store)
    run_steps(external.add_vectors(["first"], VECTORS[:1]))
    with pytest.raises(StorageError, match="expected 8 dimensions, not 7"):
        run_steps(external.add_vectors(["a", "b"], VECTORS[:2, :7]))
    assert run_steps(external.fetch_vectors(["a", "b"])) == {}


def test_other_stores_are_read_by_their_adapters(store: Any):
    for other in (MatrixVectorStore(), SimpleNamespace(made=None)):
        assert PostgresVectors(other).fetch(IDS) is None  # type: ignore[arg-type]

    class Derived(type(store)):  # type: ignore[misc]
        """May read and write otherwise."""

    assert PostgresVectors(Derived.model_construct(**store.__dict__)).fetch(IDS) is None
    not_connected: Any = pgvector("unknown")
    not_connected._engine = None
    assert PostgresVectors(not_connected).fetch(IDS) is None


def test_rows_of_a_space_are_found_among_nearer_ones_of_others_whatever_was_asked_before():
    hnsw = {"hnsw_m": 8, "hnsw_ef_construction": 32, "hnsw_ef_search": 125, "hnsw_dist_method": "vector_cosine_ops"}
    made = served(hnsw_kwargs=hnsw)
    docstore = SimpleDocumentStore()
    near = VECTORS[0] + np.random.default_rng(1).normal(scale=0.1, size=(2_000, 8)).astype(np.float32)
    for name, vectors in (("others", near), ("o'brien", -near[:10])):
        ids = [f"{name} {i}" for i in range(len(vectors))]
        towns = [{"town": "AB"[i % 2]} for i in range(len(vectors))]
        space = StoredSpace("chunks", name, made, Records(docstore, name))
        run_steps(space.put(SpaceRows(ids, vectors, ids, ids, towns)))

    def found(town: str | None = None) -> int:
        filters = None if town is None else MetadataFilters(filters=[MetadataFilter(key="town", value=town)])
        return len(run_steps(space.records_near(VECTORS[0], 5, Selection(filters))))

    def fail(*_: Any) -> None:
        raise ConnectionError("gone")

    assert [found("A"), found("O'Brien"), found("A"), found()] == [5, 0, 5, 10]
    event.listen(made.client, "before_cursor_execute", fail)
    with pytest.raises(StorageError, match="gone"):
        found()
    event.remove(made.client, "before_cursor_execute", fail)
    assert [found("A"), found()] == [5, 10]
