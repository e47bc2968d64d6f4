"""The entities that a question leads to: by its words, by vectors of names, and by the chunks nearest to it."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from llama_index.graphrag.config import SearchConfig
from llama_index.graphrag.found import Similarities
from llama_index.graphrag.graph.statement import bare, scope_of
from llama_index.graphrag.search.linking import Link, linked_entities, relative
from llama_index.ragkit import Snapshot
from llama_index.ragkit.vectors.question_scores import best_rows

__all__ = ["COMPARED", "links_of", "nearest_chunks", "nearest_names"]

COMPARED = 100  # best chunks, and best entities; the first and the last of them scale the weights of the others
_SEED_POWER = 4


def links_of(
    text: str,
    names: Mapping[str, Sequence[str]],
    near_names: Sequence[tuple[str, float]],
    near_chunks: Sequence[tuple[float, str]],
    entities_of: Mapping[str, Sequence[str]],
    options: SearchConfig,
) -> list[Link]:
    """The entities that a question leads to.

    Parameters
    ----------
    names : normalised name -> keys of the entities for which it may stand
    near_names : :func:`nearest_names`
    near_chunks : :func:`nearest_chunks`
    entities_of : chunk -> keys of its entities
    """
    near: dict[str, float] = {}
    for name, weight in near_names[: options.entities_top_k]:
        for key in names.get(bare(name), ()):
            if scope_of(key) == scope_of(name) and weight > 0 and weight >= options.link_threshold:
                near.setdefault(key, weight)
    chunks = [(weight, entities_of.get(chunk, ())) for weight, chunk in near_chunks]
    return linked_entities(text, names, near.items(), [(weight, keys) for weight, keys in chunks if keys])


def nearest_names(
    entities: Snapshot, vector: NDArray[np.float32], options: SearchConfig, mask: NDArray[np.bool_] | None = None
) -> list[tuple[str, float]]:
    """The names nearest to a vector, each with the place of its cosine among those of the 100 nearest.

    Parameters
    ----------
    entities : vectors of names within their scopes
    mask : which names count, shape (number of names,); None for all
    """
    if not options.entities_top_k or not len(entities):
        return []
    (hits,) = entities.search(np.stack([vector]), max(COMPARED, options.entities_top_k), mask)
    weights = relative(np.asarray(hits.scores, np.float64)).tolist()
    return [(entities.records[row].key, weight) for row, weight in zip(hits.rows.tolist(), weights, strict=True)]


def nearest_chunks(near: Similarities, options: SearchConfig) -> list[tuple[float, str]]:
    """The chunks nearest to a question whose entities are linked, each with its weight, above 0."""
    rows = best_rows(near.scores, COMPARED, near.state.chunks) if options.seed_chunks else []
    weights = options.seed_weight * relative(near.scores[rows], _SEED_POWER)
    seeds = list(zip(weights.tolist(), rows, strict=True))[: options.seed_chunks]
    ids = near.state.chunks.ids
    return [(weight, ids[row]) for weight, row in seeds if weight > 0]
