"""The walk over names: which nodes are reached from the names in a question, over the names that mind maps share.

This is not in the paper. Paper and code find a map only by the cosine of its topic to the whole question, and never
follow a fact ("part of: Lewis Range") to a map with that name. Multi-hop questions need this.

The walk starts from the names in the question, each with the weight 1 / (number of nodes with it), and from the nodes
nearest to the question with a total of `NODE_SEEDS`. It goes from nodes to names and back, and each step is weighted by
`DAMPING`. So a name in few maps leads further than a name in many.
"""

from collections.abc import Container, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from llama_index.pgrag.maps.name_links import LinkedNodes, NameLinks
from llama_index.ragkit.text.known_names import KnownNames
from llama_index.ragkit.vectors.nearness import Nearness
from llama_index.ragkit.vectors.walk_trust import passage_seeds, trust

__all__ = ["DAMPING", "NODE_SEEDS", "STEPS", "NameWalk", "name_seeds", "walk_names", "walked"]

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

STEPS = 8
DAMPING = 0.7
NODE_SEEDS = 0.01

_LOWER_CASE = 0.01  # weight of a lower-case name in a question that capitalises names: it may be a common word


@dataclass(frozen=True)
class NameWalk:
    """The result of a walk over names.

    Attributes
    ----------
    named : the names in the question, best first
    shares : shape (nodes,), relative to the best, in [0, 1]; zeros if the walk says nothing
    trust : how far the walk can be trusted for this question, in [0, 1]
    reason : why the walk says nothing; empty otherwise
    """

    named: Sequence[str]
    shares: Floats
    trust: float
    reason: str = ""


def walk_names(links: NameLinks, texts: Sequence[str], nearness: Nearness, allowed: Mask | None) -> NameWalk:
    """Walk from the names in some texts.

    Parameters
    ----------
    texts : the question and its key points
    nearness : of the nodes to the question
    allowed : shape (nodes,), the nodes that the walk may touch; None for all
    """
    part = links.part(allowed)
    seeds = name_seeds(links.known, texts, part.frequency)
    if not seeds.any():
        return walked((), nearness, np.zeros(len(nearness.scores)))
    shown = np.arange(len(nearness.scores)) if allowed is None else np.flatnonzero(allowed)
    near = np.zeros(len(nearness.scores))
    places, shares = passage_seeds(nearness.cosines[shown])
    near[shown[places]] = NODE_SEEDS * shares
    reached = _spread(part, seeds, near)
    best = sorted((-seeds[i], links.names[i]) for i in np.flatnonzero(seeds).tolist())
    named = [name for _, name in best]
    return walked(named, nearness, reached / reached.max(), allowed)


def walked(named: Sequence[str], nearness: Nearness, shares: Floats, allowed: Mask | None = None) -> NameWalk:
    """The result of a walk with these shares.

    Parameters
    ----------
    named : the names from which it started; empty if the question names nothing
    nearness, allowed : see :func:`walk_names`
    shares : shape (nodes,), of the walk
    """
    if not named:
        return NameWalk((), shares, 0.0, "the question names nothing that a mind map has")
    shown = slice(None) if allowed is None else allowed
    trusted = trust(nearness.scores[shown], shares[shown], candidates=nearness.candidates[shown])
    reason = "" if trusted else "the names in the question lead elsewhere than its other words"
    return NameWalk(named, shares, trusted, reason)


def name_seeds(
    known: KnownNames, texts: Sequence[str], frequency: Floats, unspecific: Container[str] = frozenset()
) -> Floats:
    """The weight of each name in some texts, shape (names,).

    Parameters
    ----------
    frequency : shape (names,), the number of nodes with each name
    unspecific : see `KnownNames.find`
    """
    seeds = np.zeros(len(frequency))
    for text in texts:
        for name in known.find(text, lambda row: bool(frequency[row]), unspecific):
            rows = [row for row in name.rows if frequency[row]]
            share = (_LOWER_CASE if name.lower_case else 1.0) / max(1.0, float(frequency[rows].sum()))
            seeds[rows] = np.maximum(seeds[rows], share)
    return seeds


def _spread(part: LinkedNodes, names: Floats, nodes: Floats) -> Floats:
    """The mass that reaches each node in all steps together.

    The mass of a node after two more steps is M times what it was. So the sum over an even number of steps is
    ``S + M(S + ... M(S + M nodes))``, where S is the mass before the first step and after it: half of the products.
    """
    first = nodes + DAMPING * (part.from_names @ names)
    total = nodes
    for _ in range(STEPS // 2):
        total = first + DAMPING * DAMPING * (part.from_names @ (part.from_nodes @ total))
    return total
