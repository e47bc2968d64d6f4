"""Draws an experiment as the figure that the paper has, with matplotlib, which is optional."""

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.papers.experiment import Experiment
from benchmarks.papers.measured import Measured

__all__ = ["draw"]

Found = Mapping[tuple[str, str], Measured]
Line = Sequence[tuple[float, Measured]]  # places on the horizontal axis, and what was measured there


def draw(experiment: Experiment, columns: Sequence[str], found: Found, path: Path) -> str:
    """Draw a figure, with 95 % intervals where it has lines, or boxes; returns the file, or what to install.

    Parameters
    ----------
    columns : the heads of the columns of each part
    found : part and system -> what was measured
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return "nothing: pip install matplotlib"
    panels = {
        **_PANELS[experiment.axis](experiment, columns, found),
        **_over_scores(experiment, experiment.histograms, found),
    }
    figure = Figure(figsize=(5 * len(panels), 4), layout="constrained")
    axes = figure.subplots(1, len(panels), squeeze=False)[0]
    for axis, (title, fill) in zip(axes, panels.items(), strict=True):
        fill(axis)
        axis.set_title(title, fontsize=10)
    if axes[-1].get_legend_handles_labels()[0]:
        axes[-1].legend(fontsize=7)
    figure.suptitle(experiment.title, fontsize=11)
    figure.savefig(path)
    return str(path)


Panels = Mapping[str, Callable[[Any], None]]


def _lines(experiment: Experiment, column: str, lines: Mapping[str, Line]) -> Callable[[Any], None]:
    """Lines of a column, or boxes side by side; `column` ends in "@" where the place is the rest of its head."""

    def of(place: float) -> str:
        return f"{column}{place:g}" if column.endswith("@") else column

    def means(axis: Any) -> None:
        for name, line in lines.items():
            scores = [cell.evaluation(name).interval(of(place)) for place, cell in line]
            below = [100 * (each.mean - each.low) for each in scores]
            above = [100 * (each.high - each.mean) for each in scores]
            at = [place for place, _ in line]
            axis.errorbar(
                at, [100 * each.mean for each in scores], yerr=(below, above), marker="o", capsize=2, label=name
            )
        axis.set_ylabel("percent")

    def boxes(axis: Any) -> None:
        places = sorted({place for line in lines.values() for place, _ in line})
        width = 0.8 / len(lines)
        for i, (name, line) in enumerate(lines.items()):
            axis.boxplot(
                [[100 * score for score in cell.scores[of(place)]] for place, cell in line],
                positions=[places.index(place) + (i + 0.5) * width - 0.4 for place, _ in line],
                widths=0.9 * width,
                patch_artist=True,
                showmeans=True,
                manage_ticks=False,
                boxprops={"facecolor": f"C{i}"},
            )
            axis.plot([], [], "s", color=f"C{i}", label=name)
        axis.set_xticks(range(len(places)), [f"{place:g}" for place in places])
        axis.set_ylabel("percent")

    return boxes if experiment.boxes else means


def _names(found: Found) -> list[str]:
    return list(dict.fromkeys(name for _, name in found))


def _over_columns(experiment: Experiment, columns: Sequence[str], found: Found) -> Panels:
    """A panel a part and measure, over the numbers after the measure's "@"."""
    panels = {}
    for part in experiment.parts:
        for measure in dict.fromkeys(column.partition("@")[0] for column in columns):
            ks = [float(column.partition("@")[2]) for column in columns if column.startswith(f"{measure}@")]
            lines = {name: [(k, found[part.heading, name]) for k in ks] for name in _names(found)}
            panels[f"{part.heading} {measure}, documents fetched"] = _lines(experiment, f"{measure}@", lines)
    return panels


def _over_parts(experiment: Experiment, columns: Sequence[str], found: Found) -> Panels:
    """A panel a measure and what follows the number of a part, over the first number of the parts' heads."""
    kinds: dict[str, list[tuple[float, str]]] = {}
    for part in experiment.parts:
        number, kind = re.findall(r"(\d+)(.*)", part.heading)[0]
        kinds.setdefault(re.sub(r"\d+", "n", kind) if number in kind else kind, []).append(
            (float(number), part.heading)
        )
    panels = {}
    for kind, places in kinds.items():
        for column in columns:
            lines = {name: [(x, found[heading, name]) for x, heading in places] for name in _names(found)}
            panels[f"{column}{kind}"] = _lines(experiment, column, lines)
    return panels


def _over_systems(experiment: Experiment, columns: Sequence[str], found: Found) -> Panels:
    """A panel a line of systems and measure, over what they are at; a line of the graph for each part."""
    panels: dict[str, Callable[[Any], None]] = {}
    for series in dict.fromkeys(system.at[0] for system in experiment.systems if system.at):
        at = {s.name: s.at[1] for s in experiment.systems if s.at and s.at[0] == series and s.name in _names(found)}
        for column in columns:
            lines = {p.heading: [(x, found[p.heading, name]) for name, x in at.items()] for p in experiment.parts}
            panels[f"{series} {column}"] = _lines(experiment, column, lines)
    return panels


def _over_scores(experiment: Experiment, columns: Sequence[str], found: Found) -> Panels:
    """A panel a part and measure: how many questions have which score."""

    def fill(heading: str, column: str) -> Callable[[Any], None]:
        def histogram(axis: Any) -> None:
            for name in _names(found):
                axis.hist(found[heading, name].scores[column], bins=30, alpha=0.5, label=name)
            axis.set_xlabel(column)
            axis.set_ylabel("questions")

        return histogram

    return {f"{p.heading} {c}": fill(p.heading, c) for p in experiment.parts for c in columns}


def _in_plane(experiment: Experiment, columns: Sequence[str], found: Found) -> Panels:
    """A panel a part and system: its points."""

    def fill(heading: str, name: str) -> Callable[[Any], None]:
        def scatter(axis: Any) -> None:
            points = found[heading, name].points
            axis.scatter([x for x, _ in points], [y for _, y in points], s=2, label=name)

        return scatter

    return {f"{heading} {name}": fill(heading, name) for heading, name in found}


def _as_shades(experiment: Experiment, columns: Sequence[str], found: Found) -> Panels:
    """A panel a part: the means of systems by columns, in percent."""

    def fill(heading: str) -> Callable[[Any], None]:
        def shades(axis: Any) -> None:
            names = _names(found)
            cells = [[found[heading, name].evaluation(name).interval(column) for column in columns] for name in names]
            axis.imshow([[cell.mean for cell in row] for row in cells], vmin=0, vmax=1, cmap="RdBu", aspect="auto")
            axis.set_xticks(range(len(columns)), columns, fontsize=7)
            axis.set_yticks(range(len(names)), names, fontsize=7)
            for i, row in enumerate(cells):
                for j, cell in enumerate(row):
                    axis.text(j, i, f"{100 * cell.mean:.0f}", ha="center", va="center", fontsize=8)

        return shades

    return {part.heading: fill(part.heading) for part in experiment.parts}


_PANELS: Mapping[str, Callable[[Experiment, Sequence[str], Found], Panels]] = {
    "columns": _over_columns,
    "parts": _over_parts,
    "systems": _over_systems,
    "scores": _over_scores,
    "points": _in_plane,
    "shades": _as_shades,
}
