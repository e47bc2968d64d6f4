"""BM25 that grows and shrinks: equal to a slow computation over the chunks that are there."""

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llama_index.ragkit.text import lexical_index
from llama_index.ragkit.text.lexical_blocks import MOST_COUNTED
from llama_index.ragkit.text.lexical_index import NOT_KNOWN, LexicalIndex, lexical_terms, question_terms
from llama_index.ragkit.text.stems import stems

words = st.lists(st.sampled_from(["loom", "looms", "silk", "Lyon", "engine", "cards", "the", "漢字"]), max_size=8).map(
    " ".join
)
changes = st.lists(st.tuples(st.sampled_from("abcdefgh"), st.none() | words), max_size=20)


def slow_bm25(texts, question):
    terms, language = question_terms(question)

    def stemmed(counted):
        total = Counter()
        for word, times in counted.items():
            total[stems([word], language)[0]] += times
        return total

    counts = {name: stemmed(lexical_terms(text)) for name, text in texts.items()}
    mean = sum(c.total() for c in counts.values()) / len(counts) or 1.0
    scores = dict.fromkeys(texts, 0.0)
    for term, times in stemmed(terms).items():
        having = sum(term in c for c in counts.values())
        for name, c in counts.items():
            if c[term]:
                idf = math.log(1 + (len(texts) - having + 0.5) / (having + 0.5))
                norm = 1.2 * (1 - 0.75 + 0.75 * c.total() / mean)
                scores[name] += times * idf * c[term] * 2.2 / (c[term] + norm)
    return scores


def at_once(texts):
    return LexicalIndex.of({name: " ".join(lexical_terms(text).elements()) for name, text in texts.items()})


def scores_by_id(index, question):
    found = {}
    for ids, scores in zip(index.ids, index.scores(question), strict=True):
        found.update({name: score for name, score in zip(ids, scores.tolist(), strict=True) if score})
    return found


@settings(max_examples=100)
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
    for found in (index, at_once(texts)):
        assert len(found) == len(texts)
        assert scores_by_id(found, question) == pytest.approx({n: s for n, s in wanted.items() if s})


@pytest.mark.parametrize("step", [3, 10])  # many runs of removed texts, and few
@pytest.mark.parametrize("largest", [1, 3, 1000])
def test_the_size_of_blocks_changes_no_score(monkeypatch, largest, step):
    monkeypatch.setattr(lexical_index, "_LARGEST_BLOCK", largest)
    texts = {f"t{i}": f"loom {'silk ' * (i % 4)} number{i}" for i in range(40)}
    index = LexicalIndex()
    for name, text in texts.items():
        index = index.changed((), {name: lexical_terms(text)})
    gone = [f"t{i}" for i in range(0, 40, step)]
    index = index.changed([*gone, "unknown"], {})
    left = {name: text for name, text in texts.items() if name not in gone}
    for found in (index, at_once(left)):
        assert max(map(len, found.ids)) <= max(largest, 1)
        assert len(found) == len(left)
        for question in ("silk looms", "number7", "number9"):
            wanted = slow_bm25(left, question)
            assert scores_by_id(found, question) == pytest.approx({n: s for n, s in wanted.items() if s})


@pytest.mark.parametrize("times", [255, 256, MOST_COUNTED, MOST_COUNTED + 1])
def test_a_word_counts_as_often_as_a_text_has_it(times):
    index = LexicalIndex().changed((), {"a": Counter(loom=times), "b": Counter(silk=1)})
    index = index.changed((), {"c": Counter(loom=1)})
    mean = (times + 2) / 3
    idf, counted = math.log(1 + 1.5 / 2.5), min(times, MOST_COUNTED)
    found = scores_by_id(index, "loom")
    # lengths and what follows from them are in single precision
    assert found["a"] == pytest.approx(idf * counted * 2.2 / (counted + 1.2 * (0.25 + 0.75 * times / mean)), rel=1e-5)


def test_an_index_is_not_changed_by_what_follows_it():
    first = LexicalIndex().changed((), {"a": Counter(loom=1), "b": Counter(silk=1)})
    before = scores_by_id(first, "loom silk")
    second = first.changed(["a"], {"b": Counter(loom=5), "c": Counter(loom=1)})
    assert scores_by_id(first, "loom silk") == before
    assert set(scores_by_id(second, "loom")) == {"b", "c"}


def test_a_question_finds_other_forms_of_its_words_in_its_own_language():
    texts = {
        "a": "Three looms stood in the hall.",
        "b": "Die Häuser am Fluss",
        "c": "На фабрике работала ткачиха в Москве.",
    }
    index = LexicalIndex().changed((), {name: lexical_terms(text) for name, text in texts.items()})
    assert set(scores_by_id(index, "Who owned the loom?")) == {"a"}
    assert set(scores_by_id(index, "Wem gehört das Haus?")) == {"b"}
    assert set(scores_by_id(index, "Кто работал в городе Москва?")) == {"c"}


def test_function_words_of_a_question_find_nothing_unless_it_has_no_others():
    index = LexicalIndex().changed((), {"a": lexical_terms("what is it"), "b": lexical_terms("a loom")})
    assert set(scores_by_id(index, "What is a loom?")) == {"b"}
    assert set(scores_by_id(index, "What is it?")) == {"a"}


def test_words_without_spaces_are_found_by_their_characters():
    index = LexicalIndex().changed((), {"a": lexical_terms("鲁迅出生于浙江绍兴"), "b": lexical_terms("北京大学")})
    assert set(scores_by_id(index, "鲁迅出生在哪里？")) == {"a"}


def test_an_index_without_texts_scores_nothing():
    assert LexicalIndex().scores("loom") == []
    empty = LexicalIndex().changed((), {"a": {}})
    assert [scores.tolist() for scores in empty.scores("loom")] == [[0.0]]


def test_the_full_score_is_that_of_a_text_of_mean_length_with_each_word_once():
    index = at_once({"a": "loom lyon", "b": "silk card", "c": "loom silk"})
    assert scores_by_id(index, "a loom in Lyon")["a"] == pytest.approx(index.full_scores(["a loom in Lyon"])[0].score)
    with_unknown = index.full_scores(["a loom in Lyon, Xylocopa"])[0].score
    assert with_unknown == pytest.approx(index.full_scores(["a loom in Lyon"])[0].score + math.log(1 + 3.5 / 0.5))
    assert index.full_scores(["loom loom"])[0].score == pytest.approx(2 * index.full_scores(["loom"])[0].score)
    (ids,) = index.ids
    alone = at_once({"a": "loom lyon", "b": "silk card"})
    assert (
        index.within([np.array([name != "c" for name in ids])]).full_scores(["loom"])[0]
        == alone.full_scores(["loom"])[0]
    )
    assert LexicalIndex().full_scores(["loom"])[0] == NOT_KNOWN
    longer = at_once({"a": "loom lyon silk card", "b": "silk card"})
    assert longer.full_scores(["loom"])[0].length == 3


def test_the_full_score_of_several_sentences_is_their_mean():
    index = at_once({"a": "loom lyon", "b": "silk card", "c": "loom silk"})
    parts = ["The looms stood still.", "Silk and cards came to Lyon!", "Dr. Loom left."]
    story = " ".join(["What is it?", *parts])  # a sentence without a telling word does not count
    expected = sum(index.full_scores([part])[0].score for part in parts) / 3
    assert index.full_scores([story])[0].score == index.scored(story)[1].score == pytest.approx(expected)
    assert scores_by_id(index, story) == scores_by_id(index, story.replace(".", ",").replace("!", ","))


def test_words_of_programs_are_counted_once_a_text():
    index = at_once({"a": "def f self self x 1", "b": "silk card", "c": "void"})
    (ids,) = index.ids
    assert index.full_scores(["loom"])[0].program == 1
    assert index.scored("loom")[1].program == 1
    assert index.within([np.array([name != "c" for name in ids])]).full_scores(["loom"])[0].program == 1
    assert index.within([np.array([name == "b" for name in ids])]).full_scores(["loom"])[0].program == 0


def test_rows_that_do_not_count_change_no_score():
    texts = {"a": "looms of Lyon", "b": "looms and looms", "c": "silk of Lyon, and more silk", "d": "cards"}
    index = LexicalIndex().changed((), {name: lexical_terms(text) for name, text in texts.items()})
    some = {name: texts[name] for name in ("a", "c")}
    alone = LexicalIndex().changed((), {name: lexical_terms(text) for name, text in some.items()})
    masks = [np.array([name in some for name in ids]) for ids in index.ids]
    found = {}
    for ids, scores in zip(index.ids, index.within(masks).scores("looms of Lyon"), strict=True):
        found.update({name: score for name, score in zip(ids, scores.tolist(), strict=True) if score})
    assert found == pytest.approx(scores_by_id(alone, "looms of Lyon"))
