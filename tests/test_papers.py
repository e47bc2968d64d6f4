"""docs/papers.md says of every parameter what `paper()` gives and what the default is."""

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.cases import CASES

PAGE = Path(__file__).parents[1] / "docs" / "papers.md"
INDEXES = {case.cls.__name__: case.cls for case in CASES if case.name != "toy"}
RETRIEVERS = {cls.retriever_cls.__name__: cls.retriever_cls for cls in INDEXES.values()}
NOTHING = "—"


def tables() -> Iterator[tuple[str, list[tuple[str, str, str]]]]:
    """(class, rows of parameter, `paper()` and default) of the page."""
    for section in re.split(r"^### ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        name, _, text = section.partition("\n")
        rows = [
            [cell.strip() for cell in line.strip("|").split(" | ")] for line in text.splitlines() if line[:1] == "|"
        ]
        yield name.strip(), [(row[0].strip("`| "), row[3], row[4].strip("| ")) for row in rows[2:]]


TABLES = dict(tables())
every_class = pytest.mark.parametrize("name", TABLES)


def public(name: str) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """The defaults of a class's own parameters, and what `paper()` gives."""
    if name in INDEXES:
        return vars(INDEXES[name].config_cls()), INDEXES[name].paper()
    defaults = vars(RETRIEVERS[name].options_cls())
    own = vars(defaults["published"]) if "published" in defaults else {}
    return {**defaults, **{f"published.{key}": value for key, value in own.items()}}, RETRIEVERS[name].paper()


def told(cell: str) -> Any:
    """What a cell says: a value, or the name of a class as the text "Name()"."""
    code = cell.strip("`")
    return code if code.endswith("()") else ast.literal_eval(code)


@every_class
def test_the_page_says_what_paper_gives_and_leaves_nothing_out(name: str):
    _, paper = public(name)
    said = {parameter: told(cell) for parameter, cell, _ in TABLES[name] if cell != NOTHING}
    given = {key: f"{type(value).__name__}()" if hasattr(value, "__dict__") else value for key, value in paper.items()}
    if published := paper.get("published"):
        del given["published"]
        own = vars(type(published)())
        within = {f"published.{key}": value for key, value in vars(published).items()}
        given |= {key: value for key, value in within.items() if key in said or value != own[key.split(".")[1]]}
    assert said == given


@every_class
def test_the_page_says_the_defaults(name: str):
    defaults, _ = public(name)
    for parameter, _, cell in TABLES[name]:
        if parameter in defaults:
            assert told(cell) == defaults[parameter], parameter


def test_every_method_is_on_the_page():
    assert TABLES.keys() == {*INDEXES, *RETRIEVERS}
