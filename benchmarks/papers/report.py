"""An experiment as Markdown: as printed beside what was measured, differences with their intervals, and costs."""

from collections.abc import Mapping, Sequence

from benchmarks.papers.experiment import Experiment
from benchmarks.papers.running import Measured
from llama_index.ragkit.evaluation import Interval

__all__ = ["report"]

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
    parts = [f"## {experiment.title}", f"Questions: {', '.join(counts)}. Scores in percent."]
    if experiment.note:
        parts.append(experiment.note)
    parts.append(_scores(experiment, columns, names, found))
    if experiment.baseline in names:
        parts += [f"Differences to {experiment.baseline}, paired over the questions; bold where zero is excluded:"]
        parts.append(_differences(experiment, columns, names, found))
    if experiment.relative_to in names:
        parts += [f"Relative to {experiment.relative_to}:", _relative(experiment, columns, names, found)]
    parts += [
        "What each took; a build or texts shared with an earlier row count there:",
        _costs(experiment, names, found),
    ]
    return "\n\n".join(parts)


def _heads(experiment: Experiment, columns: Sequence[str]) -> list[str]:
    return [f"{part.heading} {column}".strip() for part in experiment.parts for column in columns]


def _scores(experiment: Experiment, columns: Sequence[str], names: Sequence[str], found: Found) -> str:
    printed = {name: row for name, row in experiment.printed.items() if list(columns) == _printed_columns(experiment)}
    rows = [[f"{name}, as printed", *("" if x is None else f"{x:.1f}" for x in row)] for name, row in printed.items()]
    for name in names:
        cells = [found[part.heading, name].evaluation(name) for part in experiment.parts]
        rows.append([name, *(_percent(each.interval(column)) for each in cells for column in columns)])
    return _table(["system", *_heads(experiment, columns)], rows)


def _printed_columns(experiment: Experiment) -> list[str]:
    return list(experiment.measures) or list(experiment.columns)


def _differences(experiment: Experiment, columns: Sequence[str], names: Sequence[str], found: Found) -> str:
    rows = []
    for name in (name for name in names if name != experiment.baseline):
        row = [name]
        for part in experiment.parts:
            own, base = (found[part.heading, each].evaluation(each) for each in (name, experiment.baseline))
            for gap in (own.difference(base, column) for column in columns):
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
    rows = []
    for name in names:
        cells = [found[part.heading, name] for part in experiment.parts]
        asked = sum(len(cell.ids) for cell in cells)
        milliseconds = sum(cell.question_ms * len(cell.ids) for cell in cells) / asked
        row = [name, f"{sum(cell.build_s for cell in cells):,.1f}", f"{milliseconds:,.0f}"]
        row.append(f"{sum(cell.embedded for cell in cells):,}")
        for spent in ([cell.build for cell in cells], [cell.questions for cell in cells]):
            calls, read, written = (sum(each.get(key, 0) for each in spent) for key in ("calls", "read", "written"))
            row += [f"{calls:,}", f"{read:,}, {written:,}"]
        rows.append(row)
    return _table(head, rows)


def _percent(interval: Interval, sign: str = "") -> str:
    mean, low, high = (f"{100 * x:{sign}.1f}" for x in (interval.mean, interval.low, interval.high))
    return f"{mean} [{low}, {high}]"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "\n".join("| " + " | ".join(line) + " |" for line in [head, ["---"] * len(head), *rows])
