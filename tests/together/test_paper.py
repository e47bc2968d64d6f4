"""`paper()`: the published method as keywords, in every package."""

import inspect
from collections.abc import Callable, Iterator
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest
from tests.cases import CASES, QUESTION, Case, chunks

METHODS = [case for case in CASES if case.name != "toy"]
every_method = pytest.mark.parametrize("case", METHODS, ids=lambda case: case.name)


def versions(paper: Callable[..., dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The keywords of every version that `paper` names."""
    yield paper()
    for name in inspect.signature(paper).parameters:
        hint = get_type_hints(paper)[name]
        for version in get_args(hint) if get_origin(hint) is Literal else ():
            yield paper(**{name: version})


def built(case: Case, keywords: dict[str, Any]) -> Any:
    """The published index, but for an extractor without an LLM."""
    offline = {name: value for name, value in case.options().items() if name == "extractor"}
    return case.cls(nodes=chunks("d", 4), **{**case.options(), **keywords, **offline})


@every_method
def test_the_published_index_is_keywords_that_the_index_takes(case: Case):
    for keywords in versions(case.cls.paper):
        index = built(case, keywords)
        assert {name: value for name, value in vars(index.config).items() if name in keywords} == {
            name: value for name, value in keywords.items() if name in vars(index.config)
        }
        assert index.as_retriever(similarity_top_k=2).retrieve(QUESTION)


@every_method
def test_the_published_search_is_keywords_that_the_retriever_takes(case: Case):
    index = built(case, case.cls.paper())
    for keywords in versions(index.retriever_cls.paper):
        options = vars(index.as_retriever(**keywords).options)
        assert {name: options[name] for name in keywords if name in options} == {
            name: value for name, value in keywords.items() if name in options
        }


@every_method
def test_a_caller_may_change_what_it_gives(case: Case):
    before = case.cls.paper()
    case.cls.paper().clear()
    assert case.cls.paper().keys() == before.keys()
    search = case.build().retriever_cls.paper
    kept = search()
    search().clear()
    assert search() == kept
