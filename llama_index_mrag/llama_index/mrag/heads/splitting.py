"""Splitting of flat vectors into heads."""

import numpy as np
from numpy.typing import NDArray

__all__ = ["natural_heads", "split_heads"]

_NATURAL_DIM = 32


def split_heads(flat: NDArray[np.float32], heads: int, own: int = 0) -> NDArray[np.float32]:
    """Flat vectors, shape (..., own + heads * head_dim), as heads, shape (..., heads, head_dim).

    >>> split_heads(np.arange(6, dtype=np.float32), 3).tolist()
    [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]
    >>> split_heads(np.arange(6, dtype=np.float32), 2, own=2).tolist()
    [[2.0, 3.0], [4.0, 5.0]]
    """
    parts = flat[..., own:]
    return parts.reshape(*parts.shape[:-1], heads, parts.shape[-1] // heads)


def natural_heads(dim: int) -> int:
    """The default number of parts for vectors of a model without heads: the divisor with parts nearest to 32 numbers.

    >>> natural_heads(384), natural_heads(1536), natural_heads(7)
    (12, 48, 1)
    """
    divisors = [heads for heads in range(1, dim + 1) if dim % heads == 0]
    return min(divisors, key=lambda heads: (abs(np.log(dim / heads / _NATURAL_DIM)), heads))
