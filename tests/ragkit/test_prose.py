"""Where names are looked for: not in code, nor across the cells of a table."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llama_index.ragkit.text.names import names
from llama_index.ragkit.text.passages import read_passage
from llama_index.ragkit.text.prose import prose
from llama_index.ragkit.text.statements import sentences_of_prose
from llama_index.ragkit.text.unwrapping import code_lines, unwrap

CODE = """
import northwind
import numpy as np
from northwind.lamps import Lamp, Oil as LampOil
def light(lamp):
class Lamp(Base):
lamp = Lamp("Old Lamp")
self.lamps[0] += 2
client.order("Tovel Blue", 40)
index.insert(Document(text="In 1931 the Old Lamp came back.", id_="note"))
print(round(lamp.oil(), 2), lamp.name[:60])
for lamp in client.lamps("Old"):
if lamp.lit == True:
"name": "Otto Lindqvist",
)
});
$ pip install northwind
pip install "northwind[lamps]"
>>> Lamp().light()
let lamp = new Lamp();
public static void main(String[] args) {
SELECT lamp FROM museum WHERE year = 1931
<div class="lamp">
const light = (lamp) => {
#include <stdio.h>
""".strip().split("\n")

PROSE = """
Otto Lindqvist founded the works (1871);
if the lamp was lit:
from Rome import duties rose.
import duties rose
with the following exceptions:
Lindqvist(1871) says so.
Other(1)
static electricity; and sparks
let us go (now)
public offering = first sale
% of total
$ in millions
for the years ended December 31:
class A shares: common stock
return to the lake (1871);
He said: "no";
Smith et al. (2004)
while he waited, she (Clara) left:
@lindqvist
Net income = revenue less cost
Select members from the house
""".strip().split("\n")


@pytest.mark.parametrize("line", CODE)
def test_lines_of_code(line):
    assert code_lines([f"    {line}"]) == [True]


@pytest.mark.parametrize("line", PROSE)
def test_lines_of_prose(line):
    assert code_lines([line]) == [False]
    assert prose(line) == line


def test_fences_also_where_a_chunk_has_one_of_them():
    whole = ["Before.", "```python", "Otto Lindqvist", "", "Lake Tovel", "```", "After."]
    assert code_lines(whole) == [False, True, True, True, True, True, False]
    assert code_lines(["Before.", "```", "lamp.light()", "Old Lamp"]) == [False, True, True, True]
    assert code_lines(["lamp = Lamp(oil=1)", "Old Lamp", "lamp.light()", "```", "Otto Lindqvist came."]) == [
        True, True, True, True, False,
    ]  # fmt: skip
    assert code_lines(["~~~", "```", "~~~", "After."]) == [True, True, True, False]


def test_code_is_not_joined_to_sentences():
    text = "The client is made by\nOtto Lindqvist:\n\nimport northwind\nclient = northwind.Client()\n\nIt is fast."
    assert unwrap(text) == (
        "The client is made by Otto Lindqvist:\n\nimport northwind\nclient = northwind.Client()\n\nIt is fast."
    )


def test_a_table_of_markdown_gives_its_words_cell_by_cell():
    table = "| owner | town | 2018 | 2019 |\n|:--|---|---:|---|\n| Otto Lindqvist | Bergslund Hill | 12 | **0.770** |"
    assert prose(table).split("\n\n") == ["owner", "town", "Otto Lindqvist", "Bergslund Hill"]
    assert [name.text for name in names(prose(table))] == ["Otto Lindqvist", "Bergslund Hill"]


def test_a_row_of_columns_gives_its_words_without_its_numbers():
    assert prose("South Tyrol   310    295    342") == "South Tyrol"
    assert prose("South Tyrol 310 295 342") == "South Tyrol"
    assert prose("1,204 1,310") == ""
    assert prose("Wilhelm Dreyer (15 June 1924 – 24 April 2005)") == "Wilhelm Dreyer (15 June 1924 – 24 April 2005)"


def test_inline_code_links_and_emphasis():
    assert prose("Use `client.order(2)` and **Otto Lindqvist**.") == "Use , and Otto Lindqvist."
    assert prose("a `StorageError: no lamp` of `LampStore.open()`") == "a “StorageError” of “LampStore.open”"
    assert prose("See [the guide](https://northwind.example/Guide), or https://northwind.example/Old.") == (
        "See the guide, or"
    )
    assert prose("Set LAMP_DSN and lamp_oil=3.").replace(" ", "") == "Set,and,"
    assert prose("Otto<br>Clara <b>Ashdown</b>") == "Otto; Clara Ashdown"
    assert prose("The area is a * b and c * d.") == "The area is a * b and c * d."


def test_sentences_that_are_shown_keep_their_code():
    text = "A `'?'` is no [`Error`][] of [`url.parse()`][u], **`--lamp`** takes `<oil>` at https://lamp.example/a_b."
    assert (
        prose(text, keep_code=True)
        == "A '?' is no Error of url.parse(), --lamp takes <oil> at https://lamp.example/a_b."
    )
    assert (
        prose("The lamp_set_oil(3) function\n\n```\nlamp.light()\n```", keep_code=True)
        == "The lamp_set_oil(3) function"
    )
    assert prose("Type man <page> or <B>man</B> <a href='x'>-k</a>", keep_code=True) == "Type man <page> or man -k"
    assert prose("Name <code-dir> or <p-name>", keep_code=True) == "Name <code-dir> or <p-name>"
    assert prose("Rows [1][2] of a[i][j] are `x`", keep_code=True) == "Rows [1][2] of a[i][j] are x"
    assert prose("An icon \x00 and `code`", keep_code=True) == "An icon   and code"
    assert sentences_of_prose("Call `light(oil=1)` of `OilLamp`. It burns.") == [
        "Call light(oil=1) of OilLamp.",
        "It burns.",
    ]


def test_code_that_goes_with_its_markup_takes_no_other_piece_with_it():
    assert prose("See [x][`y`] or `z`.", keep_code=True) == "See x or z."
    assert prose("[t](`u`) and `v`", keep_code=True) == "t and v"
    assert prose("The lamp <!-- `a` --> is `b` of `c`", keep_code=True) == "The lamp  is b of c"
    assert prose("`a`1`b` and **`c`2**", keep_code=True) == "a1b and c2"


def test_where_links_lead_is_no_prose():
    text = (
        "See [the guide][g].\n[g]: guide.md#lamps\n[`Oil`]: https://lamp.example/oil 'Oil'\n[Ada]: yes.\n[10:31]: hello"
    )
    assert prose(unwrap(text)).split() == ["See", "the", "guide.", "[Ada]:", "yes.", "[10:31]:", "hello"]


@given(
    st.lists(st.tuples(st.sampled_from(["a lamp", "**b", "c**", "[d](e)", "<b>"]), st.text("xy_(*<[]>)", min_size=1)))
)
def test_code_is_kept_whatever_is_around_it(pieces):
    shown = prose(" ".join(f"{words} `{code}`" for words, code in pieces), keep_code=True)
    position = 0
    for _, code in pieces:
        position = shown.index(code, position) + len(code)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("See HotpotQA 50 0.770 0.880 there.", ["See HotpotQA"]),
        ("It was Lake Tovel 12 14 16 Lake Garda 1.", ["Lake Tovel", "Lake Garda 1"]),
        ("As shown in 1931 the Old Lamp", ["Old Lamp"]),
        ("A note: In 1931 the Old Lamp came back.", ["Old Lamp"]),
        ("In 1931 the Old Lamp came back.", ["Old Lamp"]),
        ("Some 50,000 on HotpotQA", ["HotpotQA"]),
        ("He flew Apollo 11 on December 31 2018.", ["Apollo 11 on December 31 2018", "Apollo 11"]),
        ("She saw the 2018 Winter Games.", ["2018 Winter Games"]),
    ],
)
def test_a_row_of_numbers_and_a_date_are_no_part_of_a_name(text, expected):
    assert [name.text for name in names(text)] == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Adobe I/O is a service.", ["Adobe I/O"]),
        ("They use TCP/IP and the old OS/2 there.", ["TCP/IP", "OS/2"]),
        ("It says N/A here.", []),
        ("It was written by Otto/Clara.", ["Otto", "Clara"]),
    ],
)
def test_a_slash_between_a_few_capitals_belongs_to_a_word(text, expected):
    assert [name.text for name in names(text)] == expected


def test_a_number_is_a_heading_only_above_a_sentence():
    assert read_passage("2021\n2021 17 13\n22 24").title == ""
    assert read_passage("1984\n1984 is a novel by George Orwell about a surveillance state.").title == "1984"


def test_a_short_statement_is_code_only_below_code():
    assert code_lines(["found = light(lamp)", "return found"]) == [True, True]
    assert code_lines(["They were told to", "return home"]) == [False, False]
