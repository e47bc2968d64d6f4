"""`ExtractiveSummarizer`: what it prints, and that nothing else changes its mind."""

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llama_index.core.utils import get_tokenizer

from llama_index.ragkit.errors import ConfigurationError
from llama_index.ragkit.extraction.extractive_summarizer import ExtractiveSummarizer
from llama_index.ragkit.steps import arun_steps, run_steps
from llama_index.ragkit.testing import HashEmbedding
from llama_index.ragkit.text.sentences import split_sentences

WORDS = ["tea", "hot", "cup", "rice", "white", "bowl", "salt", "sea", "ship"]


def summarize(texts, max_tokens=30, model=None, **kwargs):
    summarizer = ExtractiveSummarizer(**kwargs)
    steps = summarizer.summarize(
        texts, max_tokens=max_tokens, embed_model=model or HashEmbedding(), llm=None, cache=None, user=""
    )
    return run_steps(steps)


def tokens(text):
    return len(get_tokenizer()(text))


TEXTS = [
    "Tea is hot. The cup of tea is hot tea. Dr. Lee paid 3.50 for tea in a cup.",
    "Rice is white. A bowl of white rice is rice.",
    "The ship is at sea. Tea is hot.",
]


def test_sentences_are_printed_whole_in_document_order():
    summary, keys = summarize(TEXTS, max_tokens=40)
    assert keys == []
    pieces = ["Tea is hot.", "The cup of tea is hot tea.", "Dr. Lee paid 3.50 for tea in a cup."]
    pieces += ["Rice is white.", "A bowl of white rice is rice.", "The ship is at sea."]
    found = sorted((summary.index(piece), piece) for piece in pieces if piece in summary)
    assert " ".join(piece for _, piece in found) == summary
    places = [pieces.index(piece) for _, piece in found]
    assert places == sorted(places)
    assert len(places) > 1


def test_each_theme_is_told_before_one_is_told_twice():
    summary, _ = summarize(TEXTS, max_sentences=3)
    assert [any(word in summary for word in theme) for theme in (("tea", "Tea"), ("rice", "Rice"), ("ship",))] == [
        True
    ] * 3


def test_a_summary_embeds_nothing():
    class Refuses(HashEmbedding):
        def get_text_embedding_batch(self, *args, **kwargs):
            raise AssertionError("a summary by words needs no vector")

    assert summarize(TEXTS, model=Refuses())[0] == summarize(TEXTS)[0]


def test_order_of_the_texts_changes_only_the_order_printed():
    forward, _ = summarize(TEXTS, max_tokens=25)
    backward, _ = summarize(TEXTS[::-1], max_tokens=25)
    assert forward != backward
    assert sorted(forward.split()) == sorted(backward.split())


def test_a_sentence_of_two_texts_is_said_once():
    summary, _ = summarize(["Tea is hot.", "Tea is hot.", "Tea  is\n hot. Tea is hot."], max_tokens=100)
    assert summary == "Tea is hot."


@pytest.mark.parametrize("max_tokens", [1, 3, 5, 8, 15, 40, 1000])
def test_the_token_budget_is_kept(max_tokens):
    summary, _ = summarize(TEXTS, max_tokens=max_tokens)
    assert summary
    assert tokens(summary) <= max_tokens


def test_a_sentence_longer_than_the_budget_is_cut_at_a_word():
    summary, _ = summarize(["Tea and rice and salt and ships and bowls and cups are here."], max_tokens=5)
    assert "Tea and rice and salt and ships".startswith(summary)
    assert 0 < tokens(summary) <= 5


def test_a_budget_below_one_word_cuts_within_it():
    summary, _ = summarize(["Donaudampfschifffahrtsgesellschaftskapitän"], max_tokens=2)
    assert "Donaudampfschifffahrtsgesellschaftskapitän".startswith(summary)
    assert 0 < tokens(summary) <= 2


def test_max_sentences_is_kept():
    for limit in (1, 2, 3):
        assert len(split_sentences(summarize(TEXTS, max_tokens=1000, max_sentences=limit)[0])) == limit
    assert len(split_sentences(summarize(TEXTS, max_tokens=1000)[0])) == 6


def test_full_width_scripts_are_joined_without_spaces():
    summary, _ = summarize(["今天天气很好。我们去公园吧！", "Tea is hot."], max_tokens=200)
    assert summary == "今天天气很好。我们去公园吧！ Tea is hot."


@pytest.mark.parametrize("texts", [[], [""], ["", "  \n", "\u3000"]])
def test_texts_without_text_have_an_empty_summary(texts):
    assert summarize(texts) == ("", [])


def test_rules_and_bullets_are_no_sentences_unless_there_is_nothing_else():
    assert summarize(["Tea is hot.\n\n***\n\n---"], max_tokens=100)[0] == "Tea is hot."
    assert summarize(["***"])[0] == "***"


def test_one_text_of_one_sentence_is_its_own_summary():
    assert summarize(["Tea is hot."])[0] == "Tea is hot."


def test_a_long_text_does_not_outvote_the_others():
    long = " ".join(f"Tea number {i} is hot tea in a cup." for i in range(60))
    shorts = ["Rice is white rice in a bowl.", "Rice is white.", "The rice bowl is white."]
    assert "ice" in summarize([long, *shorts], max_sentences=2)[0]


def test_fragments_do_not_count_like_statements():
    statement = "The white ship at sea has rice and salt in a bowl."
    assert summarize(["Hot tea. Tea, hot. " + statement], max_sentences=1)[0] == statement


def test_async_gives_the_same():
    steps = ExtractiveSummarizer().summarize(TEXTS, max_tokens=25, embed_model=HashEmbedding())
    assert asyncio.run(arun_steps(steps)) == summarize(TEXTS, max_tokens=25)


@pytest.mark.parametrize("kwargs", [{"redundancy": -0.1}, {"redundancy": 2}, {"max_sentences": 0}])
def test_parameters_out_of_range_are_refused_at_once(kwargs):
    with pytest.raises(ConfigurationError, match=next(iter(kwargs))):
        ExtractiveSummarizer(**kwargs)


def test_a_budget_below_one_token_is_refused():
    with pytest.raises(ConfigurationError, match="max_tokens"):
        summarize(TEXTS, max_tokens=0)


def test_the_fingerprint_tells_parameters_apart():
    made = [
        ExtractiveSummarizer(),
        ExtractiveSummarizer(3),
        ExtractiveSummarizer(redundancy=0.5),
        ExtractiveSummarizer(language="de"),
    ]
    prints = [tuple(sorted(summarizer.fingerprint.items())) for summarizer in made]
    assert len(set(prints)) == 4
    assert ExtractiveSummarizer(3).fingerprint == ExtractiveSummarizer(3).fingerprint
    assert all(isinstance(value, str) for summarizer in made for value in summarizer.fingerprint.values())
    assert not ExtractiveSummarizer.needs_llm


@settings(max_examples=50)
@given(
    st.lists(
        st.lists(st.sampled_from([f"{a} is {b}." for a in WORDS for b in WORDS]), max_size=5).map(" ".join), max_size=5
    ),
    st.integers(1, 40),
)
def test_any_texts_give_their_own_sentences_within_the_budget(texts, max_tokens):
    summary, _ = summarize(texts, max_tokens=max_tokens)
    assert tokens(summary) <= max_tokens
    assert bool(summary) == any(texts)
    whole = [sentence + "." for sentence in summary.split(". ")]
    assert all(sentence.strip(".") in " ".join(texts) for sentence in whole)
