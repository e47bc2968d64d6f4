"""Every table and figure of the papers, end to end over small made data, with a scripted server and without."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from benchmarks import data
from benchmarks.papers import graders
from benchmarks.papers.__main__ import PAPERS
from tests.benchmarks.made import articles, crud, stories, two_hops
from tests.benchmarks.scholar import scholar
from tests.benchmarks.test_graders import Synonyms
from tests.benchmarks.test_papers import rows, run
from tests.llm_server import LLMServer

__all__ = ["run"]  # the fixture

NEW = {
    "gemrag": ("table II", "table III", "figure 2"),
    "graphrag": ("figure 2",),
    "hipporag": ("table 6", "table 8", "table 10", "table 13", "table 14", "table 16", "table 17", "table 18"),
    "pgrag": ("table 1", "table 2", "table 3", "figure 4", "figure 5"),
    "raptor": ("table 1", "table 2", "table 3", "table 7"),
    "sprag": ("table answers",),
}
MADE = {
    "crud": crud,
    "musique": two_hops,
    "2wiki": two_hops,
    "hotpotqa": two_hops,
    "path_finding": two_hops,
    "openie": two_hops,
}


def made(experiment, data: Path, sets: set[str]) -> None:
    for folder in {part.folder for part in experiment.parts} & sets:
        MADE.get(folder, articles)(data / folder)


@pytest.mark.parametrize(("paper", "name"), [(paper, name) for paper, names in NEW.items() for name in names])
def test_a_table_or_figure_is_run_with_a_language_model(run, tmp_path: Path, monkeypatch, paper: str, name: str):
    experiment = PAPERS[paper][name]
    sets = {part.folder for part in experiment.parts} - {"2wiki", "hotpotqa"}
    parts = [part for part in experiment.parts if part.folder in sets]
    made(experiment, tmp_path / "data", sets)
    kind, number = name.split()
    given = (
        paper,
        f"--{kind}",
        number,
        "--sets",
        *{part.folder for part in parts},
        "--llm",
        "scripted",
        "--limit",
        "1",
    )
    with LLMServer(scholar) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        run(*given, "--estimate")
        assert not server.asked
        text = run(*given)
    width = 1 + len(parts) * len(experiment.heads)
    for system in experiment.systems:
        found = rows(text, system.name)
        assert len(found) >= 2, system.name
        assert len(found[0]) == width
    for printed in experiment.printed:
        assert len(rows(text, f"{printed}, as printed")[0]) == width
    assert (tmp_path / "out" / f"{paper}-{kind}-{number}.svg").exists() is bool(experiment.axis)


@pytest.mark.parametrize(("paper", "table"), [("raptor", "1"), ("sprag", "answers")])
def test_a_run_from_kept_replies_asks_nothing_and_says_the_same(
    run, tmp_path: Path, monkeypatch, paper: str, table: str
):
    made(PAPERS[paper][f"table {table}"], tmp_path / "data", {"narrativeqa", "financebench"})
    given = (paper, "--table", table, "--llm", "scripted", "--limit", "1")
    with LLMServer(scholar) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        text = run(*given)
        asked = len(server.asked)
        (tmp_path / "out" / f"{paper}-table-{table}.jsonl").unlink()
        again = run(*given)
        assert len(server.asked) == asked
    for system in PAPERS[paper][f"table {table}"].systems:
        assert rows(text, system.name)[0] == rows(again, system.name)[0]


@pytest.mark.parametrize(
    ("paper", "name"),
    [
        ("gemrag", "table III"),
        ("pgrag", "table 1"),
        ("pgrag", "table 2"),
        ("raptor", "table 3"),
        ("hipporag", "table 8"),
    ],
)
def test_what_needs_no_language_model_is_run_without(run, tmp_path: Path, paper: str, name: str):
    experiment = PAPERS[paper][name]
    made(experiment, tmp_path / "data", {part.folder for part in experiment.parts})
    kind, number = name.split()
    text = run(paper, f"--{kind}", number)
    for system in experiment.systems:
        assert bool(rows(text, system.name)) is not system.needs_llm


@pytest.mark.parametrize(
    ("paper", "name"),
    [("raptor", "table 3"), ("gemrag", "table II"), ("sprag", "table answers")],
)
def test_no_row_takes_more_than_was_estimated(run, tmp_path: Path, monkeypatch, paper: str, name: str):
    experiment = PAPERS[paper][name]
    folder = experiment.parts[0].folder
    made(experiment, tmp_path / "data", {folder})
    given = (paper, "--table", name.split()[1], "--sets", folder, "--llm", "scripted", "--limit", "4")
    with LLMServer(scholar) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        estimates = dict(line.strip().split(": about ") for line in run(*given, "--estimate").splitlines()[1:])
        text = run(*given)
    for system in experiment.systems:
        assert "passages and questions to embed" in estimates[system.name]  # and not what is derived from passages
        _, *at_most = (int(each.replace(",", "")) for each in re.findall(r"[\d,]*\d", estimates[system.name])[:4])
        cells = " ".join(rows(text, system.name)[-1][4:])
        taken = [int(each.replace(",", "")) for each in re.findall(r"\d[\d,]*(?<!,)", cells)]
        for kind in range(3):
            assert sum(taken[kind::3]) <= at_most[kind], (system.name, estimates[system.name], cells)


def test_what_cannot_be_done_without_a_language_model_says_so(run, tmp_path: Path):
    made(PAPERS["graphrag"]["figure 2"], tmp_path / "data", {"podcasts", "news"})
    with pytest.raises(SystemExit, match="name one with --llm"):
        run("graphrag", "--figure", "2")


def test_each_part_is_asked_of_the_documents_that_it_says(run, tmp_path: Path, monkeypatch):
    articles(tmp_path / "data" / "financebench")
    sizes: dict[bool, list[int]] = {}

    def load(*given: Any, within: bool, **options: Any) -> Any:
        tasks = data.load(*given, within=within, **options)
        sizes[within] = [len(task.corpus.records) for task in tasks]
        return tasks

    monkeypatch.setattr("benchmarks.papers.running.load", load)
    run("sprag", "--table", "answers")
    assert sizes == {False: [16], True: [2] * 8}


def test_questions_of_crud_rag_are_asked_of_their_articles(run, tmp_path: Path):
    crud(tmp_path / "data" / "crud")
    text = run("pgrag", "--table", "1")
    assert "Questions: 1-Document: 4, 2-Document: 4, 3-Document: 4." in text  # not the one without a text
    assert rows(text, "hybrid")[0][1] == "100.0 [100.0, 100.0]"
    assert rows(text, "no passages") == []


def test_a_judge_that_looks_at_the_place_alone_prefers_nobody(run, tmp_path: Path, monkeypatch):
    made(PAPERS["graphrag"]["figure 2"], tmp_path / "data", {"news"})
    with LLMServer(scholar) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        text = run("graphrag", "--figure", "2", "--sets", "news", "--llm", "scripted", "--limit", "2")
    even, always, never = "50.0 [50.0, 50.0]", "100.0 [100.0, 100.0]", "0.0 [0.0, 0.0]"
    assert rows(text, "SS, dense")[0][1:] == [even, always] * 4
    for system in ("C0, paper()", "Graph RAG, default"):
        assert rows(text, system)[0][1:] == [even, never] * 4
    kept = [json.loads(line) for line in (tmp_path / "out" / "graphrag-figure-2.jsonl").read_text().splitlines()]
    assert sum(row["measured"]["grading"].get("calls", 0) for row in kept if row["system"] == "SS, dense") == 0
    # Systems with the same answers are judged once.
    assert {row["measured"]["grading"].get("calls", 0) for row in kept if row["system"] != "SS, dense"} == {16, 0}


@pytest.mark.parametrize("missing", ["wordnet", "bert_score"])
def test_a_metric_that_was_missing_is_measured_once_it_is_there(run, tmp_path: Path, monkeypatch, missing: str):
    paper, folder = ("raptor", "narrativeqa") if missing == "wordnet" else ("pgrag", "crud")
    made(PAPERS[paper]["table 1"], tmp_path / "data", {folder})
    given = (paper, "--table", "1", "--llm", "scripted", "--limit", "1", "--systems", "dense")
    monkeypatch.setattr(graders, "bert_scores", lambda references, texts, scorer: [0.5] * len(texts))
    monkeypatch.setattr(graders, "_bert_scorer", lambda model: None)
    monkeypatch.setattr(graders, "_wordnet", lambda: None)
    place = 4 if missing == "wordnet" else 3
    with LLMServer(scholar) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        assert rows(run(*given), "dense")[0][place] == ""
        if missing == "wordnet":
            monkeypatch.setattr(graders, "_wordnet", Synonyms)
            assert rows(run(*given), "dense")[0][place] != ""
        else:
            assert rows(run(*given, "--bert-score", "zh"), "dense")[0][place] == "50.0 [50.0, 50.0]"


def test_the_refinement_rate_is_relative_to_the_nodes_of_the_pseudo_graph(run, tmp_path: Path):
    crud(tmp_path / "data" / "crud")
    text = run("pgrag", "--table", "3")
    rate = {name: float(rows(text, name)[0][1]) for name in ("PG-RAG, paper()", "KNN graph", "RAPTOR, paper()")}
    assert rate["PG-RAG, paper()"] == 100
    assert 0 < rate["KNN graph"] <= rate["RAPTOR, paper()"] < 100


@pytest.mark.parametrize(("number", "boxes", "histograms"), [("4", 5, 2), ("8", 5, 0)])
def test_figures_of_mrag_have_box_plots_over_the_questions(
    run, tmp_path: Path, monkeypatch, number: str, boxes: int, histograms: int
):
    axes = pytest.importorskip("matplotlib.axes").Axes
    drawn: dict[str, list[Any]] = {"boxplot": [], "hist": [], "errorbar": []}
    for kind in drawn:
        monkeypatch.setattr(axes, kind, lambda _, scores, *given, kind=kind, **options: drawn[kind].append(scores))
    stories(tmp_path / "data" / "mrag_wikipedia", (10,))
    run("mrag", "--figure", number)
    systems = len(PAPERS["mrag"][f"figure {number}"].systems)
    assert [len(each) for each in drawn["boxplot"]] == [boxes] * systems * max(1, histograms)
    assert len(drawn["hist"]) == histograms * systems
    assert not drawn["errorbar"]


def test_summaries_among_the_nodes_found_are_counted(run, tmp_path: Path):
    articles(tmp_path / "data" / "quality")
    text = run("gemrag", "--table", "III")
    assert rows(text, "paper(), 0 components")[0][1] == "0.0 [0.0, 0.0]"
