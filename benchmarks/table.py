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
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.data import Task, load
from benchmarks.embedding import MODELS, cache_folder
from benchmarks.quality import evaluate
from benchmarks.systems import METHODS
from llama_index.ragkit.evaluation import Evaluation, Interval

__all__ = ["main"]

README = Path(__file__).with_name("README.md")
ARCHIVE = README.parents[1] / "examples" / "archive"
BASELINES = ("dense", "bm25", "hybrid", "hybrid-z")
VARIANTS: dict[str, dict[str, tuple[str, ...]]] = {
    "2wiki": {"without titles": ("--untitled",), "a header for a title": ("--untitled", "--header")},
    "financebench": {"within the document": ("--within",)},
}
# The row of the published method. Those with the option are built anew for it, on corpora where that takes minutes.
PUBLISHED = {
    "gemrag": "gemrag-paper",
    "hipporag": "v2",
    "mrag": "heads",
    "pgrag": "pgrag-paper",
    "raptor": "raptor-paper",
}
WITH_OPTION = ("gemrag", "hipporag", "raptor")
SMALL = ("archive", "musique", "recorded_questions")
BEGIN, END = "<!-- table: begin -->", "<!-- table: end -->"


@dataclass(frozen=True)
class Set:
    """A corpus with its questions, and how it is read."""

    name: str
    folder: Path
    arguments: tuple[str, ...] = ()

    @property
    def data(self) -> str:
        """The name of its folder, such as `xquad/de`."""
        return self.name.split(", ")[0]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure what is missing, and write the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.table", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="the folder that holds the data folders")
    parser.add_argument("--methods", nargs="+", choices=sorted(METHODS), default=list(METHODS))
    parser.add_argument("--sets", nargs="+", help="data folders, as xquad/de; all with questions if left out")
    parser.add_argument("--parts", nargs="+", choices=sorted(PARTS), default=list(PARTS))
    parser.add_argument("--embedding", choices=sorted(MODELS), default="minilm", help="the embedding model")
    parser.add_argument("--kept", type=Path, default=cache_folder() / "table.jsonl", help="what was measured before")
    options = parser.parse_args(arguments)
    corpora = list(sets(options.data, options.embedding))
    names = list(dict.fromkeys(corpus.data for corpus in corpora))
    if unknown := [name for name in options.sets or () if name not in names]:
        parser.error(f"no data folder {', '.join(unknown)}; there are {', '.join(names)}")
    known = {(row["data"], row["method"], row["part"]): row for row in _kept(options.kept)}
    for part in options.parts:
        for corpus in (c for c in corpora if not options.sets or c.data in options.sets):
            for method in options.methods:
                if (corpus.name, method, part) not in known and not (part == "cost" and corpus.arguments):
                    row = {"data": corpus.name, "method": method, "part": part, **PARTS[part](method, corpus)}
                    known[corpus.name, method, part] = row
                    with options.kept.open("a", encoding="utf-8") as file:
                        file.write(json.dumps(row) + "\n")
                    print(json.dumps(row), flush=True)
    rows: list[dict[str, Any]] = []
    for name in dict.fromkeys(corpus.name for model in MODELS for corpus in sets(options.data, model)):
        for method in METHODS:
            found = [known[key] for part in PARTS if (key := (name, method, part)) in known]
            merged = {key: value for row in found for key, value in row.items()}
            same = {key: merged.get(key) for key in ("data", "method", "questions")}
            rows += [merged, *({**same, **each} for each in merged.get("deeper", ()))] if found else []
    before, _, rest = README.read_text(encoding="utf-8").partition(BEGIN)
    table = f"{summary(rows)}\n\n{markdown(rows)}"
    README.write_text(f"{before}{BEGIN}\n{table}\n{END}{rest.partition(END)[2]}", encoding="utf-8")


def sets(folder: Path, model: str = "minilm") -> Iterator[Set]:
    """The sample archive, and every data folder with labelled or recorded questions, each also as `VARIANTS` say."""
    for path in [ARCHIVE, *sorted(folder.iterdir())]:
        asked = any(path.glob("queries.jsonl*")) or path.name in (ARCHIVE.name, "recorded_questions")
        for part in [path] if asked else [found.parent for found in sorted(path.glob("*/queries.jsonl*"))]:
            name = str(part.relative_to(path.parent))
            for how, arguments in {"": (), **VARIANTS.get(name, {})}.items():
                told = ", ".join(x for x in (name, how, "" if model == "minilm" else model) if x)
                yield Set(told, part, (*arguments, *(() if model == "minilm" else ("--embedding", model))))


def quality(method: str, corpus: Set) -> dict[str, Any]:
    """How well a method finds the passages of a corpus, beside dense, BM25 and both together."""
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch) / "rankings.jsonl"
        given = ("--data", str(corpus.folder), "--out", str(out), "--resamples", "100")
        if method in WITH_OPTION and corpus.name in SMALL:
            given = (*given, "--paper")
        _run("benchmarks.quality", method, *given, *corpus.arguments)
        rankings: dict[str, dict[str, list[str]]] = defaultdict(dict)
        for row in _kept(out):
            rankings[row["system"]][row["id"]] = row["ranking"]
    return _scores(load(corpus.folder), rankings, method)


def cost(method: str, corpus: Set) -> dict[str, Any]:
    """What an index of a method over a corpus costs."""
    found: dict[str, Any] = json.loads(_run("benchmarks.cost", method, "--data", str(corpus.folder)).splitlines()[-1])
    return {name: value for name, value in found.items() if name not in ("data", "method")}


PARTS: dict[str, Callable[[str, Set], dict[str, Any]]] = {"quality": quality, "cost": cost}


def _scores(tasks: Sequence[Task], rankings: Mapping[str, Mapping[str, list[str]]], method: str) -> dict[str, Any]:
    evaluations = evaluate(tasks, rankings)
    deeper = ("R@10", "R@20") if tasks[0].corpus.pages_of else ()
    found: dict[str, Any] = {
        "questions": len(evaluations[method].ids),
        **_scores_by("success@n" if tasks[0].multi_aspect else "R@5", evaluations, method),
    }
    return found | ({"deeper": [_scores_by(metric, evaluations, method) for metric in deeper]} if deeper else {})


def _scores_by(metric: str, evaluations: Mapping[str, Evaluation], method: str) -> dict[str, Any]:
    own = evaluations[method]
    shown = {name: name for name in (*BASELINES, "fusion")} | {"own": method, "off": f"{method}-off"}
    if PUBLISHED.get(method) in evaluations:
        shown["published"] = PUBLISHED[method]
    best = max(BASELINES, key=lambda name: evaluations[name].interval(metric).mean)
    gaps = {name: own.difference(evaluations[shown[name]], metric) for name in (best, "hybrid-z", "off")}
    gap = gaps[best]
    return {
        "metric": metric,
        **{key: str(evaluations[name].interval(metric)) for key, name in shown.items()},
        "best": best,
        "verdict": "above" if gap.low > 0 else "below" if gap.high < 0 else "equal",
        **{
            f"own_{key}": _signed(gaps[name])
            for key, name in (("best", best), ("hybrid-z", "hybrid-z"), ("off", "off"))
        },
    }


def _signed(gap: Interval) -> str:
    return f"{gap.mean:+.3f} [{gap.low:+.3f}, {gap.high:+.3f}]"


def summary(rows: Sequence[Mapping[str, Any]]) -> str:
    """For each method, the corpora on which it is above, equal to, or below the best baseline.

    Equal: the 95 % interval of the paired difference includes zero. Of corpora with several metrics the first counts.
    """
    lines = ["| method | above the best baseline | equal | below |", "|---|---|---|---|"]
    for method in METHODS:
        first = {row["data"]: row for row in reversed(rows) if row["method"] == method and "verdict" in row}
        own = list(reversed(first.values()))
        places = (
            ", ".join(f"{row['data']} ({row['own_best'].split()[0]})" for row in own if row["verdict"] == verdict)
            for verdict in ("above", "equal", "below")
        )
        if own:
            lines.append(f"| {method} | " + " | ".join(places) + " |")
    return "\n".join(lines)


def markdown(rows: Sequence[Mapping[str, Any]]) -> str:
    """The table, a row a corpus and method."""
    head = {
        "data": "corpus",
        "questions": "n",
        "method": "method",
        "metric": "metric",
        "dense": "dense",
        "bm25": "BM25",
        "hybrid": "hybrid",
        "hybrid-z": "hybrid-z",
        "own": "its score",
        "off": "its structure off",
        "published": "the published method",
        "fusion": "fusion of dense, BM25, method",
        "own_best": "method - best baseline",
        "own_hybrid-z": "method - hybrid-z",
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
