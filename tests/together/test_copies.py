"""Copies of indexes and of what holds them, made by `copy` and by `pickle`, here and in processes that are spawned."""

import copy
import os
import pickle
import threading
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from datetime import timedelta
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest
from llama_index.core.llms import MockLLM
from tests.cases import CASES, QUESTION, Case, ask, chunks, retriever, told
from tests.together.plugins import has_postprocessor, postprocessor
from tests.together.stores import lancedb_store

from llama_index.ragkit import HybridRetriever
from llama_index.ragkit.sql import make_engine, storage_context
from llama_index.ragkit.testing import HashEmbedding

pytestmark = pytest.mark.pairs

each_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
Copying = Callable[[Any], Any]


def pickled(thing: Any) -> Any:
    return pickle.loads(pickle.dumps(thing))


copying = pytest.mark.parametrize("copied", [copy.deepcopy, pickled], ids=["deepcopy", "pickle"])


@each_case
@copying
def test_a_copy_answers_alike_and_is_written_apart(case: Case, copied: Copying) -> None:
    index = case.build([*chunks("d", 4), *chunks("e", 2)])
    before = ask(index)
    other = copied(index)
    assert ask(other) == before
    assert repr(other) == repr(index)
    other.delete_ref_doc("d", delete_from_docstore=True)
    assert (ask(index), set(index.ref_doc_info), set(other.ref_doc_info)) == (before, {"d", "e"}, {"e"})
    index.insert_nodes(chunks("f", 2))
    assert "f" not in other.ref_doc_info


@each_case
@copying
def test_what_holds_an_index_is_copied_with_it(case: Case, copied: Copying) -> None:
    index = case.build(chunks("d", 4))
    asks = retriever(index, similarity_top_k=3)
    found = asks.retrieve(QUESTION)
    assert told(copied(asks).retrieve(QUESTION)) == told(found)
    engine = index.as_query_engine(llm=MockLLM(max_tokens=3), similarity_top_k=3)
    assert told(copied(engine).query(QUESTION).source_nodes) == told(engine.query(QUESTION).source_nodes)
    if has_postprocessor(case):
        reranks = postprocessor(case, index)
        wanted = told(reranks.postprocess_nodes(found, query_str=QUESTION))
        for other in (copied(reranks), reranks.model_copy(deep=True)):
            assert told(other.postprocess_nodes(found, query_str=QUESTION)) == wanted


@copying
def test_a_hybrid_retriever_is_copied(copied: Copying) -> None:
    near = HybridRetriever(chunks("d", 6), HashEmbedding(), similarity_top_k=3)
    other = copied(near)
    assert told(other.retrieve(QUESTION)) == told(near.retrieve(QUESTION))
    other.delete_nodes([node.node_id for node in chunks("d", 6)])
    assert len(near) == 6


def lancedb_in(space: str, dimension: int) -> Any:
    """Vector stores in the folder FOLDER, for a factory that other processes import."""
    lancedb = pytest.importorskip("lancedb")
    connection = lancedb.connect(os.environ["FOLDER"], read_consistency_interval=timedelta(0))
    return lancedb_store(connection=connection, table_name=space)


SERVED = [case for case in CASES if case.name != "toy"]


@pytest.mark.parametrize("case", SERVED, ids=lambda case: case.name)
@copying
def test_a_copy_of_an_index_in_stores_is_another_view_of_it(
    case: Case, copied: Copying, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("lancedb")
    monkeypatch.setenv("FOLDER", str(tmp_path / "vectors"))
    context = storage_context(f"sqlite:///{tmp_path}/index.db", vectors=lancedb_in)
    index = case.build(chunks("d", 3), storage_context=context)
    other = copied(retriever(index, similarity_top_k=10))
    assert told(other.retrieve(QUESTION)) == ask(index)
    index.insert_nodes(chunks("e", 2))
    assert told(other.retrieve(QUESTION)) == ask(index)


def test_a_copy_keeps_to_the_connections_that_its_process_may_open() -> None:
    if not os.environ.get("PG_DSN"):
        pytest.skip("PG_DSN is not set")
    context = pickled(storage_context(make_engine(os.environ["PG_DSN"], pool_size=3, pool_timeout=5)))
    assert (context.records.engine.pool.size(), context.records.engine.pool.timeout()) == (3, 5)


def answer(asks: Any) -> list[tuple[str, float]]:
    return told(asks.retrieve(QUESTION))


def test_retrievers_answer_in_processes_that_are_spawned() -> None:
    asking = [retriever(case.build(chunks("d", 4)), similarity_top_k=5) for case in CASES]
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        assert list(pool.map(answer, asking)) == list(map(answer, asking))


@each_case
def test_a_copy_is_made_between_two_writes(case: Case) -> None:
    index = case.build(chunks("d", 2))
    done = threading.Event()

    def write() -> None:
        for number in range(6):
            index.insert_nodes(chunks(f"w{number}", 2))
        done.set()

    writing = threading.Thread(target=write)
    writing.start()
    copies = []
    while not done.is_set():
        copies.append(pickle.dumps(index))
    writing.join()
    for each in {len(data): data for data in copies}.values():
        other = pickle.loads(each)
        assert not other.unfinished
        assert all(len(info.node_ids) == 2 for info in other.ref_doc_info.values())
        assert ask(other)
