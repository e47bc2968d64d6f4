"""Every "section N.M" of a paper, in any text here, is a section of that paper, with the words quoted of it.

The papers are text files in the folder RAG_PAPERS, or in a folder `papers` beside RAG_DATA. A reference belongs to the
paper that its sentence names, or else to that of its file, unless the sentence names another work. Those of RAPTOR,
Graph RAG and spRAG have numbers of other texts.
"""

import os
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
BESIDE_DATA = Path(os.environ.get("RAG_DATA", "")).parent / "papers"
PAPERS = Path(os.environ.get("RAG_PAPERS", BESIDE_DATA))
FILES = {"gemrag": "gem-rag.txt", "hipporag": "hipporag.txt", "mrag": "mrag.txt", "pgrag": "pg-rag.txt"}
CHAPTERS = {"HippoRAG": "hipporag", "GEM-RAG": "gemrag", "Multi-Head RAG": "mrag", "PG-RAG": "pgrag"}
NAMES = {
    **{"Rappazzo": "gemrag", "Gutierrez": "hipporag", "Besta": "mrag", "Liang": "pgrag", "MRAG's": "mrag"},
    **{f"{name}'s": paper for name, paper in CHAPTERS.items()},
}
pytestmark = pytest.mark.skipif(
    not all((PAPERS / name).is_file() for name in FILES.values()), reason="RAG_PAPERS names no folder with the papers"
)

HEADING = re.compile(
    r"(?:#+ )?(?:Appendix (?P<appendix>[A-Z]) |(?P<number>(?:\d+|[A-Z])(?:\.\d+)*) (?=[A-Z])"
    r"|(?P<roman>[IVX]+)\. [A-Z]{3}|(?P<letter>[A-Z])\. [A-Z][a-z]|(?P<digit>\d)\) )"
)
NUMBER = r"(?:[IVX]+|[A-Z]|\d+)(?:\.(?:[A-Z]|\d+))*"
NUMBERS = rf"{NUMBER}(?:(?:, | and ){NUMBER}\b)*"
REFERENCE = re.compile(rf"\b(?:[Ss]ections?|[Aa]ppendix) ({NUMBERS})(?:[,:] \"([^\"]+)\")?")
SENTENCE = re.compile(r"(?<=[a-z)])(?<!et al)[.;:] |\"\"\"")
OTHER_WORK = re.compile(r"[A-Z]\w+(?: and | & |, )[A-Z]\w+.*\d{4}|et al\.|RFC|Unicode|UAX|ECMA")


class Reference(NamedTuple):
    """A section that a file names, and what it quotes of it."""

    place: str
    paper: str
    number: str
    quoted: str


@cache
def sections(paper: str) -> dict[str, str]:
    """Number -> text, with that of the sections below."""
    found: dict[str, list[str]] = {}
    open_: tuple[str, ...] = ()
    for line in (PAPERS / FILES[paper]).read_text(encoding="utf-8").splitlines():
        heading = HEADING.match(line)
        if heading:
            part = heading.groupdict()
            if part["appendix"] or part["roman"]:
                open_ = (part["appendix"] or part["roman"],)
            elif part["letter"] and paper == "gemrag":
                open_ = (*open_[:1], part["letter"])
            elif part["digit"] and paper == "gemrag":
                open_ = (*open_[:2], part["digit"])
            elif part["number"] and paper != "gemrag":
                open_ = tuple(part["number"].split("."))
        for depth in range(1, len(open_) + 1):
            found.setdefault(".".join(open_[:depth]), []).append(line)
    return {number: " ".join(lines) for number, lines in found.items()}


def texts() -> Iterator[tuple[str, str, str]]:
    """(place, its paper or "", text) of code, tests and documentation; of the page on papers, of each chapter."""
    folders = [*ROOT.glob("llama_index_*"), *(ROOT / name for name in ("benchmarks", "docs", "examples", "tests"))]
    within = [path for folder in folders for kind in ("*.py", "*.md", "*.ipynb") for path in folder.rglob(kind)]
    for path in sorted([*ROOT.glob("*.md"), *within]):
        place, text = path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")
        if path.name == "papers.md":
            for chapter in re.split(r"^## ", text, flags=re.MULTILINE):
                yield place, CHAPTERS.get(chapter.partition("\n")[0], ""), chapter
        elif path.name != "CHANGELOG.md":
            yield place, next((name for name in FILES if re.search(rf"[/_]{name}[/._]", place)), ""), text


def references() -> Iterator[Reference]:
    for place, of_text, text in texts():
        line = " ".join(text.split())
        for found in REFERENCE.finditer(line):
            sentence = SENTENCE.split(line[: found.start()])[-1][-300:]
            named = next((paper for name, paper in NAMES.items() if name in sentence), "")
            paper = named or ("" if OTHER_WORK.search(sentence) else of_text)
            if paper:
                for number in re.findall(NUMBER, found[1]):
                    yield Reference(place, paper, number, found[2] or "")


def test_a_paper_has_its_sections():
    assert "III.B.1" in sections("gemrag")
    assert "F.2" in sections("hipporag")
    assert "4.5" in sections("mrag")
    assert "2.3.3" not in sections("pgrag")


def test_references_are_found_in_code_and_tests_and_pages():
    places = {each.place for each in references()}
    assert "docs/papers.md" in places
    assert {"benchmarks/papers/mrag.py", "benchmarks/papers/stories.py", "tests/fidelity/test_pgrag.py"} <= places
    assert "docs/reproducing.md" in places  # on all papers: the sentence names one
    assert "llama_index_ragkit/llama_index/ragkit/evaluation/metrics.py" in places
    assert "llama_index_hipporag/llama_index/hipporag/pagerank/frontier.py" not in places  # of another work


def test_every_section_that_is_named_is_there_with_what_is_quoted_of_it():
    named = list(references())
    assert {each.paper for each in named} == set(FILES)
    missing = [each for each in named if each.number not in sections(each.paper)]
    assert missing == []
    assert [each for each in named if each.quoted not in sections(each.paper)[each.number]] == []
