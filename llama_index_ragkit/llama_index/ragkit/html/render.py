"""Rendering a page as one HTML file.

The file contains the data as JSON in an inert script element; the page's own code builds every element from it with
`textContent`. Three measures prevent the execution of untrusted text: `<`, `>` and `&` are escaped in the JSON,
nothing is ever parsed as HTML, and a content security policy that lists the page's own scripts by hash forbids every
other script, every request and (in browsers with trusted types) every string that would be parsed as markup.
"""

import base64
import colorsys
import hashlib
import html
import itertools
import json
import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from llama_index.ragkit.atomic import write_atomically
from llama_index.ragkit.html.model import Edge, Facts, Graph, Grid, Group, Node, Page, Results

__all__ = ["render", "write"]

# Distinct for most colour-blind readers, and readable on white and on near-black (after Tableau 10).
PALETTE = (
    "#4e79a7",
    "#f28e2b",
    "#59a14f",
    "#b07aa1",
    "#e15759",
    "#76b7b2",
    "#9c755f",
    "#edc948",
    "#ff9da7",
    "#8c8c8c",
)

_UNSAFE = re.compile("[<>&\u2028\u2029\ud800-\udfff]")
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_GRAPH = ("text.js", "style.js", "elements.js", "names.js", "graph.js")
_SCRIPTS = {
    "tree": ("cytoscape.min.js", "tree.js", *_GRAPH),
    "force": ("cytoscape.min.js", "fcose.min.js", "force.js", *_GRAPH),
    "concentric": ("cytoscape.min.js", "force.js", *_GRAPH),
    "grid": ("text.js", "grid.js"),
}


def render(page: Page) -> str:
    """Return the whole HTML file of a page; equal pages give equal files.

    The result can be encoded as UTF-8 whatever the page contains. The drawing library of a graph takes about 0.6 MB,
    the code of a grid 0.03 MB; each text is stored once.
    """
    data = _json(_page(page))
    view = page.view.layout if isinstance(page.view, Graph) else "grid"
    scripts = [_asset(name) for name in ("base.js", *_SCRIPTS[view], "panels.js", "page.js")]
    style = _asset("page.css")
    policy = "; ".join(
        (
            "default-src 'none'",
            "script-src " + " ".join(map(_hash, scripts)),
            "style-src " + _hash(style),
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
            "require-trusted-types-for 'script'",
            "trusted-types 'none'",
        )
    )
    title = html.escape(_LONE_SURROGATE.sub("\ufffd", page.title))
    code = "\n".join(f"<script>{script}</script>" for script in scripts)
    # Cytoscape adds a style element unless one with this id exists; the policy would block it.
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<link rel="icon" href="data:,">
<title>{title}</title>
<style id="__________cytoscape_stylesheet">{style}</style>
</head>
<body>
<noscript>This page requires JavaScript, which is disabled.</noscript>
<script type="application/json" id="data">{data}</script>
{code}
</body>
</html>
"""


def write(page: Page, path: str | os.PathLike[str]) -> Path:
    """Write the page to a file atomically, and return its path. Missing folders are created."""
    return write_atomically(path, render(page).encode("utf-8"))


def _asset(name: str) -> str:
    return (resources.files("llama_index.ragkit.html") / "assets" / name).read_text(encoding="utf-8")


def _hash(source: str) -> str:
    return "'sha256-" + base64.b64encode(hashlib.sha256(source.encode("utf-8")).digest()).decode("ascii") + "'"


def _json(value: Any) -> str:
    """JSON that is safe inside an HTML script element, encodable as UTF-8."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return _UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def _page(page: Page) -> dict[str, Any]:
    view = page.view
    return {
        "title": page.title,
        "subtitle": page.subtitle,
        "legend": list(page.legend),
        "lit": page.highlight_label,
        "covers": page.covers,
        "view": _graph(view) if isinstance(view, Graph) else _grid(view),
        "panels": [_panel(panel) for panel in page.panels],
    }


def _graph(graph: Graph) -> dict[str, Any]:
    index = {node.id: i for i, node in enumerate(graph.nodes)}
    return {
        "kind": graph.layout,
        "groups": _groups(graph.groups, graph.nodes),
        "nodes": [_node(node) for node in graph.nodes],
        "edges": [_edge(edge, index) for edge in graph.edges],
    }


def _grid(grid: Grid) -> dict[str, Any]:
    values = np.asarray(grid.values, dtype=np.float64).reshape(len(grid.rows), len(grid.columns))
    return {
        "kind": "grid",
        "groups": _groups(grid.groups, [*grid.rows, *grid.columns]),
        "nodes": [_node(node) for node in [*grid.rows, *grid.columns]],
        "rows": len(grid.rows),
        # Six digits are more than a colour can show.
        "values": [[float(f"{x:.6g}") if math.isfinite(x) else None for x in row] for row in values.tolist()],
        "label": grid.label,
    }


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


def _node(node: Node) -> dict[str, Any]:
    return _drop_defaults(
        {
            "id": node.id,
            "label": node.label,
            "text": node.text,
            "group": node.group,
            "level": int(node.level),
            "size": float(node.size),
            "score": _plain(node.score),
            "lit": bool(node.highlighted),
            "details": _rows(node.details),
        },
        {"label": "", "text": "", "group": "", "level": 0, "size": 1.0, "score": None, "lit": False, "details": []},
    )


def _edge(edge: Edge, index: Mapping[str, int]) -> dict[str, Any]:
    return _drop_defaults(
        {
            "source": index[edge.source],
            "target": index[edge.target],
            "label": edge.label,
            "weight": float(edge.weight),
            "lit": bool(edge.highlighted),
            "directed": bool(edge.directed),
        },
        {"label": "", "weight": 1.0, "lit": False, "directed": False},
    )


def _panel(panel: Facts | Results) -> dict[str, Any]:
    if isinstance(panel, Facts):
        return {"kind": "facts", "title": panel.title, "rows": _rows(panel.rows)}
    items = [
        {"label": item.label, "snippet": item.snippet, "score": _plain(item.score), "node": item.node}
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


def _drop_defaults(record: dict[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in record.items() if key not in defaults or value != defaults[key]}
