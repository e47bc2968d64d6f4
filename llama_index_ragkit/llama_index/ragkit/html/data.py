"""The data of a page, as lines of JSON that are safe inside an HTML script element.

The first line is the page with everything needed to draw its nodes (group, level, size, and whether they are
highlighted, one list each), and the edges likewise. Each further line is the rest of one node, above all its texts. A
browser reads these lines on demand: most nodes of a large index are never looked at, and texts make up most of a page.
"""

import colorsys
import itertools
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from llama_index.ragkit.html.model import Edge, Facts, Graph, Grid, Group, Node, Page, Results, nodes_of

__all__ = ["page_lines"]

# Distinct for most colour-blind readers, and readable on white and on near-black (after Tableau 10).
PALETTE = ("#4e79a7", "#f28e2b", "#59a14f", "#b07aa1", "#e15759", "#76b7b2", "#9c755f", "#edc948", "#ff9da7", "#8c8c8c")

_UNSAFE = re.compile("[<>&\u2028\u2029\ud800-\udfff]")


def page_lines(page: Page) -> Iterator[str]:
    """The first line, and one for each node of the view (rows before columns); no line holds a line break.

    All are encodable as UTF-8, and none has a character that a script element or JavaScript treats as special.
    """
    nodes = nodes_of(page.view)
    numbers = {node.id: i for i, node in enumerate(nodes)}
    yield _json(
        {
            "title": page.title,
            "subtitle": page.subtitle,
            "legend": list(page.legend),
            "lit": page.highlight_label,
            "covers": page.covers,
            "view": _view(page.view, nodes, numbers),
            "panels": [_panel(panel, numbers) for panel in page.panels],
        }
    )
    for node in nodes:
        yield _json(_texts(node))


def _view(view: Graph | Grid, nodes: Sequence[Node], numbers: Mapping[str, int]) -> dict[str, Any]:
    groups = _groups(view.groups, nodes)
    place = {group["name"]: i for i, group in enumerate(groups)}
    columns = {
        "groups": _column([place.get(node.group, -1) for node in nodes], -1),
        "levels": _column([int(node.level) for node in nodes], 0),
        "sizes": _column([_short(node.size) for node in nodes], 1),
        "lit": [i for i, node in enumerate(nodes) if node.highlighted],
    }
    common = {"groups": groups, "nodes": _given(columns)}
    if isinstance(view, Graph):
        return {"kind": view.layout, **common, "edges": _edges(view.edges, numbers)}
    values = np.asarray(view.values, dtype=np.float64).reshape(len(view.rows), len(view.columns))
    return {
        "kind": "grid",
        **common,
        "rows": len(view.rows),
        # Six digits are more than a colour can show.
        "values": [[float(f"{x:.6g}") if math.isfinite(x) else None for x in row] for row in values.tolist()],
        "label": view.label,
    }


def _edges(edges: Sequence[Edge], numbers: Mapping[str, int]) -> dict[str, Any]:
    """The numbers of both ends of every edge in turn, and properties that not every edge has, by the edge's number."""
    return _given(
        {
            "ends": [numbers[end] for edge in edges for end in (edge.source, edge.target)],
            "weights": _column([_short(edge.weight) for edge in edges], 1),
            "labels": {str(i): edge.label for i, edge in enumerate(edges) if edge.label},
            "lit": [i for i, edge in enumerate(edges) if edge.highlighted],
            "directed": [i for i, edge in enumerate(edges) if edge.directed],
        }
    )


def _column(values: list[Any], default: Any) -> list[Any] | None:
    """The values, or None if all are the default."""
    return None if all(value == default for value in values) else values


def _given(columns: Mapping[str, Any]) -> dict[str, Any]:
    return {name: column for name, column in columns.items() if column is not None}


def _short(number: float) -> int | float:
    """A number in its shortest JSON form."""
    number = float(number)
    return int(number) if number.is_integer() else number


def _groups(given: Sequence[Group], nodes: Iterable[Node]) -> list[dict[str, str]]:
    groups = {group.name: group for group in given}
    for node in nodes:
        if node.group:
            groups.setdefault(node.group, Group(node.group))
    taken = {group.colour.lower() for group in groups.values()}
    free = (colour for colour in _colours() if colour not in taken)
    return [
        {"name": group.name, "label": group.label or group.name, "colour": group.colour or next(free)}
        for group in groups.values()
    ]


def _colours() -> Iterator[str]:
    yield from PALETTE
    # Beyond the palette: hues a golden angle apart, so that consecutive ones differ most.
    for i in itertools.count():
        rgb = colorsys.hls_to_rgb(i * 0.618033988749895 % 1.0, 0.45 + 0.15 * (i % 2), 0.5)
        yield "#" + "".join(f"{round(255 * channel):02x}" for channel in rgb)


def _texts(node: Node) -> dict[str, Any]:
    """The properties that a node needs only when it is selected, without empty ones and an unknown score.

    If the text ends with the label, as a fact with its path does, the label is a number: its length in UTF-16
    units, as JavaScript counts.
    """
    found: dict[str, Any] = {"id": node.id}
    if node.label != "":
        is_end = node.text.endswith(node.label)
        found["label"] = len(node.label.encode("utf-16-le", "surrogatepass")) // 2 if is_end else node.label
    if node.text != "":
        found["text"] = node.text
    if node.score is not None:
        found["score"] = _plain(node.score)
    if node.details:
        found["details"] = _rows(node.details)
    return found


def _panel(panel: Facts | Results, numbers: Mapping[str, int]) -> dict[str, Any]:
    if isinstance(panel, Facts):
        return {"kind": "facts", "title": panel.title, "rows": _rows(panel.rows)}
    items = [
        {
            "label": item.label,
            "snippet": item.snippet,
            "score": _plain(item.score),
            "node": None if item.node is None else numbers[item.node],
        }
        for item in panel.items
    ]
    return {"kind": "results", "title": panel.title, "items": items}


def _rows(rows: Mapping[str, Any]) -> list[list[Any]]:
    return [[str(name), _plain(value)] for name, value in rows.items()]


def _plain(value: Any) -> str | int | float | bool | None:
    """A value converted to one that JSON supports and a table cell can show."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (str, bool)):
        return value
    if isinstance(value, (int, float)):
        exact = abs(value) < 2**53 if isinstance(value, int) else math.isfinite(value)
        return value if exact else str(value)
    if isinstance(value, (set, frozenset)):  # the order of a set differs between processes
        return ", ".join(sorted(map(str, value)))
    if isinstance(value, (Mapping, list, tuple)):
        try:
            return json.dumps(value, ensure_ascii=False, indent=1, default=str)
        except (TypeError, ValueError):  # keys that JSON does not support, or a circular reference
            return str(value)
    return str(value)


def _json(value: Any) -> str:
    """JSON that is safe inside an HTML script element, encodable as UTF-8."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return _UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
