"""Type-check every Python block of the READMEs and of the docs with `mypy --strict` and pyright, as their readers do.

    python -m tests.page_types [page ...]

The blocks of one page are one module, each at its lines of the page. Blocks that the tests do not run are checked too.
A page takes nothing from the preamble that its run has: what a reader copies must be whole.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.pages import PAGES, ROOT, blocks, page_name

__all__ = ["Problem", "check", "main", "module"]

# Pages whose code the signatures of the packages do not allow yet: retrievers of an index are typed as BaseRetriever,
# and postprocessors have no `index` among their fields. A page that passes is to be taken out.
SKIPPED: frozenset[str] = frozenset()
PACKAGES = [str(path) for path in sorted(ROOT.glob("llama_index_*"))]
MYPY_LINE = re.compile(r"(?:.*/)?(?P<file>\w+\.py):(?P<line>\d+): error: (?P<message>.*)")


class Problem(NamedTuple):
    """What a type checker says of a line of a page."""

    page: str
    line: int
    message: str


def module(page: Path) -> str:
    """The blocks of a page as one module, in which each line has the number that it has on the page."""
    lines: list[str] = []
    for block in blocks(page):
        if block.untyped is not None:
            continue
        lines += [""] * (block.line - len(lines)) + block.code.split("\n")
    return "\n".join([*lines, ""])


def check(pages: Iterable[Path]) -> list[Problem]:
    """What both checkers find wrong on some pages, in the order of pages and lines."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "pages"  # the package that pyproject.toml names
        folder.mkdir()
        modules = {}
        for number, page in enumerate(pages):
            file = folder / f"page_{number}.py"
            file.write_text(module(page), encoding="utf-8")
            modules[file.name] = page_name(page)
        return sorted({*run_mypy(folder, modules), *run_pyright(folder, modules)})


def run_mypy(folder: Path, modules: Mapping[str, str]) -> list[Problem]:
    """The errors of mypy, strict and without plugins; `modules` are the pages by file name.

    It works as `make types` does, and so reads from its cache what that has checked.
    """
    files = [str(folder / name) for name in modules]
    command = [sys.executable, "-m", "mypy", "--no-pretty", "--no-error-summary", *files]
    output = run(command, ROOT, {"MYPYPATH": str(folder.parent)})
    found = [match for match in map(MYPY_LINE.fullmatch, output.splitlines()) if match]
    return [
        Problem(modules[match["file"]], int(match["line"]), f"mypy: {match['message']}")
        for match in found
        if match["file"] in modules
    ]


def run_pyright(folder: Path, modules: Mapping[str, str]) -> list[Problem]:
    """The errors of pyright in its default mode."""
    settings = {
        "include": list(modules),
        "extraPaths": PACKAGES,
        "typeCheckingMode": "standard",
        "reportMissingImports": False,  # as above; the tests that run the blocks import for real
    }
    (folder / "pyrightconfig.json").write_text(json.dumps(settings), encoding="utf-8")
    arguments = ["--outputjson", "--pythonpath", sys.executable, "--project", str(folder)]
    # The Node.js that comes with it, not one that happens to be installed.
    environment = {"PYRIGHT_PYTHON_GLOBAL_NODE": "0"}
    report = json.loads(run([sys.executable, "-m", "pyright", *arguments], folder, environment))
    return [
        Problem(modules[Path(found["file"]).name], found["range"]["start"]["line"] + 1, f"pyright: {found['message']}")
        for found in report["generalDiagnostics"]
        if found["severity"] == "error"
    ]


def run(command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> str:
    """What a type checker prints. It ends with 1 where it finds something, and with more where it cannot work."""
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )
    if done.returncode > 1:
        raise RuntimeError(f"{' '.join(command)} failed with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def main(arguments: Sequence[str] | None = None) -> int:
    """Check pages, all by default; the exit status is 1 if something is wrong."""
    parser = argparse.ArgumentParser(description="Type-check the Python blocks of the documentation.")
    parser.add_argument("pages", nargs="*", type=lambda name: Path(name).resolve(), help="default: all")
    pages = parser.parse_args(arguments).pages or PAGES
    problems = check(pages)
    wrong = {problem.page for problem in problems}
    for problem in problems:
        if problem.page not in SKIPPED:
            print(f"{problem.page}:{problem.line}: {problem.message}")
    passing = sorted(name for name in map(page_name, pages) if name in SKIPPED and name not in wrong)
    for name in passing:
        print(f"{name} passes: take it out of SKIPPED in tests/page_types.py")
    return int(bool(passing or wrong - SKIPPED))


if __name__ == "__main__":
    sys.exit(main())
