"""Lexical search in an SQL database: the scores of the index in memory, through every change."""

import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from random import Random

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine, text

from llama_index.ragkit.sql import SQLLexicalIndex, reading
from llama_index.ragkit.text.lexical_index import LexicalIndex
from llama_index.ragkit.text.lexical_terms import lexical_terms

WORDS = "net income rose rising taxes tax taxed Москве Москва házak ház häuser haus 東京 都民 서울은 서울의 3m lyon"
QUESTIONS = [
    "Did net incomes rise?",
    "tax taxed taxing",
    "Сколько налогов в Москве?",
    "東京都",
    "Häuser und Haus",
    "서울",
    "?",
]


class Texts:
    """Texts in both indexes."""

    def __init__(self, engine: Engine, name: str = "a") -> None:
        self.texts: dict[str, Counter[str]] = {}
        self.stored = SQLLexicalIndex(engine, name, self.words)
        self.memory = LexicalIndex()

    def words(self) -> Iterable[str]:
        return (word for counts in self.texts.values() for word in counts)

    def change(self, removed: Iterable[str], added: dict[str, str], languages: Iterable[str] = ()) -> None:
        counts = {name: lexical_terms(given) for name, given in added.items()}
        gone = list(removed)
        self.memory = self.memory.changed(gone, counts)
        self.stored.changed(gone, counts, list(languages))
        self.texts = {name: each for name, each in self.texts.items() if name not in gone} | counts

    def expected(self, question: str, only: set[str] | None = None) -> dict[str, float]:
        ids = self.memory.ids
        masks = None if only is None else [np.array([name in only for name in block], np.bool_) for block in ids]
        found: dict[str, float] = {}
        for block, scores in zip(ids, self.memory.scores(question, masks), strict=True):
            found.update({name: score for name, score in zip(block, scores.tolist(), strict=True) if score})
        return dict(sorted(found.items(), key=lambda each: (-each[1], each[0])))


def sentence(random: Random) -> str:
    return " ".join(random.choices(WORDS.split(), k=random.randrange(0, 12)))


def test_scores_are_those_of_the_index_in_memory_to_the_last_bit(engine: Engine) -> None:
    random = Random(3)
    texts = Texts(engine)
    for step in range(6):
        removed = random.sample(sorted(texts.texts), min(len(texts.texts), 4))
        texts.change(removed, {f"t{random.randrange(60)}": sentence(random) for _ in range(15)}, ["en"] * (step > 1))
        for question in QUESTIONS:
            expected = texts.expected(question)
            assert list(texts.stored.scores(question, 1000).items()) == list(expected.items())
            few = texts.stored.scores(question, 5)
            assert list(few.values()) == list(expected.values())[:5]
            assert few.items() <= expected.items()
    assert len(texts.stored) == len(texts.texts) == len(texts.memory)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
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
    engine: Engine, changes: list[tuple[set[str], dict[str, list[str]]]], asked: list[str]
) -> None:
    texts = Texts(engine)
    texts.stored.drop()
    for removed, added in changes:
        texts.change(removed, {name: " ".join(words) for name, words in added.items()})
        assert texts.stored.scores(" ".join(asked), 10) == texts.expected(" ".join(asked))


def test_texts_that_do_not_count_change_nothing(engine: Engine) -> None:
    random = Random(5)
    texts = Texts(engine)
    texts.change([], {f"t{i}": sentence(random) for i in range(40)})
    some = {f"t{i}" for i in range(0, 40, 3)}
    for question in QUESTIONS:
        assert texts.stored.scores(question, 100, sorted(some)) == texts.expected(question, some)
    assert texts.stored.scores("net income", 100, []) == {}
    assert texts.stored.scores("net income", 100, ["nowhere"]) == {}


def test_scores_of_certain_texts_come_beside_the_best(engine: Engine) -> None:
    random = Random(7)
    texts = Texts(engine)
    texts.change([], {f"t{i}": sentence(random) for i in range(50)})
    also = ["t3", "t4", "t5", "t6", "nowhere"]
    for question in QUESTIONS:
        expected = texts.expected(question)
        found = texts.stored.scores(question, 2, also=also)
        assert found.items() <= expected.items()
        assert list(found.values())[:2] == list(expected.values())[:2]
        assert {name for name in also if name in expected} <= set(found)
        assert len(found) <= 2 + len(also)


def test_a_text_that_is_removed_leaves_no_row(engine: Engine) -> None:
    texts = Texts(engine)
    texts.change([], {"a": "Xylocopa violacea flies to Lyon", "b": "Lyon lies on the Rhone"}, ["en"])
    assert texts.stored.scores("Where does Xylocopa fly?", 10)
    texts.change(["a"], {})
    left = {"texts": 1, "postings": 5, "stems": 5}
    with reading(engine) as connection:
        for table, count in left.items():
            rows = connection.execute(text(f"SELECT * FROM ragkit_lexical_{table}")).all()
            assert len(rows) == count, table
            assert "ylocopa" not in str(rows)
    texts.change(["b"], {})
    with reading(engine) as connection:
        for table in left:
            assert connection.execute(text(f"SELECT count(*) FROM ragkit_lexical_{table}")).scalar_one() == 0
    assert texts.stored.scores("Lyon", 10) == {}


def test_indexes_of_other_names_are_apart(engine: Engine) -> None:
    first, second = Texts(engine, "a"), Texts(engine, "b")
    first.change([], {"t": "net income"})
    second.change([], {"t": "taxes in Lyon", "u": "net losses"})
    assert set(first.stored.scores("net taxes", 10)) == {"t"}
    assert second.stored.scores("net taxes", 10) == second.expected("net taxes")
    first.stored.drop()
    assert first.stored.scores("net income", 10) == {}
    assert len(first.stored) == 0
    assert set(second.stored.scores("net taxes", 10)) == {"t", "u"}


def test_threads_that_write_lose_nothing(engine: Engine) -> None:
    texts = Texts(engine)
    added = {f"t{i}": f"net income of ship {i}" for i in range(24)}

    def write(i: int) -> None:
        texts.stored.changed([], {name: lexical_terms(added[name]) for name in (f"t{2 * i}", f"t{2 * i + 1}")})

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(12)))
    texts.texts = {name: lexical_terms(given) for name, given in added.items()}
    texts.memory = texts.memory.changed([], texts.texts)
    assert texts.stored.scores("What income did ship 7 have?", 50) == texts.expected("What income did ship 7 have?")


def test_a_process_sees_what_another_wrote(engine: Engine, url: str) -> None:
    code = (
        "import sys\nfrom llama_index.ragkit.sql import SQLLexicalIndex, make_engine\n"
        "index = SQLLexicalIndex(make_engine(sys.argv[1]), 'a', list)\n"
        "index.changed(['gone'], {'new': {'income': 2, 'of': 1}}, ['en'])\n"
    )
    texts = Texts(engine)
    texts.change([], {"gone": "income", "t": "net income"})
    assert set(texts.stored.scores("incomes", 10)) == {"gone", "t"}
    subprocess.run([sys.executable, "-c", code, url], check=True)
    assert set(texts.stored.scores("incomes", 10)) == {"new", "t"}


def test_of_equal_texts_the_same_are_found_again(engine: Engine) -> None:
    texts = Texts(engine)
    texts.change([], {f"t{i}": "net income " * (1 + i % 5) for i in range(300)})
    found = texts.stored.scores("net income", 7)
    assert list(found.values()) == list(texts.expected("net income").values())[:7]
    assert texts.stored.scores("net income", 7) == found


@pytest.mark.parametrize("question", ["", "   ", "the of and"])
def test_questions_without_words_find_nothing_or_what_they_consist_of(engine: Engine, question: str) -> None:
    texts = Texts(engine)
    texts.change([], {"a": "the net of and", "b": "income", "c": ""})
    assert texts.stored.scores(question, 10) == texts.expected(question)
