"""`HippoRAGState`: the vectors and the knowledge graph that a query uses, and the numbers of phrases and facts."""

import json
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import compress, islice
from typing import Any, TypeVar, overload

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from llama_index.hipporag.graph.knowledge_graph import KnowledgeGraph
from llama_index.hipporag.graph.passage import Fact, Passage
from llama_index.hipporag.graph.synonym_search import resized
from llama_index.ragkit.ids import content_id
from llama_index.ragkit.masks import FEW, RecentMasks
from llama_index.ragkit.nested_arrays import Arrays, nested, part_of
from llama_index.ragkit.text.known_names import KnownNames
from llama_index.ragkit.text.packed_words import PackedPhrases, PackedWords
from llama_index.ragkit.vectors.row_records import RowsView
from llama_index.ragkit.vectors.snapshot import Mask, Snapshot

__all__ = [
    "HippoRAGState",
    "Numbering",
    "PackedFacts",
    "fact_id",
    "fact_key",
    "fact_of",
    "fact_text",
    "facts_of",
    "phrase_id",
]

T = TypeVar("T", bound=Hashable)


class Numbering(Mapping[T, int]):
    """Distinct keys, numbered from 0 in the order in which they came; immutable.

    A numbering and its extension share memory, so an extension costs only its new keys. This holds for the first
    extension of a numbering; a second one, such as the write after a failed one, starts from a copy.

    Packed keys, such as those of :meth:`of_packed`, become objects when the numbering is extended, and when a number is
    looked up, unless the keys can be found as they are.
    """

    __slots__ = ("_find", "_own", "_size", "_stored")

    def __init__(self, keys: Iterable[T] = ()) -> None:
        self._stored: Sequence[T] = ()
        self._own: tuple[list[T], dict[T, int]] | None = ([], {})
        self._find: Callable[[T], int] | None = None
        self._size = 0
        self._append(keys)

    @classmethod
    def of_packed(cls, keys: Sequence[T], find: Callable[[T], int] | None = None) -> "Numbering[T]":
        """The numbering of distinct, constant keys; `find` gives the number of a key, -1 for an unknown one."""
        found: Numbering[T] = cls()
        found._stored, found._own, found._find, found._size = keys, None, find, len(keys)
        return found

    def _made(self) -> tuple[list[T], dict[T, int]]:
        """The keys as objects, and their numbers; two threads may both make them."""
        if (own := self._own) is None:
            keys = list(self._stored)
            own = self._own = keys, dict(zip(keys, range(len(keys)), strict=True))
        return own

    @property
    def _keys(self) -> Sequence[T]:
        return self._stored if self._own is None else self._own[0]

    def __getitem__(self, key: T) -> int:
        number = self._made()[1][key] if self._own is not None or self._find is None else self._find(key)
        if not 0 <= number < self._size:  # unknown, or the number of an extension
            raise KeyError(key)
        return number

    def __iter__(self) -> Iterator[T]:
        return islice(self._keys, self._size)

    def __len__(self) -> int:
        return self._size

    @property
    def sequence(self) -> Sequence[T]:
        """The keys by number, without a copy."""
        return self._stored if self._own is None else RowsView(self._own[0].__getitem__, range(self._size), None)

    def at(self, number: int) -> T:
        """The key of a number from 0; an `IndexError` if there is none."""
        if not 0 <= number < self._size:
            raise IndexError(f"The numbers are 0 to {self._size - 1}, not {number}.")
        return self._keys[number]

    def extended(self, keys: Iterable[T]) -> "Numbering[T]":
        """The numbering with further keys after these; known ones keep their numbers."""
        longer: Numbering[T] = Numbering()
        own = self._made()
        if len(own[0]) == self._size:
            longer._own, longer._size = own, self._size
        else:
            longer._append(self)
        longer._append(keys)
        return longer

    def without(self, numbers: NDArray[Any]) -> "Numbering[T]":
        """The numbering without the keys of these numbers; the others move up, in the same order."""
        if not len(numbers):
            return self
        stays = np.ones(self._size, np.bool_)
        stays[numbers] = False
        return self.of_packed(list(compress(self._keys, stays.tolist())))

    def _append(self, keys: Iterable[T]) -> None:
        known, numbers = self._made()
        for key in keys:
            if key not in numbers:
                numbers[key] = len(known)
                known.append(key)
        self._size = len(known)


class PackedFacts(Sequence[Fact]):
    """Facts as numbers of phrases and of relations, shape (f,); `relations` are distinct."""

    def __init__(
        self,
        phrases: Sequence[str],
        heads: NDArray[np.int64],
        tails: NDArray[np.int64],
        relations: Sequence[str],
        relation_of: NDArray[np.int64],
    ) -> None:
        self._phrases, self._heads, self._tails = phrases, heads, tails
        self._relations, self._relation_of = relations, relation_of

    @classmethod
    def of_arrays(
        cls, arrays: Arrays, phrases: Sequence[str], heads: NDArray[np.int64], tails: NDArray[np.int64]
    ) -> "PackedFacts":
        """The facts with the relations of :meth:`to_arrays`."""
        relations = PackedWords.of_arrays(arrays["relations"], arrays["relation_ends"])
        return cls(phrases, heads, tails, relations, arrays["relation_of"])

    @staticmethod
    def to_arrays(facts: Sequence[Fact]) -> Arrays:
        """The relations of facts."""
        numbers: dict[str, int] = {}
        relation_of = np.fromiter(
            (numbers.setdefault(relation, len(numbers)) for _, relation, _ in facts), np.int64, len(facts)
        )
        letters, ends = PackedWords(list(numbers)).arrays
        return {"relations": letters, "relation_ends": ends, "relation_of": relation_of}

    def __len__(self) -> int:
        return len(self._heads)

    @overload
    def __getitem__(self, number: int) -> Fact: ...

    @overload
    def __getitem__(self, number: slice) -> list[Fact]: ...

    def __getitem__(self, number: int | slice) -> Fact | list[Fact]:
        if isinstance(number, slice):
            return [self[i] for i in range(*number.indices(len(self)))]
        head, tail = int(self._heads[number]), int(self._tails[number])
        return self._phrases[head], self._relations[int(self._relation_of[number])], self._phrases[tail]

    def __iter__(self) -> Iterator[Fact]:
        phrases, relations = list(self._phrases), list(self._relations)
        numbers = (self._heads.tolist(), self._relation_of.tolist(), self._tails.tolist())
        return (
            (phrases[head], relations[relation], phrases[tail]) for head, relation, tail in zip(*numbers, strict=True)
        )


Rows = NDArray[np.int64]


def phrase_id(phrase: str) -> str:
    """The id of a phrase's row, derived from its content so that it is the same in every index."""
    return content_id("phrase", phrase)


def fact_id(fact: Fact) -> str:
    """The id of a fact's row."""
    return content_id("fact", *fact)


def fact_key(fact: Fact) -> str:
    """A fact as the sort key of its row, which :func:`fact_of` decodes."""
    return json.dumps(fact, ensure_ascii=False)


def fact_of(key: str) -> Fact:
    """The fact of a sort key."""
    head, relation, tail = json.loads(key)
    return head, relation, tail


def facts_of(keys: Iterable[str]) -> list[Fact]:
    """The facts of many sort keys, parsed as one document, which is six times as fast."""
    return [(head, relation, tail) for head, relation, tail in json.loads(f"[{','.join(keys)}]")]


def fact_text(fact: Fact) -> str:
    """The text of a fact for the embedding model."""
    return " ".join(part for part in fact if part)


@dataclass(frozen=True)
class HippoRAGState:
    """Chunks, phrases and facts, one row each, and the knowledge graph over these rows."""

    chunks: Snapshot = field(default_factory=Snapshot.empty)  # vectors and keys
    phrases: Numbering[str] = field(default_factory=Numbering)  # phrase -> its row
    facts: Numbering[Fact] = field(default_factory=Numbering)  # fact -> its column in the graph
    # vectors of the first `len(phrase_vectors)` phrases, in their order: of all phrases, or of none until a search
    # needs them; the keys are the phrases
    phrase_vectors: Snapshot = field(default_factory=Snapshot.empty)
    # vectors of facts, which are encoded in the keys, in a separate order of rows: of all facts, or of none until a
    # search needs them
    fact_vectors: Snapshot = field(default_factory=Snapshot.empty)
    graph: KnowledgeGraph = field(default_factory=KnowledgeGraph.empty)
    # finds the phrases in texts, by how phrases are normalised, once a question has asked for it
    names: dict[Callable[[str], str], KnownNames] = field(default_factory=dict, repr=False, compare=False)

    @cached_property
    def fact_columns(self) -> Rows:
        """The column of the fact of each row of `fact_vectors`."""
        facts = facts_of(record.key for record in self.fact_vectors.records)
        return np.fromiter(map(self.facts.__getitem__, facts), np.int64, len(facts))

    def known_names(self, normal: Callable[[str], str]) -> KnownNames:
        """Finds the phrases in questions; their numbers are rows."""
        if normal not in self.names:
            self.names[normal] = KnownNames(self.phrases.sequence, normal, self.phrases)
        return self.names[normal]

    def _renumbered(self, removed: Rows, phrases: Numbering[str]) -> "HippoRAGState":
        """The state over phrases without those of some rows, and with others at the end."""
        gone, after = removed.tolist(), phrases.sequence if self.names else ()
        names = {normal: known.renumbered(gone, after, phrases) for normal, known in self.names.items()}
        return replace(self, phrases=phrases, names=names)

    @classmethod
    def of(
        cls,
        chunks: Snapshot,
        passages: Sequence[Passage],
        phrase_vectors: Snapshot | None = None,
        fact_vectors: Snapshot | None = None,
        lists: csr_matrix | None = None,
    ) -> "HippoRAGState":
        """The state of some chunks, each with its passage; `lists` are the similar phrases of those with vectors."""
        phrases, facts = phrase_vectors or Snapshot.empty(), fact_vectors or Snapshot.empty()
        # Phrases with a vector come first, in the order of their vectors.
        numbered = Numbering(record.key for record in phrases.records)
        state = cls(chunks, numbered, phrase_vectors=phrases, fact_vectors=facts)
        state = state.with_names(passages)
        n = len(state.phrases)
        lists = resized(csr_matrix((0, 0)) if lists is None else lists, n)
        blank = replace(KnowledgeGraph.empty(), named=csr_matrix((0, n)), about=csr_matrix((0, n)), synonym_lists=lists)
        return replace(state, graph=replace(state, graph=blank).graph_with(passages))

    def arrays(self) -> Arrays:
        """The data of a whole index besides its vectors, as arrays."""
        phrases, facts = PackedPhrases.to_arrays(list(self.phrases)), PackedFacts.to_arrays(list(self.facts))
        return nested({"graph": self.graph.arrays, "facts": facts, "phrases": phrases})

    @classmethod
    def of_arrays(
        cls, arrays: Arrays, chunks: Snapshot, phrase_vectors: Snapshot, fact_vectors: Snapshot
    ) -> "HippoRAGState":
        """The state of :meth:`arrays`, over the same memory."""
        phrases = PackedPhrases.of_arrays(part_of(arrays, "phrases"))
        graph = KnowledgeGraph.of_arrays(part_of(arrays, "graph"), len(chunks), len(phrases))
        facts = PackedFacts.of_arrays(part_of(arrays, "facts"), phrases, graph.heads, graph.tails)
        return cls(
            chunks,
            Numbering.of_packed(phrases, phrases.find),
            Numbering.of_packed(facts),
            phrase_vectors,
            fact_vectors,
            graph,
        )

    def without(self, rows: Rows) -> tuple["HippoRAGState", list[str], list[Fact]]:
        """The state without some passages, and phrases and facts that only they had; chunks and vectors are kept."""
        if not len(rows):
            return self, [], []
        graph, phrases, facts = self.graph.without(rows)
        left = self._renumbered(phrases, self.phrases.without(phrases))
        left = replace(left, facts=self.facts.without(facts), graph=graph)
        return left, list(map(self.phrases.at, phrases.tolist())), list(map(self.facts.at, facts.tolist()))

    def with_lists(self, lists: csr_matrix) -> "HippoRAGState":
        """The state with lists of similar phrases, for the first phrases or for all."""
        return replace(self, graph=replace(self.graph, synonym_lists=resized(lists, len(self.phrases))))

    def with_names(self, passages: Sequence[Passage]) -> "HippoRAGState":
        """The state with numbers for the phrases and facts of passages."""
        if not passages:
            return self  # a numbering is made into objects when it is extended
        phrases = self.phrases.extended(phrase for passage in passages for phrase in passage.phrases())
        facts = self.facts.extended(fact for passage in passages for fact in passage.statements)
        return replace(self._renumbered(np.array([], np.int64), phrases), facts=facts)

    def graph_with(self, passages: Sequence[Passage]) -> KnowledgeGraph:
        """The graph with further passages, whose phrases and facts have numbers."""
        row, column = self.phrases, self.facts
        new = [self.facts.at(number) for number in range(len(self.graph.heads), len(self.facts))]
        return self.graph.extended(
            named=[{row[phrase]: times for phrase, times in passage.named.items()} for passage in passages],
            about=[dict.fromkeys((row[phrase] for phrase in passage.subjects), 1) for passage in passages],
            statements=[{column[fact]: times for fact, times in passage.statements.items()} for passage in passages],
            heads=[row[head] for head, _, _ in new],
            tails=[row[tail] for _, _, tail in new],
            synonym_lists=resized(self.graph.synonym_lists, len(self.phrases)),
        )

    def visible(self, allowed: Mask | None) -> KnowledgeGraph:
        """The graph of only the allowed passages."""
        return self.graph if allowed is None else self._restricted.of(allowed, self.graph.restricted)

    @cached_property
    def _restricted(self) -> RecentMasks[KnowledgeGraph]:
        return RecentMasks(FEW)
