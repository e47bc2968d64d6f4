"""BM25 that grows and shrinks: equal to a slow computation over the chunks that are there."""

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llama_index.ragkit.errors import ConfigurationError
from llama_index.sprag.nearness.hybrid import hybrid_nearness, standardised
from llama_index.sprag.nearness.lexical import LexicalIndex, lexical_terms

words = st.lists(st.sampled_from(["loom", "silk", "Lyon", "engine", "cards", "漢字"]), max_size=8).map(" ".join)
changes = st.lists(st.tuples(st.sampled_from("abcdefgh"), st.none() | words), max_size=20)


def slow_bm25(texts, question):
    counts = {name: lexical_terms(text) for name, text in texts.items()}
    mean = sum(c.total() for c in counts.values()) / len(counts) or 1.0
    scores = dict.fromkeys(texts, 0.0)
    for term, times in lexical_terms(question).items():
        having = sum(term in c for c in counts.values())
        for name, c in counts.items():
            if c[term]:
                idf = math.log(1 + (len(texts) - having + 0.5) / (having + 0.5))
                norm = 1.2 * (1 - 0.75 + 0.75 * c.total() / mean)
                scores[name] += times * idf * c[term] * 2.2 / (c[term] + norm)
    return scores


def scores_by_id(index, question):
    found = {}
    for ids, scores in zip(index.ids, index.scores(lexical_terms(question)), strict=True):
        found.update({name: score for name, score in zip(ids, scores.tolist(), strict=True) if score})
    return found


@settings(max_examples=100, deadline=None)
@given(steps=changes, question=words)
def test_growth_in_any_steps_gives_the_scores_of_the_formula(steps, question):
    index, texts = LexicalIndex(), {}
    for name, text in steps:
        if text is None:
            texts.pop(name, None)
            index = index.changed([name], {})
        else:
            texts[name] = text
            index = index.changed((), {name: lexical_terms(text)})
    wanted = slow_bm25(texts, question) if texts else {}
    assert len(index) == len(texts)
    assert scores_by_id(index, question) == pytest.approx({n: s for n, s in wanted.items() if s})


def test_an_index_is_not_changed_by_what_follows_it():
    first = LexicalIndex().changed((), {"a": Counter(loom=1), "b": Counter(silk=1)})
    before = scores_by_id(first, "loom silk")
    second = first.changed(["a"], {"b": Counter(loom=5), "c": Counter(loom=1)})
    assert scores_by_id(first, "loom silk") == before
    assert set(scores_by_id(second, "loom")) == {"b", "c"}


def test_nearness_does_not_depend_on_the_habits_of_an_embedding_model():
    random = np.random.default_rng(0)
    cosines, lexical = random.random(300), random.random(300)
    plain = hybrid_nearness(cosines, lexical, 0.6)
    assert np.argsort(-hybrid_nearness(0.7 + 0.1 * cosines, lexical, 0.6)).tolist() == np.argsort(-plain).tolist()


def test_chunks_that_are_not_allowed_have_no_nearness_and_change_no_other():
    random = np.random.default_rng(1)
    cosines, lexical = random.random(50), random.random(50)
    allowed = np.arange(50) % 2 == 0
    near = hybrid_nearness(cosines, lexical, 0.5, allowed)
    assert np.isneginf(near[~allowed]).all()
    assert near[allowed] == pytest.approx(hybrid_nearness(cosines[allowed], lexical[allowed], 0.5))


def test_without_a_word_of_the_question_the_cosines_decide():
    cosines = np.array([0.1, 0.9, 0.5])
    for weight in (0.0, 0.5, 1.0):
        assert int(np.argmax(hybrid_nearness(cosines, np.zeros(3), weight))) == 1
    assert standardised(np.array([0.3, 0.3])).tolist() == [0.0, 0.0]
    with pytest.raises(ConfigurationError, match="lexical_weight"):
        hybrid_nearness(cosines, cosines, 1.5)
