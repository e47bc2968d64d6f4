"""The stored links of names that a node adds, and that are removed with it.

A link joins a node and a name, as in :class:`~llama_index.pgrag.maps.name_links.NameLinks`. The topics that a long fact
mentions depend on which topics exist. So a node also stores *word pairs*, by which it is found when a topic is added or
removed: two adjacent words of its long facts, at least one of which may belong to a name, or one such word.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import pairwise

from llama_index.pgrag.maps.mind_map import Path
from llama_index.pgrag.maps.name_links import MOST_WORDS, NodeNames, long_facts, units_of_name
from llama_index.ragkit.sql.names import name_edges
from llama_index.ragkit.storage.graph.edges import EdgeChange, content_number
from llama_index.ragkit.text.known_names import possible_mentions

__all__ = ["TOPIC", "chunk_number", "name_change", "pair_numbers", "phrases_in"]

Edge = tuple[int, int, int, int, int]  # node, neighbor, source, kind, count

_NAME, _CHUNK, _PAIR = 0, 1, 2  # kinds of numbers

SAID, MENTIONED, TOPIC = 0, 1, 2
"""Kinds of edges: to a name that is a last cell, to one that a long fact mentions, and to the topic."""


def phrases_in(paths: Iterable[Path]) -> set[str]:
    """The phrases in the long facts of a node that would count as mentions if topics had these names."""
    return {phrase for text in long_facts(paths) for phrase in possible_mentions(text, MOST_WORDS)}


def pair_numbers(names: Iterable[str]) -> list[int]:
    """The rows by which the nodes that may mention these names are found, ascending."""
    return sorted({_pair_number(pair) for name in names for pair in _pairs(name)})


def _pairs(phrase: str) -> list[str]:
    units = units_of_name(phrase)
    return [" ".join(pair) for pair in pairwise(units)] if len(units) > 1 else units


@lru_cache(1 << 16)
def name_number(name: str) -> int:
    """The number of a name's row."""
    return content_number(_NAME, name)


def chunk_number(node_id: str) -> int:
    """The number of a node's row."""
    return content_number(_CHUNK, node_id)


@lru_cache(1 << 16)
def _pair_number(pair: str) -> int:
    return content_number(_PAIR, "pair", pair)


def name_change(before: Mapping[str, NodeNames], after: Mapping[str, NodeNames]) -> tuple[EdgeChange, dict[int, str]]:
    """The difference between the earlier and the new edges of some nodes, and the labels of its rows."""
    change = [
        edge for nodes, count in ((before, -1), (after, 1)) for i, n in nodes.items() for edge in _edges(i, n, count)
    ]
    labels: dict[int, str] = {}
    for nodes in (before, after):
        for node_id, names in nodes.items():
            labels[chunk_number(node_id)] = node_id
            labels.update((name_number(name), name) for name in names.all)
    return EdgeChange.of(change), labels


def _edges(node_id: str, names: NodeNames, count: int) -> Iterator[Edge]:
    chunk = chunk_number(node_id)
    links = [(name, SAID) for name in names.said] + [(name, MENTIONED) for name in names.mentioned]
    for name, kind in [*links, *([(names.topic, TOPIC)] if names.topic else [])]:
        yield chunk, name_number(name), chunk, kind, count
        yield name_number(name), chunk, chunk, kind, count
    for name in {*names.said, names.topic} - {""}:  # mentioned names are topics of other nodes
        yield from ((key, at, source, kind, count) for key, at, source, kind, _ in _found_by(name))
    for pair in {pair for text in names.long for phrase in possible_mentions(text, 2) for pair in _pairs(phrase)}:
        yield _pair_number(pair), chunk, chunk, 0, count


@lru_cache(1 << 14)
def _found_by(name: str) -> tuple[Edge, ...]:
    return tuple(name_edges(name, name_number(name)))
