"""An experiment as Markdown: as printed beside what was measured, differences with their intervals, and costs."""

import math
from collections.abc import Mapping, Sequence

from benchmarks.papers.experiment import Experiment
from benchmarks.papers.kept_llm import UNUSABLE
from benchmarks.papers.measured import Measured
from llama_index.ragkit.evaluation import Interval

__all__ = ["report"]

_LOST = "Steps of questions and judgements whose replies could not be used, which count as no answer and as a tie"

Found = Mapping[tuple[str, str], Measured]


def report(experiment: Experiment, columns: Sequence[str], found: Found) -> str:
    """The tables; scores in percent, with 95 % bootstrap intervals over the questions.

    Parameters
    ----------
    columns : the heads of the columns of each part
    found : part and system -> what was measured
    """
    names = list(dict.fromkeys(name for _, name in found))
    counts = [f"{part.heading}: {len(found[part.heading, names[0]].ids):,}" for part in experiment.parts]
    parts = [f"## {experiment.title}"]
    if experiment.asks:
        parts.append(f"Questions: {', '.join(counts)}. Scores in percent.")
    if experiment.note:
        parts.append(experiment.note)
    parts.append(_scores(experiment, columns, names, found))
    scored = [column for column in columns if column in found[experiment.parts[0].heading, names[0]].scores]
    if experiment.baseline in names and scored:
        parts += [f"Differences to {experiment.baseline}, paired over the questions; bold where zero is excluded:"]
        parts.append(_differences(experiment, scored, names, found))
    if experiment.relative_to in names:
        parts += [f"Relative to {experiment.relative_to}:", _relative(experiment, scored, names, found)]
    parts += [
        "What each took; a build or texts shared with an earlier row count there:",
        _costs(experiment, names, found),
    ]
    if lost := {name: count for name in names if (count := _unusable(name, found))}:
        counts = ", ".join(f"{name} {count}" for name, count in lost.items())
        parts.append(f"{_LOST}: {counts}.")
    return "\n\n".join(parts)


def _unusable(name: str, found: Found) -> int:
    cells = [cell for (_, system), cell in found.items() if system == name]
    return sum(spent.get(UNUSABLE, 0) for cell in cells for spent in (cell.questions, cell.grading))


def _heads(experiment: Experiment, columns: Sequence[str]) -> list[str]:
    return [f"{part.heading} {column}".strip() for part in experiment.parts for column in columns]


def _scores(experiment: Experiment, columns: Sequence[str], names: Sequence[str], found: Found) -> str:
    printed = {name: row for name, row in experiment.printed.items() if list(columns) == experiment.heads}
    plain = [column in {**experiment.numbers, **experiment.costs} for _ in experiment.parts for column in columns]
    rows = [
        [f"{name}, as printed", *(_printed(x, number) for x, number in zip(row, plain, strict=True))]
        for name, row in printed.items()
    ]
    for name in names:
        cells = [found.get((part.heading, name)) for part in experiment.parts]
        rows.append([name, *(_cell(experiment, cell, name, column) for cell in cells for column in columns)])
    return _table(["system", *_heads(experiment, columns)], rows)


def _cell(experiment: Experiment, cell: Measured | None, name: str, column: str) -> str:
    if cell is None:  # of a system that needs what this corpus has not
        return ""
    if column in experiment.costs:
        return _number(experiment.costs[column](cell))
    if column in cell.numbers:
        return _number(cell.numbers[column])
    return "" if _unscored(cell, column) else _percent(cell.evaluation(name).interval(column))


def _unscored(cell: Measured, column: str) -> bool:
    """Whether the metric of a column was not asked for."""
    return any(map(math.isnan, cell.scores[column]))


def _printed(x: float | str | None, number: bool) -> str:
    if x is None or isinstance(x, str):
        return x or ""
    return _number(x) if number else f"{x:.1f}"


def _number(x: float) -> str:
    """Counts whole, and small numbers with their decimals; NaN for what a system has not."""
    return "" if math.isnan(x) else f"{x:,.0f}" if abs(x) >= 100 else f"{x:,.3g}"


def _differences(experiment: Experiment, columns: Sequence[str], names: Sequence[str], found: Found) -> str:
    rows = []
    for name in (name for name in names if name != experiment.baseline):
        row = [name]
        for part in experiment.parts:
            if (part.heading, name) not in found:
                row += [""] * len(columns)
                continue
            own, base = (found[part.heading, each].evaluation(each) for each in (name, experiment.baseline))
            for column in columns:
                if _unscored(found[part.heading, name], column):
                    row.append("")
                    continue
                gap = own.difference(base, column)
                shown = _percent(gap, sign="+")
                row.append(f"**{shown}**" if gap.excludes_zero else shown)
        rows.append(row)
    return _table(["system", *_heads(experiment, columns)], rows)


def _relative(experiment: Experiment, columns: Sequence[str], names: Sequence[str], found: Found) -> str:
    rows = []
    for name in (name for name in names if name != experiment.relative_to):
        row = [name]
        for part in experiment.parts:
            for column in columns:
                own, base = (
                    sum(found[part.heading, each].scores[column]) / len(found[part.heading, each].ids)
                    for each in (name, experiment.relative_to)
                )
                row.append(f"{100 * (own / base - 1):+.0f} %" if base else "")
        rows.append(row)
    return _table(["system", *_heads(experiment, columns)], rows)


def _costs(experiment: Experiment, names: Sequence[str], found: Found) -> str:
    head = ["system", "build s", "ms a question", "embedded texts", "LLM calls: build", "tokens read, written"]
    head += ["LLM calls: questions", "tokens read, written"]
    kinds = ["build", "questions"]
    if experiment.graders:
        head += ["LLM calls: grading", "tokens read, written"]
        kinds.append("grading")
    rows = []
    for name in names:
        cells = [found[part.heading, name] for part in experiment.parts if (part.heading, name) in found]
        asked = sum(len(cell.ids) for cell in cells)
        milliseconds = sum(cell.question_ms * len(cell.ids) for cell in cells) / max(1, asked)
        row = [name, f"{sum(cell.build_s for cell in cells):,.1f}", f"{milliseconds:,.0f}"]
        row.append(f"{sum(cell.embedded for cell in cells):,}")
        for kind in kinds:
            spent = [getattr(cell, kind) for cell in cells]
            calls, read, written = (sum(each.get(key, 0) for each in spent) for key in ("calls", "read", "written"))
            row += [f"{calls:,}", f"{read:,}, {written:,}"]
        rows.append(row)
    return _table(head, rows)


def _percent(interval: Interval, sign: str = "") -> str:
    mean, low, high = (f"{100 * x:{sign}.1f}" for x in (interval.mean, interval.low, interval.high))
    return f"{mean} [{low}, {high}]"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "\n".join("| " + " | ".join(line) + " |" for line in [head, ["---"] * len(head), *rows])
