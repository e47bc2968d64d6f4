"""The parts in which an index that is served from stores writes many documents, or nodes."""

from collections.abc import Iterator, Sequence
from typing import TypeVar

from llama_index.core.schema import BaseNode

from llama_index.ragkit.storage.nodes import sort_key

__all__ = ["first_part", "parts"]

NodeT = TypeVar("NodeT", bound=BaseNode)

AT_ONCE = 1_000
"""Documents, or nodes, of a part: few enough for readers to see the index grow."""


def first_part(given: Sequence[NodeT]) -> Sequence[NodeT]:
    """The first thousand in canonical order, in the order in which they are given; all if there are no more.

    Their order is that of hashes, so they are a random sample, with which every index measures
    (:mod:`llama_index.ragkit.index.advantage`), in stores as in memory.
    """
    if len(given) <= AT_ONCE:
        return given
    first = {each.node_id for each in sorted(given, key=sort_key)[:AT_ONCE]}
    return [each for each in given if each.node_id in first]


def parts(given: Sequence[NodeT]) -> Iterator[tuple[Sequence[NodeT], bool]]:
    """The parts, and whether others follow: :func:`first_part`, then the others as they are given."""
    first = first_part(given)
    written = {each.node_id for each in first}
    rest = [each for each in given if each.node_id not in written]
    yield first, bool(rest)
    for start in range(0, len(rest), AT_ONCE):
        yield rest[start : start + AT_ONCE], start + AT_ONCE < len(rest)
