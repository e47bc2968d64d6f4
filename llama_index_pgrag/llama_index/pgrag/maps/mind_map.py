"""Mind maps as fact paths: converts nested JSON, written by a model or a user, to rows of cells.

A fact path is a tuple of texts `(topic, route, ..., route, fact)` (Eq. 1 of Liang et al. 2024, arXiv 2405.16933). The
published parser reads only the first root, loses facts directly under the topic, turns a list into one fact, and lets
`json.loads` drop duplicate keys. Here nothing is lost:

- several roots, and a root that is not the topic, become routes under the topic;
- a text directly under the topic is a path of two cells;
- every item of a list is a separate fact (with `join_lists` a list is one fact, as published);
- an object inside a list is read at the level of the list;
- all duplicate keys are read (objects may be given as :class:`~llama_index.ragkit.llm.json.output.Pairs`);
- leaves without content (`JUNK`) are dropped with their paths. If no leaf has content but some are empty, the map has
  only labels, and the labels above the empty leaves are its facts.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from llama_index.ragkit.llm.json.output import Pairs

__all__ = ["Path", "nested", "path_text", "read_mind_map", "root_of"]

Path = tuple[str, ...]

JUNK = frozenset(
    {"", "-", "--", "n/a", "na", "none", "null", "nil", "unknown", "not mentioned", "not specified", "not given"}
    | {"无", "没有", "未知", "不详", "未提及", "暂无"}
)
_SPACE = re.compile(r"\s+")


def read_mind_map(value: Any, topic: str, *, join_lists: bool = False) -> list[Path]:
    """The fact paths of a mind map under a topic, in the order of the text, each once.

    Parameters
    ----------
    value : nested JSON data: objects (dictionaries or `Pairs`), lists and scalars in any mixture
    topic : the first cell of every path; a root that is equal except for case and white space is not repeated
    join_lists : whether a list of scalars is one fact, with its items joined by spaces

    >>> read_mind_map({"Lamp": {"fuel": ["oil", "gas"], "keeper": {"name": "Ada", "age": "unknown"}}}, "Lamp")
    [('Lamp', 'fuel', 'oil'), ('Lamp', 'fuel', 'gas'), ('Lamp', 'keeper', 'name', 'Ada')]
    """
    topic = _cell(topic)
    roots = _pairs(value)
    if roots is not None:
        children: list[tuple[str | None, Any]] = [(None if _same(key, topic) else key, child) for key, child in roots]
    else:
        children = [(None, value)]

    def leaves(labels: bool) -> list[Path]:
        found: dict[Path, None] = {}
        for key, child in children:
            start = (topic,) if key is None else _extend((topic,), key)
            for path in _walk(child, start, join_lists):
                cells = path[:-1] if labels and not path[-1] else path
                if len(cells) > 1 and not is_junk(cells[-1]):
                    found[cells] = None
        return list(found)

    def is_junk(text: str) -> bool:
        return text.casefold() in JUNK or not any(character.isalnum() for character in text)

    return leaves(labels=False) or leaves(labels=True)


def root_of(value: Any) -> str | None:
    """The text of the single root of a mind map; None if it has several or none."""
    roots = _pairs(value)
    return _cell(roots[0][0]) or None if roots is not None and len(roots) == 1 else None


def path_text(path: Iterable[str]) -> str:
    """The cells joined by spaces: the text that is embedded for the last cell (Eq. 2).

    A cell that repeats the one before it is omitted.
    """
    cells: list[str] = []
    for cell in path:
        if not cells or cell != cells[-1]:
            cells.append(cell)
    return " ".join(cells)


def nested(paths: Iterable[Path]) -> dict[str, Any]:
    """Paths merged into one nested dictionary, in their order; a fact is a key with an empty value.

    >>> nested([("Lamp", "fuel", "oil"), ("Lamp", "fuel", "gas")])
    {'Lamp': {'fuel': {'oil': {}, 'gas': {}}}}
    """
    tree: dict[str, Any] = {}
    for path in paths:
        place = tree
        for cell in path:
            place = place.setdefault(cell, {})
    return tree


def _walk(value: Any, path: Path, join_lists: bool) -> Iterator[Path]:
    pairs = _pairs(value)
    if pairs is not None:
        for key, child in pairs:
            yield from _walk(child, _extend(path, key), join_lists)
        if not pairs:
            yield (*path, "")
    elif isinstance(value, (list, tuple)):
        nested = [_pairs(item) is not None or isinstance(item, (list, tuple)) for item in value]
        scalars = [item for item, is_nested in zip(value, nested, strict=True) if not is_nested]
        if join_lists and scalars:
            yield (*path, " ".join(filter(None, map(_cell, scalars))))
        for item, is_nested in zip(value, nested, strict=True):
            if is_nested or not join_lists:
                yield from _walk(item, path, join_lists)
        if not value:
            yield (*path, "")
    else:
        yield (*path, _cell(value))


def _pairs(value: Any) -> list[tuple[str, Any]] | None:
    """The members of an object, including duplicates; None if `value` is not an object."""
    if isinstance(value, Pairs):
        return list(value)
    return [(str(key), child) for key, child in value.items()] if isinstance(value, Mapping) else None


def _extend(path: Path, key: str) -> Path:
    cell = _cell(key)
    return (*path, cell) if cell else path


def _cell(value: Any) -> str:
    """A scalar on one line."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return _SPACE.sub(" ", str(value)).strip()


def _same(one: str, other: str) -> bool:
    return _cell(one).casefold() == _cell(other).casefold()
