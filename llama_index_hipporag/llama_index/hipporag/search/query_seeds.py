"""`QuerySeeds` and `Link`: the phrases of the graph from which the walk for a question starts."""

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from llama_index.hipporag.graph.passage import Fact
from llama_index.hipporag.state import fact_of
from llama_index.hipporag.text.noun_phrases import shared_heads, terms
from llama_index.ragkit.llm.json.shapes import NumberList, Reply
from llama_index.ragkit.text.known_names import KnownNames, names_part
from llama_index.ragkit.vectors.snapshot import Mask, Snapshot
from llama_index.ragkit.vectors.trust import rarity

__all__ = [
    "FactFilter", "Link", "NamedPhrases", "QuerySeeds", "linked_facts", "links_of_named", "nearest_phrases",
    "seeds_of_facts", "specificity",
]  # fmt: skip

Floats = NDArray[np.float32]

# Relative weight of a name in lower case if the question marks names by capitals: it may be a common word. Phrases that
# no passage lists as an entity do not count; nor do single words in a graph with terms.
_LOWER_CASE = 0.01


@dataclass(frozen=True)
class Link:
    """A phrase of the graph to which a question is linked.

    Attributes
    ----------
    asked : the source of the link: a phrase of the question, the question, or a fact
    phrase, row : the phrase in the graph
    cosine : similarity of the two, in [-1, 1]; 1 for the same phrase
    weight : weight in the reset distribution, before scaling to sum 1
    """

    asked: str
    phrase: str
    row: int
    cosine: float
    weight: float


@dataclass(frozen=True)
class NamedPhrases:
    """The phrases that a question may name: all of the graph, or a selection."""

    known: KnownNames  # finds them in texts; their numbers are rows
    phrase_of: Callable[[int], str]
    frequency: NDArray[np.float64]  # (n,), the number of passages with a phrase; a phrase with 0 is not found
    mentioned: NDArray[np.bool_]  # (n,), whether a passage names a phrase as an entity, without being about it
    unspecific: Set[str] = frozenset()  # parts of names that too many phrases have, if the phrases are a selection


@dataclass(frozen=True)
class QuerySeeds:
    """The seeds of a walk.

    Attributes
    ----------
    links : the phrases; several may have the same row
    weights : row -> weight in the reset distribution
    facts : the facts that led to the phrases, with scores
    weakest : the smallest cosine of the links
    rarity : that of the rarest name, in [0, 1], see :func:`~llama_index.ragkit.vectors.trust.rarity`
    reason : why there are no links; empty otherwise
    """

    links: Sequence[Link] = ()
    weights: Mapping[int, float] = field(default_factory=dict)
    facts: Sequence[tuple[Fact, float]] = ()
    weakest: float = 1.0
    rarity: float = 1.0
    reason: str = ""

    def with_words(self, frequencies: Mapping[str, float], count: float) -> "QuerySeeds":
        """The seeds with the rarity of the names' words, which may be in more passages than the names themselves.

        `frequencies` has the number of passages with the words of each link's source, `count` that of all passages.
        """
        rarest = min((max(frequencies[link.asked], 1 / link.weight) for link in self.links if link.weight), default=1.0)
        return replace(self, rarity=rarity(rarest, count))


class FactFilter(Reply):
    """Reply to the prompt for helpful facts."""

    other_names: ClassVar[Mapping[str, Sequence[str]]] = {"facts": ("fact", "numbers", "helpful", "helpfulfacts")}
    items: ClassVar[str] = "facts"

    facts: NumberList = Field(description="numbers of the facts that help, the most helpful first")


def specificity(frequency: float, used: bool) -> float:
    """1 / number of passages with the phrase (paper, section 2.3), or 1."""
    return 1.0 / max(1.0, frequency) if used else 1.0


def nearest_phrases(
    phrases: Snapshot, shown: Mask, vectors: Floats, most: int, threshold: float
) -> list[list[tuple[str, float]]]:
    """For each phrase of the question, by vectors (q, d), the nearest phrases that may be shown, with their cosines.

    There are at most `most`, with a cosine of at least `threshold`.
    """
    if not len(vectors) or not shown.any():
        return [[] for _ in vectors]
    return [
        [
            (phrases.records[row].key, cosine)
            for row, cosine in zip(hits.rows.tolist(), hits.scores, strict=True)
            if cosine >= threshold
        ]
        for hits in phrases.search(vectors, most, None if shown.all() else shown)
    ]


def links_of_named(named: NamedPhrases, question: str, by_specificity: bool, by_terms: bool) -> list[Link]:
    """The phrases of the graph that the question names, or, if none is known, its terms; in its first 1,000 words.

    The phrases of one name (its forms, or longer names that contain it) together weigh as much as a single phrase that
    is in all of their passages. Terms are matched only `by_terms`: in a graph of names such matches are accidental.
    """
    question = names_part(question)
    known, frequency = named.known, named.frequency
    normal = known.normal
    seen = (frequency > 0).item  # row -> whether a passage has the phrase

    links: list[Link] = []

    def add(start: int, end: int, rows: Sequence[int], share: float = 1.0) -> None:
        passages = float(frequency[list(rows)].sum()) if by_specificity else len(rows)
        weight = share / max(1.0, passages)
        links.extend(Link(question[start:end], named.phrase_of(row), row, 1.0, weight) for row in rows)

    names = known.find(question, seen, named.unspecific)
    certain = [name for name in names if not name.lower_case]
    found = _known_terms(question, known, seen) if by_terms and not certain else []
    for name in certain:
        add(name.start, name.end, name.rows)
    for name in names if not found else ():
        is_single = " " not in question[name.start : name.end]
        if name.lower_case and named.mentioned[list(name.rows)].all() and not (by_terms and is_single):
            add(name.start, name.end, name.rows, _LOWER_CASE)
    shared = ((normal(term.text), term.start, term.end) for term in shared_heads(question)) if by_terms else ()
    for phrase, start, end in [*found, *shared]:
        row = known.number(phrase, seen)
        if row is not None:
            add(start, end, [row])
    return links


def _known_terms(question: str, known: KnownNames, seen: Callable[[int], bool]) -> list[tuple[str, int, int]]:
    """The known terms of a question, (normalised phrase, start, end) by position; only the longest of nested terms."""
    found: list[tuple[str, int, int]] = []
    for text, start, end in sorted(terms(question), key=lambda term: (term.start - term.end, term.start)):
        phrase = known.normal(text)
        is_free = all(end <= taken[1] or taken[2] <= start for taken in found)
        if is_free and known.number(phrase, seen) is not None:
            found.append((phrase, start, end))
    return sorted(found, key=lambda term: term[1])


def linked_facts(facts: Snapshot, shown: Mask, vector: Floats, most: int) -> list[tuple[Fact, float]]:
    """The facts nearest to a question, with their cosines scaled to [0, 1] over all facts; best first.

    The given facts must include the nearest and the farthest of those that may be shown.
    """
    allowed = None if shown.all() else shown
    cosines = facts.cosines([vector])[:, 0]
    if allowed is not None:
        cosines = cosines[allowed]
    if not cosines.size:
        return []
    (hits,) = facts.search([vector], most, allowed)
    # The scores of the search are exact, the cosines rounded: with only one kind, a score could leave [0, 1].
    low, high = min(float(cosines.min()), hits.scores[-1]), max(float(cosines.max()), hits.scores[0])
    span = high - low
    return [
        (fact_of(facts.records[row].key), (score - low) / span if span > 0 else 1.0)
        for row, score in zip(hits.rows.tolist(), hits.scores, strict=True)
    ]


def seeds_of_facts(
    facts: Sequence[tuple[Fact, float]], places: Mapping[str, tuple[int, float]], most: int, by_specificity: bool
) -> list[Link]:
    """The phrases of facts; the weight of a phrase is the mean, over its facts, of fact score times specificity.

    `places` has the row and the number of passages of each phrase.
    """
    given: dict[str, list[tuple[float, Fact]]] = {}
    for fact, score in facts:
        for phrase in dict.fromkeys((fact[0], fact[2])):
            if phrase in places:
                given.setdefault(phrase, []).append((score, fact))
    links = []
    for phrase, parts in given.items():
        row, frequency = places[phrase]
        weight = float(np.mean([score for score, _ in parts])) * specificity(frequency, by_specificity)
        score, fact = max(parts)
        links.append(Link("; ".join(fact), phrase, row, score, weight))
    return sorted(links, key=lambda link: (-link.weight, link.phrase))[:most]
