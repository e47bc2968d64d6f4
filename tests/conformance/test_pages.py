"""The test classes of the documentation pass, as a reader would run them."""

import subprocess
import sys
from pathlib import Path

import pytest
from _pytest.assertion.rewrite import AssertionRewritingHook
from tests.page_types import module
from tests.pages import ROOT
from tests.preamble import PREAMBLE
from tests.processes import Worker

from llama_index.ragkit.testing import index_kit, store_kit

# By default a write is ended at every call and in every way; test_faults_catch.py does that, and test_faults.py has all
# indexes.
FEWER_POINTS = "\nfrom llama_index.ragkit.testing import index_kit\n\nindex_kit.FaultTests.points = 1\n"

PROGRAM = """
import os, sys
import pytest

os.chdir(sys.argv[1])
options = ["-q", "-p", "no:cacheprovider", "--rootdir=.", "-k", "not ends_early or kill-insert"]
sys.exit(pytest.main([*options, "test_page.py"]))
"""


@pytest.mark.slow
@pytest.mark.parametrize(("page", "classes"), [("testing.md", 5), ("new_method.md", 1)])
def test_the_classes_of_a_page_pass(page: str, classes: int, tmp_path: Path):
    code = module(ROOT / "docs" / page)
    assert code.count("class Test") == classes
    (tmp_path / "test_page.py").write_text(PREAMBLE + code + FEWER_POINTS, encoding="utf-8")
    with Worker(PROGRAM, str(tmp_path)) as worker:
        said = worker.communicate()
    assert worker.returncode == 0, said[-5000:]
    assert "passed" in said


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


def test_assertions_of_the_kit_are_rewritten():
    """`python -O` drops assert statements, but not those that pytest has rewritten; these also show both values."""
    kits = f"{index_kit.__name__}.", f"{store_kit.__name__}."
    loaders = {name: type(module.__loader__) for name, module in sys.modules.items() if f"{name}.".startswith(kits)}
    assert len(loaders) > 10
    assert set(loaders.values()) == {AssertionRewritingHook}
