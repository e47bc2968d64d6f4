"""Importance scores of the heads, exact and incremental, in O(n d) time.

Algorithm 1 of the paper (Besta et al. 2024, section 2.3) gives head h with the vectors e_1 .. e_n the score

    s_h = a_h b_h      a_h = mean_i |e_i|      b_h = mean_ij (1 - cos(e_i, e_j))

The mean is over all n^2 pairs, including a vector with itself, as in the published code. With unit vectors u_i = e_i /
|e_i| (and u_i = 0 for a zero vector, whose cosine with anything is 0),

    b_h = 1 - (1 / n^2) sum_ij u_i . u_j = 1 - | mean_i u_i |^2

so only the number of vectors, the sum of their norms and the sum of their unit vectors are stored. Adding or removing
vectors updates these sums.

Differences from the published code: it compares pairs in n^2 steps and computes the scores once, while these sums are
updated at every insert and delete; with several layers it uses the scores of the lowest layer for all, while each head
has its own here. The paper's "appropriately scaled" has no counterpart in the published code or here.
"""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["HeadSums", "importance"]


@dataclass(frozen=True)
class HeadSums:
    """The sums over n vectors of H heads from which importance is computed."""

    count: int  # n
    norms: NDArray[np.float64]  # shape (H,), of the heads
    units: NDArray[np.float64]  # shape (H, head_dim), of the unit vectors of the heads

    @classmethod
    def empty(cls, heads: int, head_dim: int) -> "HeadSums":
        """Sums over no vectors."""
        return cls(0, np.zeros(heads), np.zeros((heads, head_dim)))

    @classmethod
    def joined(cls, heads: Sequence["HeadSums"]) -> "HeadSums":
        """The sums of several heads of the same vectors, at least one."""
        norms, units = (np.concatenate([getattr(each, name) for each in heads]) for name in ("norms", "units"))
        return cls(heads[0].count, norms, units)

    def add(self, vectors: NDArray[np.float32], sign: int = 1) -> "HeadSums":
        """The sums with vectors of shape (n, H, head_dim) added; `sign` -1 subtracts them."""
        if not len(vectors):
            return self
        count = self.count + sign * len(vectors)
        if count == 0:  # avoid residual rounding errors
            return HeadSums.empty(*self.units.shape)
        wide = vectors.astype(np.float64)
        norms = np.linalg.norm(wide, axis=2)
        units = np.divide(wide, norms[..., None], out=np.zeros_like(wide), where=norms[..., None] > 0)
        return HeadSums(count, self.norms + sign * norms.sum(axis=0), self.units + sign * units.sum(axis=0))

    def to_record(self) -> dict[str, Any]:
        """The sums as JSON values, exact to the last bit."""
        return {"count": self.count, "norms": _encoded(self.norms), "units": _encoded(self.units)}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> "HeadSums":
        """The sums of :meth:`to_record`."""
        norms, units = _decoded(record["norms"]), _decoded(record["units"])
        return cls(int(record["count"]), norms, units.reshape(len(norms), -1))

    def remove(self, vectors: NDArray[np.float32]) -> "HeadSums":
        """The sums without these vectors, which must have been added before."""
        return self.add(vectors, -1)


def _encoded(numbers: NDArray[np.float64]) -> str:
    return base64.b64encode(numbers.astype("<f8").tobytes()).decode("ascii")


def _decoded(text: str) -> NDArray[np.float64]:
    return np.frombuffer(base64.b64decode(text), "<f8").astype(np.float64)


def importance(sums: HeadSums) -> NDArray[np.float64]:
    """Importance of each head, shape (H,), at least 0; the paper's s, unscaled.

    All zero if the heads cannot be distinguished: no vectors, one vector, or all vectors equal.
    """
    if not sums.count:
        return np.zeros(len(sums.norms))
    mean = sums.units / sums.count
    spread = np.maximum(1 - np.einsum("hd,hd->h", mean, mean), 0)
    scores: NDArray[np.float64] = sums.norms / sums.count * np.where(spread < 1e-12, 0, spread)
    return scores
