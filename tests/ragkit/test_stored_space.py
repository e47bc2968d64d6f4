"""A space in a vector store: exact scores from approximate candidates, and nothing of others.

What it shares with a space in memory is in `tests/storage/test_space.py`.
"""

import asyncio
import json
import os
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.schema import BaseNode, TextNode
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.vector_stores.types import (
    BasePydanticVectorStore,
    FilterCondition,
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
    VectorStoreQuery,
    VectorStoreQueryResult,
)
from numpy.typing import NDArray
from tests.returning_store import ReturningStore
from tests.storage.rows import DIM, FILTERS, STORES, Approximate, all_of, exact, space_rows, unit_rows, where
from tests.together.stores import lancedb, postgres, qdrant

from llama_index.ragkit import MatrixVectorStore, Records, SpaceRows
from llama_index.ragkit.errors import ConfigurationError, HalfWrittenError, StorageError, UnsupportedStoreError
from llama_index.ragkit.steps import Steps, arun_steps, run_steps
from llama_index.ragkit.storage.external_store import ExternalVectorStore
from llama_index.ragkit.storage.selection import EVERYTHING, Selection
from llama_index.ragkit.storage.stored_space import SPACE, StoredSpace, label_of
from llama_index.ragkit.vectors.filters import is_comparable, matches, relaxed, select
from llama_index.ragkit.vectors.snapshot import Hits, Snapshot


class OfDocuments(MatrixVectorStore):
    """Deletes by document alone."""

    def delete_nodes(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError


class Deaf(MatrixVectorStore):
    def delete(self, ref_doc_id: str, **kwargs: Any) -> None:
        raise NotImplementedError


each_store = pytest.mark.parametrize("make", STORES, ids=lambda make: make.__name__)


def records_of(uid: str, docstore: SimpleDocumentStore | None = None) -> Records:
    return Records(docstore or SimpleDocumentStore(), f"method_{uid}")


def candidates(
    space: StoredSpace, vector: NDArray[np.float32], wanted: int, selection: Selection = EVERYTHING
) -> Steps[Snapshot]:
    return (yield from space.rows((yield from space.records_near(vector, wanted, selection))))


def answer(
    space: StoredSpace, vector: NDArray[np.float32], k: int, filters: MetadataFilters | None = None
) -> list[str]:
    found = run_steps(candidates(space, vector, k, Selection(filters)))
    return found.search([vector], k)[0].ids


def count(store: BasePydanticVectorStore) -> int:
    """The number of rows in a store."""
    return store.rows if isinstance(store, Approximate) else len(store.snapshot())  # type: ignore[attr-defined]


def killed(store: BasePydanticVectorStore, rows: SpaceRows, write: str) -> None:
    """A write whose records are gone, as those of a transaction that was rolled back."""
    space = StoredSpace("chunks", "u", store, records_of("u"))
    run_steps(space.begin(write, [], DIM))
    run_steps(space.put(rows))


@each_store
def test_what_a_killed_write_has_left_is_deleted_and_nothing_else(make: Callable[[], BasePydanticVectorStore]) -> None:
    store, rows = make(), space_rows(3)
    other = StoredSpace("chunks", "v", store, records_of("v"))
    run_steps(other.begin("killed", [], DIM))
    run_steps(other.put(rows))
    killed(store, space_rows(5), "killed")
    space = StoredSpace("chunks", "u", store, records_of("u"))
    run_steps(space.begin("next", ["killed"], DIM))
    assert count(store) == len(rows.ids)
    run_steps(space.put(rows))  # under the ids that the killed write has used
    run_steps(space.settle(["killed"]))
    for each in (space, other):
        assert sorted(run_steps(each.fetch(rows.ids)).ids) == rows.ids
        assert sorted(answer(each, rows.vectors[0], 3)) == rows.ids


@each_store
@pytest.mark.parametrize("left", [["killed"], []])
def test_a_cleared_space_keeps_nothing_of_killed_writes(
    make: Callable[[], BasePydanticVectorStore], left: list[str]
) -> None:
    store, rows = make(), space_rows(3)
    other = StoredSpace("topics", "u", store, records_of("u"))
    run_steps(other.put(rows))
    killed(store, space_rows(5), "killed")
    run_steps(StoredSpace("chunks", "u", store, records_of("u")).clear(left))
    by_label = make is not Approximate  # which knows no filters
    assert count(store) == len(rows.ids) + (0 if left or by_label else 5)
    assert sorted(run_steps(other.fetch(rows.ids)).ids) == rows.ids


@each_store
def test_rows_are_replaced_and_deleted_exactly(make: Callable[[], BasePydanticVectorStore]) -> None:
    store, docstore = make(), SimpleDocumentStore()
    space = StoredSpace("chunks", "u", store, records_of("u", docstore))
    run_steps(space.put(space_rows(20)))
    new = space_rows(5, seed=9)
    run_steps(space.put(new))
    assert answer(space, new.vectors[2], 1) == ["r2"]
    assert np.array_equal(run_steps(space.fetch(["r2"])).matrix[0], new.vectors[2])
    run_steps(space.remove(["r2", "r11", "nowhere"]))
    left = run_steps(candidates(space, new.vectors[2], 50))
    assert sorted(left.ids) == sorted(f"r{i}" for i in range(20) if i not in (2, 11))
    again = StoredSpace("chunks", "u", store, records_of("u", docstore))
    assert sorted(run_steps(candidates(again, new.vectors[2], 50)).ids) == sorted(left.ids)
    run_steps(again.clear())
    assert len(run_steps(candidates(again, new.vectors[2], 50))) == 0
    assert count(store) == 0


@each_store
def test_spaces_and_indexes_that_share_a_store_are_apart(make: Callable[[], BasePydanticVectorStore]) -> None:
    store, docstore = make(), SimpleDocumentStore()
    spaces = [StoredSpace(name, uid, store, records_of(uid, docstore)) for name in "ab" for uid in "uv"]
    for i, space in enumerate(spaces):
        run_steps(space.put(space_rows(40, seed=i)))
    vector = unit_rows(1, seed=5)[0]
    for i, space in enumerate(spaces):
        assert run_steps(space.fetch(["r1"])).ids == ["r1"]
        assert len(run_steps(candidates(space, vector, 40))) == 40
        if make is not Approximate:
            assert answer(space, vector, 5) == exact(space_rows(40, seed=i), vector, 5)
    run_steps(spaces[0].clear())
    assert [len(run_steps(candidates(space, vector, 50))) for space in spaces] == [0, 40, 40, 40]


@each_store
@pytest.mark.parametrize("how", ["alone", "shared"])
def test_several_vectors_are_looked_for_as_each_alone(make: Callable[[], BasePydanticVectorStore], how: str) -> None:
    store, docstore = make(), SimpleDocumentStore()
    space = StoredSpace("chunks", "u", store, records_of("u", docstore))
    rows = space_rows(400)
    run_steps(space.put(space_rows(30, seed=2)))  # replaced by the next line, so that these rows have later versions
    run_steps(space.put(rows))
    run_steps(space.settle())
    if how == "shared":
        other = StoredSpace("topics", "u", store, records_of("u", docstore))
        run_steps(other.put(space_rows(900, seed=3, prefix="o")))
    vectors = list(unit_rows(7, seed=1))
    for found in (
        run_steps(space.records_near_each(vectors, 20, least=20)),
        asyncio.run(arun_steps(space.records_near_each(vectors, 20, least=20))),
    ):
        for vector, records in zip(vectors, found, strict=True):
            assert len(records) >= 20
            if make is not Approximate:
                near = run_steps(space.rows(records))
                assert near.search([vector], 20)[0].ids == exact(rows, vector, 20)
    assert run_steps(space.records_near_each([], 20)) == []


@each_store
def test_vectors_are_read_by_id_alone(make: Callable[[], BasePydanticVectorStore]) -> None:
    store, docstore, rows = make(), SimpleDocumentStore(), space_rows(40)
    space = StoredSpace("chunks", "u", store, records_of("u", docstore))
    assert run_steps(space.vectors_of(["r1"])) == {}
    run_steps(space.put(rows))
    run_steps(space.put(space_rows(5)))  # the first five again, as rows of a later version
    run_steps(space.remove(["r7"]))
    run_steps(space.settle())
    for each in (space, StoredSpace("chunks", "u", store, records_of("u", docstore))):
        found = run_steps(each.vectors_of(["r30", "r2", "unknown", "r7", "r9"]))
        assert list(found) == ["r30", "r2", "r9"]
        np.testing.assert_array_equal(list(found.values()), rows.vectors[[30, 2, 9]])


def test_more_rows_are_asked_for_until_enough_pass() -> None:
    store = Approximate()
    space = StoredSpace("chunks", "u", store, records_of("u"))
    run_steps(space.put(space_rows(700)))
    found = run_steps(candidates(space, unit_rows(1)[0], 50, Selection(all_of(where("year", 1903)))))
    assert len(found) >= 50
    assert store._asked == [100, 400, 1600]


def one_of(key: str, *texts: str) -> MetadataFilter:
    return where(key, list(texts), FilterOperator.IN)


def test_only_equality_goes_down_to_a_store() -> None:
    same, other = where("year", 1903), where("year", 1903, FilterOperator.NE)
    asked = one_of("year", "1903", "1903.0")
    for filters, wanted in (
        (None, None),
        (all_of(other), None),
        (all_of(same, other), all_of(asked)),
        (all_of(same, other, condition=FilterCondition.OR), None),
        (all_of(same, condition=FilterCondition.NOT), None),
        (
            all_of(all_of(same, same, condition=FilterCondition.OR), all_of(other)),
            all_of(all_of(asked, asked, condition=FilterCondition.OR)),
        ),
        (all_of(where("ref_doc_id", "d")), None),
        (all_of(where("year", 0.5)), None),
        (all_of(where("year", [], FilterOperator.IN)), None),
        (all_of(where("year", "1903", FilterOperator.IN)), None),
        (all_of(where("year", 10**15)), None),
        (
            all_of(where("year", [1, 0], FilterOperator.IN)),
            all_of(one_of("year", "1", "1.0", "true", "0", "0.0", "-0.0", "false")),
        ),
        (all_of(where("town", "a\x00b")), None),
        (all_of(where("town", "\ud800")), None),
        (all_of(where("a\x00b", "Ayr")), None),
        (all_of(*[same] * 101), all_of(*[asked] * 100)),
        (all_of(*[same] * 101, condition=FilterCondition.OR), None),
    ):
        assert relaxed(filters, "as JSON") == wanted
        if filters is not None and wanted is None:
            assert relaxed(filters, "as text") is None


def test_stores_that_compare_in_ways_of_their_own_are_asked_for_texts_under_plain_keys_alone() -> None:
    town = where("town", "O'Brien")
    assert relaxed(all_of(town), "as text") == all_of(one_of("town", "O'Brien"))
    for kept_from_it in (where("year", 1903), where("at.town", "Ayr"), where("town", [1, 2], FilterOperator.IN)):
        assert relaxed(all_of(kept_from_it), "as text") is None
        assert relaxed(all_of(kept_from_it), "as JSON") is not None


VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 3), st.sampled_from([1.0, -0.0, 0.0, 2.5, "", "1", "true", "a", [1]])
)


@given(VALUES, st.sampled_from([FilterOperator.EQ, FilterOperator.IN]), VALUES | st.lists(VALUES, max_size=3))
def test_whatever_passes_a_filter_passes_what_goes_down_to_the_store(
    have: Any, operator: FilterOperator, want: Any
) -> None:
    filter_ = MetadataFilter.model_construct(key="k", value=want, operator=operator)
    pushed = relaxed(MetadataFilters.model_construct(filters=[filter_], condition=FilterCondition.AND), "as JSON")
    try:
        passes = matches(have, filter_)
    except TypeError:  # cannot be compared, which is told when the filter is checked again
        return
    if passes and pushed is not None:
        assert (have if isinstance(have, str) else json.dumps(have)) in pushed.filters[0].value  # type: ignore[union-attr]


CONDITIONS = st.builds(
    where,
    st.sampled_from(["year", "tags", "ref_doc_id"]),
    st.sampled_from([1903, "d3", "a"]),
    st.sampled_from([FilterOperator.EQ, FilterOperator.NE, FilterOperator.GT, FilterOperator.CONTAINS]),
)


def groups(parts: st.SearchStrategy[Any]) -> st.SearchStrategy[MetadataFilters]:
    return st.builds(
        lambda filters, condition: all_of(*filters, condition=condition),
        st.lists(parts, max_size=3),
        st.sampled_from(list(FilterCondition)),
    )


@given(st.recursive(groups(CONDITIONS), lambda group: groups(CONDITIONS | group), max_leaves=4))
def test_a_store_that_compares_as_the_index_does_leaves_out_no_row_that_passes(filters: MetadataFilters) -> None:
    rows = space_rows(20)
    stored = [{key: value for key, value in one.items() if is_comparable(value)} for one in rows.metadatas]
    ours, its = (MatrixVectorStore(stores_text=False) for _ in range(2))
    ours.put(rows.ids, rows.vectors, ref_doc_ids=rows.ref_doc_ids, metadatas=rows.metadatas)
    its.put(rows.ids, rows.vectors, metadatas=stored)
    try:
        passing = select(ours.snapshot(), filters)
        found = select(its.snapshot(), relaxed(filters, "as here"))
    except ConfigurationError:  # the index tells it, or asks the store without the filter
        return
    assert not np.any(passing & ~found)


def test_a_store_that_compares_as_the_index_does_is_asked_once_with_the_whole_filter(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[tuple[int, MetadataFilters]] = []
    query_many = MatrixVectorStore.query_many

    def noted(self: MatrixVectorStore, vectors: Any, k: int, **kwargs: Any) -> list[Hits]:
        asked.append((k, kwargs["filters"]))
        return query_many(self, vectors, k, **kwargs)

    monkeypatch.setattr(MatrixVectorStore, "query_many", noted)
    store, records, rows = MatrixVectorStore(), records_of("u"), space_rows(700)
    space = StoredSpace("chunks", "u", store, records)
    run_steps(space.put(rows))
    late = all_of(where("year", 1908, FilterOperator.GTE))
    vector = unit_rows(1, seed=5)[0]
    assert answer(space, vector, 50, late) == exact(rows, vector, 50, lambda i: i % 10 >= 8)
    assert [k for k, _ in asked] == [100]

    # A year of another index that shares the store is a text.
    other = StoredSpace("chunks", "other", store, records_of("other"))
    run_steps(other.put(replace(space_rows(3, seed=9, prefix="o"), metadatas=[{"year": "unknown"}] * 3)))
    assert answer(space, vector, 50, late) == exact(rows, vector, 50, lambda i: i % 10 >= 8)
    with pytest.raises(ConfigurationError, match="'unknown'"):
        answer(other, vector, 3, late)


class Counting(MatrixVectorStore):
    """Notes the filters that it is asked with, and fails or refuses them."""

    _asked: list[Any] = PrivateAttr(default_factory=list)
    _errors: list[Exception] = PrivateAttr(default_factory=list)

    def query(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        self._asked.append(query.filters)
        if self._errors and query.filters is not None:
            raise self._errors.pop()
        return super().query(query, **kwargs)


def shared() -> tuple[Counting, StoredSpace]:
    """A store that holds rows of two spaces, the first of which knows so."""
    store, docstore = Counting(), SimpleDocumentStore()
    space = StoredSpace("chunks", "o'brien/u", store, records_of("u", docstore))
    run_steps(space.put(space_rows(40)))
    run_steps(StoredSpace("topics", "u", store, records_of("u", docstore)).put(space_rows(900, seed=3, prefix="o")))
    run_steps(candidates(space, unit_rows(1)[0], 30))
    store._asked.clear()
    return store, space


def test_a_lost_connection_is_an_error_and_the_next_question_is_filtered_as_before() -> None:
    store, space = shared()
    store._errors.append(ConnectionError("gone"))
    with pytest.raises(StorageError, match="gone"):
        run_steps(candidates(space, unit_rows(1)[0], 30))
    assert len(run_steps(candidates(space, unit_rows(1)[0], 30))) == 40
    assert len(store._asked) == 2
    assert all(each.filters[0].key == SPACE for each in store._asked)


def test_a_filter_that_a_store_does_not_have_is_checked_here_and_asked_for_again() -> None:
    store, space = shared()
    for _ in range(2):
        store._errors.append(NotImplementedError("no filters"))
        assert len(run_steps(candidates(space, unit_rows(1)[0], 30))) == 40
        assert [each is None for each in store._asked[:2]] == [False, True]
        store._asked.clear()


def test_no_text_of_the_users_reaches_an_adapter_that_may_format_it() -> None:
    store, space = shared()
    town = all_of(where("town", "O'Brien"), where("year", 1903))
    run_steps(candidates(space, unit_rows(1)[0], 30, Selection(town)))
    given_to_others = {text for each in store._asked for part in each.filters for text in part.value}
    assert given_to_others == {label_of("o'brien/u", "chunks")}
    assert all(re.fullmatch("s[0-9a-f]{32}", text) for text in given_to_others)


@pytest.mark.parametrize("bad", ["O'Brien", 'a"b', "a\\b", "`", "a\nb", "a\x00"])
def test_ids_that_need_quoting_are_refused_for_an_adapter_that_may_format_them(bad: str) -> None:
    ours, others = ExternalVectorStore(MatrixVectorStore()), ExternalVectorStore(Counting())
    node = TextNode(id_=bad, text="x")
    run_steps(ours.add([node], unit_rows(1)))
    with pytest.raises(UnsupportedStoreError, match="other ids"):
        run_steps(others.add([node], unit_rows(1)))
    with pytest.raises(StorageError, match="other ids"):
        run_steps(others.delete([bad], ["None"], (), lambda _: unit_rows(1)))
    run_steps(ours.delete([bad], ["None"], (), lambda _: unit_rows(1)))


def test_vectors_are_stored_once_where_the_store_returns_them() -> None:
    for make, kept in ((ReturningStore, False), (MatrixVectorStore, True), (Approximate, True)):
        records = records_of("u")
        run_steps(StoredSpace("chunks", "u", make(), records).put(space_rows(3)))
        stored = run_steps(records.get_all("space/chunks"))
        assert [("v" in record) for record in stored.values()] == [kept] * 3


def test_a_row_that_the_store_has_lost_is_told() -> None:
    store = ReturningStore()
    space = StoredSpace("chunks", "u", store, records_of("u"))
    run_steps(space.put(space_rows(3)))
    store.clear()
    with pytest.raises(HalfWrittenError, match="lacks 2 rows"):
        run_steps(space.fetch(["r0", "r1"]))


def test_a_store_that_cannot_delete_is_refused() -> None:
    with pytest.raises(UnsupportedStoreError, match="Deaf"):
        StoredSpace("chunks", "u", Deaf(), records_of("u"))
    space = StoredSpace("chunks", "u", OfDocuments(), records_of("u"))
    with pytest.raises(UnsupportedStoreError, match="OfDocuments deletes only whole documents"):
        run_steps(space.begin("write", [], DIM))


def test_a_write_that_was_killed_is_repeated_without_doubles() -> None:
    class Dying(Approximate):
        _left: int = PrivateAttr(default=1)

        def add(self, nodes: list[BaseNode], **kwargs: Any) -> list[str]:  # type: ignore[override]
            if len(nodes) > 1 and self._left:
                self._left = 0
                super().add(nodes[:2])
                raise OSError("no space left on device")
            return super().add(nodes)

    store = Dying()
    space = StoredSpace("chunks", "u", store, records_of("u"))
    with pytest.raises(StorageError, match="no space left"):
        run_steps(space.put(space_rows(8)))
    run_steps(space.put(space_rows(8)))
    run_steps(space.settle())
    assert store.rows == 8
    assert len(run_steps(candidates(space, unit_rows(1)[0], 20))) == 8


@pytest.mark.parametrize("shared", [True, False])
def test_rows_of_others_are_filtered_out_and_those_of_killed_writes_are_gone(shared: bool) -> None:
    asked: list[Any] = []

    class Listening(MatrixVectorStore):
        def query(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
            asked.append(query.filters)
            return super().query(query, **kwargs)

    store, rows = Listening(), space_rows(40)
    if shared:
        run_steps(StoredSpace("topics", "u", store, records_of("u")).put(rows))
    else:
        killed(store, rows, "killed")
    space = StoredSpace("chunks", "u", store, records_of("u"))
    run_steps(space.begin("next", ["killed"], DIM))
    run_steps(space.put(space_rows(200, seed=1, prefix="other")))
    assert len(run_steps(space.records_near(rows.vectors[0], 8, least=8))) >= 8
    assert any(filters is not None for filters in asked) == shared


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("open_store", [lancedb, postgres, qdrant], ids=lambda each: each.__name__)
def test_a_space_lives_in_a_real_store(open_store: Any, tmp_path: Path) -> None:
    from contextlib import ExitStack

    if open_store is postgres and not os.environ.get("PG_DSN"):
        pytest.skip("PG_DSN is not set")
    with ExitStack() as stack:
        store = open_store(uuid4().hex[:8], tmp_path, stack).options["vector_store"]
        docstore = SimpleDocumentStore()
        spaces = [StoredSpace("chunks", uid, store, records_of(uid, docstore)) for uid in "uv"]
        rows, others = space_rows(120), space_rows(60, seed=8)
        run_steps(spaces[0].put(rows))
        run_steps(spaces[1].put(others))
        for vector in unit_rows(3, seed=6):
            assert answer(spaces[0], vector, 10) == exact(rows, vector, 10)
            assert answer(spaces[1], vector, 10) == exact(others, vector, 10)
            for filters, keep in FILTERS[:4]:
                assert answer(spaces[0], vector, 10, filters) == exact(rows, vector, 10, keep)
        run_steps(spaces[0].remove(rows.ids[:100]))
        vector = rows.vectors[3]
        assert sorted(run_steps(candidates(spaces[0], vector, 30)).ids) == sorted(rows.ids[100:])
        run_steps(spaces[0].clear())
        assert len(run_steps(candidates(spaces[0], vector, 30))) == 0
        assert answer(spaces[1], vector, 10) == exact(others, vector, 10)
