"""Insertion of new chunks into an existing tree (not in the paper, which only builds complete trees)."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from llama_index.ragkit.vectors.snapshot import Snapshot

__all__ = ["NEIGHBOURS", "clusters_again", "nearest_parents"]

NEIGHBOURS = 10
REBUILD_SHARE = 0.25


def clusters_again(new: int, chunks: int) -> bool:
    """Whether to cluster everything again: more chunks are new than `REBUILD_SHARE` of the old ones."""
    return new > REBUILD_SHARE * (chunks - new)


def nearest_parents(
    parents: Mapping[str, Sequence[str]], chunks: Snapshot, new: Sequence[str], vectors: NDArray[np.float32]
) -> dict[str, list[str]]:
    """The summary that each new chunk joins, as summary -> new chunks.

    Each of the `NEIGHBOURS` nearest chunks in the tree votes for its parents with its cosine; the new chunk joins the
    parent with the highest sum; the greater id decides ties. Only that summary and those above it change.

    Parameters
    ----------
    parents : the parents of chunks that are in the tree; at least one of `chunks` must be among these
    chunks : vectors of all chunks, or of those near to the new ones
    new, vectors : ids of the new chunks and their vectors, shape (len(new), d)
    """
    rows = chunks.rows_of(list(parents))
    settled = np.zeros(len(chunks), dtype=np.bool_)
    settled[rows[rows >= 0]] = True
    joining: dict[str, list[str]] = defaultdict(list)
    for node, hits in zip(new, chunks.search(vectors, NEIGHBOURS, settled), strict=True):
        votes: dict[str, float] = defaultdict(float)
        for neighbour, cosine in zip(hits.ids, hits.scores, strict=True):
            for parent in parents[neighbour]:
                votes[parent] += max(cosine, 1e-9)  # neighbours with a negative cosine still count
        joining[max(votes, key=lambda parent: (votes[parent], parent))].append(node)
    return joining
