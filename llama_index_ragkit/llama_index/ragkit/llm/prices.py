"""Prices of tokens, as providers state them."""

from collections.abc import Mapping
from typing import TypedDict

from llama_index.ragkit.errors import ConfigurationError

__all__ = ["PER_TOKENS", "Prices", "check_prices"]

PER_TOKENS = 1_000_000


class Prices(TypedDict, total=False):
    """What a million tokens cost, in any currency; a price that is left out is 0.

    Attributes
    ----------
    prompt, completion : of the language model
    embedding : of the embedding model
    """

    prompt: float
    completion: float
    embedding: float


def check_prices(prices: Prices) -> Mapping[str, float]:
    """The prices as a mapping; `ConfigurationError` if a name is unknown, or a price is not a number of at least 0."""
    if not isinstance(prices, Mapping):
        raise ConfigurationError(f'prices is a dictionary, such as {{"prompt": 0.15}}, not {prices!r}.')
    given: Mapping[str, object] = dict(prices)
    names = sorted(Prices.__annotations__)
    for name, price in given.items():
        if name not in names or isinstance(price, bool) or not isinstance(price, int | float) or not price >= 0:
            raise ConfigurationError(
                f"prices must have numbers from 0 for {', '.join(names)}, a million tokens each, not {name}={price!r}."
            )
    return {name: float(price) for name, price in given.items() if isinstance(price, int | float)}
