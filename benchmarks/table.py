"""`python -m benchmarks.table --data FOLDER`: recall of every method on every corpus of a folder, in tables.

Each cell comes from `benchmarks.quality`, run in a process of its own, one after the other. The scores of each question
are kept in a file of JSON lines, so that a run that was cut off goes on. The tables are written into
`benchmarks/README.md`, and what each method is worth into `docs/choosing.md`, between two markers. They show the
questions of half 1: constants were chosen on the others.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.data import load
from benchmarks.embedding import MODELS, cache_folder
from benchmarks.quality import evaluate
from benchmarks.systems import METHODS, RANKED
from llama_index.ragkit.evaluation import Interval, bootstrap_interval, paired_bootstrap

__all__ = ["BEGIN", "CHOOSING", "END", "README", "Cells", "Set", "interval_over", "main", "markdown", "sets", "worth"]

README = Path(__file__).with_name("README.md")
CHOOSING = README.parents[1] / "docs" / "choosing.md"
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
WITH_OPTION = ("gemrag", "hipporag", "pgrag", "raptor")
SMALL = ("archive", "musique", "recorded_questions")
# Each method on its kind of question, for the chart.
KINDS = {
    "hipporag": "2wiki",
    "pgrag": "hotpotqa",
    "graphrag": "2wiki",
    "mrag": "mrag_wikipedia",
    "sprag": "contract_docs",
    "gemrag": "recorded_questions",
    "raptor": "archive",
}
BEGIN, END = "<!-- table: begin -->", "<!-- table: end -->"

Scores = NDArray[np.float64]
# By corpus and method: the scores of the questions of half 1 by system.
Cells = Mapping[tuple[str, str], Mapping[str, Scores]]


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
    """Measure what is missing, and write the tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.table", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="the folder that holds the data folders")
    parser.add_argument("--methods", nargs="+", choices=sorted(RANKED), default=list(RANKED))
    parser.add_argument("--sets", nargs="+", help="data folders, as xquad/de; all with questions if left out")
    parser.add_argument("--embedding", choices=sorted(MODELS), default="minilm", help="the embedding model")
    parser.add_argument("--kept", type=Path, default=cache_folder() / "table.jsonl", help="what was measured before")
    options = parser.parse_args(arguments)
    corpora = list(sets(options.data, options.embedding))
    names = list(dict.fromkeys(corpus.data for corpus in corpora))
    if unknown := [name for name in options.sets or () if name not in names]:
        parser.error(f"no data folder {', '.join(unknown)}; there are {', '.join(names)}")
    known = {(row["data"], row["method"]) for row in _lines(options.kept)}
    for corpus in (c for c in corpora if not options.sets or c.data in options.sets):
        for method in (method for method in options.methods if (corpus.name, method) not in known):
            row = {"data": corpus.name, "method": method, **measured(method, corpus)}
            with options.kept.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
            means = {name: round(float(np.mean(scores)), 3) for name, scores in row["scores"].items()}
            print(corpus.name, method, json.dumps(means), flush=True)
    write(kept_cells(options.kept))


def sets(folder: Path, model: str = "minilm") -> Iterator[Set]:
    """The sample archive, and every data folder with labelled or recorded questions, each also as `VARIANTS` say."""
    for path in [ARCHIVE, *sorted(folder.iterdir())]:
        asked = any(path.glob("queries.jsonl*")) or path.name in (ARCHIVE.name, "recorded_questions")
        for part in [path] if asked else [found.parent for found in sorted(path.glob("*/queries.jsonl*"))]:
            name = str(part.relative_to(path.parent))
            for how, arguments in {"": (), **VARIANTS.get(name, {})}.items():
                told = ", ".join(x for x in (name, how, "" if model == "minilm" else model) if x)
                yield Set(told, part, (*arguments, *(() if model == "minilm" else ("--embedding", model))))


def measured(method: str, corpus: Set) -> dict[str, Any]:
    """The score of every question of a corpus, by system, and which questions are of half 1."""
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch) / "rankings.jsonl"
        given = ("--data", str(corpus.folder), "--out", str(out), "--resamples", "100")
        if method in WITH_OPTION and corpus.name in SMALL:
            given = (*given, "--paper")
        command = (sys.executable, "-m", "benchmarks.quality", method, *given, *corpus.arguments)
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        rankings: dict[str, dict[str, list[str]]] = defaultdict(dict)
        for row in _lines(out):
            rankings[row["system"]][row["id"]] = row["ranking"]
    tasks = load(corpus.folder)
    metric = "success@n" if tasks[0].multi_aspect else "R@5"
    found = evaluate(tasks, rankings)
    halves = [i % 2 for task in tasks for i, query in enumerate(task.queries) if query.gold]
    shown = [*BASELINES, "fusion", method, f"{method}-off", PUBLISHED.get(method, "")]
    scores = {name: [round(x, 4) for x in found[name].scores[metric]] for name in shown if name in found}
    return {"metric": metric, "halves": halves, "scores": scores}


def write(cells: Cells) -> None:
    """Write the tables into both pages."""
    for page, table in ((README, markdown(cells)), (CHOOSING, worth(of_model(cells, "minilm")))):
        before, _, rest = page.read_text(encoding="utf-8").partition(BEGIN)
        page.write_text(f"{before}{BEGIN}\n{table}\n{END}{rest.partition(END)[2]}", encoding="utf-8")


def kept_cells(kept: Path) -> Cells:
    """What was measured, of the questions of half 1."""
    return {
        (row["data"], row["method"]): {
            name: np.array(scores)[np.array(row["halves"]) == 1] for name, scores in row["scores"].items()
        }
        for row in _lines(kept)
    }


def markdown(cells: Cells) -> str:
    """Each method on its kind; and for each embedding model what a method is worth, its parts, and its scores."""
    parts = [of_its_kind(cells)]
    for model in MODELS:
        own = of_model(cells, model)
        if own:
            parts += [f"#### {model}", worth(own), contributions(own), by_corpus(own)]
    return "\n\n".join(parts)


def of_model(cells: Cells, model: str) -> Cells:
    """What was measured with an embedding model."""
    return {key: scores for key, scores in cells.items() if _model(key[0]) == model}


def of_its_kind(cells: Cells) -> str:
    """Each method on its kind of question beside the best baseline, with intervals; MiniLM."""
    lines = []
    for method, corpus in KINDS.items():
        scores = cells.get((corpus, method))
        if scores:
            best, count = _best(scores), len(scores[method])
            own, plain = (str(bootstrap_interval(scores[name])) for name in (method, best))
            lines.append([method, corpus, str(count), own, best, plain])
    return _table(("method", "corpus", "n", "its score", "best baseline", "score of that"), lines)


def worth(cells: Cells) -> str:
    """For each method the mean difference to plain search, and the corpora on which it is above or below."""
    lines = []
    for method in RANKED:
        own = {name: scores for (name, ranked), scores in cells.items() if ranked == method}
        if not own:
            continue
        gaps = {name: paired_bootstrap(scores[method], scores[_best(scores)]) for name, scores in own.items()}
        under = {name: paired_bootstrap(scores[method], scores["hybrid-z"]) for name, scores in own.items()}
        lowest = min(gaps, key=lambda name: gaps[name].mean)
        lines.append(
            [
                method,
                _signed(interval_over([s[method] - s["hybrid-z"] for name, s in own.items() if _is_plain(name)])),
                ", ".join(f"{_short(name)} {gap.mean:+.3f}" for name, gap in gaps.items() if gap.low > 0),
                ", ".join(f"{_short(name)} {gap.mean:+.3f}" for name, gap in gaps.items() if gap.high < 0),
                ", ".join(f"{_short(name)} {gap.mean:+.3f}" for name, gap in under.items() if gap.high < 0),
                f"{_short(lowest)} {gaps[lowest].mean:+.3f}",
            ]
        )
    head = ("method", "mean - hybrid-z", "above the best baseline", "below it", "below hybrid-z", "lowest difference")
    return _table(head, lines)


def contributions(cells: Cells) -> str:
    """For each method, means over corpora: what its structure adds, and how far the published method lies below."""
    lines = []
    for method in METHODS:
        own = [scores for (name, ranked), scores in cells.items() if ranked == method and _is_plain(name)]
        published = [scores for scores in own if PUBLISHED.get(method) in scores]
        if own:
            mixed = interval_over([scores["fusion"] - scores[method] for scores in own])
            parts = interval_over([scores[method] - scores[f"{method}-off"] for scores in own])
            paper = [scores[method] - scores[PUBLISHED[method]] for scores in published]
            shown = f"{_signed(interval_over(paper))} ({len(paper)})" if paper else ""
            lines.append([method, _signed(parts), shown, _signed(mixed)])
    return _table(("method", "method - off", "method - published (corpora)", "fusion - method"), lines)


def by_corpus(cells: Cells) -> str:
    """The scores, a row each corpus; methods above or below the best baseline by an interval are marked."""
    lines = []
    for name in dict.fromkeys(name for name, _ in cells):
        of = {method: cells[name, method] for method in RANKED if (name, method) in cells}
        plain = next(iter(of.values()))
        nearness = next((f"{of[m][f'{m}-off'].mean():.3f}" for m in ("together", "hipporag") if m in of), "")
        own = [_marked(of[method], method) if method in of else "" for method in RANKED]
        count = len(plain["dense"])
        lines.append([_short(name), str(count), *(f"{plain[base].mean():.3f}" for base in BASELINES), nearness, *own])
    return _table(("corpus", "n", "dense", "BM25", "hybrid", "hybrid-z", "nearness", *RANKED), lines)


def interval_over(columns: Sequence[Scores], n_resamples: int = 2_000) -> Interval:
    """The mean over corpora of their means, with its 95 % interval: the questions of each corpus are resampled."""
    generator = np.random.default_rng(0)
    means = np.mean(
        [column[generator.integers(len(column), size=(n_resamples, len(column)))].mean(axis=1) for column in columns],
        axis=0,
    )
    low, high = np.quantile(means, [0.025, 0.975])
    return Interval(float(np.mean([column.mean() for column in columns])), float(low), float(high))


def _marked(scores: Mapping[str, Scores], method: str) -> str:
    gap = paired_bootstrap(scores[method], scores[_best(scores)])
    shown = f"{scores[method].mean():.3f}"
    return f"**{shown}**" if gap.low > 0 else f"{shown} †" if gap.high < 0 else shown


def _best(scores: Mapping[str, Scores]) -> str:
    return max(BASELINES, key=lambda name: float(scores[name].mean()))


def _model(name: str) -> str:
    last = name.split(", ")[-1]
    return last if last in MODELS else "minilm"


def _short(name: str) -> str:
    return ", ".join(part for part in name.split(", ") if part not in MODELS)


def _is_plain(name: str) -> bool:
    """Whether a corpus is read as it comes."""
    return ", " not in _short(name)


def _signed(gap: Interval) -> str:
    return f"{gap.mean:+.3f} [{gap.low:+.3f}, {gap.high:+.3f}]"


def _table(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    rows = [head, ["---"] * len(head), *lines]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    if path.exists():
        with path.open(encoding="utf-8") as file:
            yield from (json.loads(line) for line in file)


if __name__ == "__main__":
    main()
