"""The tolerant parser: what it finds, keeps, mends and refuses, and that nothing but ParseError escapes."""

import json
import math
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from llama_index.ragkit.errors import ParseError
from llama_index.ragkit.json_output import Pairs, find_values, parse_json, parse_model, parse_pairs, to_plain

scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
containers = st.recursive(
    st.lists(scalars, max_size=4) | st.dictionaries(st.text(), scalars, max_size=4),
    lambda inner: st.lists(scalars | inner, max_size=4) | st.dictionaries(st.text(), scalars | inner, max_size=4),
    max_leaves=20,
)
# Prose that opens no JSON of its own: anything without brackets and tags.
noise = st.text(st.characters(exclude_characters="{[<", exclude_categories=("Cs",)), max_size=30)
SHARDS = [
    '"',
    "'",
    "{",
    "}",
    "[",
    "]",
    ":",
    ",",
    "\\",
    "a",
    "1",
    "-",
    ".",
    "e",
    " ",
    "\n",
    "//",
    "/*",
    "*/",
    "#",
    "```",
]
SHARDS += ["true", "None", "NaN", '"a"', '"a":', "'b':", "<think>", "</think>", "\\u", "\\ud800", "“", "”", "(", ")"]


def same(left: Any, right: Any) -> bool:
    """Equality in which NaN equals itself and 1 does not equal True or 1.0."""
    if isinstance(left, float) and isinstance(right, float) and math.isnan(left):
        return math.isnan(right)
    if type(left) is not type(right):
        return False
    if isinstance(left, dict):
        return list(left) == list(right) and all(same(left[key], right[key]) for key in left)
    if isinstance(left, list):
        return len(left) == len(right) and all(map(same, left, right))
    return bool(left == right)


@given(containers, noise, noise, st.booleans(), st.sampled_from([None, 2]))
def test_what_json_dumps_wrote_inside_noise_comes_back_equal(
    value: Any, before: str, after: str, ascii_only: bool, indent: int | None
) -> None:
    text = before + json.dumps(value, ensure_ascii=ascii_only, indent=indent) + after
    assert same(parse_json(text), value)


@given(containers, st.sampled_from(["use {braces}: ", "see [sic] and {a, b} - ", "{", "}]} ", "{{", "$[$ "]))
def test_stray_brackets_before_a_value_do_not_hide_it(value: Any, before: str) -> None:
    assert same(parse_json(before + json.dumps({"it": value})), {"it": value})


@settings(max_examples=600)
@given(st.lists(st.sampled_from(SHARDS), max_size=40).map("".join) | st.text())
@example("\ud800{")
@example('{"a":1,}\x00')
@example("\u01c0\u01c1\u01c2\u01c3{a:1}")
def test_nothing_but_a_parse_error_escapes(text: str) -> None:
    for truncated in ("repair", "reject"):
        for parse in (parse_pairs, parse_json):
            with suppress(ParseError):
                json.dumps(parse(text, truncated=truncated)).encode()


@settings(max_examples=300)
@given(containers, st.integers(0, 400), st.lists(st.sampled_from(SHARDS), max_size=3))
def test_broken_json_is_mended_or_refused(value: Any, where: int, shards: list[str]) -> None:
    text = json.dumps({"it": value})
    where %= len(text)
    with suppress(ParseError):
        parse_json(text[:where] + "".join(shards) + text[where:])


@pytest.mark.parametrize(
    ("reply", "value"),
    [
        ('```json\n{"a": 1}\n```', {"a": 1}),
        ('Sure!\n```\n{"a": 1}\n```\nAnything else?', {"a": 1}),
        ('```json\n[{"a": 1},\n {"a": 2}]', [{"a": 1}, {"a": 2}]),
        ('<think>say {"a": 0}?</think>\n{"a": 1}', {"a": 1}),
        ('<THINKING>{"a": 0}</THINKING>{"a": 1}', {"a": 1}),
        ('say {"a": 0}, or {"a": \n</think>{"a": 1}', {"a": 1}),
        ('<think>say {"a": 0}, or rather\n{"a": 1}\n', {"a": 1}),
        ('{"a": 1} <think>was that right', {"a": 1}),
        ('{"a": "<think>b</think>"}', {"a": "<think>b</think>"}),
        ('{"a": "```json"}', {"a": "```json"}),
        ("{'a': 'it\\'s', 'b': None, 'c': True}", {"a": "it's", "b": None, "c": True}),
        ('{"a": [1, 2,], }', {"a": [1, 2]}),
        ('{a: 1, b: "x"}', {"a": 1, "b": "x"}),
        ('{"a": 1, // first\n "b": 2 /* second */}', {"a": 1, "b": 2}),
        ('{"a": "he said "no" twice"}', {"a": 'he said "no" twice'}),
        ('{"a": "x"\n "b": "y"}', {"a": "x", "b": "y"}),
        ('{"a": "\\alpha"}', {"a": "\\alpha"}),
        ('{"a": "line\nbreak\ttab\x01"}', {"a": "line\nbreak\ttab\x01"}),
        ("{“a”: “b”}", {"a": "b"}),
        ('{{"a": {{"b": 1}}}}', {"a": {"b": 1}}),
        ('{"a": 1}}', {"a": 1}),
        ('\ufeff{"a": 1}', {"a": 1}),
        ('{"a":\u00a01}', {"a": 1}),
        ('"just text"', "just text"),
        (" 42\n", 42),
    ],
)
def test_habits_of_models_are_understood(reply: str, value: Any) -> None:
    assert same(parse_json(reply), value)


@pytest.mark.parametrize("reply", ["", "no", "I cannot {do} that [sorry].", "{", "[", '{"', "<think>", "```json\n```"])
def test_a_reply_without_json_is_refused_with_an_excerpt(reply: str) -> None:
    with pytest.raises(ParseError, match="reply") as caught:
        parse_json(reply)
    assert repr(reply) in str(caught.value)


def test_drafts_in_thoughts_that_never_end_are_no_answer() -> None:
    with pytest.raises(ParseError):
        parse_json('<think>The form is {"triples": []}. Let me list them: Alan Turing was')


def test_numbers_that_are_not_finite_are_read_as_json_dumps_writes_them() -> None:
    value = parse_json('{"a": [NaN, Infinity, -Infinity, 1e999]}')["a"]
    assert math.isnan(value[0])
    assert value[1:] == [math.inf, -math.inf, math.inf]


def test_lone_surrogates_become_storable() -> None:
    assert parse_json('{"\\ud800": ["\\udc00x", "\\ud83d\\ude00"]}') == {"\ufffd": ["\ufffdx", "😀"]}


# -- duplicate keys ------------------------------------------------------------------------------------

REPEATED = '{"a": {"x": 1, "x": 2}, "b": 0, "a": [3], "a": "y"}'


def test_pairs_keep_duplicate_keys_and_their_order() -> None:
    value = parse_pairs(REPEATED)
    assert value == Pairs([("a", Pairs([("x", 1), ("x", 2)])), ("b", 0), ("a", [3]), ("a", "y")])
    assert value.get_all("a") == [Pairs([("x", 1), ("x", 2)]), [3], "y"]


def test_duplicate_keys_merge_into_lists_or_are_refused() -> None:
    assert parse_json(REPEATED) == {"a": [{"x": [1, 2]}, 3, "y"], "b": 0}
    with pytest.raises(ParseError, match="'x' twice"):
        parse_json(REPEATED, duplicates="raise")
    assert to_plain([Pairs(), Pairs([("a", [])])]) == [{}, {"a": []}]


keys = st.text(st.characters(exclude_characters="\"'\\“”", exclude_categories=("Cs", "Cc")), max_size=20)


@given(st.lists(st.tuples(keys, st.integers(0, 9)), min_size=1, max_size=8))
def test_mending_loses_no_duplicate_key(pairs: list[tuple[str, int]]) -> None:
    repeated = [*pairs, *pairs]
    members = [f"{json.dumps(key, ensure_ascii=False)}: {value}" for key, value in repeated]
    found = parse_pairs("{" + ", ".join([*members, "'end': 0"]) + "}")  # single quotes break it
    assert [value for _, value in found] == [*(value for _, value in repeated), 0]


@pytest.mark.parametrize(
    "reply",
    [
        "{'a': 1, 'a': 2}",
        "{a: 1, a: 2}",
        '{"a": 1 "a": 2}',
        '{"a": 1, /* again */ "a": 2}',
        "{“a”: 1, “a”: 2}",
        "{\"a\": 1, 'a': 2,}",
    ],
)
def test_every_way_to_write_a_key_keeps_its_duplicates(reply: str) -> None:
    assert parse_pairs(reply) == [("a", 1), ("a", 2)]


def test_the_marks_that_keep_keys_apart_never_show() -> None:
    reply = "{'note: a': 'see, key: ǀ1ǀ and http://c: d', 'ǀǁ': [1, {'e': '10:30'}]}"
    assert parse_json(reply) == {"note: a": "see, key: ǀ1ǀ and http://c: d", "ǀǁ": [1, {"e": "10:30"}]}


def test_trailing_commas_and_comments_cost_no_string_its_text() -> None:
    value = {"a": 'he: "x": y, z: 1', "b": "// no comment /* none */"}
    reply = json.dumps(value).replace("}", ", /* last * */ // ,\n}")
    assert parse_json(reply) == value


# -- replies that end too soon -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reply", "value"),
    [
        ('{"q": ["one", "two", "thr', {"q": ["one", "two"]}),
        ('{"t": [["a", "b", "c"], ["d", "e', {"t": [["a", "b", "c"]]}),
        ('{"t": [["a", "b"', {"t": [["a", "b"]]}),
        ('{"topic": {"sub": ["x", "y"], "next": {"z": "wh', {"topic": {"sub": ["x", "y"]}}),
        ('{"title": "x", "t": [', {"title": "x"}),
        ('[{"s": 1}, {"s": 2, "p": ', [{"s": 1}]),
        ("[1, 20", [1]),
        ('```json\n{"a": [1, 2\n```', {"a": [1, 2]}),
        ("{'t': [['a', 'b'], ['c', 'd", {"t": [["a", "b"]]}),
    ],
)
def test_what_was_finished_of_a_cut_reply_is_kept_and_nothing_else(reply: str, value: Any) -> None:
    assert parse_json(reply) == value
    with pytest.raises(ParseError, match="ends inside"):
        parse_json(reply, truncated="reject")


@pytest.mark.parametrize("reply", ['{"triples": [', '{"triples": [["a', '{"a": tru', "{'a': ["])
def test_nothing_is_made_up_for_a_reply_in_which_nothing_was_finished(reply: str) -> None:
    with pytest.raises(ParseError, match="ends inside"):
        parse_json(reply)


@given(containers, st.data())
def test_a_cut_reply_gives_only_values_of_the_whole_one(value: Any, data: st.DataObject) -> None:
    text = json.dumps({"it": value})
    cut = text[: data.draw(st.integers(1, len(text) - 1))]
    try:
        kept = parse_json(cut)
    except ParseError:
        return
    assert part_of(kept, {"it": value}), (cut, kept)


def part_of(part: Any, whole: Any) -> bool:
    if isinstance(part, dict):
        return isinstance(whole, dict) and all(key in whole and part_of(part[key], whole[key]) for key in part)
    if isinstance(part, list):
        return isinstance(whole, list) and len(part) <= len(whole) and all(map(part_of, part, whole))
    return same(part, whole)


# -- several values, models ----------------------------------------------------------------------------


class Triples(BaseModel):
    triples: list[tuple[str, str, str]]


def test_the_first_value_that_fits_the_model_is_taken() -> None:
    reply = 'As [1] says: {"entities": ["a"]}\n{"triples": [["a", "b", "c"]]} {"triples": []}'
    assert parse_model(reply, Triples).triples == [("a", "b", "c")]
    assert [to_plain(value) for value in find_values(reply)][:2] == [[1], {"entities": ["a"]}]


def test_strict_values_come_before_mended_ones_and_mended_before_cut_ones() -> None:
    reply = '{\'a\': 1} {"b": 2} {"c": 3, "d'
    assert [to_plain(value) for value in find_values(reply)] == [{"b": 2}, {"a": 1}, {"c": 3}]


def test_what_stands_inside_a_broken_value_is_not_taken_for_the_answer() -> None:
    class Loose(BaseModel):
        triples: list[list[str]] = []

    reply = '{triples: [["a", "b", "c"]], meta: {"source": "x"}}'
    assert parse_model(reply, Loose).triples == [["a", "b", "c"]]


def test_the_error_of_a_model_says_what_did_not_fit() -> None:
    with pytest.raises(ParseError, match=r"Triples \(triples: Field required\).*entities"):
        parse_model('{"entities": ["a"]}', Triples)
    with pytest.raises(ParseError, match=r"triples\.0"):
        parse_model('{"triples": [["a", "b"]]}', Triples)


# -- bombs ---------------------------------------------------------------------------------------------

UNITS = [
    "[",
    '{"a":',
    '["',
    "{a,",
    "<think>",
    '{"a":1}',
    "{'a':'",
    '\\"',
    '["\\"',
    '{"a":"x" ',
    'x{"a": y} ',
    "[9",
    "{ ",
]
UNITS += ["//", "// /**/", "/*", "*/ /*", "{a,", "[ //\n", "/**/"]
UNITS += ['{"a":[}]', "('", "[[[[x]]]] ", "'a'a", '"x" ', " ", "9", '{"a": "b\n', "}/*"]


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("before", ["", '{"k": [', "{'k': \"", "["])
def test_long_repetitions_end_in_a_parse_error_or_a_value(unit: str, before: str) -> None:
    text = before + unit * (100_000 // len(unit))
    for reply in (text, text + "]}"):
        with suppress(ParseError):
            parse_pairs(reply)


def test_lines_of_ten_megabytes_are_refused_unread() -> None:
    for text in ("x" * 10_000_000, "[" * 10_000_000, '{"a": "' + "x" * 10_000_000 + '"}'):
        with pytest.raises(ParseError, match="10000"):
            parse_json(text)


def test_nesting_is_bounded() -> None:
    assert parse_json("[" * 100 + "]" * 100) == json.loads("[" * 100 + "]" * 100)
    with pytest.raises(ParseError, match="deeper than 100"):
        parse_json("[" * 101 + "]" * 101)
    with pytest.raises(ParseError):
        parse_json("{'a':" * 101 + "1" + "}" * 101)


def test_integers_beyond_any_use_are_no_integers() -> None:
    assert parse_json("[" + "9" * 4300 + "]") == [int("9" * 4300)]
    with pytest.raises(ParseError):
        parse_model('{"triples": ' + "9" * 100_000 + "}", Triples)
