"""The words of texts in compressed records: what was put in comes out, and nothing of what was removed stays."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from llama_index.core.storage.docstore import SimpleDocumentStore

from llama_index.ragkit.steps import run_steps
from llama_index.ragkit.storage import chunk_terms
from llama_index.ragkit.storage.chunk_terms import WordRecords
from llama_index.ragkit.storage.records import Records

IDS = st.text(st.characters(), min_size=1, max_size=4)
CHANGES = st.lists(st.tuples(st.lists(IDS, max_size=4), st.dictionaries(IDS, st.text(max_size=20), max_size=4)))


def new(source: str = "text", records: Records | None = None) -> WordRecords:
    return WordRecords(records or Records(SimpleDocumentStore(), "x"), source)


def stored(records: Records) -> dict[str, Any]:
    return run_steps(records.get_all("words"))


@given(changes=CHANGES, many=st.booleans())
def test_they_are_what_a_dictionary_is(changes: list[tuple[list[str], dict[str, str]]], many: bool) -> None:
    records = Records(SimpleDocumentStore(), "x")
    kept, expected = new(records=records), {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chunk_terms, "_RECORDS", 4096 if many else 2)
        for removed, added in changes:
            run_steps(kept.change(removed, added))
            expected = {text_id: words for text_id, words in expected.items() if text_id not in removed} | added
            assert run_steps(kept.load()) == expected
    assert bool(stored(records)) == bool(expected)
    json.dumps(stored(records)).encode("ascii")


def test_words_of_another_source_do_not_count_and_do_not_stay() -> None:
    records = Records(SimpleDocumentStore(), "x")
    run_steps(new("text", records).change((), {"a": "lamp"}))
    other = new("text and questions", records)
    assert run_steps(other.load()) == {}
    run_steps(other.change((), {"a": "lamp who"}))
    assert run_steps(other.load()) == {"a": "lamp who"}
    assert run_steps(new("text", records).load()) == {}


def test_records_are_smaller_than_their_words() -> None:
    records = Records(SimpleDocumentStore(), "x")
    words = " ".join(f"word{n % 97}" for n in range(60))
    run_steps(new(records=records).change((), {f"n{i}": words for i in range(50_000)}))
    assert sum(len(record["words"]) for record in stored(records).values()) < 50_000 * len(words) / 2
