"""Rankings of chunks of named documents, as positions in these documents laid end to end."""

from collections.abc import Sequence

import numpy as np

Hit = tuple[str, int]  # a document, and the number of a chunk in it


def laid_out(
    rankings: Sequence[Sequence[Hit]], documents: Sequence[str], lengths: Sequence[Sequence[int]]
) -> tuple[list[np.ndarray], np.ndarray, np.ndarray]:
    """The position of each hit, -1 in other documents; the number of the document of each chunk; and its length."""
    sizes = [len(row) for row in lengths]
    start = dict(zip(documents, np.cumsum([0, *sizes]).tolist(), strict=False))
    places = [np.array([start[d] + c if d in start else -1 for d, c in hits], np.intp) for hits in rankings]
    owners = np.repeat(np.arange(len(sizes)), np.array(sizes, np.intp))
    return places, owners, np.concatenate([np.empty(0, np.int64), *[np.array(row, np.int64) for row in lengths]])
