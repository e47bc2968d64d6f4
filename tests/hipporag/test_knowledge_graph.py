"""The graphs that follow from what passages say: sums over passages, and exact subtraction."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

from llama_index.hipporag.graph.knowledge_graph import KnowledgeGraph, sparse_rows
from llama_index.hipporag.graph.passage import read_record
from llama_index.hipporag.text.normalization import normalise

N, F = 5, 4
HEADS, TAILS = [0, 1, 2, 3], [1, 2, 2, 0]


def graph(named, statements, about=None, synonym_lists=None) -> KnowledgeGraph:
    nothing = KnowledgeGraph.empty()
    near = csr_matrix((N, N)) if synonym_lists is None else csr_matrix(np.array(synonym_lists, dtype=np.float64))
    return nothing.extended(named, about or [{} for _ in named], statements, HEADS, TAILS, near)


passages = st.lists(
    st.tuples(
        st.dictionaries(st.integers(0, N - 1), st.integers(1, 3), max_size=3),
        st.dictionaries(st.integers(0, F - 1), st.integers(1, 3), max_size=3),
    ),
    max_size=6,
)


@given(passages, st.data())
def test_what_follows_is_the_sum_over_passages(rows, data):
    whole = graph([named for named, _ in rows], [told for _, told in rows])
    triples = np.zeros((N, N))
    mentions, facts = np.zeros((len(rows), N)), np.zeros((len(rows), N))
    for p, (named, told) in enumerate(rows):
        for phrase, times in named.items():
            mentions[p, phrase] += times
        for fact, times in told.items():
            ends = {HEADS[fact], TAILS[fact]}
            for end in ends:
                mentions[p, end] += times
                facts[p, end] += 1
            if len(ends) == 2:
                triples[HEADS[fact], TAILS[fact]] += times
                triples[TAILS[fact], HEADS[fact]] += times
    np.testing.assert_array_equal(whole.triples.toarray(), triples)
    np.testing.assert_array_equal(whole.mentions.toarray(), mentions)
    np.testing.assert_array_equal(whole.facts_with_phrase.toarray(), facts)
    np.testing.assert_array_equal(whole.frequency, (mentions > 0).sum(axis=0))

    gone = np.array(sorted(data.draw(st.sets(st.integers(0, max(0, len(rows) - 1)), max_size=len(rows)))), np.int64)
    left, lost, lost_facts = whole.without(gone)
    stay = [i for i in range(len(rows)) if i not in gone]
    other = graph([rows[i][0] for i in stay], [rows[i][1] for i in stay])
    kept = np.setdiff1d(np.arange(N), lost)
    np.testing.assert_array_equal(left.triples.toarray(), other.triples.toarray()[np.ix_(kept, kept)])
    np.testing.assert_array_equal(left.mentions.toarray(), other.mentions.toarray()[:, kept])
    assert (left.frequency > 0).all()
    assert left.shape[2] == F - len(lost_facts)

    allowed = np.ones(len(rows), np.bool_)
    allowed[gone] = False
    seen = whole.restricted(allowed)
    np.testing.assert_array_equal(seen.triples.toarray(), other.triples.toarray())
    np.testing.assert_array_equal(seen.mentions.toarray()[allowed], other.mentions.toarray())
    assert not seen.mentions.toarray()[~allowed].any()


def test_the_published_weights():
    """a-b: two facts, and each on the list of the other; b-c: one fact, and c on the list of b alone; d-a: a fact."""
    near = np.zeros((N, N))
    near[0, 1] = near[1, 0] = 0.9
    near[1, 2] = 0.85
    m = graph([{}], [{0: 2, 1: 1, 3: 1}], synonym_lists=near)
    weights = m.adjacency("published", synonyms=True).toarray()
    assert weights[0, 1] == pytest.approx(0.9 + 0.9)  # both directions overwritten
    assert weights[1, 2] == pytest.approx(0.85 + 1)  # one overwritten, one still a count
    assert weights[3, 0] == pytest.approx(1 + 1)  # both directions count
    np.testing.assert_array_equal(weights, weights.T)
    added = m.adjacency("added", synonyms=True).toarray()
    assert added[0, 1] == pytest.approx(2.9)
    assert added[1, 2] == 1.0  # not mutual
    assert m.adjacency("added").toarray()[0, 1] == 2.0


def test_a_filter_leaves_no_near_phrase_of_hidden_passages():
    near = np.zeros((N, N))
    near[0, 4] = near[4, 0] = 0.9
    m = graph([{0: 1}, {4: 1}], [{}, {}], synonym_lists=near)
    assert m.synonym_edges.nnz == 2
    assert m.restricted(np.array([True, False])).synonym_edges.nnz == 0


def test_passages_as_nodes_hold_to_their_subjects_more():
    m = graph([{0: 3}, {1: 1}], [{}, {}], about=[{2: 1}, {}])
    walk = m.walk(subject_weight=10.0)
    weights = walk.outward.toarray()
    assert weights.shape == (N + 2, N + 2)
    assert weights[N, 0] == weights[0, N] == 1.0
    assert weights[N, 2] == weights[2, N] == 10.0
    assert m.walk(subject_weight=10.0) is walk
    assert len(m.walk()) == N


def test_sparse_rows_of_nothing():
    assert sparse_rows([], 3).shape == (0, 3)
    assert sparse_rows([{}, {2: 5}], 3).toarray().tolist() == [[0, 0, 0], [0, 0, 5]]


def test_a_record_is_read_with_patience():
    record = {
        "entities": ["Ada", "ADA", 1843, None, ["x"], "!!"],
        "triples": [["Ada", "met", "Babbage"], ["a", "b"], "abc", ["Ada", "born", 1815], ["", "is", "x"], 7],
        "subject": ["Ada (book)"],
    }
    passage = read_record(record, normalise)
    assert passage.named == {"ada": 2, "1843": 1}
    assert set(passage.statements) == {("ada", "met", "babbage"), ("ada", "born", "1815")}
    assert passage.subjects == ["ada book"]
    assert passage.phrases() == ["ada book", "ada", "1843", "babbage", "1815"]
    bare = read_record(record, normalise, entity_nodes=False)
    assert bare.phrases() == ["ada", "babbage", "1815"]
    for broken in ({}, {"entities": None, "triples": None}, {"entities": "x", "triples": {"a": 1}}):
        assert read_record(broken, normalise).phrases() == []


def everywhere(count: int) -> KnowledgeGraph:
    """Phrase 0 is in every passage and the subject of each, the others in every fourth."""
    named = [{0: 1, 1 + i % 4: 1} for i in range(count)]
    return graph(named, [{i % F: 1} for i in range(count)], about=[{0: 1} for _ in range(count)])


def test_a_phrase_of_most_passages_joins_none_of_them():
    whole = everywhere(24)
    rare = whole.without_common(0.5)
    assert rare.shape == whole.shape
    assert not rare.contains[:, [0]].nnz
    assert not rare.triples[[0]].nnz
    kept = [i for i in range(N) if whole.frequency[i] <= 12]
    assert kept
    facts = [f for f in range(F) if HEADS[f] in kept and TAILS[f] in kept]
    np.testing.assert_array_equal(rare.contains.toarray()[:, kept], whole.contains.toarray()[:, kept])
    np.testing.assert_array_equal(rare.statements.toarray()[:, facts], whole.statements.toarray()[:, facts])
    assert rare is whole.without_common(0.5)
    assert whole.without_common(1.0) is whole


def test_no_phrase_of_a_small_graph_is_common():
    small = everywhere(19)
    assert small.frequency[0] == 19
    assert small.without_common(0.5) is small
