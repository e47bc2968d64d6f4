"""From a question to entities of the graph."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from llama_index.graphrag.graph.statement import bare, scope_of, scoped
from llama_index.graphrag.graph.statement_graph import StatementGraph
from llama_index.ragkit.text.mentions import mentions

__all__ = ["Link", "LinkKind", "known_names", "linked_entities"]

LinkKind = Literal["name", "vector", "chunk"]


@dataclass(frozen=True)
class Link:
    """An entity that a question leads to.

    Attributes
    ----------
    entity : its key
    kind : "name" if the question names it, "vector" if it is near to the question, "chunk" if a chunk that is near to
        the question names it
    asked : the words of the question, for a name
    weight : in (0, 1]: 1 for a name, else the cosine or the share of chunks
    """

    entity: str
    kind: LinkKind
    asked: str
    weight: float


def known_names(graph: StatementGraph) -> dict[str, tuple[str, ...]]:
    """Every name in the graph, normalised, with the sorted keys of the entities that it may stand for.

    A short form stands for the entities that it stands for in some document.
    """
    names: dict[str, set[str]] = defaultdict(set)
    for key in graph.entities:
        names[bare(key)].add(key)
    for document, short in graph.short.items():
        for name, full in short.items():
            names[name].add(scoped(scope_of(document), graph.same.get(full, full)))
    for name, full in graph.same.items():
        names[name] |= names.get(full, set())
    return {name: tuple(sorted(keys & graph.entities.keys())) for name, keys in names.items()}


def linked_entities(
    question: str,
    names: Mapping[str, Sequence[str]],
    near: Iterable[tuple[str, float]] = (),
    chunks: Iterable[Iterable[str]] = (),
    *,
    top_k: int = 10,
    threshold: float = 0.5,
) -> list[Link]:
    """The entities that a question leads to, each once, the surest first.

    Entities that the question names come first; of a name that may stand for several, each has its share. Then those
    nearest by their vectors. Only where neither is found, the entities that most of the chunks nearest to the question
    name.

    Parameters
    ----------
    names : see :func:`known_names`
    near : (key, cosine with the question), the nearest first
    chunks : for chunks near to the question, the nearest first, the keys of their entities
    top_k : entities by vectors or by chunks, at most
    threshold : least cosine
    """
    links: dict[str, Link] = {}
    for phrase, start, end in mentions(question, names):
        for key in names[phrase]:
            links.setdefault(key, Link(key, "name", question[start:end], 1 / len(names[phrase])))
    nearest = [(key, cosine) for key, cosine in near if cosine >= threshold and cosine > 0][:top_k]
    for key, cosine in nearest:
        links.setdefault(key, Link(key, "vector", "", min(1.0, float(cosine))))
    if not links:
        given = [sorted(set(entities)) for entities in chunks]
        counts: dict[str, int] = defaultdict(int)
        for entities in given:
            for key in entities:
                counts[key] += 1
        for key in sorted(counts, key=lambda key: (-counts[key], key))[:top_k]:
            links[key] = Link(key, "chunk", "", counts[key] / len(given))
    return sorted(links.values(), key=lambda link: ("name", "vector", "chunk").index(link.kind))
