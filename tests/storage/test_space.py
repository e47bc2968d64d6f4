"""A space: exact rows near to a vector, filters, replacement and removal, as a slow search over a dictionary."""

import asyncio
import copy
import pickle
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.vector_stores.types import FilterOperator, MetadataFilters
from tests.returning_store import ReturningStore
from tests.sql.conftest import database
from tests.storage.rows import FILTERS, STORES, Approximate, all_of, exact, space_rows, unit_rows, where

from llama_index.ragkit import MatrixVectorStore, Records, Selection, SpaceRows, Steps
from llama_index.ragkit.errors import ConfigurationError
from llama_index.ragkit.sql import make_engine, storage_context
from llama_index.ragkit.steps import arun_steps, run_steps
from llama_index.ragkit.storage.interface import Space
from llama_index.ragkit.storage.stored_space import StoredSpace
from llama_index.ragkit.storage.vector_spaces import VectorSpace

NewSpace = Callable[[], Space]


def in_memory() -> Space:
    return VectorSpace("chunks", MatrixVectorStore(stores_text=False), Records(SimpleDocumentStore(), "method"))


def over(make: Callable[[], Any], records: Callable[[], Records] | None = None) -> NewSpace:
    made = records or (lambda: Records(SimpleDocumentStore(), "method"))
    return lambda: StoredSpace("chunks", "u", make(), made())


@pytest.fixture(params=["memory", *STORES, "sqlite", "postgresql"], ids=lambda each: getattr(each, "__name__", each))
def new_space(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[NewSpace]:
    """Makes empty spaces: in memory, in vector stores of many habits, with records in databases."""
    if request.param == "memory":
        yield in_memory
    elif callable(request.param):
        yield over(request.param)
    else:
        with database(request.param, tmp_path) as url:
            engine, numbers = make_engine(url), count()
            docstore = storage_context(engine).docstore
            yield over(ReturningStore, lambda: Records(docstore, f"method_{next(numbers)}"))
            engine.dispose()


@pytest.fixture
def space(new_space: NewSpace) -> Space:
    return new_space()


def is_exact(space: Space) -> bool:
    return not (isinstance(space, StoredSpace) and isinstance(space._external.store, Approximate))


def nearest(space: Space, vector: Any, k: int, filters: MetadataFilters | None = None) -> list[str]:
    return run_steps(space.near(vector[None], k, Selection(filters))).search([vector], k)[0].ids


def test_the_nearest_rows_are_those_of_the_whole_space(space: Space) -> None:
    rows = space_rows(300)
    run_steps(space.put(rows))
    for vector in unit_rows(5, seed=1):
        found = run_steps(space.near(vector[None], 100))
        assert len(found) >= 100
        (hits,) = found.search([vector], 10)
        if is_exact(space):
            assert hits.ids == exact(rows, vector, 10)
        for row_id, score in zip(hits.ids, hits.scores, strict=True):
            assert score == pytest.approx(float(rows.vectors[int(row_id[1:])] @ vector), abs=1e-6)


def test_scores_are_those_of_a_matrix_to_the_last_bit(space: Space) -> None:
    rows, matrix = space_rows(200), MatrixVectorStore(stores_text=False)
    run_steps(space.put(rows))
    matrix.put(rows.ids, rows.vectors, keys=rows.keys)
    vectors = unit_rows(4, seed=2)
    found = run_steps(space.near(vectors, 20)).search(vectors, 20)
    for hits, wanted in zip(found, matrix.query_many(vectors, 200), strict=True):
        score_of = dict(zip(wanted.ids, wanted.scores, strict=True))
        assert hits.scores == [score_of[row_id] for row_id in hits.ids]
        if is_exact(space):
            assert hits.ids == wanted.ids[:20]


@pytest.mark.parametrize("how", ["all", "filtered", "only", "both"])
def test_several_vectors_are_looked_for_as_each_alone(space: Space, how: str) -> None:
    rows = space_rows(400)
    run_steps(space.put(space_rows(30, seed=2)))  # replaced by the next line
    run_steps(space.put(rows))
    filters = all_of(where("year", 1903)) if how in ("filtered", "both") else None
    only = [f"r{i}" for i in range(0, 400, 4)] if how in ("only", "both") else None

    def keep(i: int) -> bool:
        return (filters is None or i % 10 == 3) and (only is None or i % 4 == 0)

    vectors, selection = unit_rows(7, seed=1), Selection(filters, only)
    for found in (
        run_steps(space.near(vectors, 20, selection)),
        asyncio.run(arun_steps(space.near(vectors, 20, selection))),
    ):
        assert all(keep(int(row_id[1:])) for row_id in found.ids)
        if only is not None:
            assert len(found) == sum(map(keep, range(400)))
        if is_exact(space):
            for vector, hits in zip(vectors, found.search(vectors, 20) if len(found) else [], strict=False):
                assert hits.ids == exact(rows, vector, 20, keep)
    assert len(run_steps(space.near(vectors[:0], 20, Selection(filters)))) == 0


@pytest.mark.parametrize("case", range(len(FILTERS)))
def test_filters_hold_wherever_rows_lie(space: Space, case: int) -> None:
    filters, keep = FILTERS[case]
    rows = space_rows(600)
    for metadata, document in zip(rows.metadatas, rows.ref_doc_ids, strict=True):
        metadata["ref_doc_id"] = document
    run_steps(space.put(rows))
    vector = unit_rows(1, seed=3)[0]
    found = run_steps(space.near(vector[None], 30, Selection(filters)))
    assert len(found) >= 30
    assert all(keep(int(row_id[1:])) for row_id in found.ids)
    if is_exact(space):
        assert found.search([vector], 30)[0].ids == exact(rows, vector, 30, keep)
    passing = [row_id for i, row_id in enumerate(rows.ids) if keep(i)]
    assert sorted(run_steps(space.described(None, Selection(filters))).ids) == sorted(passing)
    some = ["r3", "r17", "r24", "nowhere"]
    for read in (space.fetch, space.described):
        assert sorted(run_steps(read(some, Selection(filters))).ids) == sorted(set(some) & set(passing))


def test_a_filter_that_cannot_be_compared_is_told(space: Space) -> None:
    run_steps(space.put(space_rows(3)))
    with pytest.raises(ConfigurationError, match="cannot be compared"):
        run_steps(space.fetch(["r1"], Selection(all_of(where("year", "n/a", FilterOperator.GTE)))))


def test_rows_are_read_by_their_ids(space: Space) -> None:
    rows = space_rows(20)
    run_steps(space.put(rows))
    fetched = run_steps(space.fetch(["r7", "nowhere", "r3", "r7"]))
    assert sorted(fetched.ids) == ["r3", "r7"]
    assert np.array_equal(fetched.vectors_of(["r3", "r7"]), rows.vectors[[3, 7]])
    assert fetched.metadata_of("r7") == {"year": 1907, "tags": ["a"]}
    described = run_steps(space.described(["r7", "nowhere", "r3"]))
    assert sorted(described.ids) == ["r3", "r7"]
    assert described.record_of("r3") == fetched.record_of("r3")
    assert sorted(run_steps(space.described()).ids) == sorted(rows.ids)


def test_an_empty_space_has_no_rows(space: Space) -> None:
    run_steps(space.remove(["nowhere"]))
    run_steps(space.put(SpaceRows([], np.empty((0, 32), np.float32), [], [])))
    for found in (space.near(unit_rows(2), 5), space.fetch(["r1"]), space.described(["r1"]), space.described()):
        assert len(run_steps(found)) == 0


OPERATIONS = st.lists(
    st.tuples(st.booleans(), st.lists(st.integers(0, 11), max_size=6, unique=True), st.integers(0, 99)), max_size=8
)


@given(OPERATIONS)
@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_rows_are_what_a_dictionary_holds_after_any_writes(
    new_space: NewSpace, operations: Sequence[tuple[bool, Sequence[int], int]]
) -> None:
    space, now = new_space(), dict[str, Any]()
    for puts, numbers, seed in operations:
        ids = [f"r{i}" for i in numbers]
        if puts:
            vectors = unit_rows(len(ids), seed)
            years = [{"year": seed + i} for i in numbers]
            run_steps(space.put(SpaceRows(ids, vectors, ids, [None] * len(ids), years)))
            now |= {row_id: (vectors[i], years[i]) for i, row_id in enumerate(ids)}
        else:
            run_steps(space.remove(ids))
            now = {row_id: row for row_id, row in now.items() if row_id not in ids}
    found = run_steps(space.fetch([f"r{i}" for i in range(12)]))
    assert sorted(found.ids) == sorted(run_steps(space.described()).ids) == sorted(now)
    for row_id, (vector, metadata) in now.items():
        assert np.array_equal(found.vectors_of([row_id])[0], vector)
        assert found.metadata_of(row_id) == metadata
    question = unit_rows(1, seed=100)[0]
    cosines = {row_id: float(np.float64(vector) @ np.float64(question)) for row_id, (vector, _) in now.items()}
    assert nearest(space, question, 12) == sorted(cosines, key=lambda row_id: (-cosines[row_id], row_id))


def test_the_whole_is_what_it_was_whatever_is_written_later() -> None:
    space, rows = in_memory(), space_rows(20)
    run_steps(space.put(rows))
    whole = space.whole()
    assert whole is not None
    run_steps(space.remove(rows.ids[:10]))
    assert len(whole) == 20
    assert np.array_equal(whole.vectors_of(rows.ids), rows.vectors)
    assert len(space.whole() or ()) == 10
    assert over(MatrixVectorStore)().whole() is None


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda space: pickle.loads(pickle.dumps(space))])
def test_copies_of_a_space_in_memory_go_their_own_ways(copied: Callable[[Space], Space]) -> None:
    space, rows = in_memory(), space_rows(20)
    run_steps(space.put(rows))
    other = copied(space)
    run_steps(other.remove(["r1"]))
    assert len(run_steps(space.fetch(["r1"]))) == 1
    assert len(run_steps(other.fetch(["r1"]))) == 0


def test_asynchronous_calls_do_the_same(space: Space) -> None:
    async def live(steps: Steps[Any]) -> Any:
        return await arun_steps(steps)

    rows = space_rows(150)
    asyncio.run(live(space.put(rows)))
    vector = unit_rows(1, seed=4)[0]
    found = asyncio.run(live(space.near(vector[None], 20, Selection(all_of(where("year", 1903))))))
    assert found.search([vector], 5)[0].ids == exact(rows, vector, 5, lambda i: i % 10 == 3)
    asyncio.run(live(space.remove(rows.ids[:149])))
    assert asyncio.run(live(space.near(vector[None], 20))).ids == ["r149"]
