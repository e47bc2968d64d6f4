"""The part of a stored graph that a local search needs: read in a few rounds, each by one or two statements."""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from llama_index.graphrag.config import SearchConfig
from llama_index.graphrag.entity_links import COMPARED, links_of, nearest_chunks, nearest_names
from llama_index.graphrag.found import Similarities, similarities
from llama_index.graphrag.graph.statement import bare
from llama_index.graphrag.rows.known_part import KnownPart, part_of
from llama_index.graphrag.rows.question_graph import QuestionGraph
from llama_index.graphrag.search.chunk_scores import activations
from llama_index.graphrag.search.linking import Link
from llama_index.graphrag.state import GraphRAGState
from llama_index.graphrag.stored_state import PartView, StoredGraphRAGState
from llama_index.ragkit import Query, Snapshot, Steps, offload

__all__ = ["part_around", "read_around"]

_CHUNKS = 100  # with the largest shares that are scored: a further one has too little to be among the best of the sum

Names = Sequence[tuple[str, float]]


def read_around(
    query: Query[GraphRAGState],
    state: StoredGraphRAGState,
    near: Similarities,
    text: str,
    vector: NDArray[np.float32],
    options: SearchConfig,
) -> Steps[tuple[Similarities, PartView]]:
    """The graph around what a question leads to, and the nearness of the chunks that it points at too.

    1. The names that the question has, and the entities of the chunks near to it.
    2. The neighbours of these entities: all, up to 4,096, the most active. A neighbour that more than 512 chunks name
       counts in the chunks found by others alone.
    3. Of all chunks that name an active entity the hundred with the largest shares, beside those near to the question.

    Parameters
    ----------
    text, vector : the question, or a follow-up question
    """
    entities = Snapshot.empty()
    if options.entities_top_k:
        entities = yield from state.storage.stored["entities"].candidates(vector, max(COMPARED, options.entities_top_k))
    near_names = yield from offload(nearest_names, entities, vector, options)
    seeds = yield from offload(nearest_chunks, near, options)
    ids = near.state.chunks.ids
    part = yield from offload(_read, state, text, near_names, seeds, ids, options, max(_CHUNKS, query.wanted))
    extended = yield from state.stored.including(state.near, query.text, list(part.entities_of), state.selection)
    over = state.over(query, extended, entities)
    everything = state.everything
    view = PartView(
        everything.graph, everything.clustering, everything.config, everything.maker, part=part, rows=state.rows
    )
    return (yield from similarities(over, options.lexical_weight, vector, read=False)), view


def _read(
    state: StoredGraphRAGState,
    text: str,
    near_names: Names,
    seeds: Sequence[tuple[float, str]],
    near: Sequence[str],
    options: SearchConfig,
    most: int,
) -> KnownPart:
    with state.rows.reader() as reader:
        graph = state.question_graph(reader)
        also = [bare(name) for name, _ in near_names]
        names = graph.read_names(text, near, also)
        entities_of = graph.read_entities_of([chunk for _, chunk in seeds])
        links = links_of(text, names, near_names, seeds, entities_of, options)
        return part_around(graph, names, links, near, options.spread, most)


def part_around(
    graph: QuestionGraph,
    names: dict[str, tuple[str, ...]],
    links: Sequence[Link],
    near: Iterable[str],
    spread: float,
    most: int,
) -> KnownPart:
    """The part of a graph around linked entities, which were read.

    Parameters
    ----------
    near : chunks that are scored whatever they name; they were read
    most : further chunks
    """
    active = graph.read_neighbours(links, spread)
    around = part_of(graph, names, links, active)
    found = graph.best_chunks(activations(around.entities, links, spread), most)
    return around.naming(graph, [*near, *found])
