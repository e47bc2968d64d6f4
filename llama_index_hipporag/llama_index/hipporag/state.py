"""`HippoRAGState`: the vectors and the knowledge graph that a query uses."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from llama_index.hipporag.graph.knowledge_graph import KnowledgeGraph
from llama_index.hipporag.graph.numbering import Numbering, PackedFacts
from llama_index.hipporag.graph.passage import Fact, Passage
from llama_index.hipporag.graph.synonym_search import resized
from llama_index.hipporag.text.normalization import Normalizer, normal_form
from llama_index.ragkit.ids import content_id
from llama_index.ragkit.nested_arrays import Arrays, nested, part_of
from llama_index.ragkit.text.known_names import KnownNames
from llama_index.ragkit.text.packed_words import PackedPhrases
from llama_index.ragkit.vectors.masks import FEW, RecentMasks
from llama_index.ragkit.vectors.snapshot import Mask, Snapshot

__all__ = ["HippoRAGState", "fact_id", "fact_key", "fact_of", "fact_text", "facts_of", "phrase_id"]

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
    """Chunks, phrases and facts, one row each, and the knowledge graph over these rows.

    Attributes
    ----------
    chunks : vectors and keys
    phrases : phrase -> its row
    facts : fact -> its column in the graph
    phrase_vectors : vectors of the first `len(phrase_vectors)` phrases, in their order: of all phrases, or of none
        until a search needs them; the keys are the phrases
    fact_vectors : vectors of facts, which are encoded in the keys, in a separate order of rows: of all facts, or of
        none until a search needs them
    names : finds the phrases in texts, by how phrases are normalised, once a question has asked for it
    """

    chunks: Snapshot = field(default_factory=Snapshot.empty)
    phrases: Numbering[str] = field(default_factory=Numbering)
    facts: Numbering[Fact] = field(default_factory=Numbering)
    phrase_vectors: Snapshot = field(default_factory=Snapshot.empty)
    fact_vectors: Snapshot = field(default_factory=Snapshot.empty)
    graph: KnowledgeGraph = field(default_factory=KnowledgeGraph.empty)
    names: dict[Normalizer, KnownNames] = field(default_factory=dict, repr=False, compare=False)

    @cached_property
    def fact_columns(self) -> Rows:
        """The column of the fact of each row of `fact_vectors`."""
        facts = facts_of(record.key for record in self.fact_vectors.records)
        return np.fromiter(map(self.facts.__getitem__, facts), np.int64, len(facts))

    def known_names(self, normalizer: Normalizer) -> KnownNames:
        """Finds the phrases in questions; their numbers are rows."""
        if normalizer not in self.names:
            self.names[normalizer] = KnownNames(self.phrases.sequence, normal_form(normalizer), self.phrases)
        return self.names[normalizer]

    def _renumbered(self, removed: Rows, phrases: Numbering[str]) -> "HippoRAGState":
        """The state over phrases without those of some rows, and with others at the end."""
        gone, after = removed.tolist(), phrases.sequence if self.names else ()
        names = {normalizer: known.renumbered(gone, after, phrases) for normalizer, known in self.names.items()}
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
