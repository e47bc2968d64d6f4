"""From a question to entities, by its words, by vectors of names, and by the chunks nearest to it; and back to chunks.

With weight l_e of a link to entity e, its neighbours x by the weights w_ex of the pairs, S_e = sum_x w_ex, a spread d,
and D_e the chunks that name e:

    a_e = l_e + d sum_x l_x w_xe / S_x                       activation
    s_c = sum over the entities e of c of a_e / |D_e|        share of chunk c, scaled so that the best is 1

An entity that is everywhere says little about where to look, so its activation is shared among all its chunks. Shares
are added to nearness as far as they can be trusted, see :mod:`llama_index.ragkit.vectors.trust`.

Source: none of the published searches mixes both; microsoft/graphrag ranks chunks only by entities.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from llama_index.graphrag.config import SearchConfig
from llama_index.graphrag.graph.entity_graph import EntityGraph, Naming, short_names
from llama_index.graphrag.graph.sorted_rows import RowValues
from llama_index.graphrag.graph.statement import bare, scope_of
from llama_index.graphrag.graph.statement_graph import StatementGraph
from llama_index.ragkit.text.known_names import mentions, names_part
from llama_index.ragkit.vectors.question_scores import best_rows
from llama_index.ragkit.vectors.snapshot import Snapshot

__all__ = [
    "COMPARED",
    "KnownEntities",
    "Link",
    "activations",
    "chunk_shares",
    "known_names",
    "linked_entities",
    "links_of",
    "nearest_chunks",
    "nearest_names",
]

Floats = NDArray[np.float64]
_EQUAL = 1e-9

LinkKind = Literal["name", "vector", "chunk"]
COMPARED = 100  # best chunks, and best entities; the first and the last of them scale the weights of the others
_SEED_POWER = 4
_DECIMALS = 10  # hides the order of a sum


@dataclass(frozen=True)
class Link:
    """An entity that a question leads to.

    Attributes
    ----------
    entity : its key
    kind : "name" if the question names it, "vector" if it is near to the question, "chunk" if a chunk near to the
        question names it
    asked : the words of the question, for a name
    weight : at least 0: 1 for a name, shared if it may stand for several entities; for other kinds see
        `linked_entities`
    """

    entity: str
    kind: LinkKind
    asked: str
    weight: float


class KnownEntities(Mapping[str, tuple[str, ...]]):
    """The mapping of :func:`known_names` for a graph without scopes, in which names are keys, looked up on demand."""

    def __init__(self, keys: Mapping[str, int], short: Mapping[str, Collection[str]]) -> None:
        self._keys, self._short = keys, short

    def __getitem__(self, name: str) -> tuple[str, ...]:
        if name not in self:
            raise KeyError(name)
        return tuple(sorted(key for key in {name, *self._short.get(name, ())} if key in self._keys))

    def __contains__(self, name: object) -> bool:
        return name in self._keys or name in self._short

    def __iter__(self) -> Iterator[str]:
        return iter({**dict.fromkeys(self._keys), **dict.fromkeys(self._short)})

    def __len__(self) -> int:
        return len(self._keys) + sum(name not in self._keys for name in self._short)


def known_names(graph: StatementGraph) -> dict[str, tuple[str, ...]]:
    """Every name in the graph, normalised, with the sorted keys of the entities for which it may stand.

    A short form or a merged name may stand for every entity for which it stands in some document.
    """
    names: dict[str, set[str]] = defaultdict(set)
    for key in graph.entities:
        names[bare(key)].add(key)
    for name, keys in short_names(graph).items():
        names[name] |= keys
    return {name: tuple(sorted(keys & graph.entities.keys())) for name, keys in names.items()}


def linked_entities(
    question: str,
    names: Mapping[str, Sequence[str]],
    near: Iterable[tuple[str, float]] = (),
    chunks: Iterable[tuple[float, Sequence[str]]] = (),
) -> list[Link]:
    """The entities that a question leads to, each once: those that it names, those near to it, those of near chunks.

    Names are looked up in the first 1,000 words of the question.

    An entity that is found in several ways is linked by the first, with the sum of the weights.

    Parameters
    ----------
    names : see :func:`known_names`; the entities for which a name may stand share its weight
    near : (key, weight) of entities found by their vectors
    chunks : (weight, keys of its entities) of chunks near to the question; the entities share the weight
    """
    links: dict[str, Link] = {}

    def add(key: str, kind: LinkKind, asked: str, weight: float) -> None:
        known = links.get(key)
        links[key] = Link(key, kind, asked, weight) if known is None else replace(known, weight=known.weight + weight)

    for phrase, start, end in mentions(names_part(question), names):
        for key in names[phrase]:
            if key not in links:
                add(key, "name", question[start:end], 1 / len(names[phrase]))
    for key, weight in near:
        add(key, "vector", "", weight)
    for weight, keys in chunks:
        for key in keys:
            add(key, "chunk", "", weight / len(keys))
    kinds: Sequence[LinkKind] = ("name", "vector", "chunk")
    return sorted(links.values(), key=lambda link: (kinds.index(link.kind), -link.weight, link.entity))


def relative(values: Floats, power: float = 1.0) -> Floats:
    """Places of values between the last and the first, in [0, 1], to a power; 0 if all are equal.

    Values are descending, such as the cosines of the best; their scale and offset do not matter.
    """
    spread = float(values[0] - values[-1]) if len(values) else 0.0
    if spread <= _EQUAL:
        return np.zeros(len(values))
    found: Floats = ((values - values[-1]) / spread) ** power
    return found


def links_of(
    text: str,
    names: Mapping[str, Sequence[str]],
    near_names: Sequence[tuple[str, float]],
    near_chunks: Sequence[tuple[float, str]],
    entities_of: Mapping[str, Sequence[str]],
    options: SearchConfig,
) -> list[Link]:
    """The entities that a question leads to; see :func:`nearest_names` and :func:`nearest_chunks` for what is near."""
    near: dict[str, float] = {}
    for name, weight in near_names[: options.entities_top_k]:
        for key in names.get(bare(name), ()):
            if scope_of(key) == scope_of(name) and weight >= options.link_threshold:
                near.setdefault(key, weight)
    chunks = [(weight, entities_of.get(chunk, ())) for weight, chunk in near_chunks]
    return linked_entities(text, names, near.items(), [(weight, keys) for weight, keys in chunks if keys])


def nearest_names(
    entities: Snapshot, vector: NDArray[np.float32], options: SearchConfig, mask: NDArray[np.bool_] | None = None
) -> list[tuple[str, float]]:
    """The names nearest to a vector, each with the place of its cosine among those of the 100 nearest.

    Names are within their scopes; a mask of shape (number of names,) says which count.
    """
    if not options.entities_top_k or not len(entities):
        return []
    (hits,) = entities.search(np.stack([vector]), max(COMPARED, options.entities_top_k), mask)
    weights = relative(np.asarray(hits.scores, np.float64)).tolist()
    return [(entities.records[row].key, weight) for row, weight in zip(hits.rows.tolist(), weights, strict=True)]


def nearest_chunks(chunks: Snapshot, scores: Floats, options: SearchConfig) -> list[tuple[float, str]]:
    """The chunks nearest to a question, by scores of shape (n,), whose entities are linked, with weights above 0."""
    rows = best_rows(scores, COMPARED, chunks) if options.seed_chunks else []
    weights = options.seed_weight * relative(scores[rows], _SEED_POWER)
    seeds = list(zip(weights.tolist(), rows, strict=True))[: options.seed_chunks]
    ids = chunks.ids
    return [(weight, ids[row]) for weight, row in seeds if weight > 0]


def activations(entities: EntityGraph, links: Iterable[Link], spread: float) -> RowValues:
    """The activation of each entity, by key; `spread` is d, in [0, 1)."""
    found = np.zeros(len(entities))
    linked = [(entities.position[link.entity], link.weight) for link in links if link.entity in entities.position]
    for row, weight in linked:
        found[row] += weight
    for row, weight in linked if spread else ():
        entries = slice(entities.indptr[row], entities.indptr[row + 1])
        weights = entities.weights[entries]
        strength = int(weights.sum() if entities.sums is None else entities.sums[row])
        found[entities.indices[entries]] += spread * weight * weights / max(1, strength)
    return RowValues(entities.names, found)


def chunk_shares(naming: Naming, active: RowValues) -> RowValues:
    """The share of each chunk that names an active entity, in (0, 1], the best 1; by id."""
    of_each = active.numbers / np.maximum(naming.counts, 1)
    shares = np.bincount(naming.where, np.repeat(of_each, naming.sizes), len(naming.chunks))
    best = float(shares.max(initial=0.0))
    scaled: Floats = (shares / best).round(_DECIMALS) if best > 0 else np.zeros(len(shares))
    return RowValues(naming.chunks, scaled)
