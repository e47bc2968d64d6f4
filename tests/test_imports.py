"""Importing a package is quick: it loads no library that only some of its work needs, installed or not.

The packages are imported one after the other in a fresh process that has `llama_index.core`, and attempts to import a
heavy library are recorded, so that the result does not depend on what this environment holds.
"""

import subprocess
import sys
from pathlib import Path

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
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if any(f"{name}.".startswith(f"{heavy}.") for heavy in sys.argv[1].split(",")):
            print(module, name)

sys.meta_path.insert(0, Recorder)
for module in sys.argv[2:]:
    importlib.import_module(module)
"""


def heavy_imports(folder: Path, *modules: str) -> list[str]:
    """Each module, and a heavy library that it is the first to try to import, directly or through others."""
    command = [sys.executable, "-c", RECORDER, ",".join(HEAVY), *modules]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_packages_import_nothing_heavy(tmp_path: Path) -> None:
    assert heavy_imports(tmp_path, *(f"llama_index.{name}" for name in NAMES)) == []


def test_an_attempt_is_caught_even_where_the_library_is_missing(tmp_path: Path) -> None:
    (tmp_path / "light.py").write_text("import json\n")
    (tmp_path / "shy.py").write_text("try:\n    import sacrebleu.not_there\nexcept ImportError:\n    pass\n")
    assert heavy_imports(tmp_path, "light", "shy")[0] == "shy sacrebleu"
