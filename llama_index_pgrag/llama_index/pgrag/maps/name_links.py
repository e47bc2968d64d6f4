"""The names of mind map cells, and which nodes have them; shared names lead from one map to another.

The names of a map are its topic, its last cells ("Lewis Range"), and the topics of other maps that its longer facts
mention.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, diags

from llama_index.pgrag.maps.mind_map import Path
from llama_index.ragkit.masks import FEW, RecentMasks
from llama_index.ragkit.nested_arrays import Arrays, nested, part_of
from llama_index.ragkit.text.characters import UNSPACED, normalise
from llama_index.ragkit.text.known_names import KnownNames, mentions
from llama_index.ragkit.text.layered_mapping import with_changes
from llama_index.ragkit.text.packed_words import PackedMapping, PackedPhrases

__all__ = [
    "MOST_WORDS", "PHRASES", "TOPIC_WEIGHT", "CellNames", "LinkedNodes", "MapNames", "NameLinks", "NodeNames",
    "cell_name", "long_facts", "name_of", "units_of", "units_of_name",
]  # fmt: skip

TOPIC_WEIGHT = 3.0
"""Weight of the name of a topic, relative to other names of the same map."""

_FEW = 4  # nodes; looking for a name in the facts of so many is quicker than comparing lists of nodes

_LONG = 40  # characters of a fact; longer facts are searched for topics of other maps

_MATRICES = ("said", "topics", "mentioned")

Places = tuple[int, Sequence[int]]  # a row, and columns

_LONGEST = 100  # characters of a name; longer cells are sentences
_UNSPACED = re.compile(f"[{UNSPACED}]")
_UNIT = re.compile(f"[{UNSPACED}]|[^\\s{UNSPACED}]+")

MOST_WORDS = 6
"""Largest number of words of a name in a sentence; of characters in scripts without spaces."""

PHRASES = " · "
"""Between the key phrases that are the topic of a passage without a title. Such a topic is no name: a question that has
"Maie" does not mean "Maie · husband · fish".
"""

_ADDED = re.compile(r"(?<!\s)\s*\([^()]*\)\s*$")  # the name of "The Glass Wall (film)" is "The Glass Wall"


@dataclass(frozen=True)
class CellNames:
    """Names to find in sentences, normalised by :func:`~llama_index.ragkit.text.characters.normalise`."""

    names: Collection[str]

    def names_in(self, text: str, but: str = "") -> list[str]:
        """The names in a text except `but`, exact matches only, in the order of the text; if the text capitalises
        names, lower-case matches do not count.
        """
        if not _UNSPACED.search(text):
            words = normalise(text).split()  # a quick look, since few texts have a name
            begun = (i for i, word in enumerate(words) if word in self._first_words)
            if not any(self._begins(words, i, but) for i in begun):
                return []
        found = dict.fromkeys(phrase for phrase, _, _ in mentions(text, self.names, longest=MOST_WORDS))
        return [phrase for phrase in found if phrase != but]

    def _begins(self, words: list[str], start: int, but: str) -> bool:
        """Whether a name begins at a word."""
        ends = range(start + 1, min(start + MOST_WORDS, len(words)) + 1)
        runs = (" ".join(words[start:end]) for end in ends)
        return any(run in self.names and run != but for run in runs)

    @cached_property
    def _first_words(self) -> set[str]:
        return {name.split(" ", 1)[0] for name in self.names}


def units_of(text: str) -> set[str]:
    """The words of a text, and its characters of scripts without spaces, as names have them.

    >>> sorted(units_of("Lewis Range")), sorted(units_of("東京"))
    (['lewis', 'range'], ['京', '東'])
    """
    if not _UNSPACED.search(text):
        return set(normalise(text).split())
    # A name may begin or end between characters that normalisation joins.
    return {*units_of_name(normalise(text)), *units_of_name(normalise(" ".join(text)))}


def units_of_name(name: str) -> list[str]:
    """The words of a normalised name, and its characters of scripts without spaces."""
    return _UNIT.findall(name)


def name_of(text: str) -> str:
    """The name of a cell, normalised, without an addition in brackets at its end."""
    return normalise(_ADDED.sub("", text))


def cell_name(text: str) -> str:
    """The name by which a cell is found; "" if the cell is too long to be a name, or consists of key phrases."""
    return "" if len(text) > _LONGEST or PHRASES in text else name_of(text)


@dataclass(frozen=True)
class NodeNames:
    """The names of a node.

    `title` is the name of its topic, of any length, and `topic` is "" if that is too long for a name. `said` are names
    that are last cells. `found` has, for its `long` facts, the topics of other maps that they mention.
    """

    title: str
    topic: str
    said: tuple[str, ...]
    long: tuple[str, ...]
    found: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, paths: Sequence[Path], topics: CellNames) -> "NodeNames":
        """The names of a node with these paths, all of the same topic; its long facts may mention `topics`."""
        title, topic = name_of(paths[0][0]), cell_name(paths[0][0])
        said = tuple(sorted({cell_name(path[-1]) for path in paths} - {""}))
        return cls(title, topic, said, long_facts(paths)).mentioning(topics)

    def mentioning(self, topics: CellNames) -> "NodeNames":
        """The names with the topics that the long facts mention."""
        found = ((text, topics.names_in(text, but=self.title)) for text in self.long)
        return replace(self, found={text: names for text, names in found if names})

    @property
    def mentioned(self) -> set[str]:
        """Topics of other maps that its long facts mention."""
        return {name for names in self.found.values() for name in names}

    @property
    def all(self) -> set[str]:
        """All names."""
        return {self.topic, *self.said, *self.mentioned} - {""}


def long_facts(paths: Iterable[Path]) -> tuple[str, ...]:
    """The facts of these paths that are long enough to be searched for topics, sorted."""
    return tuple(sorted({path[-1] for path in paths if len(path[-1]) > _LONG}))


@dataclass(frozen=True)
class FactWords:
    """The ids of the nodes that have each word, or character of a script without spaces, in their long facts.

    So few nodes are searched for a topic that comes or goes.
    """

    nodes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def changed(self, gone: Mapping[str, NodeNames], new: Mapping[str, NodeNames]) -> "FactWords":
        """The words after nodes were removed, and others added."""
        changes: dict[str, tuple[str, ...] | None] = {}
        for word in _nodes_by_word(gone):
            changes[word] = tuple([node_id for node_id in self.nodes[word] if node_id not in gone]) or None
        for word, node_ids in _nodes_by_word(new).items():
            changes[word] = (*(changes.get(word, self.nodes.get(word)) or ()), *node_ids)
        return FactWords(with_changes(self.nodes, changes, forget=bool(gone)))

    def having(self, names: Iterable[str]) -> set[str]:
        """The nodes that have all words of one of these names."""
        found: set[str] = set()
        for name in names:
            rarest, *others = sorted((self.nodes.get(unit, ()) for unit in units_of_name(name)), key=len)
            having = set(rarest)
            for node_ids in others:
                if len(having) < _FEW:
                    break
                having.intersection_update(node_ids)
            found |= having
        return found


def _nodes_by_word(nodes: Mapping[str, NodeNames]) -> dict[str, list[str]]:
    found = defaultdict(list)
    for node_id, names in nodes.items():
        for word in units_of(" ".join(names.long)):
            found[word].append(node_id)
    return found


@dataclass(frozen=True)
class MapNames:
    """The names of all nodes after a write, and how many nodes have each name, or have it as their topic."""

    nodes: Mapping[str, NodeNames] = field(default_factory=dict)
    known: KnownNames = field(default_factory=lambda: KnownNames([]))
    counts: Mapping[str, int] = field(default_factory=dict)
    topics: Mapping[str, int] = field(default_factory=dict)
    words: FactWords = field(default_factory=FactWords)

    def changed(self, paths: Mapping[str, Sequence[Path]]) -> "MapNames":
        """The names after a write, equal to the names of all remaining nodes written at once.

        `paths` has those of each node that was written or removed; empty for a removed node.
        """
        gone = {node_id: self.nodes[node_id] for node_id in paths if node_id in self.nodes}
        forget = bool(gone)
        written = {node_id: own for node_id, own in paths.items() if own}
        written_topics = [cell_name(own[0][0]) for own in written.values()]
        topics, left, come = _counted(self.topics, [names.topic for names in gone.values()], written_topics)
        known = CellNames(topics)
        new = {node_id: NodeNames.of(own, known) for node_id, own in written.items()}
        words = self.words.changed(gone, new)
        for node_id in sorted(self.words.having([*left, *come]) - paths.keys()):
            before = self.nodes[node_id]
            now = before.mentioning(known)
            if now.found != before.found:
                gone[node_id], new[node_id] = before, now
        nodes = with_changes(self.nodes, {**dict.fromkeys(gone), **new}, forget)
        out, into = ([name for names in some.values() for name in names.all] for some in (gone, new))
        counts, removed, added = _counted(self.counts, out, into)
        return MapNames(nodes, self.known.changed(removed, added), counts, topics, words)


def _counted(
    counts: Mapping[str, int], out: Iterable[str], into: Iterable[str]
) -> tuple[Mapping[str, int], list[str], list[str]]:
    """Counts of names after some were removed and others added, without counts of 0; and the names that have none any
    more, and those that had none.
    """
    more = Counter(into)
    more.subtract(out)
    after = {name: counts.get(name, 0) + count or None for name, count in sorted(more.items()) if name}
    left = [name for name, count in after.items() if not count and name in counts]
    come = [name for name, count in after.items() if count and name not in counts]
    return with_changes(counts, after, forget=bool(left)), left, come


class TopicMention(NamedTuple):
    """A long fact that mentions topics of other maps, with the row of its node and the columns of the topics."""

    row: int
    text: str
    title: str
    columns: tuple[int, ...]


@dataclass(frozen=True)
class NameLinks:
    """Nodes and names as a weighted bipartite graph."""

    # the names of the columns, to find them in a question
    known: KnownNames = field(default_factory=lambda: KnownNames([]))
    # shape (nodes, names), 1 if a name is a last cell of the node's map
    said: csr_matrix = field(default_factory=lambda: csr_matrix((0, 0)))
    topics: csr_matrix = field(default_factory=lambda: csr_matrix((0, 0)))  # shape (nodes, names), 1 if it is the topic
    # shape (nodes, names), 1 if it is a topic that a long fact mentions
    mentioned: csr_matrix = field(default_factory=lambda: csr_matrix((0, 0)))
    # the names of each row's node, None for one without; empty if the links were read from arrays
    nodes: Sequence[NodeNames | None] = ()
    # the long facts that mention topics, by their number, if the links were read from arrays
    stored: Mapping[str, TopicMention] | None = None

    def changed(self, known: KnownNames, nodes: Sequence[NodeNames | None]) -> "NameLinks":
        """The links after some writes, of each row's node; rows of unchanged nodes are copied.

        `known` has all names; those of unchanged nodes have their earlier numbers.
        """
        column, row_of = known.numbers, {id(names): row for row, names in enumerate(self.nodes)}
        rows = np.array([row_of.get(id(names), -1) for names in nodes], np.int64)
        new = [(row, found) for row in np.flatnonzero(rows < 0).tolist() if (found := nodes[row]) is not None]
        said = [(row, [column[name] for name in found.said]) for row, found in new]
        topics = [(row, [column[found.topic]]) for row, found in new if found.topic]
        mentioned = [(row, [column[name] for name in found.mentioned]) for row, found in new]
        moved = partial(_with_rows, rows, len(known.phrases))
        return NameLinks(
            known, moved(self.said, said), moved(self.topics, topics), moved(self.mentioned, mentioned), nodes
        )

    @cached_property
    def mentions(self) -> Mapping[str, TopicMention]:
        """The long facts that mention topics, by their number."""
        if self.stored is not None:
            return self.stored
        column = self.known.numbers
        found = (
            TopicMention(row, text, names.title, tuple(column[name] for name in mentioned))
            for row, names in enumerate(self.nodes)
            if names is not None
            for text, mentioned in names.found.items()
        )
        return {str(i): mention for i, mention in enumerate(found)}

    def arrays(self) -> Arrays:
        """The links as arrays."""
        names = np.array([i for i, name in enumerate(self.names) if name], np.int64)
        column = np.full(len(self.names), -1)
        column[names] = np.arange(len(names))
        matrices = {name: getattr(self, name)[:, names] for name in _MATRICES}
        return nested(
            {
                "names": PackedPhrases.to_arrays([self.names[i] for i in names.tolist()]),
                "mentions": PackedMapping.to_arrays(
                    self.mentions, lambda found: found._replace(columns=column[list(found.columns)].tolist())
                ),
                **{name: {"indptr": m.indptr, "indices": m.indices} for name, m in matrices.items()},
            }
        )

    @classmethod
    def of_arrays(cls, arrays: Arrays) -> "NameLinks":
        """The links of :meth:`arrays`, over the same memory."""
        names = PackedPhrases.of_arrays(part_of(arrays, "names"))
        mentions = PackedMapping.of_arrays(part_of(arrays, "mentions"), _mention)
        said, topics, mentioned = (_of_places(part_of(arrays, name), len(names)) for name in _MATRICES)
        return cls(KnownNames(names, numbers=names.numbers), said, topics, mentioned, stored=mentions)

    @property
    def names(self) -> Sequence[str]:
        """The name of each column; "" for a column without one."""
        return self.known.phrases

    @cached_property
    def weights(self) -> csr_matrix:
        """The weights of the links of all nodes, shape (nodes, names)."""
        return _weights(self.said, self.topics, self.mentioned)

    @cached_property
    def _all(self) -> "LinkedNodes":
        return _linked(self.weights)

    @cached_property
    def _parts(self) -> RecentMasks["LinkedNodes"]:
        return RecentMasks(FEW)

    def part(self, allowed: NDArray[np.bool_] | None) -> "LinkedNodes":
        """The links of the allowed nodes, as if there were no others; of all nodes for None."""
        return self._all if allowed is None else self._parts.of(allowed, self._part)

    def _part(self, allowed: NDArray[np.bool_]) -> "LinkedNodes":
        chosen = diags(allowed.astype(np.float64))
        said, topics = (chosen @ self.said).tocsr(), (chosen @ self.topics).tocsr()
        is_topic = np.zeros(said.shape[1], np.bool_)
        is_topic[topics.indices] = True
        column = {self.names[i]: i for i in np.flatnonzero(is_topic).tolist()}
        cells = CellNames(column)
        mentioned: list[Places] = []
        for mention in (mention for mention in self.mentions.values() if allowed[mention.row]):
            columns = mention.columns
            if not is_topic[list(columns)].all():
                # A topic of other nodes may also have hidden a shorter topic of these nodes.
                columns = tuple(column[name] for name in cells.names_in(mention.text, but=mention.title))
            mentioned.append((mention.row, columns))
        return _linked(_weights(said, topics, _marked(mentioned, said.shape)))


@dataclass(frozen=True)
class LinkedNodes:
    """The links of some nodes, from both sides."""

    from_nodes: csr_matrix  # shape (names, nodes), the share of each node's weight that goes to each name
    from_names: csr_matrix  # shape (nodes, names), the share of each name's weight that goes to each node
    frequency: NDArray[np.float64]  # shape (names,), the number of nodes with each name


def _marked(places: Sequence[Places], shape: tuple[int, int]) -> csr_matrix:
    """A matrix with 1 at these places, each of which may be given several times."""
    rows = [row for row, own in places for _ in own]
    columns = [column for _, own in places for column in own]
    at = np.array([rows, columns], np.int64)
    return csr_matrix((np.ones(len(columns)), (at[0], at[1])), shape=shape).sign()


def _with_rows(rows: NDArray[np.int64], width: int, matrix: csr_matrix, places: Sequence[Places]) -> csr_matrix:
    """Some rows of a matrix, blank for -1, and 1 at these places."""
    ends = np.append(matrix.indptr, matrix.indptr[-1])  # the last row is blank
    found = csr_matrix((matrix.data, matrix.indices, ends), shape=(len(ends) - 1, matrix.shape[1]))[rows]
    found.resize(len(rows), width)
    return (found + _marked(places, found.shape)).tocsr()


def _mention(number: str, values: Sequence[Any]) -> TopicMention:
    row, text, title, columns = values
    return TopicMention(row, text, title, tuple(columns))


def _of_places(arrays: Arrays, width: int) -> csr_matrix:
    """The matrix with 1 at these places."""
    ones = np.ones(len(arrays["indices"]))
    return csr_matrix((ones, arrays["indices"], arrays["indptr"]), shape=(len(arrays["indptr"]) - 1, width))


def _weights(said: csr_matrix, topics: csr_matrix, mentioned: csr_matrix) -> csr_matrix:
    """The weight of each link: 1 for a name in the node's cells, and more for its topic."""
    named: csr_matrix = (said + mentioned).sign()
    return (named + TOPIC_WEIGHT * topics).tocsr()


def _linked(weights: csr_matrix) -> LinkedNodes:
    weights.eliminate_zeros()
    of_node, of_name = (np.maximum(np.asarray(weights.sum(axis=axis)).ravel(), 1e-12) for axis in (1, 0))
    frequency = np.bincount(weights.indices, minlength=weights.shape[1]).astype(np.float64)
    return LinkedNodes((diags(1 / of_node) @ weights).T.tocsr(), (weights @ diags(1 / of_name)).tocsr(), frequency)
