"""The test classes of the documentation pass, as a reader would run them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.page_types import module
from tests.pages import ROOT
from tests.preamble import PREAMBLE

# By default a write is ended at every call; test_faults_catch.py does that, and test_faults.py has all indexes.
FEWER_POINTS = "\nfrom llama_index.ragkit.testing import index_kit\n\nindex_kit.FaultTests.points = 3\n"


@pytest.mark.slow
@pytest.mark.parametrize(("page", "classes"), [("testing.md", 5), ("new_method.md", 1)])
def test_the_classes_of_a_page_pass(page: str, classes: int, tmp_path: Path):
    code = module(ROOT / "docs" / page)
    assert code.count("class Test") == classes
    (tmp_path / "test_page.py").write_text(PREAMBLE + code + FEWER_POINTS, encoding="utf-8")
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir=.", "test_page.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stdout[-5000:] + run.stderr
    assert "passed" in run.stdout


def test_the_root_of_ragkit_does_not_bring_the_kit_or_pytest():
    code = "import sys, llama_index.ragkit; print({'pytest', 'llama_index.ragkit.testing'} & set(sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "set()"


def test_without_pytest_the_error_names_the_extra():
    code = "import sys; sys.modules['pytest'] = None; import llama_index.ragkit.testing"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.stderr.strip().endswith(
        'ImportError: llama_index.ragkit.testing needs pytest: pip install "llama-index-ragkit[testing]"'
    )


def test_assertions_of_the_kit_hold_without_asserts(tmp_path: Path):
    """`python -O` drops assert statements, but not those that pytest has rewritten."""
    (tmp_path / "test_it.py").write_text(
        "import pytest\n"
        "from llama_index.core.storage.kvstore import SimpleKVStore\n"
        "from llama_index.ragkit.testing.store_kit import KeyValueIsolationTests\n"
        "class TestIt(KeyValueIsolationTests):\n"
        "    @pytest.fixture\n"
        "    def store(self):\n"
        "        return SimpleKVStore()\n",
        encoding="utf-8",
    )
    run = subprocess.run(
        [sys.executable, "-O", "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir=.", "test_it.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
    )
    assert "1 failed" in run.stdout, run.stdout + run.stderr
    assert "Differing items" in run.stdout, "the values are shown"
