"""The rows that a chunk adds to the stored graph, and that are removed with it.

Nodes are entities, chunks and names. The source of every record is the chunk from which it comes. A chunk adds only
whole numbers, so removing it subtracts exactly these, regardless of other chunks. The weight of a pair of entities is
the number of its records: the chunks that state it.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

from llama_index.graphrag.graph.statement import ChunkStatements, bare, scoped
from llama_index.graphrag.graph.statement_graph import resolved
from llama_index.ragkit.storage.graph.edges import EdgeChange, content_number

__all__ = [
    "MEANT",
    "NAMED",
    "NO_SOURCE",
    "PAIR",
    "STATED",
    "Resolved",
    "StatementEdges",
    "chunk_number",
    "entity_number",
    "name_number",
    "stated_number",
    "statement_edges",
]

Edge = tuple[int, int, int, int, int]  # node, neighbor, source, kind, count

_ENTITY, _CHUNK, _NAME, _STATED = 0, 1, 2, 3  # kinds of nodes: the lowest bits of their numbers
NAMED, PAIR, MEANT, STATED = 0, 1, 2, 3
"""Kinds of edges: between an entity and a chunk that names it; between two entities that a chunk relates; from a name
to an entity that it may stand for; from a name to itself, once for each chunk that states it."""

NO_SOURCE = 0


class Resolved(NamedTuple):
    """A chunk, the names in it that stand for others, and the tokens of its text, 0 if they are not known."""

    chunk: ChunkStatements
    short: Mapping[str, str]
    tokens: int = 0


class StatementEdges(NamedTuple):
    """The rows that chunks add or subtract, and the labels of nodes: the keys of entities and the ids of chunks."""

    change: EdgeChange
    labels: Mapping[int, str]


@lru_cache(1 << 16)
def entity_number(key: str) -> int:
    """The number of an entity's node."""
    return content_number(_ENTITY, key)


def chunk_number(node_id: str) -> int:
    """The number of a chunk's node."""
    return content_number(_CHUNK, node_id)


@lru_cache(1 << 16)
def name_number(name: str) -> int:
    """The number of the node of a normalised name, by which a question finds the entities of the name."""
    return content_number(_NAME, name)


def stated_number(name: str) -> int:
    """The number of the node of a name within its scope, which exists while a chunk states the name."""
    return content_number(_STATED, name)


def statement_edges(chunks: Iterable[Resolved], count: int = 1, *, stated: bool = False) -> StatementEdges:
    """The edges of chunks, with both directions; a count of -1 removes them. Names are tracked, too, if `stated`."""
    labels: dict[int, str] = {}
    edges: list[Edge] = []
    for chunk, short, _ in chunks:
        edges += _edges(chunk, short, count, labels)
        if stated:
            names = {scoped(chunk.scope, name) for name, _ in chunk.typed_names}
            edges += [(number, number, NO_SOURCE, STATED, count) for number in map(stated_number, sorted(names))]
    return StatementEdges(EdgeChange.of(edges), labels)


def _edges(chunk: ChunkStatements, short: Mapping[str, str], count: int, labels: dict[int, str]) -> Iterator[Edge]:
    about = [keys for keys, _ in resolved(chunk, short)]
    keys = sorted({key for each in about for key in each})
    if not keys:
        return
    number = chunk_number(chunk.chunk_id)
    labels[number] = chunk.chunk_id
    for key in keys:
        entity = entity_number(key)
        labels[entity] = key
        yield entity, number, number, NAMED, count
        yield number, entity, number, NAMED, count
        yield name_number(bare(key)), entity, NO_SOURCE, MEANT, count
    for name in sorted({name for name, _ in chunk.typed_names} & short.keys()):
        yield name_number(name), entity_number(scoped(chunk.scope, short[name])), number, MEANT, count
    for one, other in sorted({(min(each), max(each)) for each in about if len(each) == 2}):
        yield entity_number(one), entity_number(other), number, PAIR, count
        yield entity_number(other), entity_number(one), number, PAIR, count
