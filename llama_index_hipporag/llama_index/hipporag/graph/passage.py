"""`Passage`: the normalised phrases and facts of a passage, and the rows that it adds to the stored graph.

They come from the record of an extractor. Triples without exactly three elements occur in practice (185 of the 17,419
that one model wrote for 1,890 passages); they are skipped.

The walk over the rows is that of :class:`~llama_index.hipporag.graph.knowledge_graph.KnowledgeGraph` with edges
"added": facts join two phrases, and a passage is joined to its phrases. The source of every edge is the passage from
which it comes. All that a passage writes, including the names of its phrases, is a sum of whole numbers. So removing it
subtracts exactly that, whatever other passages there are.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from llama_index.hipporag.config import GraphConfig
from llama_index.hipporag.text.normalization import normal_form
from llama_index.ragkit.sql.names import name_edges
from llama_index.ragkit.storage.graph.edges import EdgeChange, content_number

__all__ = [
    "FACT", "LISTED", "LISTS", "NAMED", "SUBJECT", "Fact", "Passage", "cosine_of", "is_passage", "list_rows",
    "passage_number", "passage_rows", "phrase_number", "read_record", "record_reader",
]  # fmt: skip

Fact = tuple[str, str, str]
Edge = tuple[int, int, int, int, int]  # node, neighbor, source, kind, count

PHRASE, PASSAGE = 0, 1
"""Kinds of nodes: the lowest bits of their numbers."""

FACT, STATED, NAMED, SUBJECT, LISTS, LISTED = range(6)
"""Kinds of edges: between phrases by a fact; between a passage and a phrase that it has only in facts, that it names
as an entity, or that it is about; from a phrase to one on its list of similar phrases, and back."""

_COSINE = 1 << 30  # the count of an edge for a cosine of 1

_REMEMBERED = 1 << 16  # texts; a build of millions of passages must not keep every name it has met


class Passage(NamedTuple):
    """Phrases and facts of one passage.

    Attributes
    ----------
    named : phrase -> how often it is listed as an entity
    statements : fact (head, relation, tail) -> how often it is stated
    subjects : the subject of the passage: its title
    """

    named: Mapping[str, int]
    statements: Mapping[Fact, int]
    subjects: Sequence[str] = ()

    def phrases(self) -> list[str]:
        """All phrases, each once, in order of first mention."""
        ends = (end for head, _, tail in self.statements for end in (head, tail))
        return list(dict.fromkeys([*self.subjects, *self.named, *ends]))


def read_record(
    record: Mapping[str, Any], normalised: Callable[[str], str], entity_nodes: bool = True, empty: bool = False
) -> Passage:
    """Read `{"entities": [...], "triples": [[head, relation, tail], ...], "subject": [...]}`.

    Elements of other types are converted to text (models write years as numbers). A triple is valid if it has three
    elements and, after normalisation, a head and a tail.

    Parameters
    ----------
    normalised : text -> phrase
    entity_nodes : whether entities and subjects become phrases; otherwise only heads and tails of triples
        do, as in the published code
    empty : whether a head or tail may be empty after normalisation, as in the published code
    """
    named = Counter(_phrases(record.get("entities"), normalised) if entity_nodes else ())
    subjects = dict.fromkeys(_phrases(record.get("subject"), normalised) if entity_nodes else ())
    statements: Counter[Fact] = Counter()
    triples = record.get("triples")
    for triple in triples if isinstance(triples, list) else ():
        if isinstance(triple, (list, tuple)) and len(triple) == 3:
            head, relation, tail = (normalised(str(part)) for part in triple)
            if empty or (head and tail):
                statements[head, relation, tail] += 1
    return Passage(named, statements, list(subjects))


def _phrases(values: Any, normalised: Callable[[str], str]) -> list[str]:
    texts = [str(value) for value in values if isinstance(value, (str, int, float))] if isinstance(values, list) else []
    return [phrase for text in texts if (phrase := normalised(text))]


def record_reader(config: GraphConfig) -> Callable[[Mapping[str, Any] | None], Passage]:
    """Reads records by the parameters of a graph; texts that soon occur again are normalised once."""
    normalised, empty = lru_cache(_REMEMBERED)(normal_form(config.normalizer)), config.normalizer == "legacy"
    return lambda record: read_record(record or {}, normalised, config.entity_nodes, empty)


class PassageRows(NamedTuple):
    """The changes of edges that passages make, and the label of each node: the phrase, or the id of the passage."""

    change: EdgeChange
    labels: Mapping[int, str]


@lru_cache(1 << 16)
def phrase_number(phrase: str) -> int:
    """The number of a phrase's node."""
    return content_number(PHRASE, phrase)


@lru_cache(1 << 16)
def passage_number(node_id: str) -> int:
    """The number of a passage's node."""
    return content_number(PASSAGE, node_id)


def is_passage(nodes: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether nodes are passages."""
    found: NDArray[np.bool_] = (nodes & 3) == PASSAGE
    return found


def passage_rows(passages: Mapping[str, Passage], count: int = 1) -> PassageRows:
    """The edges of passages in both directions, and those by which their phrases are found; `count` -1 removes them."""
    labels: dict[int, str] = {}
    edges: list[Edge] = []
    for node_id, passage in passages.items():
        number = passage_number(node_id)
        labels[number] = node_id
        labels.update((phrase_number(phrase), phrase) for phrase in passage.phrases())
        edges += _edges(number, passage, count)
    return PassageRows(EdgeChange.of(edges), labels)


def list_rows(lists: Mapping[str, Mapping[str, float]], count: int = 1) -> PassageRows:
    """The edges of lists of similar phrases: phrase -> phrases with their cosines; `count` -1 removes them."""
    labels = {phrase_number(phrase): phrase for one, near in lists.items() for phrase in (one, *near)}
    edges: list[Edge] = []
    for phrase, near in lists.items():
        one = phrase_number(phrase)
        for name, cosine in near.items():
            other, times = phrase_number(name), count * round(cosine * _COSINE)
            edges += [(one, other, 0, LISTS, times), (other, one, 0, LISTED, times)]
    return PassageRows(EdgeChange.of(edges), labels)


def cosine_of(counts: NDArray[np.int32]) -> NDArray[np.float64]:
    """The cosines of edges between similar phrases."""
    found: NDArray[np.float64] = counts / _COSINE
    return found


def _edges(number: int, passage: Passage, count: int) -> Iterator[Edge]:
    subjects = set(passage.subjects)
    for phrase in passage.phrases():
        node = phrase_number(phrase)
        kind = SUBJECT if phrase in subjects else NAMED if phrase in passage.named else STATED
        yield number, node, number, kind, count
        yield node, number, number, kind, count
        for key, name, source, name_kind, _ in _edges_of_name(phrase):
            yield key, name, source, name_kind, count
    for (head, _, tail), times in passage.statements.items():
        one, other = phrase_number(head), phrase_number(tail)
        if one != other:  # the walk has no loops
            yield one, other, number, FACT, times * count
            yield other, one, number, FACT, times * count


@lru_cache(1 << 14)
def _edges_of_name(phrase: str) -> tuple[Edge, ...]:
    return tuple(name_edges(phrase, phrase_number(phrase)))
