"""Replacement of the nodes of a ranking by summaries that cover them (not in the paper)."""

from collections import defaultdict
from collections.abc import Collection, Sequence
from typing import NamedTuple

from llama_index.raptor.tree.tree import Tree

__all__ = ["Choice", "condense"]


class Choice(NamedTuple):
    """A node to keep: its position in the ranking, and the summary that replaces it, if any."""

    position: int
    summary: str | None = None


def condense(ranking: Sequence[str | None], tree: Tree, written: Collection[str], min_coverage: float) -> list[Choice]:
    """Replace leaves by summaries that they cover, and drop each node with an ancestor or descendant that is kept.

    Parameters
    ----------
    ranking : ids, best first; None for a node that is not in the tree, which is always kept
    tree : the tree
    written : summaries that have a text
    min_coverage : share of the leaves below a summary that must be in the ranking, in (0, 1]

    Returns
    -------
    Choices in the order of the ranking. No chosen node is below another.
    """
    present = {node for node in ranking if node is not None and node not in tree.summaries}
    covering: dict[str, list[str]] = defaultdict(list)
    for name in sorted(tree.ancestors(present).intersection(written), key=lambda name: (-tree.level(name), name)):
        below = tree.leaves(name)
        there = below & present
        if len(there) >= 2 and len(there) >= min_coverage * len(below):
            for leaf in there:
                covering[leaf].append(name)  # the highest first
    chosen: list[Choice] = []
    kept: set[str] = set()
    for position, node in enumerate(ranking):
        if node is None:
            chosen.append(Choice(position))
        elif not ({node} | tree.ancestors([node])) & kept:
            for name in [*covering[node], node]:
                if not ({name} | tree.ancestors([name]) | tree.descendants(name)) & kept:
                    kept.add(name)
                    chosen.append(Choice(position, name if name != node else None))
                    break
    return chosen
