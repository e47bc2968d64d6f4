"""Arrays of PostgreSQL as texts come back as what they were made from."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine, text

from llama_index.ragkit.sql import reading
from llama_index.ragkit.sql.tables import bytes_array, integer_array, text_array

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"))
WRITTEN = {"text": text_array, "bytea": bytes_array, "bigint": integer_array}


@given(
    st.one_of(
        st.tuples(st.just("text"), st.lists(TEXTS | st.sampled_from(["NULL", "{}", ",", "\\", '"', "\\N", " a "]))),
        st.tuples(st.just("bytea"), st.lists(st.binary())),
        st.tuples(st.just("bigint"), st.lists(st.integers(-(2**63), 2**63 - 1))),
    )
)
@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_an_array_comes_back(engine: Engine, case: tuple[str, list[Any]]) -> None:
    if engine.dialect.name == "sqlite":
        pytest.skip("SQLite takes JSON")
    kind, values = case
    with reading(engine) as connection:
        found = connection.execute(text(f"SELECT CAST(:given AS {kind}[])"), {"given": WRITTEN[kind](values)}).scalar()
    assert [bytes(each) if kind == "bytea" else each for each in found] == values
