"""What a question to an index that is served from stores reads before it is answered as one in memory is."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from llama_index.pgrag.config import SearchConfig
from llama_index.pgrag.map_rows import NodeRow
from llama_index.pgrag.map_view import MapReader
from llama_index.pgrag.maps.name_edges import chunk_number
from llama_index.pgrag.maps.name_links import NameLinks
from llama_index.pgrag.maps.names import cell_name
from llama_index.pgrag.search.candidates import Candidate, Vector
from llama_index.pgrag.search.frontier_walk import Mass
from llama_index.pgrag.search.name_walk import NODE_SEEDS, NameWalk, walk_names, walked
from llama_index.pgrag.state import PseudoGraph
from llama_index.ragkit import Query, Snapshot, Steps, offload
from llama_index.ragkit.steps import gather as beside_each_other
from llama_index.ragkit.vectors.nearness import NEAREST, Nearness
from llama_index.ragkit.vectors.question_scores import question_cosines
from llama_index.ragkit.vectors.walk_trust import passage_seeds

__all__ = ["Gathered", "gather"]

_WALKED = 60  # nodes that are best in the walk over names; a further one has too little of it


@dataclass(frozen=True)
class Gathered:
    """What a question is answered from.

    Attributes
    ----------
    query : with the graph as its state
    near : how near its chunks are
    candidates : the maps to search
    names : the walk over names; None without one
    """

    query: Query[PseudoGraph]
    near: Nearness
    candidates: Sequence[Candidate]
    names: NameWalk | None


def gather(
    query: Query[PseudoGraph],
    reader: MapReader,
    question: Vector,
    texts: Sequence[str],
    points: Sequence[Vector],
    config: SearchConfig,
) -> Steps[Gathered]:
    """Read the chunks near to a question, to its key points or to its names, and their maps.

    Parameters
    ----------
    query : the question, and the chunks near to it
    reader : of the maps
    question, texts, points : the vector of the question; its key points, and their vectors
    """
    query = yield from query.including(texts, np.stack(points), max(NEAREST, query.wanted))
    contents: Any = query.contents
    asked = list(dict.fromkeys([query.text, *texts]))
    has_facts = reader.storage.struct.counters.get("facts", 0) > 0
    follows = config.follows_names and has_facts
    few = reader.selection.only is not None
    jobs: list[Callable[[], Steps[Any]]] = [
        partial(reader.near_cells, question, points, config, query.wanted, contents.near.rows.ids)
    ]
    if follows and not few:
        seeds = yield from offload(_near_nodes, contents.near.rows, question)
        jobs.append(partial(_walked_to, reader, asked, seeds, max(_WALKED, query.wanted)))
    # The one waits for the indexes of vectors, the other reads the rows of the graph.
    cells, *others = [outcome.unwrap() for outcome in (yield from beside_each_other(jobs, len(jobs)))]
    named, mass, further = others[0] if others else ([], Mass.of([], []), [])
    ids = [] if few else list(dict.fromkeys([*further, *cells.nodes]))
    near = yield from contents.stored.including(contents.near, query.text, ids, contents.selection)
    graph, rows = yield from reader.graph(near.rows, cells)
    query = replace(query, contents=replace(contents, state=graph, near=near), _lexical=None)
    nearness = yield from query.nearness(config.lexical_weight)
    names = None
    if follows and few:
        links = yield from offload(_links, near.rows, rows)
        names = yield from offload(walk_names, links, asked, nearness.scores, nearness.cosines, None)
    elif follows:
        names = walked(named, nearness.scores, _shares(near.rows, mass))
    return Gathered(query, nearness, cells.candidates, names)


def _walked_to(
    reader: MapReader, texts: Sequence[str], seeds: Mass, count: int
) -> Steps[tuple[list[str], Mass, list[str]]]:
    """The names that a walk started from, what it reached, and the nodes that it reached best."""
    named, mass = yield from reader.walk(texts, seeds)
    best = np.argsort(-mass.shares, kind="stable")[:count]
    return named, mass, list((yield from reader.rows.node_ids(mass.rows[best].tolist())).values())


def _near_nodes(chunks: Snapshot, question: Vector) -> Mass:
    """What the walk over names starts with at the nodes nearest to the question."""
    places, shares = passage_seeds(question_cosines(chunks, question))
    return Mass.of([chunk_number(chunks.ids[place]) for place in places.tolist()], NODE_SEEDS * shares)


def _shares(chunks: Snapshot, mass: Mass) -> np.ndarray:
    """The share of each chunk of a walk, relative to the best."""
    if not len(mass.rows):
        return np.zeros(len(chunks))
    of = dict(zip(mass.rows.tolist(), (mass.shares / mass.shares.max()).tolist(), strict=True))
    return np.array([of.get(chunk_number(node_id), 0.0) for node_id in chunks.ids])


def _links(chunks: Snapshot, rows: Mapping[str, NodeRow]) -> NameLinks:
    """The links of names of some chunks, as if there were no others."""
    of_topics = {cell_name(row.facts[0].path[0]) for row in rows.values()}
    present = {i: tuple(name for name in row.present if name in of_topics) for i, row in rows.items()}
    own = {i: replace(row, present=present[i]).names for i, row in rows.items()}
    names = sorted({name for found in own.values() for name in found.weights(1.0)})
    column = {name: i for i, name in enumerate(names)}
    row_of = {node_id: chunks.row_of(node_id) for node_id in rows}
    said = [(row_of[i], column[name]) for i, found in own.items() for name in found.said | found.mentioned]
    topics = [(row_of[i], column[found.topic]) for i, found in own.items() if found.topic]
    return NameLinks.joining(names, len(chunks), said, topics)
