"""The data of an HTML page."""

import json
import re
from pathlib import Path
from typing import Any

__all__ = ["page_data", "read_data"]


def page_data(path: Path) -> dict[str, Any]:
    """What a page draws."""
    html = path.read_text(encoding="utf-8")
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', html, re.S)
    assert found is not None
    return read_data(found[1])


def read_data(lines: str) -> dict[str, Any]:
    """The page, with its nodes and edges as dictionaries without what is empty, and results that name nodes by id."""
    first, *rest = lines.split("\n")
    data: dict[str, Any] = json.loads(first)
    view = data["view"]
    columns, groups = view["nodes"], view["groups"]
    nodes: list[dict[str, Any]] = [json.loads(line) for line in rest]
    for i, node in enumerate(nodes):
        if isinstance(node.get("label"), int):  # units of UTF-16 at the end of the text
            node["label"] = _end(node["text"], node["label"])
        if "groups" in columns and columns["groups"][i] >= 0:
            node["group"] = groups[columns["groups"][i]]["name"]
        node.update({name[:-1]: columns[name][i] for name in ("levels", "sizes") if name in columns})
    for i in columns["lit"]:
        nodes[i]["lit"] = True
    view["nodes"] = nodes
    for panel in data["panels"]:
        for item in panel.get("items", ()):
            item["node"] = None if item["node"] is None else nodes[item["node"]]["id"]
    if "edges" in view:
        view["edges"] = _edges(view["edges"])
    return data


def _edges(columns: dict[str, Any]) -> list[dict[str, Any]]:
    ends = columns["ends"]
    edges: list[dict[str, Any]] = [{"source": s, "target": t} for s, t in zip(ends[::2], ends[1::2], strict=True)]
    for i, weight in enumerate(columns.get("weights", ())):
        edges[i]["weight"] = weight
    for i, label in columns["labels"].items():
        edges[int(i)]["label"] = label
    for mark in ("lit", "directed"):
        for i in columns[mark]:
            edges[i][mark] = True
    return edges


def _end(text: str, length: int) -> str:
    return text.encode("utf-16-le", "surrogatepass")[-2 * length :].decode("utf-16-le", "surrogatepass")
