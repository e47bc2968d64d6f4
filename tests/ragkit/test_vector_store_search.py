"""The search is exact, and its answer depends on the rows alone: not on their order, the path taken or the threads."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_limits

from llama_index.ragkit.errors import EmbeddingError
from llama_index.ragkit.vectors.kernels import cosines, error_bound, inverse_norms, squared_norms, top_k
from llama_index.ragkit.vectors.matrix_vector_store import MatrixVectorStore


def store_of(rows, order=None, batches=1, keys=None):
    store = MatrixVectorStore(stores_text=False)
    order = np.arange(len(rows)) if order is None else order
    for part in np.array_split(order, batches):
        store.put([f"r{i}" for i in part], rows[part], keys=None if keys is None else [keys[i] for i in part])
    return store


def near_ties(rng, n, dim):
    """Rows around one direction that differ in their last bits: float32 products cannot order them."""
    base = rng.normal(size=dim).astype(np.float32)
    rows = np.repeat(base[np.newaxis], n, axis=0)
    for i in range(n):
        places = rng.integers(dim, size=3)
        rows[i, places] = np.nextafter(rows[i, places], np.float32(9) * rng.choice([-1, 1], size=3).astype(np.float32))
    return rows


def exact(row, query):
    """Correctly rounded sums of exact products."""
    row, query = [float(x) for x in row], [float(x) for x in query]
    product = math.fsum(a * b for a, b in zip(row, query, strict=True))
    return product / math.sqrt(math.fsum(a * a for a in row) * math.fsum(b * b for b in query))


def test_the_answer_is_that_of_exact_arithmetic():
    rng = np.random.default_rng(0)
    rows = np.concatenate([rng.normal(size=(300, 48)), near_ties(rng, 100, 48)]).astype(np.float32)
    for query in (rng.normal(size=48).astype(np.float32), rows[-1]):
        truth = np.array([exact(row, query) for row in rows])
        (hits,) = store_of(rows).query_many([query], 40)
        assert hits.scores == pytest.approx(np.sort(truth)[::-1][:40].tolist(), abs=1e-14)
        assert [truth[int(i[1:])] for i in hits.ids] == pytest.approx(hits.scores, abs=1e-14)


def test_near_ties_come_in_one_order_whatever_the_way_to_the_answer():
    rng = np.random.default_rng(1)
    rows = np.concatenate([near_ties(rng, 1500, 96), rng.normal(size=(1500, 96)).astype(np.float32)])
    rows = np.concatenate([rows, rows[:200]])  # and exact ties
    queries = np.concatenate([rows[:3], rng.normal(size=(2, 96)).astype(np.float32)])
    answers = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            for batches in (1, 7):
                store = store_of(rows, rng.permutation(len(rows)), batches)
                snapshot = store.snapshot()
                answers.append(store.query_many(queries, 50))
                answers.append([store.query_many([query], 50)[0] for query in queries])
                top = list(dict.fromkeys(i for hits in answers[0] for i in hits.ids))
                few = store.query_many(queries, 10, node_ids=top)  # gathers these rows
                assert [hits.ids for hits in few] == [hits.ids[:10] for hits in answers[0]]
                assert [hits.scores for hits in few] == [hits.scores[:10] for hits in answers[0]]
                most = np.ones(len(rows), bool)
                most[snapshot.rows_of([f"r{i}" for i in range(1500, 2500) if f"r{i}" not in top])] = False
                answers.append(snapshot.search(queries, 50, most))  # takes from the whole product
                store.delete_nodes([f"r{i}" for i in range(1500, 2000) if f"r{i}" not in top])
                answers.append(store.query_many(queries, 50))  # skips hidden rows
    for answer in answers:
        assert [hits.ids for hits in answer] == [hits.ids for hits in answers[0]]
        assert [hits.scores for hits in answer] == [hits.scores for hits in answers[0]]  # to the last bit


def test_ties_break_by_key_then_id():
    rows = np.tile(np.float32([3.0, 4.0]), (6, 1)) * np.float32([1, 2, 4, 8, 0.5, 0.25])[:, np.newaxis]
    keys = ["b", "a", "a", "c", "a", "b"]
    for order in (np.arange(6), np.array([5, 3, 1, 0, 2, 4])):
        (hits,) = store_of(rows, order, 3, keys).query_many([[3.0, 4.0]], 5)
        assert hits.ids == ["r1", "r2", "r4", "r0", "r5"]
        assert hits.scores == [1.0] * 5
        mmr = store_of(rows, order, 3, keys).snapshot().search_mmr([3.0, 4.0], 3, 0.0)
        assert mmr.ids == ["r1", "r2", "r4"]


@pytest.mark.parametrize("scale", [1e-45, 1e-38, 1e-20, 1.0, 1e18, 1e37])
def test_vectors_of_any_length_are_searched_right(scale):
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(200, 12)).astype(np.float32)
    rows[::2] = (rows[::2].astype(np.float64) * scale).astype(np.float32)
    rows[7] = 0
    query = rng.normal(size=12)
    for stretch in (1.0, scale):
        asked = (query * stretch).astype(np.float32)
        if not asked.any():
            continue
        truth = np.array([exact(row, asked) if row.any() else 0.0 for row in rows])
        for node_ids in (None, [f"r{i}" for i in range(20)]):
            (hits,) = store_of(rows).query_many([asked], 10, node_ids=node_ids)
            among = truth if node_ids is None else truth[:20]
            assert hits.scores == pytest.approx(np.sort(among)[::-1][:10].tolist(), abs=1e-12)


def test_many_queries_are_answered_block_by_block(monkeypatch):
    rng = np.random.default_rng(5)
    store = store_of(rng.normal(size=(100, 8)))
    queries = rng.normal(size=(37, 8))
    whole = store.query_many(queries, 5)
    monkeypatch.setattr("llama_index.ragkit.vectors.kernels._BLOCK", 300)
    blocks = store.query_many(queries, 5)
    assert [(hits.ids, hits.scores) for hits in whole] == [(hits.ids, hits.scores) for hits in blocks]


@settings(max_examples=200)
@given(
    rows=st.lists(st.tuples(*[st.integers(-3, 3)] * 3), min_size=1, max_size=30),
    query=st.tuples(*[st.integers(-3, 3)] * 3),
    k=st.integers(1, 8),
    data=st.data(),
)
def test_small_integer_vectors_are_ranked_exactly(rows, query, k, data):
    # Products and sums of small integers are exact, so the expected scores are equal to the last bit.
    chosen = data.draw(st.one_of(st.none(), st.lists(st.sampled_from(range(len(rows))), unique=True)))

    def score(row):
        scale = math.sqrt(sum(x * x for x in row) * sum(x * x for x in query))
        return sum(a * b for a, b in zip(row, query, strict=True)) / scale if scale else 0.0

    expected = sorted((-score(rows[i]), i) for i in (range(len(rows)) if chosen is None else chosen))[:k]
    matrix = np.array(rows, np.float32)
    subset = None if chosen is None else np.array(sorted(chosen), np.intp)
    inverse = inverse_norms(squared_norms(matrix))
    ((found, scores),) = top_k(matrix, inverse, np.array([query], np.float32), k, subset, lambda row: row)
    assert list(zip((-scores).tolist(), found.tolist(), strict=True)) == expected


def test_all_cosines_are_within_their_bound_of_the_exact_ones():
    random = np.random.default_rng(3)
    vectors = random.normal(size=(60, 24)) * 10.0 ** random.integers(-18, 18, size=(60, 1))  # beyond safe products too
    vectors[7] = 0
    store = MatrixVectorStore(stores_text=False)
    store.put([f"r{i:02d}" for i in range(60)], vectors)
    store.delete_nodes(["r03", "r50"])
    rows = store.snapshot()
    queries = random.normal(size=(5, 24)).astype(np.float32)
    found = rows.cosines(queries)
    assert found.shape == (58, 5)
    for i, row_id in enumerate(rows.ids):
        for j, query in enumerate(queries):
            exact = cosines(rows.vectors_of([row_id]), query)[0]
            assert abs(found[i, j] - exact) <= error_bound(24)
    assert MatrixVectorStore(stores_text=False).snapshot().cosines(queries).shape == (0, 5)


def test_the_cosines_of_one_vector_are_within_their_bound_too():
    rng = np.random.default_rng(0)
    store = MatrixVectorStore(stores_text=False)
    vectors = rng.normal(size=(50, 24)).astype(np.float32)
    vectors[3] = 0
    store.put([f"r{i}" for i in range(50)], vectors)
    store.delete_nodes(["r7", "r40"])
    rows, query = store.snapshot(), rng.normal(size=24).astype(np.float32)
    near = rows.cosines([query])[:, 0]
    assert near.shape == (48,)
    assert np.abs(near - cosines(rows.matrix, query)).max() <= error_bound(24)
    with pytest.raises(EmbeddingError):
        rows.cosines([query[:3]])
