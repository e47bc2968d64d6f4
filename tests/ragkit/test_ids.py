"""Ids derived from content."""

from uuid import UUID, uuid5

from hypothesis import given
from hypothesis import strategies as st

from llama_index.ragkit import content_id

NAMESPACE = UUID("5d0c1f0e-6a54-5c1b-9c3e-0b1a7d6f4e21")
PARTS = st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=20), max_size=4)


@given(PARTS)
def test_an_id_is_a_uuid_of_version_5(parts: list[str]) -> None:
    named = "\x1f".join(f"{len(part)}:{part}" for part in parts)
    assert content_id(*parts) == str(uuid5(NAMESPACE, named))


@given(PARTS, PARTS)
def test_ids_are_equal_where_all_parts_are(one: list[str], other: list[str]) -> None:
    assert (content_id(*one) == content_id(*other)) == (one == other)


def test_the_ids_of_stored_indexes_stay() -> None:
    assert content_id("row", "naïve", "") == str(uuid5(NAMESPACE, "3:row\x1f5:naïve\x1f0:"))
