"""Removal of hard line breaks."""

import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llama_index.ragkit.text.unwrapping import _COLUMN_SIGNS, _COLUMNS, is_table_row, unwrap

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
        (
            "Ada: the oil of the lamp has burned down and the\nOtto: What?\nAda: the lamp is out and\nnobody knows why",
            [
                "Ada: the oil of the lamp has burned down and the",
                "Otto: What?",
                "Ada: the lamp is out and nobody knows why",
            ],
        ),
        ("name: Storm Lantern of the\nmaker: Otto", ["name: Storm Lantern of the", "maker: Otto"]),
        ("the lamp of the engineer and\nfounder: Otto", ["the lamp of the engineer and founder: Otto"]),
        (
            "2026-05-03 10:15:22 the lamp of the\n2026-05-03 10:15:24 server is lit",
            ["2026-05-03 10:15:22 the lamp of the", "2026-05-03 10:15:24 server is lit"],
        ),
        ("[00:12] We saw the\n[00:25] lamp", ["[00:12] We saw the", "[00:25] lamp"]),
        (
            "00:00:01,000 --> 00:00:04,200\nthe Gulf Stream and\nthe cold sea",
            ["00:00:01,000 --> 00:00:04,200", "the Gulf Stream and the cold sea"],
        ),
        (
            '7, Storm Lantern, brass, burns oil of the\n8, Deck Lamp, tin, "small, waterproof"\n9, Horn, tin, loud',
            [
                "7, Storm Lantern, brass, burns oil of the",
                '8, Deck Lamp, tin, "small, waterproof"',
                "9, Horn, tin, loud",
            ],
        ),
        (
            "same  filename.   It  also provides a further way for man to select\nthe correct page.",
            ["same  filename.   It  also provides a further way for man to select the correct page."],
        ),  # justified: three blanks end a sentence, and make no columns
        (
            "[^4]: Lamps should work\n    without oil.\n[^5]: Or not.",
            ["[^4]: Lamps should work without oil.", "[^5]: Or not."],
        ),
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


TABLE = """
Net income
Other comprehensive income
Foreign currency translation adjustments
Pension and other postretirement benefits
Share-based compensation expense
$
1,204
Depreciation and amortization of assets
Net gain on disposal of businesses
Selling, general and administrative
expenses of the segment
2022
""".strip().split("\n")


def test_cells_of_a_table_in_the_order_of_its_columns_stay_apart():
    continued = TABLE.index("expenses of the segment")
    cells = [*TABLE[: continued - 1], " ".join(TABLE[continued - 1 : continued + 1]), *TABLE[continued + 1 :]]
    assert unwrap("\n".join(TABLE)).split("\n\n") == cells
    assert unwrap("\n".join(TABLE[1:4])) != "\n\n".join(TABLE[1:4])  # too few lines to tell


def test_long_lines_among_labels_may_be_wrapped():
    long = "Janssen Submits a New Drug Application to the Food and Drug Administration Seeking Approval of"
    headlines = [part for _ in range(6) for part in (long, "Macitentan and Tadalafil")]
    assert unwrap("\n".join(headlines)).split("\n\n")[0].startswith(f"{long} Macitentan and Tadalafil")


def test_prose_in_which_many_lines_begin_with_names_is_restored():
    sentence = "Then Otto Lindqvist met Clara Ashdown and Maria Ekberg at the Bergslund Glassworks near Tovel."
    text = " ".join([sentence] * 9)
    assert unwrap("\n".join(textwrap.wrap(text, 50))) == text


@given(st.text("ab1. \t", max_size=20))
def test_a_line_with_columns_has_a_sign_of_them(line):
    assert _COLUMNS.search(line) is None or any(sign in line for sign in _COLUMN_SIGNS)
