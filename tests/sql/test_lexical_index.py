"""Lexical search in an SQL database: its rows, several indexes and processes, and what a question reads.

What it shares with words in memory is in `tests/storage/test_words.py`.
"""

import json
from random import Random
from typing import Any

import numpy as np
import pytest
from llama_index.core.vector_stores import FilterCondition, FilterOperator, MetadataFilter, MetadataFilters
from sqlalchemy import Engine, text
from tests.processes import Worker
from tests.storage.texts import QUESTIONS, Texts, make_tiny, sentence

from llama_index.ragkit.sql import SQLLexicalIndex, lexical_records, lexical_rows, lexical_search, reading
from llama_index.ragkit.storage.labels import LabelledTexts, labels_of
from llama_index.ragkit.text.lexical_index import lexical_terms
from llama_index.ragkit.vectors.filters import select
from llama_index.ragkit.vectors.row_buffer import Record
from llama_index.ragkit.vectors.snapshot import Snapshot

TABLES = ["texts", "words", "postings", "stems", "shared"]


@pytest.fixture(params=["ordinary", "tiny"])
def sizes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks and spans as they are, and tiny ones."""
    if request.param == "tiny":
        make_tiny(monkeypatch)


def texts_in(engine: Engine, name: str = "a") -> Texts:
    return Texts(SQLLexicalIndex(engine, name))


def rows_of(engine: Engine) -> dict[str, list[str]]:
    """The rows of each table, as texts."""
    with reading(engine) as connection:
        found = {table: connection.execute(text(f"SELECT * FROM ragkit_lexical_{table}")).all() for table in TABLES}
    return {table: sorted(map(str, rows)) for table, rows in found.items()}


def test_a_text_that_is_removed_leaves_no_row(engine: Engine) -> None:
    texts = texts_in(engine)
    texts.change([], {"a": "Xylocopa violacea flies to Lyon", "b": "Lyon lies on the Rhone"})
    assert texts.stored.scores("Where does Xylocopa fly?", 10)
    texts.change(["a"], {})
    left = rows_of(engine)
    assert len(left["texts"]) == 1
    assert len(left["words"]) == len(left["postings"]) == 5  # Lyon lies on the Rhone
    assert "ylocopa" not in str(left)
    again = SQLLexicalIndex(engine, "b")
    again.changed((), {"b": lexical_terms("Lyon lies on the Rhone")})
    assert len(rows_of(engine)["stems"]) == 2 * len(left["stems"])
    texts.change(["b"], {})
    again.drop()
    assert not any(rows_of(engine).values())
    assert texts.stored.scores("Lyon", 10) == {}


@pytest.mark.usefixtures("sizes")
def test_changes_that_are_undone_leave_the_rows_as_they_were(engine: Engine) -> None:
    random = Random(9)
    texts = texts_in(engine)
    kept = {f"t{i}": sentence(random) for i in range(30)}
    texts.change([], kept)
    before = rows_of(engine)
    texts.change([], {f"u{i}": sentence(random) + " tax taxes taxing" for i in range(30)})
    assert rows_of(engine)["shared"] != before["shared"]
    texts.change([f"u{i}" for i in range(30)], {})
    assert {table: rows_of(engine)[table] for table in ("words", "stems", "shared")} == {
        table: before[table] for table in ("words", "stems", "shared")
    }
    texts.change(list(kept), {})
    assert not any(rows_of(engine).values())


def test_a_write_that_fails_changes_nothing(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = texts_in(engine)
    texts.change([], {"a": "net income", "b": "income taxes"})
    before = rows_of(engine)
    with monkeypatch.context() as patched:

        def fail(*_: object) -> None:
            raise RuntimeError("killed")

        patched.setattr(lexical_rows.LexicalRows, "_grow", fail)
        with pytest.raises(RuntimeError, match="killed"):
            texts.stored.changed(["a"], {"c": {"net": 1, "losses": 2}})
    assert rows_of(engine) == before
    assert texts.stored.scores("net income", 10) == texts.expected("net income")


def test_indexes_of_other_names_are_apart(engine: Engine) -> None:
    first, second = texts_in(engine, "a"), texts_in(engine, "b")
    first.change([], {"t": "net income"})
    second.change([], {"t": "taxes in Lyon", "u": "net losses"})
    assert set(first.stored.scores("net taxes", 10)) == {"t"}
    assert second.stored.scores("net taxes", 10) == second.expected("net taxes")
    first.stored.drop()
    assert first.stored.scores("net income", 10) == {}
    assert len(first.stored) == 0
    assert set(second.stored.scores("net taxes", 10)) == {"t", "u"}


def test_a_process_sees_what_another_wrote(engine: Engine, url: str) -> None:
    code = (
        "import sys\nfrom llama_index.ragkit.sql import SQLLexicalIndex, make_engine\n"
        "index = SQLLexicalIndex(make_engine(sys.argv[1]), 'a')\n"
        "index.changed(['gone'], {'new': {'income': 2, 'of': 1}})\n"
    )
    texts = texts_in(engine)
    texts.change([], {"gone": "income", "t": "net income"})
    assert set(texts.stored.scores("incomes", 10)) == {"gone", "t"}
    assert Worker(code, url).wait() == 0
    assert set(texts.stored.scores("incomes", 10)) == {"new", "t"}


@pytest.mark.usefixtures("sizes")
@pytest.mark.parametrize("question", ["net income", "rare"])
def test_of_very_many_equal_texts_those_written_first_are_considered(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, question: str
) -> None:
    monkeypatch.setattr(lexical_search, "TIED", 4)
    monkeypatch.setattr(lexical_search, "_FEWEST", 2)
    texts = texts_in(engine)
    texts.change([], {f"t{99 - i:02d}": "net income" for i in range(60)} | {f"r{99 - i}": "rare" for i in range(20)})
    first = {"net income": "t", "rare": "r"}[question]
    assert list(texts.stored.scores(question, 3)) == [f"{first}{i}" for i in (93, 94, 95)]


@pytest.mark.parametrize("cost", [0, 5, 10**9])
@pytest.mark.parametrize("at_once", [1, 50])
def test_the_best_are_exact_whatever_is_read_for_them(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, cost: int, at_once: int
) -> None:
    for name, value in {"_POSTINGS_A_TEXT": cost, "_AT_ONCE": at_once, "_FEWEST": 3, "SPAN": 128}.items():
        monkeypatch.setattr(lexical_search, name, value)
    monkeypatch.setattr(lexical_records, "SPAN", 128)
    monkeypatch.setattr(lexical_records, "BLOCK", 8)
    random, texts = Random(13), texts_in(engine)
    words = [f"w{i}" for i in range(200)]
    often = [1 / (i + 1) for i in range(200)]
    texts.change(
        [], {f"t{i:03d}": " ".join(random.choices(words, often, k=random.randrange(1, 40))) for i in range(400)}
    )
    texts.change([f"t{i:03d}" for i in range(0, 400, 7)], {})
    for _ in range(15):
        question = " ".join(random.choices(words, often, k=random.randrange(1, 9)))
        for limit in (1, 10, 50):
            found, expected = texts.stored.scores(question, limit), texts.expected(question)
            assert list(found.items()) == list(expected.items())[:limit]


def test_postings_of_common_words_are_not_read(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lexical_search, "_AT_ONCE", 50)
    monkeypatch.setattr(lexical_search, "_POSTINGS_A_TEXT", 10)
    texts, read = texts_in(engine), []
    texts.change([], {f"t{i:04d}": f"net income word{i % 40} of ship{i}" for i in range(2000)})
    plain = lexical_rows.LexicalRows.blocks

    def blocks(*arguments: Any) -> Any:
        found = plain(*arguments)
        read.extend(found)
        return found

    monkeypatch.setattr(lexical_rows.LexicalRows, "blocks", blocks)
    found = texts.stored.scores("What net income had word7?", 10)
    assert list(found.items()) == list(texts.expected("What net income had word7?").items())[:10]
    assert sum(len(block.packed) for block in read) == 50 * lexical_records.POSTING.itemsize


@pytest.mark.parametrize("question", ["", "   ", "the of and"])
def test_questions_without_words_find_nothing_or_what_they_consist_of(engine: Engine, question: str) -> None:
    texts = texts_in(engine)
    texts.change([], {"a": "the net of and", "b": "income", "c": ""})
    assert texts.stored.scores(question, 10) == texts.expected(question)


def _where(*parts: Any, condition: FilterCondition = FilterCondition.AND) -> MetadataFilters:
    return MetadataFilters(filters=list(parts), condition=condition)


def _is(key: str, value: Any, operator: FilterOperator = FilterOperator.EQ) -> MetadataFilter:
    return MetadataFilter(key=key, value=value, operator=operator)


_A, _BIG = _is("tenant", "a"), _is("size", 3)
LABELLED = [
    _where(_A),
    _where(_is("tenant", ["a", "c"], FilterOperator.IN)),
    _where(_A, _BIG),
    _where(_A, _BIG, condition=FilterCondition.OR),
    _where(_where(_A, _BIG), _is("doc_id", "d4"), condition=FilterCondition.OR),
    _where(_is("size", 3.0)),
    _where(_is("tenant", "nobody")),
]


@pytest.mark.parametrize("filters", LABELLED)
@pytest.mark.parametrize("postings", [0, 10**9], ids=["by texts", "by postings"])
def test_texts_with_labels_are_scored_as_if_there_were_no_others(
    filters: MetadataFilters, postings: int, engine: Engine, monkeypatch: pytest.MonkeyPatch
):
    """Document frequencies are those of the texts that pass, in the database as in memory, whichever way it reads."""
    monkeypatch.setattr(lexical_search, "_POSTINGS_A_TEXT", postings)
    random, texts, stored = Random(3), texts_in(engine), SQLLexicalIndex(engine, "a")
    given = {f"t{i}": sentence(random) for i in range(90)}
    metadata = {name: {"tenant": "abc"[i % 3], "size": i % 5} for i, name in enumerate(given)}
    texts.change((), given)
    labelled = {
        name: {**lexical_terms(text_of), **labels_of(metadata[name], f"d{i // 10}")}
        for i, (name, text_of) in enumerate(given.items())
    }
    texts.stored.changed((), labelled)
    texts.stored.changed(["t3", "t4"], {})
    texts.memory = texts.memory.changed(["t3", "t4"], {})
    records = [Record(i, f"d{n // 10}", i, json.dumps(metadata[i])) for n, i in enumerate(given)]
    mask = select(Snapshot.of(np.ones((90, 1), np.float32), records), filters)
    passing = {i for i, passes in zip(given, mask.tolist(), strict=True) if passes} - {"t3", "t4"}
    found = stored.labelled(filters)
    assert found is not None
    assert found.exact
    assert isinstance(stored.passing(filters, len(found) - 1), LabelledTexts)
    assert set(stored.passing(filters, 90)) == passing
    for question in QUESTIONS:
        expected = texts.expected(question, passing)
        assert texts.stored.scores(question, 10, found) == dict(list(expected.items())[:10])
        (of_some,) = texts.stored.scores_of(sorted(passing)[:7], [question], found)
        assert of_some == {name: score for name, score in expected.items() if name in sorted(passing)[:7]}
        assert texts.stored.full_scores([question], found) == texts.memory.having(passing).full_scores([question])


@pytest.mark.parametrize(
    "filters",
    [
        _where(_is("tenant", "a", FilterOperator.NE)),
        _where(_A, condition=FilterCondition.NOT),
        _where(_A, _is("size", 2, FilterOperator.GT), condition=FilterCondition.OR),
    ],
)
def test_what_labels_do_not_tell_is_not_looked_up(filters: MetadataFilters, engine: Engine):
    texts = SQLLexicalIndex(engine, "a")
    texts.changed((), {"one": {**lexical_terms("net income"), **labels_of({"tenant": "a", "size": 3}, None)}})
    assert texts.labelled(filters) is None
    both = texts.labelled(_where(_A, _is("size", 2, FilterOperator.GT)))
    assert both is not None
    assert not both.exact
    assert texts.passing(_where(_A, _is("size", 2, FilterOperator.GT)), 0) is None
    texts.changed((), {"old": lexical_terms("written without labels")})
    assert texts.labelled(_where(_A)) is None
