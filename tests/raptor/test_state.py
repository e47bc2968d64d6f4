"""The two searches over the tree against slow references."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llama_index.ragkit.steps import immediate, run_steps
from llama_index.ragkit.vectors.kernels import cosines
from llama_index.ragkit.vectors.matrix_vector_store import MatrixVectorStore
from llama_index.ragkit.vectors.question_scores import Nearness
from llama_index.ragkit.vectors.snapshot import Snapshot
from llama_index.raptor.config import TreeSearchConfig
from llama_index.raptor.search.node_scores import NodeScores
from llama_index.raptor.search.tree_search import search_collapsed_tree, traverse_tree
from llama_index.raptor.state import RaptorState, ScoredNode
from llama_index.raptor.tree import Tree


def snapshot(ids, vectors) -> Snapshot:
    store = MatrixVectorStore(stores_text=False)
    if len(ids):
        store.put(ids, np.asarray(vectors, dtype=np.float32))
    return store.snapshot()


def random_state(seed: int, n: int = 12, unwritten: int = 0) -> RaptorState:
    rng = np.random.default_rng(seed)
    leaves = [f"leaf{i:02d}" for i in range(n)]
    tree = Tree()
    while len(roots := tree.roots(leaves)) > 1:
        order = rng.permutation(roots)
        tree = tree.join([order[i : i + 3].tolist() for i in range(0, len(order), 3)])
    written = sorted(tree.summaries)[unwritten:]
    return RaptorState(
        snapshot(leaves, rng.normal(size=(n, 8))), snapshot(written, rng.normal(size=(len(written), 8))), tree
    )


def cosine(state: RaptorState, node: str, vector) -> float:
    part = state.summaries if node in state.summaries else state.chunks
    x = part.vectors_of([node])[0].astype(float)
    return float(x @ vector / np.linalg.norm(x) / np.linalg.norm(vector))


def scores_of(state: RaptorState, vector, allowed=None, lexical=None, weight=0.0) -> NodeScores:
    near = cosines(state.chunks.matrix, vector) if len(state.chunks) else np.zeros(0)
    lexical = np.zeros(len(near)) if lexical is None else lexical
    return NodeScores(state, vector, Nearness.of(near, lexical, weight, allowed), allowed)


@immediate
def everywhere(scores: NodeScores, nodes: Sequence[str]) -> NodeScores:
    """The scores of a state that has all nodes."""
    return scores


def steps_of(state: RaptorState, scores: NodeScores, options: TreeSearchConfig) -> list[list[ScoredNode]]:
    start = state.roots if options.start_layer is None else state.layer(options.start_layer)
    return run_steps(traverse_tree(scores, options, start, everywhere))[1]


def traversed(state: RaptorState, scores: NodeScores, options: TreeSearchConfig) -> list[ScoredNode]:
    return scores.ranked({node for step in steps_of(state, scores, options) for node, _ in step})


def scaled(state: RaptorState, node: str, vector, mask) -> float:
    """The cosine of a node in standard deviations of the allowed chunks' cosines (of which there are few)."""
    chunks = [cosine(state, name, vector) for name, ok in zip(state.chunks.ids, mask, strict=True) if ok]
    spread = float(np.std(chunks))
    return (cosine(state, node, vector) - float(np.mean(chunks))) / spread if spread > 1e-9 else 0.0


def allowed_nodes(state: RaptorState, mask) -> set[str]:
    leaves = {leaf for leaf, ok in zip(state.chunks.ids, mask, strict=True) if ok}
    return leaves | {name for name in state.summaries.ids if state.tree.leaves(name) <= leaves}


def slow_traversal(state: RaptorState, vector, beam: int, shown: set[str]) -> dict[str, float]:
    def visible(nodes):
        found = set()
        for node in nodes:
            found |= {node} if node in shown else visible(state.tree.children(node))
        return found

    kept, frontier = {}, set(state.tree.roots(state.chunks.ids))
    while frontier:
        best = sorted(visible(frontier), key=lambda n: -cosine(state, n, vector))[:beam]
        kept.update({n: cosine(state, n, vector) for n in best})
        frontier = {child for n in best for child in state.tree.children(n)} - kept.keys()
    return kept


cases = st.tuples(st.integers(0, 10**6), st.integers(1, 20), st.integers(0, 4), st.integers(0, 2**12 - 1))


@settings(max_examples=60)
@given(cases)
def test_without_words_both_searches_equal_the_slow_ones_by_cosine(case):
    seed, k, unwritten, bits = case
    state = random_state(seed, unwritten=unwritten)
    vector = np.random.default_rng(seed + 1).normal(size=8).astype(np.float32)
    mask = np.array([bits >> i & 1 for i in range(12)], dtype=bool)
    for allowed in (None, mask):
        ok = np.ones(12, bool) if allowed is None else mask
        shown = allowed_nodes(state, ok)
        scores = scores_of(state, vector, allowed)
        found = search_collapsed_tree(scores, k)
        wanted = {node: scaled(state, node, vector, ok) for node in shown}
        assert len(found) == min(k, len(shown))
        assert [s for _, s in found] == pytest.approx(sorted(wanted.values(), reverse=True)[:k], abs=1e-4)
        assert dict(found) == pytest.approx({node: wanted[node] for node, _ in found}, abs=1e-4)
        if ok.sum() > 1:  # else all scores are equal
            slow = slow_traversal(state, vector, k, shown)
            found_below = dict(traversed(state, scores, TreeSearchConfig(beam_width=k)))
            assert found_below == pytest.approx({node: wanted[node] for node in slow}, abs=1e-4)


@settings(max_examples=40)
@given(cases, st.sampled_from([0.0, 0.6, 2.0]))
def test_summaries_take_part_if_they_are_about_as_near_as_the_nearest_chunk(case, margin):
    seed, k, unwritten, _ = case
    state = random_state(seed, unwritten=unwritten)
    vector = np.random.default_rng(seed + 1).normal(size=8).astype(np.float32)
    words = np.random.default_rng(seed + 2).random(12)
    scores = scores_of(state, vector, lexical=words, weight=0.6)
    everything = search_collapsed_tree(scores, 1000)
    every = np.ones(12, bool)
    nearest = max(scaled(state, chunk, vector, every) for chunk in state.chunks.ids)
    best = max(score for node, score in everything if node in state.chunks)
    by_words = (words - words.mean()) / words.std()
    wanted = []
    for node, score in everything:
        own = scaled(state, node, vector, every)
        if node in state.summaries:
            said = by_words[state.leaf_rows[node]].max()
            if own >= nearest - margin and score >= best - margin and said >= by_words.max() - margin:
                wanted.append((node, score))
        else:
            assert score == pytest.approx(0.4 * own + 0.6 * by_words[state.chunks.row_of(node)], abs=1e-4)
            wanted.append((node, score))
    assert search_collapsed_tree(scores, k, margin) == wanted[:k]


def test_a_traversal_takes_children_of_kept_nodes_only():
    tree = Tree().join([["a", "b"], ["c", "d"]])
    left, right = sorted(tree.summaries, key=lambda n: tree.summaries[n].children)
    leaves = snapshot(["a", "b", "c", "d"], [[1, 0], [0.9, 0.1], [1, 0.01], [0, 1]])
    state = RaptorState(leaves, snapshot([left, right], [[1, 0], [-1, 0]]), tree)
    vector = np.array([1, 0], np.float32)
    scores = scores_of(state, vector)
    options = TreeSearchConfig(beam_width=1)
    assert [n for n, _ in traversed(state, scores, options)] == sorted([left, "a"], key=lambda n: state.key(n))
    assert [[n for n, _ in best] for best in steps_of(state, scores, options)] == [[left], ["a"]]


@settings(max_examples=40)
@given(cases, st.integers(0, 4), st.one_of(st.none(), st.integers(1, 4)), st.one_of(st.none(), st.floats(-1, 1)))
def test_a_traversal_keeps_what_it_is_told_to_on_the_layers_it_is_told_to(case, start, layers, least):
    seed, k, unwritten, _ = case
    state = random_state(seed, unwritten=unwritten)
    vector = np.random.default_rng(seed + 1).normal(size=8).astype(np.float32)
    scores = scores_of(state, vector)
    options = TreeSearchConfig(
        beam_width=k if least is None else None, min_cosine=least, start_layer=start, num_layers=layers
    )
    steps = steps_of(state, scores, options)
    assert len(steps) <= (layers or 99)
    for step in steps:
        assert all(state.tree.level(node) <= start for node, _ in step)
        assert least is not None or len(step) <= k
        assert least is None or all(scores.cosine(node) >= least for node, _ in step)
    if steps:
        first = {node for node, _ in steps[0]}
        assert not any(first & state.tree.ancestors([node]) for node in first)


def test_a_layer_holds_lower_nodes_that_end_below_it():
    tree = Tree().join([["a", "b"]])
    (low,) = tree.summaries
    tree = tree.join([[low, "c"]])
    high = next(name for name in tree.summaries if name != low)
    state = RaptorState(snapshot(["a", "b", "c", "d"], np.eye(4)), snapshot([low, high], np.eye(4)[:2]), tree)
    assert state.layer(0) == ["a", "b", "c", "d"]
    assert state.layer(1) == sorted([low, "c", "d"])
    assert state.layer(2) == sorted([high, "d"]) == sorted(state.roots) == state.layer(9)


def test_a_summary_answers_a_thematic_question_and_not_one_about_a_detail():
    tree = Tree().join([["a", "b", "c", "d"]])
    (theme,) = tree.summaries
    chunks = np.hstack([np.full((4, 1), 0.5), np.eye(4)])
    state = RaptorState(snapshot(["a", "b", "c", "d"], chunks), snapshot([theme], [[2, 1, 1, 1, 1]]), tree)
    thematic, detail = np.array([1, 0.2, 0.1, 0.2, 0.1], np.float32), np.array([0, 1, 0, 0, 0], np.float32)
    assert search_collapsed_tree(scores_of(state, thematic), 1, 0.6)[0][0] == theme
    assert theme not in dict(search_collapsed_tree(scores_of(state, detail), 9, 0.6))
    assert theme in dict(search_collapsed_tree(scores_of(state, detail), 9))


@given(st.integers(0, 20), st.floats(0, 1))
def test_the_best_two_chunks_of_a_summary_count_for_it_as_words_do_for_a_chunk(seed, weight):
    state = random_state(seed)
    rng = np.random.default_rng(seed + 1)
    vector, words = rng.normal(size=8).astype(np.float32), rng.random(len(state.chunks))
    scores = scores_of(state, vector, lexical=words, weight=weight)
    found = dict(scores.ranked(state.summaries.ids))
    near = dict(zip(state.chunks.ids, scores.nearness.scores.tolist(), strict=True))
    most = scaled(state, max(near, key=near.__getitem__), vector, np.ones(len(near), bool)) if weight else np.inf
    for name, own in zip(state.summaries.ids, scores.standard_cosines.tolist(), strict=True):
        below = sorted((near[leaf] for leaf in state.tree.leaves(name)), reverse=True)[:2]
        wanted = (1 - weight) * min(own, most) + weight * sum(below) / len(below)
        assert found[name] == pytest.approx(wanted, abs=1e-4)


def test_where_cosines_say_nothing_the_words_of_a_chunk_decide():
    """As in a language that the model does not know: all cosines are about the same, those of summaries larger."""
    random = np.random.default_rng(0)
    names = [f"{i:02d}" for i in range(40)]
    tree = Tree().join([names[i : i + 4] for i in range(0, 40, 4)])
    cosines_of_chunks, words = 0.9 + 0.01 * random.random(40), random.random(40)
    chunks = np.stack([cosines_of_chunks, np.sqrt(1 - cosines_of_chunks**2)], axis=1)
    above = np.tile([0.95, np.sqrt(1 - 0.95**2)], (10, 1))
    state = RaptorState(snapshot(names, chunks), snapshot(sorted(tree.summaries), above), tree)
    words[int(np.argsort(cosines_of_chunks)[20])] = 9.0
    scores = scores_of(state, np.array([1, 0], np.float32), lexical=words, weight=0.5)
    best = names[int(words.argmax())]
    found = search_collapsed_tree(scores, 5, TreeSearchConfig().summary_margin)
    assert found[0][0] == best
    assert not tree.summaries.keys() & dict(found).keys()
    paper = scores_of(state, np.array([1, 0], np.float32), lexical=words)
    assert dict(search_collapsed_tree(paper, 10)).keys() == tree.summaries.keys()


@pytest.mark.parametrize("named", [True, False])
def test_no_summary_takes_part_where_another_chunk_stands_out_by_its_words(named):
    """A chunk that is nearest to every question, and a summary above it: words say that both are wrong."""
    names = [f"{i:02d}" for i in range(12)]
    tree = Tree().join([names[i : i + 4] for i in range(0, 12, 4)])
    cosines = np.array([0.9, *[0.2 + 0.01 * i for i in range(11)]])
    chunks = np.stack([cosines, np.sqrt(1 - cosines**2)], axis=1)
    hub = next(name for name in tree.summaries if "00" in tree.leaves(name))
    above = np.array([[0.92, np.sqrt(1 - 0.92**2)] if name == hub else [0.0, 1.0] for name in sorted(tree.summaries)])
    state = RaptorState(snapshot(names, chunks), snapshot(sorted(tree.summaries), above), tree)
    words = np.zeros(12)
    words[10 if named else 1] = 9.0
    scores = scores_of(state, np.array([1, 0], np.float32), lexical=words, weight=0.5)
    found = dict(search_collapsed_tree(scores, 5, TreeSearchConfig().summary_margin))
    assert (hub in found) != named


def test_an_empty_state_answers_nothing():
    state = RaptorState()
    scores = scores_of(state, np.ones(3, np.float32))
    assert search_collapsed_tree(scores, 5) == []
    assert traversed(state, scores, TreeSearchConfig(beam_width=5)) == []


def test_leaf_rows_are_those_of_the_tree():
    state = random_state(7)
    for name, rows in state.leaf_rows.items():
        assert {state.chunks.ids[row] for row in rows} == state.tree.leaves(name)
