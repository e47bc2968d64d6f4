"""The distribution function of the beta distribution, by its continued fraction."""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["beta_cdf"]

_TERMS = 300  # more than the fraction needs for parameters below 1,000
_TINY = 1e-300


def beta_cdf(x: ArrayLike, a: float, b: float) -> NDArray[np.float64]:
    """The regularised incomplete beta function I_x(a, b) (NIST Digital Library, 8.17.22, by Lentz's method).

    Parameters
    ----------
    x : any shape, in [0, 1]
    a, b : above 0

    >>> [round(float(value), 4) for value in beta_cdf([0.0, 0.25, 0.5, 1.0], 0.5, 0.5)]
    [0.0, 0.3333, 0.5, 1.0]
    """
    points = np.asarray(x, dtype=np.float64)
    # The fraction converges fast only below the mean; above it, I_x(a, b) = 1 - I_{1-x}(b, a).
    low = points < (a + 1) / (a + b + 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        below = _fraction(np.where(low, points, 0.0), a, b)
        above = 1 - _fraction(np.where(low, 0.0, 1 - points), b, a)
    return np.where(low, below, above)


def _fraction(x: NDArray[np.float64], a: float, b: float) -> NDArray[np.float64]:
    log_scale = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) - math.log(a)
    scale = np.exp(log_scale + a * np.log(x) + b * np.log1p(-x))
    c = np.ones_like(x)
    d = 1 / _away_from_zero(1 - (a + b) * x / (a + 1))
    value = d.copy()
    for m in range(1, _TERMS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d = 1 / _away_from_zero(1 + term * d)
            c = _away_from_zero(1 + term / c)
            value *= c * d
        if (np.abs(c * d - 1) < 1e-15).all():
            break
    result: NDArray[np.float64] = scale * value
    return result


def _away_from_zero(x: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.where(np.abs(x) < _TINY, _TINY, x)
