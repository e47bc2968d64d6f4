"""All methods take the same names for the same things, and refuse the same mistakes in the same words."""

import inspect
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from llama_index.core.schema import NodeWithScore
from tests.cases import CASES, QUESTION, Case, chunks
from tests.together.plugins import has_postprocessor, postprocessor

from llama_index.ragkit.errors import ConfigurationError

METHODS = [case for case in CASES if has_postprocessor(case)]
each_method = pytest.mark.parametrize("case", METHODS, ids=lambda case: case.name)


def given(case: Case) -> list[NodeWithScore]:
    return [NodeWithScore(node=node, score=1.0 - i / 10) for i, node in enumerate(chunks("d", 6))]


@each_method
@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"topn": 5}, "has no parameter 'topn'; it has "),
        ({"top_n": 0}, "top_n must be a whole number of at least 1"),
        ({"top_n": "3"}, "top_n must be a whole number of at least 1"),
        ({"top_n": True}, "top_n must be a whole number of at least 1"),
        ({"token_budget": 0}, "token_budget must be a whole number of at least 1 or None, not 0"),
        ({"filters": "no"}, "filters"),
    ],
    ids=str,
)
def test_a_postprocessor_refuses_what_it_does_not_know(case: Case, wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(message)):
        postprocessor(case, case.build(chunks("d", 3)), **wrong)


@each_method
def test_a_postprocessor_keeps_to_a_budget_of_tokens(case: Case) -> None:
    index = case.build(chunks("d", 6))
    count = sum(1 for _ in postprocessor(case, index).postprocess_nodes(given(case), query_str=QUESTION))
    kept = postprocessor(case, index, token_budget=12).postprocess_nodes(given(case), query_str=QUESTION)
    assert len(kept) < count
    assert postprocessor(case, index, token_budget=1).postprocess_nodes(given(case), query_str=QUESTION) == []


@each_method
def test_a_postprocessor_gives_at_most_top_n_nodes_unless_it_grows_to_them(case: Case) -> None:
    index = case.build(chunks("d", 6))
    kept = postprocessor(case, index, top_n=2).postprocess_nodes(given(case), query_str=QUESTION)
    assert len(kept) == (6 if case.name == "gemrag" else min(2, len(kept)))


@each_method
def test_whole_numbers_of_numpy_are_whole_numbers(case: Case) -> None:
    index = case.build(chunks("d", 3))
    assert len(index.as_retriever(similarity_top_k=np.int64(2)).retrieve(QUESTION)) <= 2
    assert postprocessor(case, index, top_n=np.int32(2)).top_n == 2


def _thresholds(kind: Callable[..., Any], annotation: str) -> list[str]:
    """Parameters of a class with this annotation, as a text or as a type."""
    found = inspect.signature(kind.__init__).parameters.values()
    return [p.name for p in found if getattr(p.annotation, "__name__", str(p.annotation)) == annotation]


@each_method
@pytest.mark.parametrize("bad", ["3", True, float("nan")], ids=str)
def test_a_retriever_takes_no_text_and_no_boolean_for_a_number(case: Case, bad: Any) -> None:
    index = case.build(chunks("d", 3))
    kind = type(index.as_retriever())
    names = [*_thresholds(kind, "int"), *_thresholds(kind, "float"), "similarity_top_k", "token_budget"]
    for name in names:
        with pytest.raises(ConfigurationError, match=f"{name} must be a (whole )?number"):
            kind(index, **{name: bad})


@each_method
def test_an_index_takes_no_text_and_no_boolean_for_a_number(case: Case) -> None:
    for name in [*_thresholds(case.cls, "int | None"), *_thresholds(case.cls, "float | None")]:
        for bad in ("3", True):
            with pytest.raises(ConfigurationError, match=f"{name} must be a (whole )?number"):
                case.build(**{name: bad})
