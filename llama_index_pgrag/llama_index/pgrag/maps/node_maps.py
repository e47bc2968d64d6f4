"""Divides the mind map of a document into mind maps of its nodes.

A fact belongs to the nodes whose text holds most of its words, and so do the routes above it. If the text of its node
lacks words of a topic, a route or a fact, another node of the document may have them. When that node is removed, the
words must be removed too, so each such cell records which other text it needs.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from llama_index.pgrag.maps.mind_map import Path
from llama_index.pgrag.maps.name_links import PHRASES
from llama_index.pgrag.maps.outline import key_phrases
from llama_index.ragkit.text.held import TextWords

__all__ = ["TOPIC", "Need", "NodeMap", "in_text", "node_maps"]

TOPIC = -1  # stands for the row of a path in the needs of a topic
_TOPIC_PHRASES = 3

Need = tuple[int, int, int]  # path (or TOPIC), cell after the topic, place of the needed text


@dataclass
class NodeMap:
    """One node's part of the mind map of its document."""

    topic: str  # the topic of the document
    own_topic: str = ""  # the topic that replaces it once a text that it needs is gone; "" if it needs none
    paths: list[Path] = field(default_factory=list)  # fact paths with the topic
    needs: list[Need] = field(default_factory=list)  # cells with words that only another node's text has


def in_text(path: Path, words: TextWords) -> float:
    """The share of the words of a fact, or of a fact with the sub-topic above it, that a text has, in [0, 1]."""
    return max(words.share(path[-1]), words.share(" ".join(path[-2:])) if len(path) > 2 else 0.0)


def node_maps(texts: Sequence[str], topic: str, parts: Sequence[tuple[Sequence[int], Sequence[Path]]]) -> list[NodeMap]:
    """Distribute the facts of a document among its nodes.

    Parameters
    ----------
    texts : the texts of the nodes
    parts : for each part of the document that was read in one call, the places of its nodes, and its fact paths

    Returns
    -------
    One map per text.

    >>> lamp = ("Lamp", "fuel", "oil"), ("Lamp", "keeper", "Ada lit it")
    >>> maps = node_maps(["The lamp burned oil.", "Ada lit it."], "Lamp", [((0, 1), lamp)])
    >>> [found.paths for found in maps]
    [[('Lamp', 'fuel', 'oil')], [('Lamp', 'keeper', 'Ada lit it')]]
    >>> maps[1].needs, maps[1].own_topic  # the topic stands in the first text only
    ([(-1, 0, 0)], 'Ada lit it.')
    """
    words = [TextWords(text) for text in texts]
    maps = [NodeMap(topic) for _ in texts]
    for i, found in enumerate(maps):
        found.needs = [(TOPIC, 0, other) for other in _holders(topic, i, words, range(len(words)))]
        if found.needs:
            found.own_topic = PHRASES.join(key_phrases(texts[i], _TOPIC_PHRASES)) or " ".join(texts[i].split()[:8])
    for places, paths in parts:
        for path in paths:
            shares = {i: in_text(path, words[i]) for i in places}
            most = max(shares.values())
            for i in (i for i, share in shares.items() if share == most):
                if path not in maps[i].paths:
                    row = len(maps[i].paths)
                    maps[i].paths.append(path)
                    maps[i].needs += [
                        (row, cell, other)
                        for cell, text in enumerate(path[1:])
                        for other in _holders(text, i, words, places)
                    ]
    return maps


def _holders(cell: str, own: int, words: Sequence[TextWords], places: Sequence[int]) -> list[int]:
    """The texts that hold more of the words that the cell's own text lacks, one text for each such word."""
    found: dict[int, None] = {}
    for word in words[own].lacking(cell) if len(places) > 1 else ():
        shares = {i: words[i].share(word) for i in places}
        best = max(places, key=lambda i: shares[i])
        if shares[best] > words[own].share(word):
            found[best] = None
    return list(found)
