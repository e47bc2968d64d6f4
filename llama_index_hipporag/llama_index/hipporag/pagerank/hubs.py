"""Walks that return to the hubs of a graph, solved among the hubs instead of by pushing.

A power-law graph has a few nodes with thousands of neighbours. Mass that reaches such a hub is spread over thousands
of nodes in small amounts, and much of it is back at a hub two steps later. One step (hub to hub) and two steps (hub to
an ordinary node to a hub) are small matrices between the hubs, computed once per graph.
"""

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

__all__ = ["Hubs", "hubs_of"]

MOST_HUBS = 256
_ROUNDS = 40  # each term of the series is smaller by at least the damping


class Hubs(NamedTuple):
    """The strongest nodes of an undirected graph, its first h ones, and the probabilities of walking between them.

    Attributes
    ----------
    direct : (h, h), the probability of stepping from hub to hub
    through : (h, h), that of getting from hub to hub in two steps through a node that is not a hub
    entering : (h, n - h) sparse, column w - h is that of stepping from ordinary node w to each hub
    """

    direct: np.ndarray
    through: np.ndarray
    entering: sp.csr_matrix

    @property
    def size(self) -> int:
        """h."""
        return len(self.direct)

    def visits(self, arriving: np.ndarray, damping: float) -> np.ndarray:
        """The mass that visits each hub, including returns in one and two steps, for the initial mass `arriving`, (h,).

        Solves ``y = a + (d D + d^2 T)^T y`` by its series, which converges from below.
        """
        returning = (damping * self.direct + damping**2 * self.through).T
        visiting = arriving
        for _ in range(_ROUNDS):
            following = arriving + returning @ visiting
            done = following.sum() - visiting.sum() <= 1e-12
            visiting = following
            if done:
                break
        return visiting


def hubs_of(outward: sp.csr_matrix, strength: np.ndarray) -> Hubs:
    """The first `MOST_HUBS` nodes of an undirected graph with nodes in descending strength; O(edges of the hubs)."""
    h = min(MOST_HUBS, int((strength > 0).sum()))
    per_weight = np.divide(1.0, strength, out=np.zeros(len(strength)), where=strength > 0)
    rows = outward[:h]
    leaving = (sp.diags(per_weight[:h]) @ rows).tocsc()
    entering = sp.csr_matrix(rows.tocsc()[:, h:] @ sp.diags(per_weight[h:]))
    through = (leaving[:, h:] @ entering.T).toarray()
    return Hubs(leaving[:, :h].toarray(), through, entering)
