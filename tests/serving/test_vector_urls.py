"""Indexes whose vectors are in one vector store, named by an URL, with SQLite for the rest."""

import asyncio
import pickle
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from llama_index.core import Document, VectorStoreIndex
from llama_index.core.schema import TextNode
from llama_index.core.vector_stores.types import VectorStoreQuery
from sqlalchemy import text
from tests.cases import Case, ask, chunks
from tests.serving.places import EVERYWHERE, Place

from llama_index.ragkit.errors import ConfigurationError, UnsupportedStoreError
from llama_index.ragkit.sql import reading, storage_context
from llama_index.ragkit.testing import HashEmbedding

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning", "ignore::ResourceWarning")

IN_FOLDERS = [kind for kind in EVERYWHERE if kind.name in ("sqlite-lancedb", "sqlite-qdrant", "sqlite-chroma")]
BY_URL = [*IN_FOLDERS, *(kind for kind in EVERYWHERE if kind.on_server)]
RANDOM = np.random.default_rng(0)


@pytest.fixture(params=BY_URL, ids=lambda kind: kind.name)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    with ExitStack() as stack:
        yield Place(request.param, tmp_path, stack)


def test_an_index_lives_in_one_store_with_nothing_but_the_url(case: Case, place: Place):
    index: Any = case.build(chunks("d", 5), storage_context=place.open())
    twin: Any = case.build(chunks("d", 5))
    assert not index.storage.is_whole
    for each in (index, twin):
        each.insert(Document(text="Zanzibar exports cloves.", id_="Z"))
        each.delete_nodes([each.ref_doc_info["d"].node_ids[0]])
    assert same(ask(index), ask(twin))
    again: Any = case.load(place.open())
    asyncio.run(again.adelete_ref_doc("Z", delete_from_docstore=True))
    twin.delete_ref_doc("Z", delete_from_docstore=True)
    assert same(ask(again), ask(twin))
    assert same(ask(index), ask(twin)), "what another process has written is seen"


def same(one: list[tuple[str, float]], other: list[tuple[str, float]]) -> bool:
    assert [text for text, _ in one] == [text for text, _ in other]
    assert [score for _, score in one] == pytest.approx([score for _, score in other], abs=2e-4)
    return True


def test_the_nearest_rows_are_those_by_cosine_whatever_the_lengths(place: Place):
    store: Any = place.open().space_store("things")
    vectors = RANDOM.normal(size=(40, 8)) * RANDOM.uniform(0.1, 10, size=(40, 1))
    ids = [f"00000000-0000-4000-8000-{i:012d}" for i in range(40)]
    store.add([TextNode(id_=i, embedding=v.tolist()) for i, v in zip(ids, vectors, strict=True)])
    question = RANDOM.normal(size=8)
    cosines = vectors @ question / np.linalg.norm(vectors, axis=1)
    found = store.query(VectorStoreQuery(query_embedding=question.tolist(), similarity_top_k=5))
    assert list(found.ids) == [ids[i] for i in np.argsort(-cosines)[:5]]
    store.delete_nodes(list(found.ids[:3]))
    left = store.query(VectorStoreQuery(query_embedding=question.tolist(), similarity_top_k=2))
    assert list(left.ids) == list(found.ids[3:])


def test_two_processes_may_create_a_store_at_once(tmp_path: Path):
    """Each opens its stores before the other has written: no row replaces those of the other."""
    pytest.importorskip("llama_index.vector_stores.lancedb")
    make: Any = storage_context(f"sqlite:///{tmp_path / 'a.db'}", vectors=f"lancedb:///{tmp_path / 'v'}").factory
    ours, theirs, reader = (make("things", 2) for _ in range(3))
    ours.add([TextNode(id_="a", embedding=[1.0, 0.0])])
    theirs.add([TextNode(id_="b", embedding=[0.0, 1.0])])
    found = reader.query(VectorStoreQuery(query_embedding=[1.0, 0.1], similarity_top_k=2))
    assert list(found.ids) == ["a", "b"]


@pytest.mark.parametrize("bad", ["x' OR '1'='1", 'a"b', "a\\", "a\nb"])
def test_an_id_that_may_end_a_condition_of_lancedb_is_refused(bad: str, tmp_path: Path):
    """Those of an index are UUIDs; core's own index may bring others."""
    pytest.importorskip("llama_index.vector_stores.lancedb")
    make: Any = storage_context(f"sqlite:///{tmp_path / 'a.db'}", vectors=f"lancedb:///{tmp_path / 'v'}").factory
    store = make("things", 2)
    store.add([TextNode(id_="a", embedding=[1.0, 0.0])])
    for delete in (store.delete, lambda value: store.delete_nodes([value])):
        with pytest.raises(UnsupportedStoreError, match="may end a text"):
            delete(bad)
    assert store.table.count_rows() == 1


def test_a_context_can_be_pickled(place: Place):
    context = place.open()
    copy = pickle.loads(pickle.dumps(context))
    assert copy.in_stores
    assert copy.factory == context.factory


def test_core_s_index_may_share_the_stores(place: Place):
    """It writes to the store of the chunks, and the answers of both are as if each were alone."""
    from llama_index.sprag import RuleContext, SpRAGIndex

    context, model = place.open(), HashEmbedding()
    ours = SpRAGIndex(chunks("d", 4), extractor=RuleContext(), embed_model=model, storage_context=context)
    alone = SpRAGIndex(chunks("d", 4), extractor=RuleContext(), embed_model=model)
    VectorStoreIndex([TextNode(text="The mill on the hill.")], storage_context=context, embed_model=model)
    assert same(ask(ours), ask(alone))


def test_rows_of_pgvector_are_found_by_id_in_an_index(tmp_path: Path):
    with ExitStack() as stack:
        place = Place(next(kind for kind in EVERYWHERE if kind.on_server), tmp_path, stack)
        store: Any = place.open().space_store("things")
        store.add([TextNode(embedding=[1.0, 0.0])])
        with reading(place.engine()) as connection:
            indexes = [row[0] for row in connection.execute(text("SELECT indexdef FROM pg_indexes")).all()]
        assert any(f"{place.tag}.data_things USING btree (node_id)" in each for each in indexes)


def test_a_context_with_vector_stores_alone_still_holds_vectors_in_memory(tmp_path: Path, case: Case):
    index: Any = case.build(chunks("d", 3), storage_context=storage_context(f"sqlite:///{tmp_path / 'a.db'}"))
    assert index.storage.is_whole


@pytest.mark.parametrize(
    "vectors",
    [
        "pinecone://host",
        "lancedb",
        "lancedb://",
        "lancedb://host",
        "qdrant://",
        "qdrant://host/folder",
        "chroma://h?a=b",
    ],
)
def test_other_urls_are_refused_by_name(vectors: str, tmp_path: Path):
    with pytest.raises(ConfigurationError, match=r"vectors= is .*lancedb:///folder.* not"):
        storage_context(f"sqlite:///{tmp_path / 'a.db'}", vectors=vectors)


def test_pgvector_needs_postgresql(tmp_path: Path):
    with pytest.raises(ConfigurationError, match="needs a PostgreSQL database, not sqlite"):
        storage_context(f"sqlite:///{tmp_path / 'a.db'}", vectors="pgvector")


def test_vectors_and_vector_stores_exclude_each_other(tmp_path: Path):
    with pytest.raises(ConfigurationError, match="not both"):
        storage_context(f"sqlite:///{tmp_path / 'a.db'}", {}, vectors="lancedb:///a")


def test_an_adapter_that_is_missing_is_named_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "llama_index.vector_stores.lancedb", None)
    with pytest.raises(ImportError, match='pip install "llama-index-vector-stores-lancedb"'):
        storage_context(f"sqlite:///{tmp_path / 'a.db'}", vectors=f"lancedb:///{tmp_path}")


def test_a_password_of_a_server_is_not_shown(tmp_path: Path):
    for scheme in ("qdrant", "chroma"):
        pytest.importorskip(f"llama_index.vector_stores.{scheme}")
        context = storage_context(f"sqlite:///{tmp_path / 'a.db'}", vectors=f"{scheme}://:secret@host")
        assert "secret" not in repr(context.factory)
        assert "host" in repr(context.factory)
    with pytest.raises(ConfigurationError) as refused:
        storage_context(f"sqlite:///{tmp_path / 'a.db'}", vectors="other://:secret@host")
    assert "secret" not in str(refused.value)
