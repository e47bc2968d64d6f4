"""The ranking over chunks and themes against loops."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.gemrag.slow import blended_score, fused_scores, standardised, unit

from llama_index.gemrag.graph.similarity import NodeCosines, Rule
from llama_index.gemrag.layer import OWNER_KEY, TEXT_KEY
from llama_index.gemrag.search.memory_scores import MemoryScores, rank_nodes
from llama_index.gemrag.state import GEMRAGState, Theme
from llama_index.ragkit import MatrixVectorStore


def snapshot(ids, vectors, owners=None):
    store = MatrixVectorStore(stores_text=False)
    if len(ids):
        metadatas = [{OWNER_KEY: o, TEXT_KEY: i} for i, o in zip(ids, owners, strict=True)] if owners else None
        store.put(ids, np.asarray(vectors, np.float32), metadatas=metadatas)
    return store.snapshot()


def random_state(seed: int, n: int = 8, k: int = 3):
    rng = np.random.default_rng(seed)
    vectors = {f"c{i}": rng.normal(size=6) for i in range(n)} | {f"t{i}": rng.normal(size=6) for i in range(k)}
    asked = {name: [rng.normal(size=6) for _ in range(rng.integers(0, 4))] for name in vectors}
    structure = {
        f"t{i}": Theme("g", tuple(f"c{j}" for j in rng.choice(n, 3, replace=False)), (3.0, 2.0, 1.0)) for i in range(k)
    }
    layers = []
    for kind in "ct":
        names = [name for name in vectors if name[0] == kind]
        pairs = [(f"{name}?{i}", name, q) for name in names for i, q in enumerate(asked[name])]
        rng.shuffle(pairs)
        layers += [
            snapshot(names, [vectors[name] for name in names]),
            snapshot([p[0] for p in pairs], [p[2] for p in pairs], [p[1] for p in pairs]),
        ]
    state = GEMRAGState.of(*layers, structure, {name: {} for name in structure})
    return state, vectors, asked


def hub(vectors, asked, name):
    chunk_questions = [unit(q) for owner in asked if owner[0] == "c" for q in asked[owner]]
    return unit(vectors[name]) @ np.mean(chunk_questions, axis=0) if chunk_questions else 0.0


def scores_of(state, prompt, rule=None, allowed=None, lexical=None, weight=0.0, margin=0.0) -> MemoryScores:
    lexical = np.zeros(len(state.chunks)) if lexical is None else lexical
    return MemoryScores.of(state, prompt, rule or Rule(), lexical, weight, allowed, margin)


@settings(max_examples=60)
@given(st.integers(0, 10**6), st.integers(1, 12), st.sampled_from([None, 0.0, 0.3, 0.5, 1.0]), st.integers(1, 255))
def test_it_ranks_as_the_loops_do(seed, k, blend, bits):
    state, vectors, asked = random_state(seed)
    prompt = np.random.default_rng(seed + 1).normal(size=6).astype(np.float32)
    words = np.random.default_rng(seed + 2).random(8)
    mask = np.array([bits >> i & 1 for i in range(8)], dtype=bool)
    for allowed in (None, mask):
        chunks = [c for c, ok in zip(state.chunks.ids, mask, strict=True) if ok or allowed is None]
        themes = [name for name, theme in state.themes.items() if set(theme.members) <= set(chunks)]
        names = [*chunks, *themes]
        if blend is None:
            hubs = {name: hub(vectors, asked, name) for name in names}
            dense = fused_scores(prompt, {name: vectors[name] for name in names}, asked, hubs, chunks)
        else:
            near = {name: blended_score(prompt, vectors[name], asked[name], blend) for name in names}
            dense = {name: standardised(near[name], [near[c] for c in chunks]) for name in names}
        word = {c: words[state.chunks.row_of(c)] for c in chunks}
        all_words = list(word.values())
        said = {c: standardised(word[c], all_words) for c in chunks}
        lacking = {n: max(said.values()) - max(said[c] for c in state.themes[n].members) for n in themes}
        wanted = {c: 0.4 * dense[c] + 0.6 * said[c] for c in chunks}
        if chunks:
            nearest = dense[max(chunks, key=lambda c: wanted[c])]
            wanted.update({name: min(dense[name], nearest) - 0.3 - lacking[name] for name in themes})
        found = rank_nodes(scores_of(state, prompt, Rule(blend=blend), allowed, words, 0.6, 0.3), k)
        best = sorted(wanted, key=lambda name: -wanted[name])[:k]
        assert [s for _, s in found] == pytest.approx([wanted[name] for name in best], abs=1e-3)
        assert dict(found) == pytest.approx({name: wanted[name] for name, _ in found}, abs=1e-3)


@settings(max_examples=40)
@given(st.integers(0, 10**6), st.integers(0, 3), st.booleans())
def test_themes_give_way_and_are_limited(seed, quota, keep):
    state, *_ = random_state(seed)
    prompt = np.random.default_rng(seed + 1).normal(size=6).astype(np.float32)
    scores = scores_of(state, prompt, margin=0.1)
    wanted, themes = [], 0
    for name, value in rank_nodes(scores, 99):
        if name in state.themes:
            covered = any(other in state.themes[name].members for other, _ in wanted)
            if themes >= quota or (covered and not keep):
                continue
            themes += 1
        wanted.append((name, value))
    assert rank_nodes(scores, 5, keep_covered=keep, max_summaries=quota) == wanted[:5]


def test_a_question_lifts_its_chunk_and_never_sinks_it():
    text = np.array([0.2, 0.6, 0.4, 0.4, 0.4])
    asked = np.array([0.9, 0.1, -np.inf, 0.5, 0.5])
    nodes = NodeCosines(text, asked, np.zeros(5))
    plain, found = (Rule(weight, hub_penalty=0).scores(nodes, nodes) for weight in (0, 1))
    assert plain == pytest.approx([standardised(t, text) for t in text])
    filled = [0.9, 0.1, 0.4, 0.5, 0.5]
    wanted = [max(t, standardised(s, filled)) for t, s in zip(plain, filled, strict=True)]
    wanted[2] = plain[2]  # it has no question
    assert found == pytest.approx(wanted)
    assert Rule(0.5, hub_penalty=0).scores(nodes, nodes) == pytest.approx((plain + found) / 2)


def test_questions_that_are_all_alike_tell_nothing():
    nodes = NodeCosines(np.array([0.2, 0.6, 0.4]), np.full(3, 0.9), np.zeros(3))
    assert Rule(hub_penalty=0).scores(nodes, nodes) == pytest.approx(Rule(0, 0).scores(nodes, nodes))


@given(st.floats(0.05, 5), st.floats(-2, 2), st.integers(0, 10**6))
def test_stretched_and_shifted_cosines_change_no_score(stretch, shift, seed):
    rng = np.random.default_rng(seed)
    cosines = NodeCosines(rng.random(9), np.where(rng.random(9) < 0.3, -np.inf, rng.random(9)), rng.random(9))
    moved = NodeCosines(*(stretch * x + shift for x in cosines))
    assert Rule().scores(moved, moved) == pytest.approx(Rule().scores(cosines, cosines), abs=1e-6)


def test_without_any_question_it_is_the_cosine():
    state = GEMRAGState.of(snapshot(["a", "b"], [[1, 0], [0, 1]]), *[snapshot([], [])] * 3, {}, {})
    scores = scores_of(state, np.array([1, 0.5], np.float32))
    assert rank_nodes(scores, 2) == [("a", pytest.approx(1)), ("b", pytest.approx(-1))]
    assert [round(scores.match(name).text, 6) for name in "ab"] == [0.894427, 0.447214]
    assert rank_nodes(scores_of(GEMRAGState(), np.ones(2, np.float32)), 3) == []


def test_the_parts_of_a_score_are_returned():
    chunks = snapshot(["a"], [[1, 0]])
    asked = snapshot(["a?0", "a?1"], [[0, 1], [1, 1]], ["a", "a"])
    state = GEMRAGState.of(chunks, asked, *[snapshot([], [])] * 2, {}, {})
    match = scores_of(state, np.array([0, 1], np.float32)).match("a")
    assert (match.question_id, match.question, match.text) == ("a?0", 1.0, 0.0)
    assert match.hub == pytest.approx(np.sqrt(0.5) / 2)
