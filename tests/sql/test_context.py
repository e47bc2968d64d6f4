"""A whole storage context in an SQL database: every index lives in it, and tenants are apart."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from llama_index.core import Document, VectorStoreIndex, load_index_from_storage
from llama_index.core.vector_stores.types import BasePydanticVectorStore
from sqlalchemy import Engine, text
from tests.cases import CASES, Case, ask, chunks
from tests.lifecycle.test_stores import Minimal

from llama_index.ragkit import MatrixVectorStore
from llama_index.ragkit.errors import ConfigurationError
from llama_index.ragkit.sql import SQLKVStore, make_engine, reading, storage_context
from llama_index.ragkit.testing import HashEmbedding

CANARY = "Xylocopa"


@pytest.fixture(params=CASES, ids=lambda case: case.name)
def case(request: pytest.FixtureRequest) -> Case:
    return request.param


def words(name: str) -> list[Document]:
    return [
        Document(text=f"The {name} of {place} exports cloves. {name} sails to {place}.", id_=f"{place}")
        for place in ("Zanzibar", "Lyon", "Oslo")
    ]


def everything_in(engine: Engine) -> str:
    """All rows of the database as text."""
    with reading(engine) as connection:
        tables = ["data"] if engine.dialect.name == "sqlite" else ["ragkit_records"]
        return "\n".join(
            str(tuple(row)) for table in tables for row in connection.execute(text(f"SELECT * FROM {table}"))
        )


def test_an_index_lives_in_the_database_alone(case: Case, url: str):
    index = case.build([*chunks("d", 6), *chunks("e", 2)], storage_context=storage_context(url))
    twin = case.build([*chunks("d", 6), *chunks("e", 2)])
    assert ask(index) == ask(twin)
    index.storage_context.records.engine.dispose()
    again = case.load(storage_context(url))
    assert ask(again) == ask(twin)
    for each in (again, twin):
        each.insert(Document(text=f"Zanzibar exports cloves and {CANARY}.", id_="z"))
        asyncio.run(each.adelete_ref_doc("e", delete_from_docstore=True))
    assert ask(again) == ask(twin)
    engine = make_engine(url)
    assert CANARY in everything_in(engine)
    again.delete_ref_doc("z", delete_from_docstore=True)
    assert CANARY not in everything_in(engine)
    assert set(case.load(storage_context(engine)).ref_doc_info) == {"d"}


def test_tenants_see_their_own_and_are_dropped_alone(case: Case, engine: Engine, tmp_path: Path):
    contexts = {name: storage_context(engine, tenant=name) for name in ("walrus", "narwhal", "")}
    for name, context in contexts.items():
        case.from_documents(words(name or "otter"), storage_context=context)
    for name in contexts:
        found = ask(case.load(storage_context(engine, tenant=name)), f"What does the {name} export?", top_k=50)
        assert found
        assert all((name or "otter") in each for each, _ in found)
    narwhal = ask(case.load(contexts["narwhal"]))
    assert contexts["walrus"].drop() > 0
    assert contexts["walrus"].index_store.index_structs() == []
    assert "walrus" not in everything_in(engine)
    assert ask(case.load(storage_context(engine, tenant="narwhal"))) == narwhal
    assert SQLKVStore(engine).tenants() == ["", "narwhal"]
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and b"walrus" in path.read_bytes()]


class Factory:
    """Stores by space, as a server would keep them."""

    def __init__(self) -> None:
        self.made: dict[str, Minimal] = {}
        self.asked: list[tuple[str, int]] = []

    def __call__(self, space: str, dim: int) -> BasePydanticVectorStore:
        self.asked.append((space, dim))
        return self.made.setdefault(space, Minimal())


def test_a_factory_makes_the_store_when_the_first_chunk_is_written(case: Case, url: str):
    factory = Factory()
    context = storage_context(url, vector_stores=factory)
    assert factory.asked == []
    index = case.build(chunks("d", 3), storage_context=context)
    assert factory.asked == [("chunks", 32)]
    core = VectorStoreIndex.from_vector_store(context.vector_store, embed_model=HashEmbedding())
    assert {text for text, _ in ask(core)} == {node.text for node in chunks("d", 3)}
    again = case.load(storage_context(url, vector_stores=factory))
    asyncio.run(again.adelete_nodes(["d-0"]))
    assert factory.made["chunks"].ids == {"d-1", "d-2"}
    assert factory.asked == [("chunks", 32)] * 2
    assert ask(again) != ask(index)
    context = storage_context(url, vector_stores=factory)
    context.drop()
    assert factory.made["chunks"].ids == set()
    assert context.records.get_all("docstore/data") == {}


def test_dropping_asynchronously_does_the_same(url: str):
    factory = Factory()
    context = storage_context(url, vector_stores=factory, tenant="t")
    CASES[0].build(chunks("d", 3), storage_context=context)
    assert asyncio.run(context.adrop()) > 0
    assert factory.made["chunks"].ids == set()
    assert context.records.tenants() == []


def test_a_mapping_has_stores_by_name(url: str):
    stores = {"chunks": Minimal(), "raptor_chunks": Minimal(), "mine": MatrixVectorStore()}
    context = storage_context(url, vector_stores=stores)
    raptor, toy = (next(case for case in CASES if case.name == name) for name in ("raptor", "toy"))
    raptor.build(chunks("d", 3), storage_context=context)
    toy.build(chunks("e", 2), storage_context=context)
    assert stores["raptor_chunks"].ids == {"d-0", "d-1", "d-2"}
    assert stores["chunks"].ids == {"e-0", "e-1"}
    context.drop()
    assert stores["raptor_chunks"].ids == stores["chunks"].ids == set()
    assert context.vector_stores["mine"] is stores["mine"]


@pytest.mark.parametrize("given", [Minimal(), "chroma", {"chunks": "chroma"}, 3], ids=repr)
def test_other_vector_stores_are_refused(url: str, given: Any):
    with pytest.raises(ConfigurationError, match="vector_stores="):
        storage_context(url, vector_stores=given)


def test_a_factory_of_something_else_is_refused(url: str):
    with pytest.raises(Exception, match="not a LlamaIndex vector store"):
        CASES[0].build(chunks("d", 1), storage_context=storage_context(url, vector_stores=lambda space, dim: "chroma"))


def test_a_store_on_demand_is_empty_before_its_first_row(url: str):
    store = storage_context(url, vector_stores=Factory()).vector_store
    core = VectorStoreIndex.from_vector_store(store, embed_model=HashEmbedding())
    assert core.as_retriever().retrieve("anything") == []
    assert store.get_nodes(["d-0"]) == []
    assert asyncio.run(store.aget_nodes(["d-0"])) == []
    store.delete("d")
    store.delete_nodes(["d-0"])
    store.clear()
    assert store.client is None


def test_many_small_indexes_share_one_database(engine: Engine):
    case = CASES[0]
    for i in range(40):
        case.from_documents(
            [Document(text=f"Ship {i} sails to port {i % 7}.", id_="d")],
            storage_context=storage_context(engine, tenant=f"t{i}"),
        )
    for i in (0, 17, 39):
        context = storage_context(engine, tenant=f"t{i}")
        index = load_index_from_storage(context, **case.options())
        assert [each for each, _ in ask(index)] == [f"Ship {i} sails to port {i % 7}."]
    storage_context(engine, tenant="t17").drop()
    assert len(SQLKVStore(engine).tenants()) == 39
