"""Fact paths as a structured context that contains their common cells only once."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from llama_index.pgrag.maps.mind_map import Path, nested
from llama_index.ragkit.validation import check_choice

__all__ = ["ContextPath", "Format", "context_text"]

Format = Literal["outline", "json"]


@dataclass(frozen=True)
class ContextPath:
    """A fact path of a context.

    Attributes
    ----------
    path : topic, routes, fact
    documents : ids of its source documents
    score : the retriever's score
    """

    path: Path
    documents: tuple[str, ...] = ()
    score: float | None = None


def context_text(found: Sequence[ContextPath], form: Format = "outline", documents: bool = False) -> str:
    """The paths merged into one nested outline, the topic of the best path first.

    Parameters
    ----------
    found : best first
    form : "outline" for an indented Markdown list, "json" for the nested object of the paper
    documents : whether each fact is followed by its documents and score; only in an outline

    >>> paths = [("Lamp", "fuel", "oil"), ("Tower", "40 m"), ("Lamp", "fuel", "gas")]
    >>> print(context_text([ContextPath(path) for path in paths]))
    - Lamp
      - fuel
        - oil
        - gas
    - Tower
      - 40 m
    """
    check_choice("form", form, get_args(Format))
    tree = nested(entry.path for entry in found)
    if form == "json":
        return json.dumps(tree, ensure_ascii=False)
    notes = {entry.path: _note(entry) for entry in found} if documents else {}
    return "\n".join(_lines(tree, (), notes))


def _lines(tree: dict[str, Any], above: Path, notes: dict[Path, str]) -> Iterable[str]:
    for cell, below in tree.items():
        path = (*above, cell)
        yield f"{'  ' * len(above)}- {cell}{notes.get(path, '')}"
        yield from _lines(below, path, notes)


def _note(entry: ContextPath) -> str:
    parts = list(entry.documents) + ([] if entry.score is None else [f"{entry.score:.2f}"])
    return f" [{', '.join(parts)}]" if parts else ""
