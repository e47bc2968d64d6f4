"""`KnownPart`: the part of a stored graph read for one question, in the form that the search of chunks uses."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from llama_index.graphrag.graph.entity_graph import EntityGraph
from llama_index.graphrag.graph.sorted_rows import RowValues
from llama_index.graphrag.rows.question_graph import QuestionGraph
from llama_index.graphrag.rows.statement_edges import chunk_number, entity_number
from llama_index.graphrag.search.chunk_scores import scaled
from llama_index.graphrag.search.linking import Link

__all__ = ["KnownPart", "part_of", "read_around_entities"]

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class KnownPart:
    """The part of a graph that one question needs.

    Attributes
    ----------
    names : normalised name of the question -> sorted keys of the entities for which it may stand
    entities : the linked entities with their edges, and their neighbours
    entities_of : chunk -> sorted keys of its entities; only the active ones for a chunk by which no entity is linked
    chunks_of : key -> number of chunks that name the entity
    """

    names: Mapping[str, tuple[str, ...]]
    entities: EntityGraph
    entities_of: Mapping[str, tuple[str, ...]]
    chunks_of: Mapping[str, int]

    def naming(self, graph: QuestionGraph, chunks: Iterable[str]) -> "KnownPart":
        """The part with the chunks that may be scored; they were read."""
        label = {entity_number(key): key for key in self.chunks_of}
        of = {
            node_id: tuple(sorted(label[entity] for entity in graph.entities(chunk_number(node_id)) if entity in label))
            for node_id in dict.fromkeys(chunks)
        }
        return replace(self, entities_of={node_id: found for node_id, found in of.items() if found})

    def shares(self, active: Mapping[str, float]) -> RowValues:
        """Like :func:`~llama_index.graphrag.search.chunk_scores.chunk_shares`, for the known chunks."""
        shares: dict[str, float] = {}
        for chunk, keys in self.entities_of.items():
            for key in keys:
                if key in active:
                    shares[chunk] = shares.get(chunk, 0.0) + active[key] / self.chunks_of[key]
        ids = sorted(shares)
        return RowValues(ids, scaled(np.array([shares[chunk] for chunk in ids])))


def part_of(
    graph: QuestionGraph,
    names: Mapping[str, tuple[str, ...]],
    links: Sequence[Link],
    active: Iterable[int],
) -> KnownPart:
    """The entities that a graph has read; :meth:`KnownPart.naming` adds chunks.

    Parameters
    ----------
    links : the entities that the question leads to
    active : numbers of all active entities, including the linked ones
    """
    keys = {graph.key(entity): entity for entity in active}
    ordered = sorted(keys)
    place = {keys[key]: row for row, key in enumerate(ordered)}
    rows: dict[int, list[tuple[int, int]]] = {}
    for entity in sorted({entity_number(link.entity) for link in links} & place.keys()):
        others, weights = graph.neighbourhood(entity)
        near = zip(others.tolist(), weights.tolist(), strict=True)
        rows[place[entity]] = sorted((place[other], weight) for other, weight in near if other in place)
    entries = [entry for row in range(len(ordered)) for entry in rows.get(row, ())]
    indptr = np.cumsum([0, *(len(rows.get(row, ())) for row in range(len(ordered)))])
    none = np.zeros(len(entries), np.int64)
    entities = EntityGraph(
        tuple(ordered),
        indptr.astype(np.int64),
        np.array([other for other, _ in entries], np.int64),
        np.array([weight for _, weight in entries], np.int64),
        none,
        np.zeros(len(ordered), np.int64),
        np.array([graph.pairs(keys[key]) for key in ordered], np.int64),
        np.diff(indptr).astype(np.int64),
    )
    return KnownPart(names, entities, {}, {key: graph.chunks(number) for key, number in keys.items()})


def read_around_entities(graph: QuestionGraph, keys: Sequence[str]) -> tuple[list[str], dict[str, int]]:
    """Read entities, the chunks that name them, and their neighbours, with all edges.

    Returns
    -------
    The ids of these chunks; the number of neighbours of each entity and of each neighbour.
    """
    linked = [entity_number(key) for key in keys]
    graph.read(linked)
    around = {entity: graph.neighbourhood(entity).others.tolist() for entity in linked}
    every = list(dict.fromkeys([*linked, *(other for others in around.values() for other in others)]))
    graph.read(every)
    chunks = list(dict.fromkeys(chunk for entity in linked for chunk in graph.naming(entity).tolist()))
    graph.read(chunks)
    degrees = {graph.key(entity): len(graph.neighbourhood(entity).others) for entity in every}
    return [graph.chunk_id(chunk) for chunk in chunks], degrees
