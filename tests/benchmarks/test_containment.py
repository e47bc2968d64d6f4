"""The containment table: measured once, resumed, and written into its page."""

import json
from pathlib import Path

import pytest
from benchmarks import containment
from tests.benchmarks.made import two_hops, write

from llama_index.ragkit.testing import HashEmbedding


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(containment.MODELS, "minilm", lambda: HashEmbedding(dim=64))
    two_hops(tmp_path / "musique")
    page = tmp_path / "page.md"
    page.write_text(f"before\n{containment.BEGIN}\nold\n{containment.END}\nafter\n")

    def once(*more: str) -> str:
        given = ["--data", str(tmp_path), "--sets", "musique", "--kept", str(tmp_path / "kept.jsonl")]
        containment.main([*given, "--page", str(page), *more])
        return page.read_text()

    return once


def test_every_system_has_a_row_and_is_measured_once(run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    page = run()
    assert page.startswith(f"before\n{containment.BEGIN}\n")
    assert page.endswith(f"{containment.END}\nafter\n")
    assert "old" not in page
    rows = [line.split(" | ")[0].strip("| ") for line in page.splitlines() if line.startswith("| ")]
    assert rows == ["system", "---", *containment.PLAIN, *containment.METHODS]
    kept = [json.loads(line) for line in (tmp_path / "kept.jsonl").read_text().splitlines()]
    for row in kept:
        for tokens, scores in row["scores"].items():
            assert max(scores["tokens"]) <= int(tokens)
            assert set(scores["contained"]) <= {0, 1}
    monkeypatch.setattr(containment, "_measured", None)
    assert run() == page


def test_a_run_goes_on_with_what_is_missing_and_other_questions_are_measured_anew(run, tmp_path: Path):
    run("--systems", "dense", "hybrid-z")
    run("--systems", "dense", "hybrid-z", "BM25")
    assert [json.loads(line)["system"] for line in (tmp_path / "kept.jsonl").read_text().splitlines()] == [
        "dense", "hybrid-z", "BM25",
    ]  # fmt: skip
    page = run("--systems", "hybrid-z", "--limit", "4")
    assert "### musique, 4 questions" in page
    assert "| dense |" not in page  # its questions are others


def test_corpora_that_are_not_asked_stay_on_the_page(run, tmp_path: Path):
    other = "\n### fairytale, 3 questions\n\n| system |\n| --- |\n| dense |"
    page = tmp_path / "page.md"
    page.write_text(f"before\n{containment.BEGIN}\n{other}\n{containment.END}\nafter\n")
    once = run("--systems", "hybrid-z")
    assert once.index("### musique") < once.index("### fairytale")
    assert once.endswith(f"{other}\n{containment.END}\nafter\n")
    assert run("--systems", "hybrid-z") == once


def test_what_was_measured_with_other_sources_is_measured_anew_and_stands_with_its_commit_until_then(
    run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    kept = tmp_path / "kept.jsonl"
    run("--systems", "hybrid-z")
    (row,) = (json.loads(line) for line in kept.read_text().splitlines())
    kept.write_text(json.dumps({**row, "sources": "others", "commit": "0ld"}) + "\n")
    monkeypatch.setattr(containment, "commit", lambda: "n3w")
    before = run("--systems", "dense")
    assert "[1.000, 1.000] | 0ld |" in before
    assert before.count("| n3w |") == 1
    assert "0ld" not in run("--systems", "hybrid-z")
    assert len(kept.read_text().splitlines()) == 3


def test_a_system_is_asked_once_for_all_contexts(run, monkeypatch: pytest.MonkeyPatch):
    asked: list[str] = []

    def retrieve(self, bundle):
        asked.append(bundle.query_str)
        return rank(self, bundle)

    rank = containment.NearestFirst._retrieve
    monkeypatch.setattr(containment.NearestFirst, "_retrieve", retrieve)
    run("--systems", "hybrid-z")
    assert len(asked) == len(set(asked)) == 8


def test_whole_documents_are_cut_as_asked_and_their_rows_kept_apart(run, tmp_path: Path):
    page = {"id": "tale", "pages": ["The lamp burned oil. " * 200]}
    asked = {"id": "a", "question": "What did the lamp burn?", "answer": "oil", "gold": ["tale#0"]}
    (tmp_path / "musique" / "corpus.jsonl.gz").unlink()
    write(tmp_path / "musique" / "documents.jsonl.gz", [page])
    write(tmp_path / "musique" / "queries.jsonl.gz", [asked])
    found = run("--systems", "hybrid-z", "dense")
    assert "### musique, 1 questions, chunks of 256 tokens" in found
    assert "| hybrid-z | 1.000" in found
    found = run("--systems", "hybrid-z", "--chunk-tokens", "0")
    assert "### musique, 1 questions, chunks of the stock splitter" in found
    assert "| hybrid-z | - | 1.000" in found
    assert "| dense |" not in found


def test_verdicts_are_not_asked_and_a_context_without_room_is_empty(run, tmp_path: Path):
    write(tmp_path / "musique" / "corpus.jsonl.gz", [{"id": "long", "text": "The lamp burned oil. " * 200}])
    write(
        tmp_path / "musique" / "queries.jsonl.gz",
        [
            {"id": "a", "question": "Did the lamp burn?", "answer": "yes", "gold": ["long"]},
            {
                "id": "b",
                "question": "What did the lamp burn?",
                "answer": "oil",
                "answers": ["oil", "fat"],
                "gold": ["long"],
            },
        ],
    )
    page = run("--systems", "hybrid-z")
    assert "### musique, 1 questions" in page
    assert "| hybrid-z | - | - | 1.000 [1.000, 1.000] | 1.000 [1.000, 1.000] |" in page
