"""Metadata filters: closed-form truths, and parity with core's own predicate where core has one."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from llama_index.core.vector_stores import utils
from llama_index.core.vector_stores.types import FilterCondition, FilterOperator, MetadataFilter, MetadataFilters

from llama_index.ragkit.errors import ConfigurationError
from llama_index.ragkit.vectors.filters import matches, select
from llama_index.ragkit.vectors.matrix_vector_store import MatrixVectorStore

ROWS = {
    "text": {"v": "Alpha beta"},
    "empty": {"v": ""},
    "int": {"v": 3},
    "float": {"v": 3.0},
    "big": {"v": 10},
    "true": {"v": True},
    "list": {"v": ["a", "b"]},
    "numbers": {"v": [1, 2]},
    "none_in": {"v": []},
    "null": {"v": None},
    "missing": {},
    "nan": {"v": float("nan")},
    "greek": {"v": "ΣΊΣΥΦΟΣ"},
}
COMPARABLE = ["int", "float", "big", "true", "null", "missing", "nan"]


def store_of(rows):
    store = MatrixVectorStore(stores_text=False)
    store.put(list(rows), [[1.0, i] for i in range(len(rows))], metadatas=list(rows.values()))
    return store


def passing(rows, filters, **restriction):
    snapshot = store_of(rows).snapshot()
    mask = select(snapshot, filters, **restriction)
    return {row_id for row_id, ok in zip(snapshot.ids, mask, strict=True) if ok}


def one(operator, value, key="v"):
    return MetadataFilters(filters=[MetadataFilter(key=key, value=value, operator=operator)])


EVERY_KIND = list(ROWS)


@pytest.mark.parametrize(
    ("operator", "value", "among", "expected"),
    [
        ("==", 3, EVERY_KIND, {"int", "float"}),
        ("==", 3.0, EVERY_KIND, {"int", "float"}),
        ("==", 1, EVERY_KIND, {"true"}),
        ("==", "", EVERY_KIND, {"empty"}),
        ("==", None, EVERY_KIND, set()),
        ("==", ["a", "b"], EVERY_KIND, {"list"}),
        ("!=", 3, EVERY_KIND, set(ROWS) - {"int", "float"}),
        ("!=", None, EVERY_KIND, set(ROWS)),
        (">", 3, COMPARABLE, {"big"}),
        (">=", 3, COMPARABLE, {"int", "float", "big"}),
        ("<", 3, COMPARABLE, {"true"}),
        ("<=", 3.0, COMPARABLE, {"int", "float", "true"}),
        (">", "B", ["text", "empty", "greek", "nan"], {"greek"}),
        ("in", [3], EVERY_KIND, {"int", "float"}),
        ("in", ["", "x"], EVERY_KIND, {"empty"}),
        ("in", [], EVERY_KIND, set()),
        ("in", "Alpha beta gamma", ["text", "empty", "null"], {"text", "empty"}),
        ("nin", [3], EVERY_KIND, set(ROWS) - {"int", "float"}),
        ("any", ["a", "x"], ["list", "numbers", "none_in", "text", "missing"], {"list", "text"}),
        ("any", [2], ["list", "numbers", "none_in", "null"], {"numbers"}),
        ("any", [], EVERY_KIND, set()),
        ("all", ["a", "b"], ["list", "numbers", "text", "missing"], {"list", "text"}),
        ("all", [], EVERY_KIND, set(ROWS) - {"null", "missing", "nan"}),
        ("contains", "a", ["list", "numbers", "text", "null", "nan"], {"list", "text"}),
        ("contains", 2, ["list", "numbers", "missing"], {"numbers"}),
        ("text_match", "beta", ["text", "empty", "greek", "null", "nan"], {"text"}),
        ("text_match", "BETA", ["text", "empty", "greek"], set()),
        ("text_match_insensitive", "BETA", ["text", "empty", "greek"], {"text"}),
        ("text_match_insensitive", "σίσυφοσ", ["text", "empty"], set()),
        ("is_empty", None, EVERY_KIND, {"empty", "none_in", "null", "missing", "nan"}),
    ],
)
def test_operators_mean_what_the_documentation_says(operator, value, among, expected):
    assert passing({row_id: ROWS[row_id] for row_id in among}, one(operator, value)) == expected


def test_every_operator_is_covered_above_and_implemented():
    for operator in FilterOperator:
        assert matches(None, MetadataFilter(key="v", value="x", operator=operator)) == (
            operator in {FilterOperator.NE, FilterOperator.NIN, FilterOperator.IS_EMPTY}
        )
        matches("x", MetadataFilter(key="v", value="x", operator=operator))


@pytest.mark.parametrize(
    ("operator", "value", "row"),
    [(">", 3, "text"), ("<", "a", "int"), (">", None, "int"), ("text_match", "a", "list"), ("text_match", 3, "text"),
     ("contains", "a", "int"), ("contains", 1, "text"), ("any", ["a"], "int"), ("all", 3, "list"), ("in", None, "int"),
     ("nin", "abc", "int"), ("text_match_insensitive", "a", "numbers")],
)  # fmt: skip
def test_values_that_cannot_be_compared_are_a_clear_error(operator, value, row):
    with pytest.raises(ConfigurationError, match=f"cannot be compared.*'v' of '{row}'"):
        passing({row: ROWS[row], "missing": {}}, one(operator, value))


def test_incomparable_values_of_rows_that_were_not_asked_about_do_no_harm():
    assert passing(ROWS, one(">", 3), node_ids=["int", "big", "missing", "nobody"]) == {"big"}
    store = store_of(ROWS)
    store.delete_nodes([row_id for row_id in ROWS if row_id not in COMPARABLE])
    snapshot = store.snapshot()
    assert [snapshot.ids[i] for i in select(snapshot, one(">", 3)).nonzero()[0]] == ["big"]


def test_an_incomparable_value_is_an_error_only_where_no_other_filter_decides():
    w, v = one("==", "x", key="w").filters[0], one(">", 3).filters[0]
    rows = {"theirs": {"w": "y", "v": "n/a"}, "ours": {"w": "x", "v": 10}}
    for filters in ([w, v], [v, w]):
        assert passing(rows, MetadataFilters(filters=filters)) == {"ours"}
        assert passing({"a": {"w": "x", "v": "n/a"}}, MetadataFilters(filters=filters, condition="or")) == {"a"}
        assert passing({"a": {"w": "x", "v": "n/a"}}, MetadataFilters(filters=filters, condition="not")) == set()
        with pytest.raises(ConfigurationError, match="'v' > 3 cannot be compared with 'none', the 'v' of 'ours'"):
            passing({**rows, "ours": {"w": "x", "v": "none"}}, MetadataFilters(filters=filters))
        with pytest.raises(ConfigurationError, match="of 'theirs'"):
            passing(rows, MetadataFilters(filters=filters, condition="not"))


def test_an_error_shows_no_more_than_the_ends_of_a_long_value():
    with pytest.raises(ConfigurationError) as error:
        passing({"a": {"v": "x" * 10_000}}, one(">", 3))
    assert len(str(error.value)) < 500


def test_conditions_nest():
    rows = {f"{a}{b}{c}": {"a": a, "b": b, "c": c} for a in (0, 1) for b in (0, 1) for c in (0, 1)}
    is_1 = {key: MetadataFilter(key=key, value=1) for key in "abc"}

    def group(condition, *filters):
        return MetadataFilters(filters=list(filters), condition=condition)

    a_or_b = group("or", is_1["a"], is_1["b"])
    assert passing(rows, group("and", a_or_b, group("not", is_1["c"]))) == {"100", "010", "110"}
    assert passing(rows, group("not", a_or_b, is_1["c"])) == {"000"}
    assert passing(rows, group(None, is_1["a"], is_1["c"])) == {"101", "111"}
    assert passing(rows, group("or", group("and", is_1["a"], is_1["b"]), group("not", a_or_b))) == {
        "110", "111", "000", "001"
    }  # fmt: skip


@pytest.mark.parametrize("condition", [None, *FilterCondition])
def test_a_group_without_filters_matches_everything(condition):
    nothing = MetadataFilters(filters=[], condition=condition)
    assert passing(ROWS, nothing) == set(ROWS)
    assert passing(ROWS, MetadataFilters(filters=[nothing, *one("==", 3).filters])) == {"int", "float"}


def test_the_keys_that_core_adds_mean_the_document_whatever_the_metadata_says():
    store = MatrixVectorStore(stores_text=False)
    store.put(["a", "b"], [[1.0], [2.0]], ref_doc_ids=["d", None], metadatas=[{"doc_id": "other"}, {"doc_id": "d"}])
    for key in ("doc_id", "ref_doc_id", "document_id"):
        assert select(store.snapshot(), one("==", "d", key=key)).tolist() == [True, False]
        assert select(store.snapshot(), one("==", "None", key=key)).tolist() == [False, True]


def test_restrictions_combine_and_an_empty_list_lets_nothing_pass():
    store = MatrixVectorStore(stores_text=False)
    store.put(list("abcd"), [[1.0]] * 4, ref_doc_ids=["x", "x", "y", None], metadatas=[{"v": i} for i in range(4)])

    def chosen(**restriction):
        return "".join(i for i, ok in zip("abcd", select(store.snapshot(), **restriction), strict=True) if ok)

    assert chosen() == "abcd"
    assert chosen(node_ids=[]) == chosen(doc_ids=[]) == ""
    assert chosen(doc_ids=["x", "nobody"]) == "ab"
    assert chosen(doc_ids=["y", "x"], node_ids=["b", "c", "d", "b"], filters=one(">", 1)) == "c"
    assert chosen(doc_ids=["None"]) == "d"


def test_an_empty_store_answers_every_filter():
    for operator in FilterOperator:
        assert select(MatrixVectorStore().snapshot(), one(operator, "x")).tolist() == []


values = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.sampled_from([0.0, 1.0, 2.5, -1.0]),
    st.text("abAßé", max_size=3),
    st.lists(st.sampled_from(["a", "b", "ab"]), max_size=3),
    st.lists(st.integers(0, 2), max_size=3),
)
filter_values = st.one_of(
    st.none(),
    st.integers(-3, 3),
    st.sampled_from([0.0, 1.0, 2.5]),
    st.text("abAßé", max_size=2),
    st.lists(st.sampled_from(["a", "b", "ab"]), max_size=3),
    st.lists(st.integers(0, 2), max_size=3),
    st.lists(st.sampled_from([1.0, 2.5]), max_size=2),
)
leaves = st.builds(
    MetadataFilter, key=st.sampled_from(["v", "w"]), value=filter_values, operator=st.sampled_from(list(FilterOperator))
)


@pytest.mark.skipif(
    not hasattr(utils, "build_metadata_filter_fn"), reason="this core's predicate has other rules (before 0.14)"
)
@given(
    rows=st.lists(st.dictionaries(st.sampled_from(["v", "w"]), values), min_size=1, max_size=8),
    filters=st.lists(leaves, max_size=3),
    condition=st.sampled_from([None, *FilterCondition]),
)
def test_flat_filters_answer_as_core_does(rows, filters, condition):
    metadata = {str(i): row for i, row in enumerate(rows)}
    group = MetadataFilters(filters=filters, condition=condition)
    asked = utils.build_metadata_filter_fn(metadata.__getitem__, group)
    try:
        expected = {row_id for row_id in metadata if asked(row_id)}
    except TypeError:  # ours are compared only where no other filter decides
        with suppress(ConfigurationError):
            passing(metadata, group)
    else:
        assert passing(metadata, group) == expected
