"""Known names in a text."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llama_index.ragkit.text.characters import normalise
from llama_index.ragkit.text.known_names import KnownNames
from llama_index.ragkit.text.packed_words import PackedPhrases
from llama_index.ragkit.text.stems import StemmedPhrases, ends_of, stemmed, stems

PHRASES = ["physiker max planck", "max planck institut", "москва", "города москвы", "paris", "new york city"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Wo wurde Max Planck geboren?", {"physiker max planck", "max planck institut"}),
        ("Wo wohnte Planck?", {"physiker max planck"}),
        ("Who was Max?", {"max planck institut"}),
        ("Who was Planck Max?", set()),
        ("Что стоит в Москве?", {"москва"}),
        ("Is Paris in New York City?", {"paris", "new york city"}),
        ("where is new york?", {"new york city"}),
        ("Where is York?", set()),  # in the middle of a name
        ("Who was it?", set()),
    ],
)
def test_names_are_found(text, found):
    names = KnownNames(PHRASES).find(text)
    assert {PHRASES[row] for name in names for row in name.rows} == found


def test_only_phrases_that_may_be_found_are():
    known = KnownNames(PHRASES)
    assert known.find("In Paris", lambda row: PHRASES[row] != "paris") == []
    assert known.number("paris") == 4
    assert known.number("paris", lambda row: False) is None
    assert known.number("london") is None


def test_a_part_of_many_phrases_is_not_specific():
    phrases = [f"john {chr(97 + i)}{chr(97 + j)}x" for i in range(8) for j in range(8)]
    assert KnownNames(phrases).find("Where did John live?") == []
    assert KnownNames(phrases[:9]).find("Where did John live?")[0].rows == tuple(range(9))


def test_names_in_lower_case_are_marked():
    found = KnownNames(["marie curie", "paris"]).find("What did marie curie do in Paris?")
    assert [(name.rows, name.lower_case) for name in found] == [((0,), True), ((1,), False)]


@given(st.text(max_size=60), st.lists(st.text("aB Яя東", max_size=8), max_size=6))
def test_places_are_in_order_without_overlaps(text, phrases):
    known = list(dict.fromkeys(filter(None, map(normalise, phrases))))
    found = KnownNames(known).find(text)
    assert all(a.end <= b.start for a, b in pairwise(found))
    assert all(name.rows == tuple(sorted(set(name.rows))) != () and name.start < name.end for name in found)


WORDS = ["москве", "einsteins", "서울은", "北京", "القاهرة", "", "1", "दिल्ली", "x"]


@given(st.lists(st.sampled_from(WORDS)), st.text("derux", max_size=2))
def test_stems_of_words_in_any_script(words, language):
    found = stems(words, language)
    assert len(found) == len(words)
    assert found == [stems([word], language)[0] for word in words]
    assert all(stem for stem, word in zip(found, words, strict=True) if word)


WORDS = ("max", "planck", "physiker", "москва", "москве", "東京", "東京大学", "york", "new")
some_phrases = st.sets(st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(" ".join), max_size=12)


@given(some_phrases, st.lists(some_phrases, max_size=4), st.lists(st.sampled_from(WORDS), max_size=6))
def test_phrases_that_come_and_go_are_found_as_if_they_had_been_there_at_once(first, later, words):
    """Whichever tables were built before, and whichever numbers the phrases have."""
    text, known, before = " ".join(word.title() for word in words), KnownNames(sorted(first)), first
    for phrases in later:
        known.find(text)
        known, before = known.changed(sorted(before - phrases), sorted(phrases - before)), phrases
    at_once = KnownNames(sorted(before))
    names = {at_once.number(phrase): known.number(phrase) for phrase in before}
    found = [(name.start, name.end, name.rows, name.lower_case) for name in known.find(text)]
    expected = at_once.find(text)
    assert found == [(n.start, n.end, tuple(sorted(names[row] for row in n.rows)), n.lower_case) for n in expected]


@given(some_phrases, st.lists(some_phrases, max_size=4), st.lists(st.sampled_from(WORDS), max_size=6))
def test_phrases_of_a_numbering_that_moves_up_are_found_as_if_they_had_been_there_at_once(first, later, words):
    text, numbered = " ".join(word.title() for word in words), sorted(first)
    known = KnownNames(numbered)
    for phrases in later:
        known.find(text)
        removed = [row for row, phrase in enumerate(numbered) if phrase not in phrases]
        numbered = [phrase for phrase in numbered if phrase in phrases]
        numbered += sorted(phrases - set(numbered))
        known = known.renumbered(removed, numbered, {phrase: row for row, phrase in enumerate(numbered)})
    assert known.find(text) == KnownNames(numbered).find(text)


MIXED = (*WORDS, "plancks", "קהיר", "القاهرة", "दिल्ली", "서울은", "kg東京", "大", "ไทย", "the")
mixed_phrases = st.lists(
    st.lists(st.sampled_from(MIXED), min_size=1, max_size=5).map(" ".join), max_size=12, unique=True
)


@given(
    mixed_phrases,
    st.lists(st.sampled_from(MIXED), min_size=1, max_size=3).map(" ".join),
    st.sampled_from(["en", "de", "ru"]),
)
def test_phrases_of_arrays_are_those_that_a_look_at_each_finds(phrases, part, language):
    found = StemmedPhrases(PackedPhrases.of_arrays(PackedPhrases.to_arrays(phrases)).split, language)
    *keys, wanted = stemmed([*phrases, part], language)
    assert [found.key(row) for row in range(len(phrases))] == keys
    assert found.alike(wanted) == [row for row, key in enumerate(keys) if key == wanted]
    begins = [f"{key} ".startswith(f"{wanted} ") for key in keys]
    near = [row for row, key in enumerate(keys) if begins[row] and set(ends_of(key)) & set(ends_of(wanted)[:1])]
    assert set(near) <= set(found.near(wanted, longest=5))


@given(mixed_phrases)
def test_phrases_that_an_earlier_version_stored_are_found_the_same_way(phrases):
    arrays = PackedPhrases.to_arrays(phrases)
    now, earlier = (PackedPhrases.of_arrays(some) for some in (arrays, {n: arrays[n] for n in ("letters", "ends")}))
    assert list(now) == list(earlier) == phrases
    assert [now.find(text) for text in (*phrases, "york york york york york york")] == [*range(len(phrases)), -1]
    assert [earlier.find(text) for text in phrases] == list(range(len(phrases)))
    assert now.split.words.tolist() == earlier.split.words.tolist()
    assert list(now.split.vocabulary) == list(earlier.split.vocabulary)
