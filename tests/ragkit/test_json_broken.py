"""Broken JSON: mended or refused, with every duplicate key, nothing made up, and no time or stack run away."""

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel
from tests.ragkit.json_cases import SHARDS, containers, same

from llama_index.ragkit.errors import ParseError
from llama_index.ragkit.llm.json.output import Pairs, parse_json, parse_model, parse_pairs, to_plain


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


# Without quotes, and without the colon: in broken JSON, `"{": 0, ":": 0` may have a key `": 0, "`.
keys = st.text(st.characters(exclude_characters="\"'\\“”:", exclude_categories=("Cs", "Cc")), max_size=20)


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


class Triples(BaseModel):
    triples: list[tuple[str, str, str]]


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


def test_mending_is_given_up_where_it_would_take_quadratic_time() -> None:
    with pytest.raises(ParseError):  # two seconds; the library alone takes minutes, and then has a value
        parse_json('{"k": [' + "'a'a" * 12_000 + "]}")
    assert parse_json('{"k": [' + "'a', " * 12_000 + "]}") == {"k": ["a"] * 12_000}


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
    assert parse_json("[" + "9" * 4300 + ", -1]") == [int("9" * 4300), -1]
    with pytest.raises(ParseError):
        parse_model('{"triples": ' + "9" * 100_000 + "}", Triples)
