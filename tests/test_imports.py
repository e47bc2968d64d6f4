"""Importing a package is quick: it loads no library that only some of its work needs, installed or not.

Each package is imported in a fresh process after `llama_index.core`, and attempts to import a heavy library are
recorded, so that the result does not depend on what this environment holds.
"""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
NAMES = sorted(path.name.removeprefix("llama_index_") for path in ROOT.glob("llama_index_*"))

# Each takes a tenth of a second to several seconds.
HEAVY = (
    "bert_score", "matplotlib", "networkx", "nltk", "numba", "pandas", "rouge_score", "sacrebleu",
    "scipy.cluster", "scipy.linalg", "scipy.optimize", "scipy.sparse.csgraph", "scipy.sparse.linalg", "scipy.stats",
    "sentence_transformers", "sklearn", "spacy", "tensorflow", "torch", "transformers", "umap",
)  # fmt: skip

RECORDER = """
import importlib, sys
import llama_index.core

class Recorder:
    found = []

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if any(f"{name}.".startswith(f"{heavy}.") for heavy in sys.argv[2].split(",")):
            cls.found.append(name)

sys.meta_path.insert(0, Recorder)
importlib.import_module(sys.argv[1])
print(*Recorder.found)
"""


def heavy_imports(module: str, path: Path | None = None) -> list[str]:
    """The heavy libraries that a module tries to import, directly or through others."""
    code = RECORDER if path is None else f"import sys; sys.path.insert(0, {str(path)!r})\n{RECORDER}"
    done = subprocess.run([sys.executable, "-c", code, module, ",".join(HEAVY)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.parametrize("name", NAMES)
def test_a_package_imports_nothing_heavy(name: str) -> None:
    assert heavy_imports(f"llama_index.{name}") == []


def test_an_attempt_is_caught_even_where_the_library_is_missing(tmp_path: Path) -> None:
    (tmp_path / "shy.py").write_text("try:\n    import sacrebleu.not_there\nexcept ImportError:\n    pass\n")
    assert heavy_imports("shy", tmp_path)[0] == "sacrebleu"
