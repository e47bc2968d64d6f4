"""The words of an index: the scores of BM25 to the last bit, through every change."""

import copy
import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.storage.texts import QUESTIONS, WORDS, Texts, make_tiny, sentence

from llama_index.ragkit.storage.interface import Stores, Words
from llama_index.ragkit.storage.labels import labels_of
from llama_index.ragkit.storage.local_storage import LocalWords
from llama_index.ragkit.text.lexical_index import LexicalIndex, lexical_terms


@pytest.fixture
def words(new_stores: Callable[[], Stores]) -> Words:
    return new_stores().words()


@pytest.fixture(params=["ordinary", "tiny"])
def sizes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks and spans as they are, and tiny ones."""
    if request.param == "tiny":
        make_tiny(monkeypatch)


@pytest.mark.usefixtures("sizes")
def test_scores_are_those_of_the_index_in_memory_to_the_last_bit(words: Words) -> None:
    random = Random(3)
    texts = Texts(words)
    for _ in range(6):
        removed = random.sample(sorted(texts.texts), min(len(texts.texts), 4))
        texts.change(removed, {f"t{random.randrange(60)}": sentence(random) for _ in range(15)})
        for question in QUESTIONS:
            expected = texts.expected(question)
            assert list(texts.stored.scores(question, 1000).items()) == list(expected.items())
            few = texts.stored.scores(question, 5)
            assert list(few.items()) == list(expected.items())[:5]
        assert texts.stored.full_scores(QUESTIONS) == texts.memory.full_scores(QUESTIONS)
    assert len(texts.stored) == len(texts.texts) == len(texts.memory)


@pytest.mark.usefixtures("sizes")
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.tuples(
            st.sets(st.sampled_from("abcd")),
            st.dictionaries(st.sampled_from("abcd"), st.lists(st.sampled_from(WORDS.split()))),
        ),
        max_size=5,
    ),
    st.lists(st.sampled_from(WORDS.split()), min_size=1, max_size=4),
)
def test_any_changes_lead_to_the_same_scores(
    new_stores: Callable[[], Stores], changes: list[tuple[set[str], dict[str, list[str]]]], asked: list[str]
) -> None:
    texts = Texts(new_stores().words())
    for removed, added in changes:
        texts.change(removed, {name: " ".join(given) for name, given in added.items()})
        assert texts.stored.scores(" ".join(asked), 10) == texts.expected(" ".join(asked))


def test_texts_that_do_not_count_change_nothing(words: Words) -> None:
    random = Random(5)
    texts = Texts(words)
    texts.change([], {f"t{i}": sentence(random) for i in range(40)})
    some = {f"t{i}" for i in range(0, 40, 3)}
    for question in QUESTIONS:
        assert texts.stored.scores(question, 100, sorted(some)) == texts.expected(question, some)
        assert texts.stored.full_scores([question], sorted(some)) == texts.memory.having(some).full_scores([question])
    assert texts.stored.scores("net income", 100, []) == {}
    assert texts.stored.scores("net income", 100, ["nowhere"]) == {}


def test_scores_of_certain_texts(words: Words) -> None:
    random = Random(7)
    texts = Texts(words)
    texts.change([], {f"t{i}": sentence(random) for i in range(50)})
    some = ["t3", "t4", "t5", "t6", "nowhere"]
    for question, found in zip(QUESTIONS, texts.stored.scores_of(some, QUESTIONS), strict=True):
        expected = texts.expected(question)
        assert found == {name: expected[name] for name in some if name in expected}


def test_threads_that_write_lose_nothing(words: Words) -> None:
    texts = Texts(words)
    added = {f"t{i}": f"net income of ship {i}" for i in range(24)}

    def write(i: int) -> None:
        texts.stored.changed([], {name: lexical_terms(added[name]) for name in (f"t{2 * i}", f"t{2 * i + 1}")})

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(12)))
    texts.texts = {name: lexical_terms(given) for name, given in added.items()}
    texts.memory = texts.memory.changed([], texts.texts)
    assert texts.stored.scores("What income did ship 7 have?", 50) == texts.expected("What income did ship 7 have?")


@pytest.mark.usefixtures("sizes")
def test_equal_texts_come_by_their_ids(words: Words) -> None:
    texts = Texts(words)
    texts.change([], {f"t{(i * 7) % 300:03d}": "net income " * (1 + i % 5) for i in range(300)})
    for limit in (7, 70, 299):
        found = texts.stored.scores("net income", limit)
        assert list(found.items()) == list(texts.expected("net income").items())[:limit]


@pytest.mark.parametrize("question", ["", "   ", "the of and"])
def test_questions_without_words_find_nothing_or_what_they_consist_of(words: Words, question: str) -> None:
    texts = Texts(words)
    texts.change([], {"a": "the net of and", "b": "income", "c": ""})
    assert texts.stored.scores(question, 10) == texts.expected(question)


def test_the_whole_is_what_it_was_whatever_is_written_later(words: Words) -> None:
    texts = Texts(words)
    texts.change([], {"a": "net income", "b": "income taxes"})
    whole = words.whole()
    if whole is None:
        return
    before = [scores.tolist() for scores in whole.scores("net income")]
    texts.change(["a"], {"c": "net losses"})
    assert [scores.tolist() for scores in whole.scores("net income")] == before
    assert len(words.whole() or ()) == 2


@pytest.mark.parametrize("asked", ["What is a quetzalcoatlus?", "Was ist ein Haus?"])
def test_words_in_memory_keep_nothing_of_removed_texts(asked: str) -> None:
    words = LocalWords()
    kept = {"a": lexical_terms("net income of a house"), "b": lexical_terms("income taxes")}
    secret = {"secret id": lexical_terms("The quetzalcoatlus flies over the house")}
    words.changed([], kept | secret)
    words.scores(asked, 5)  # which stems the words
    assert b"quetzalcoatlus" in pickle.dumps(words)
    words.changed(["secret id"], {})
    held = pickle.dumps(words)
    assert not [word for word in (b"quetzalcoatlus", b"flies", b"secret id") if word in held]
    alone = LocalWords(LexicalIndex().changed((), kept))
    for question in (asked, "income of houses", "taxes"):
        assert words.scores(question, 5) == alone.scores(question, 5)
        assert words.full_scores([question])[0] == alone.full_scores([question])[0]


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda words: pickle.loads(pickle.dumps(words))])
def test_copies_of_words_in_memory_go_their_own_ways(copied: Callable[[LocalWords], LocalWords]) -> None:
    words = LocalWords()
    words.changed([], {"a": lexical_terms("net income")})
    other = copied(words)
    other.changed(["a"], {"b": lexical_terms("income taxes")})
    assert set(words.scores("income", 5)) == {"a"}
    assert set(other.scores("income", 5)) == {"b"}


def test_labels_change_no_score(words: Words) -> None:
    terms = {f"t{i}": lexical_terms("net income " * (1 + i % 3)) for i in range(9)}
    words.changed((), {name: {**own, **labels_of({"year": 1900}, "d")} for name, own in terms.items()})
    bare = LexicalIndex().changed((), terms)
    assert words.scores("net income", 20) == LocalWords(bare).scores("net income", 20)
    assert words.full_scores(["net"])[0] == bare.full_scores(["net"])[0]
    assert words.scores("year", 20) == {}
