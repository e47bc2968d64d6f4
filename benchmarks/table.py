"""`python -m benchmarks.table --data FOLDER`: one table of every method on every corpus of a folder.

Each cell comes from `benchmarks.quality` or `benchmarks.cost`, run in processes of their own, one after the other.
What was measured is kept in a file of JSON lines, so that a run that was cut off goes on, and so that quality can be
measured while the machine is busy and cost (`--parts cost`) while it is not. The table is written into
`benchmarks/README.md` between two markers; a cell that was not measured is empty.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.data import Task, load
from benchmarks.embedding import cache_folder
from benchmarks.quality import evaluate
from benchmarks.systems import METHODS

__all__ = ["main"]

README = Path(__file__).with_name("README.md")
ARCHIVE = README.parents[1] / "examples" / "archive"
BEGIN, END = "<!-- table: begin -->", "<!-- table: end -->"


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure what is missing, and write the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.table", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="the folder that holds the data folders")
    parser.add_argument("--methods", nargs="+", choices=sorted(METHODS), default=list(METHODS))
    parser.add_argument("--sets", nargs="+", help="names of data folders; all with labelled questions when left out")
    parser.add_argument("--parts", nargs="+", choices=sorted(PARTS), default=list(PARTS))
    parser.add_argument("--kept", type=Path, default=cache_folder() / "table.jsonl", help="what was measured before")
    options = parser.parse_args(arguments)
    folders = list(corpora(options.data))
    kept = {(row["data"], row["method"], row["part"]): row for row in _kept(options.kept)}
    for part in options.parts:
        for folder in folders:
            for method in options.methods if not options.sets or folder.name in options.sets else ():
                if (folder.name, method, part) not in kept:
                    row = {"data": folder.name, "method": method, "part": part, **PARTS[part](method, folder)}
                    kept[folder.name, method, part] = row
                    with options.kept.open("a", encoding="utf-8") as file:
                        file.write(json.dumps(row) + "\n")
                    print(json.dumps(row), flush=True)
    rows: list[dict[str, Any]] = []
    for folder in folders:
        for method in METHODS:
            found = [kept[key] for part in PARTS if (key := (folder.name, method, part)) in kept]
            rows += [{name: value for row in found for name, value in row.items()}] if found else []
    before, _, rest = README.read_text(encoding="utf-8").partition(BEGIN)
    README.write_text(f"{before}{BEGIN}\n{markdown(rows)}\n{END}{rest.partition(END)[2]}", encoding="utf-8")


def corpora(folder: Path) -> Iterator[Path]:
    """The sample archive, and every data folder with labelled or recorded questions."""
    yield ARCHIVE
    for path in sorted(folder.iterdir()):
        asked = any(path.glob("queries.jsonl*")) or path.name == "recorded_questions"
        if asked and any(path.glob("corpus.jsonl*")):  # documents of pages are for `benchmarks.coverage`
            yield path
        yield from (part.parent for part in sorted(path.glob("*/queries.jsonl*")))  # one folder a language


def quality(method: str, folder: Path) -> dict[str, Any]:
    """How well a method finds the passages of a corpus, beside dense, BM25 and their fusion."""
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch) / "rankings.jsonl"
        _run("benchmarks.quality", method, "--data", str(folder), "--out", str(out), "--resamples", "100")
        rankings: dict[str, dict[str, list[str]]] = defaultdict(dict)
        for row in _kept(out):
            rankings[row["system"]][row["id"]] = row["ranking"]
    return _scores(load(folder), rankings, method)


def cost(method: str, folder: Path) -> dict[str, Any]:
    """What an index of a method over a corpus costs."""
    found: dict[str, Any] = json.loads(_run("benchmarks.cost", method, "--data", str(folder)).splitlines()[-1])
    return {name: value for name, value in found.items() if name not in ("data", "method")}


PARTS: dict[str, Callable[[str, Path], dict[str, Any]]] = {"quality": quality, "cost": cost}


def _scores(tasks: Sequence[Task], rankings: Mapping[str, Mapping[str, list[str]]], method: str) -> dict[str, Any]:
    evaluations = evaluate(tasks, rankings)
    metric = "success@n" if tasks[0].multi_aspect else "R@5"
    own = evaluations[method]
    shown = {name: name for name in ("dense", "bm25", "fusion")}
    shown |= {"hybrid": "hybrid-z", "own": method, "off": f"{method}-off"}
    gaps = {f"own_{key}": own.difference(evaluations[shown[key]], metric) for key in ("dense", "hybrid", "off")}
    return {
        "questions": len(own.ids),
        "metric": metric,
        **{key: str(evaluations[name].interval(metric)) for key, name in shown.items()},
        **{key: f"{gap.mean:+.3f} [{gap.low:+.3f}, {gap.high:+.3f}]" for key, gap in gaps.items()},
    }


def markdown(rows: Sequence[Mapping[str, Any]]) -> str:
    """The table, a row a corpus and method."""
    head = {
        "data": "corpus",
        "questions": "n",
        "method": "method",
        "metric": "metric",
        "dense": "dense",
        "bm25": "BM25",
        "hybrid": "hybrid-z",
        "own": "its score",
        "off": "its structure off",
        "fusion": "fusion of dense, BM25, method",
        "own_dense": "method - dense",
        "own_hybrid": "method - hybrid-z",
        "own_off": "method - off",
        "index_s": "index s (plain)",
        "query_ms": "query ms (plain)",
        "gained_mb": "MB",
        "llm_calls": "LLM calls",
    }
    lines = [list(head.values()), ["---"] * len(head), *([_cell(row, key) for key in head] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _cell(row: Mapping[str, Any], key: str) -> str:
    """What was measured, with that of a `VectorStoreIndex` behind it where it was measured too."""
    plain = row.get(f"vector_store_{key}" if key == "index_s" else f"vector_store_index_{key}")
    return f"{row.get(key, '')}" + ("" if plain is None else f" ({plain})")


def _kept(path: Path) -> Iterator[dict[str, Any]]:
    if path.exists():
        with path.open(encoding="utf-8") as file:
            yield from (json.loads(line) for line in file)


def _run(*command: str) -> str:
    return subprocess.run([sys.executable, "-m", *command], check=True, stdout=subprocess.PIPE, text=True).stdout


if __name__ == "__main__":
    main()
