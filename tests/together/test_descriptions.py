"""What an index, a retriever, a postprocessor and a page show of themselves."""

import html
import re
from pathlib import Path
from typing import Any

import pytest
from llama_index.core.schema import Document
from tests.cases import CASES, QUESTION, Case, chunks
from tests.chromium import CHROMIUM, Browser
from tests.together.plugins import has_postprocessor, postprocessor

from llama_index.ragkit import DerivedIndex
from llama_index.ragkit.html import Graph, InlinePage, Node, Page
from llama_index.ragkit.index.description import ObjectDescription

each_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


def held(index: DerivedIndex) -> dict[str, str]:
    """The names and values of an index's `repr`, which holds no nested brackets here."""
    found = re.fullmatch(r"(\w+)\((.*)\)", repr(index))
    assert found
    assert found[1] == type(index).__name__
    return dict(part.split("=", 1) for part in found[2].split(", "))


@each_case
def test_an_index_says_what_it_holds(case: Case) -> None:
    index = case.from_documents([Document(text=f"Ada lit the lamp of tower {i}.", id_=f"d{i}") for i in range(3)])
    before = held(index)
    assert before["documents"] == "3"
    assert before["chunks"] == str(len(index.storage.snapshot()))
    assert before["generation"] == "1"
    assert before["embed_model"] == repr(index.embed_model.model_name)
    assert "incomplete" not in before
    assert set(index.index_struct.counters) <= set(before)
    index.delete_ref_doc("d1")
    assert held(index)["documents"] == "2"
    assert held(index)["generation"] == "2"


@each_case
def test_an_index_is_described_from_memory_alone(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    index = case.build(chunks("d", 4))

    def asked(*args: Any, **kwargs: Any) -> Any:
        raise AssertionError("a store was asked")

    for name in ("get", "get_all", "put", "put_all"):
        monkeypatch.setattr(type(index.docstore._kvstore), name, asked)  # type: ignore[attr-defined]
    assert held(index)["chunks"] == "4"
    assert "<td style='text-align:left'>4</td>" in index._repr_html_()


@each_case
def test_an_empty_index_and_one_that_was_never_made_have_a_description(case: Case) -> None:
    assert held(case.build())["chunks"] == "0"
    assert repr(case.cls.__new__(case.cls)) == f"{case.cls.__name__}(incomplete=True)"


def test_an_index_whose_write_ended_early_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    case = CASES[0]
    index = case.build(chunks("d", 2))

    def ends(*args: Any, **kwargs: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(type(index.builder), "apply", ends)
    with pytest.raises(KeyboardInterrupt):
        index.insert_nodes(chunks("e", 1))
    assert held(index)["incomplete"] == "True"


def test_parameters_of_an_index_are_shown_where_they_are_not_the_defaults() -> None:
    case = next(case for case in CASES if case.name == "raptor")
    assert held(case.build(max_layers=2))["max_layers"] == "2"
    assert "max_layers" not in held(case.build(max_layers=5))


@each_case
def test_a_retriever_says_what_was_chosen(case: Case) -> None:
    index = case.build(chunks("d", 3))
    name = type(index.as_retriever()).__name__
    assert repr(index.as_retriever()) == f"{name}(index={index!r})"
    chosen = repr(index.as_retriever(similarity_top_k=3, token_budget=100))
    assert chosen.startswith(f"{name}(index={index!r}, similarity_top_k=3, token_budget=100")


def test_options_and_prompts_of_a_retriever_are_among_what_was_chosen() -> None:
    case = next(case for case in CASES if case.name == "hipporag")
    retriever = case.build(chunks("d", 3)).as_retriever(linking="facts", node_ids=[f"n{i}" for i in range(100)])
    text = repr(retriever)
    assert "linking='facts'" in text
    assert "node_ids=['n0', 'n1'," in text
    assert len(text) - len(repr(retriever._index)) < 150


@pytest.mark.parametrize("case", [case for case in CASES if has_postprocessor(case)], ids=lambda case: case.name)
def test_a_postprocessor_says_its_index_and_what_was_chosen(case: Case) -> None:
    index = case.build(chunks("d", 3))
    name = type(postprocessor(case, index)).__name__
    assert repr(postprocessor(case, index, token_budget=10)).startswith(f"{name}(index={index!r}, ")
    assert "token_budget=10" in repr(postprocessor(case, index, token_budget=10))
    assert "token_budget" not in repr(postprocessor(case, index))


def test_a_table_escapes_what_it_shows() -> None:
    shown = ObjectDescription("Index", {"embed_model": "<script>", "near_phrases": 12345}).as_html()
    assert "<script>" not in shown
    assert "&lt;script&gt;" in shown
    assert "near phrases</th>" in shown
    assert "12,345" in shown


@each_case
def test_a_page_without_a_path_is_one_for_a_notebook(case: Case, tmp_path: Path) -> None:
    index = case.build(chunks("d", 4))
    page = index.visualize(query=QUESTION)
    assert isinstance(page, InlinePage)
    written = index.visualize(tmp_path / "page.html", QUESTION).read_text(encoding="utf-8")
    frame = page._repr_html_()
    source = re.search(r'srcdoc="([^"]*)"', frame)
    assert source
    assert html.unescape(source[1]) == written
    assert len(repr(page)) < 200


@pytest.mark.skipif(not CHROMIUM.exists(), reason="needs Chromium")
def test_the_frame_of_a_notebook_draws_its_page_and_asks_for_nothing(tmp_path: Path) -> None:
    page = Page(title='The "lamp" & more', view=Graph([Node("a", "Lamp", text="<b>lit</b>"), Node("b", "Tower")]))
    cell = tmp_path / "notebook.html"
    listener = "<script>addEventListener('load', () => document.documentElement.dataset.ready = 'true')</script>"
    cell.write_text(f"<!doctype html><body>{InlinePage(page)._repr_html_()}{listener}", encoding="utf-8")
    with Browser() as browser:
        browser.open(cell)
        browser.wait(1)
        browser.enter_frame()
        assert browser.run("document.documentElement.dataset.ready") == "true"
        assert 'The "lamp" & more' in browser.run("document.body.innerText")
        assert browser.run("document.querySelectorAll('canvas').length") > 0
        assert browser.problems == []
