"""Removal of hard line breaks."""

import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llama_index.ragkit.text.unwrapping import is_table_row, unwrap

PROSE = (
    "In the spring of that year the engineer Otto Lindqvist founded the Bergslund Glassworks on the northern shore "
    "of a lake that his friend Maria Ekberg had shown him when they were children, and he called it after her village."
)


@pytest.mark.parametrize("width", [40, 60, 72, 100])
def test_wrapped_prose_is_restored(width):
    text = "\n\n".join(["\n".join(textwrap.wrap(PROSE, width))] * 2)
    assert unwrap(text) == f"{PROSE}\n\n{PROSE}"


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("Otto Lindqvist\nMaria Ekberg", ["Otto Lindqvist", "Maria Ekberg"]),  # labels
        ("- Otto\n- Maria", ["- Otto", "- Maria"]),
        ("1. Otto who founded\nthe Glassworks\n2. Maria", ["1. Otto who founded the Glassworks", "2. Maria"]),
        ("# Heading\nText", ["# Heading", "Text"]),
        ("| a | b |\n| c | d |", ["| a | b |", "| c | d |"]),
        ("Net sales 12 14\nCosts 10 11", ["Net sales 12 14", "Costs 10 11"]),
        ("Name\t\tPlace\nOtto\t\tTovel", ["Name\t\tPlace", "Otto\t\tTovel"]),
        ("a well-known\nglassblower", ["a well-known glassblower"]),
        ("glass blows, a glass-\nblower and a glassblower", ["glass blows, a glassblower and a glassblower"]),
        ("of the Anglo-\nAmerican bank", ["of the Anglo-American bank"]),
        ("soft\u00adly\r\nand", ["softly and"]),
        (
            "鲁迅出生于浙江绍兴的一个破落士大\n夫家庭，他的祖父曾经在京城做官。",
            ["鲁迅出生于浙江绍兴的一个破落士大夫家庭，他的祖父曾经在京城做官。"],
        ),
    ],
)
def test_breaks(text, lines):
    assert unwrap(text) == "\n\n".join(lines)


def test_fenced_code_is_left_unchanged():
    code = "```\nFoo = bar\n\n  baz\n```"
    assert unwrap(f"Some\n{code}\nText") == f"Some\n\n{code}\n\nText".replace("\n\n  baz", "\n\n  baz")


@given(st.text("ab AB,.-\n#|1\t", max_size=80))
def test_only_white_space_and_hyphens_change(text):
    def kept(value):
        return "".join(value.split()).replace("-", "")

    assert kept(unwrap(text)) == kept(text)


@given(st.text(max_size=100))
def test_any_text_can_be_unwrapped(text):
    assert isinstance(unwrap(text), str)


def test_rows():
    assert is_table_row("Revenue .......... 12")
    assert not is_table_row("In 1871 it was founded.")
