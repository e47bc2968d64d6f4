"""The heading at the beginning of a text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llama_index.ragkit.text.headings import split_heading

PROSE = "The water is red in summer, and nobody\nknows why."


@pytest.mark.parametrize(
    ("text", "heading"),
    [
        (f"# Lake Tovel\n{PROSE}", "Lake Tovel"),
        ("# **Lake** Tovel #\n\nIt is red.", "Lake Tovel"),
        (f"Lake Tovel\n==========\n{PROSE}", "Lake Tovel"),
        (f"Lake Tovel\n\n{PROSE}", "Lake Tovel"),
        ("The red lake\n\nIt is red in summer.", "The red lake"),
        (f"Marl Head\nThe tower is tall and old{', and taller than old' * 8}.", "Marl Head"),
        ("Lake Tovel\nLake Tovel is red in summer.", "Lake Tovel"),
        ("Wrong Turn 2: Dead End\nWrong Turn 2: Dead End is a film.", "Wrong Turn 2: Dead End"),
        ("Lake Tovel (Trentino)\nIt is red in summer.", "Lake Tovel (Trentino)"),
        ("Where Does It Hurt?\nA film of 1972 by Rodney Amateau.", "Where Does It Hurt?"),
        (f"LAKE TOVEL\n{PROSE}", "LAKE TOVEL"),
        ("东京\n东京是日本的首都。", "东京"),
        ("東京（曖昧さ回避）\n本文", "東京（曖昧さ回避）"),
    ],
)
def test_headings(text, heading):
    found, rest = split_heading(text)
    assert found == heading
    assert text.endswith(rest)
    assert heading not in rest.split("\n")[0] or rest.startswith(heading)


@pytest.mark.parametrize(
    "text",
    [
        "and they parted 60\nHe went to Lake Tovel.",  # no capital
        "They went to Lake Tovel and\nOtto stayed.",  # a function word at the end
        "Otto Lindqvist founded the\nBergslund Glassworks.",
        "Then Otto Lindqvist led the old\nBergslund Glassworks at Lake Tovel.",  # the line was full
        "Otto Lindqvist\nfounded the glassworks.",  # a small letter follows
        "The tower that stands\non the head is tall.",
        "Otto: where are you?\nMaria: here.",  # a conversation
        "Net sales 12 14\nCosts 10 11\nNet income 2 3",  # a table
        "- Otto Lindqvist\n- Maria Ekberg",  # a list
        "Otto Lindqvist was here.\n\nMaria Ekberg was not.",  # a sentence
        "Otto Lindqvist",  # nothing follows
        "The balance is disclosed in Note 7.\nOther assets include deferred income taxes, which were paid.",
        "See “Note 7 — Commitments.”\nThe following table summarizes gross gains and losses of the year.",
        "In fiscal 2022, we launched the Adobe Equity\nInitiative, a grant" + "making program" * 12,
        "IV\n\nThe tower is tall.",  # a number
        "x" * 200 + "\nlong",
        "A line\n" + "x" * 3,  # nothing that could be a text
        "",
    ],
)
def test_other_first_lines(text):
    assert split_heading(text) == ("", text)


def test_in_a_chunk_two_capitalised_words_may_be_a_broken_name():
    text = f"Bergslund Glassworks\nThe {'furnace burned for sixty years, '}\n{PROSE}"
    assert split_heading(text)[0] == "Bergslund Glassworks" or split_heading(text)[0] == ""
    assert split_heading(text, is_chunk=True)[0] == ""


@given(st.text("aB. \n#=-(", max_size=60) | st.text(max_size=60))
def test_the_rest_is_the_end_of_the_text(text):
    heading, rest = split_heading(text)
    assert text.strip().endswith(rest) or rest == text
    assert heading == " ".join(heading.split())
    if not heading:
        assert rest == text
