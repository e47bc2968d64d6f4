"""`GraphBuilder`: keeps phrases, facts and synonym edges of the knowledge graph up to date.

Phrases and facts are embedded when a search first compares a question with them or walks along synonym edges, unless
the index is set to embed them with each write; from then on every write embeds those that it adds.

Order within a write, so that the remains of one that is killed can be repaired (:meth:`GraphBuilder.load`): deletes
come first; lists of similar phrases are stored before the rows of the phrases in them. A list with a phrase that has
no row is recomputed if it may lack an entry.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from llama_index.hipporag.config import GraphConfig
from llama_index.hipporag.graph.knowledge_graph import KnowledgeGraph
from llama_index.hipporag.graph.numbering import Numbering
from llama_index.hipporag.graph.passage import Passage
from llama_index.hipporag.graph.record_reader import RecordReader
from llama_index.hipporag.graph.synonym_edges import ExtendedPhrases, searched, with_new
from llama_index.hipporag.graph.synonym_search import resized
from llama_index.hipporag.state import HippoRAGState, extracts_terms, fact_id, fact_key, fact_text, facts_of, phrase_id
from llama_index.hipporag.synonym_records import SIMILAR, load_lists, store_lists
from llama_index.ragkit import Builder, Change, IndexStorage, Resources, SpaceRows, Steps, offload

__all__ = ["GraphBuilder"]

PHRASES = "phrases"
FACTS = "facts"

Ints = NDArray[np.int64]


class GraphBuilder(Builder[GraphConfig, HippoRAGState]):
    """Updates the stored phrases, facts and synonym edges from the records of the extractor."""

    def __init__(self, storage: IndexStorage, resources: Resources, config: GraphConfig) -> None:
        super().__init__(storage, resources, config)
        self._reader = RecordReader(config)

    # -- changing -----------------------------------------------------------------------------------

    def apply(self, state: HippoRAGState, change: Change) -> Steps[HippoRAGState]:
        """Store what is derived from a change, and return the new state."""
        return self._counted((yield from self._applied(state, change)))

    def embed_missing(self, state: HippoRAGState, phrases: bool, facts: bool) -> Steps[HippoRAGState]:
        """The state with vectors of all phrases, and the synonym edges, or of all facts, as chosen.

        Later writes keep them complete.
        """
        if phrases:
            state = yield from self._embed_phrases(state)
        if facts:
            state = yield from self._embed_facts(state)
        return self._counted(state)

    def _counted(self, state: HippoRAGState) -> HippoRAGState:
        _, phrases, facts = state.graph.shape
        # The names of the counters are part of the stored format.
        self.storage.struct.counters.update(phrases=phrases, facts=facts, near_phrases=state.graph.synonym_lists.nnz)
        return state

    def _applied(self, state: HippoRAGState, change: Change) -> Steps[HippoRAGState]:
        gone = state.chunks.rows_of(list(change.removed))
        state = yield from self._without_passages(state, gone[gone >= 0].astype(np.int64))
        passages = [self._reader.read(change.records.get(node.node_id)) for node in change.added]
        state = state.with_names(passages)
        if self.config.phrase_vectors or len(state.phrase_vectors):
            state = yield from self._embed_phrases(state)
        if self.config.fact_vectors or len(state.fact_vectors):
            state = yield from self._embed_facts(state)
        places = self.storage.snapshot().rows_of([node.node_id for node in change.added])
        p = state.graph.shape[0]
        if not np.array_equal(places, np.arange(p, p + len(passages))):
            return (yield from self.load())  # resume an incomplete write, whose rows are among the others
        return self._with_passages(state, passages)

    def _with_passages(self, state: HippoRAGState, passages: Sequence[Passage]) -> HippoRAGState:
        """The state with passages whose phrases and facts have numbers."""
        return replace(self._snapshots(state), graph=state.graph_with(passages))

    def _snapshots(self, state: HippoRAGState) -> HippoRAGState:
        rows = self.storage.snapshot
        return replace(
            state,
            chunks=rows(),
            phrase_vectors=rows(PHRASES),
            fact_vectors=rows(FACTS),
            has_terms=self._has_terms,
        )

    @property
    def _has_terms(self) -> bool:
        """Whether the graph has terms in lower case."""
        return extracts_terms(self.storage.struct.components)

    def _without_passages(self, state: HippoRAGState, passages: Ints) -> Steps[HippoRAGState]:
        """Remove passages, with the phrases and facts that no other passage has."""
        if not passages.size:
            return state
        graph, lost, lost_facts = state.graph.without(passages)
        embedded = len(state.phrase_vectors)
        kept = np.ones(len(state.phrases), np.bool_)
        kept[lost] = False
        # Full lists that lose a phrase are searched again for the next one.
        lists = state.graph.synonym_lists
        losers = np.flatnonzero((np.diff(lists.indptr) > 0) & kept & (lists @ (~kept).astype(np.float64) > 0))
        full = np.diff(lists.indptr)[losers] >= self.config.max_synonyms
        names = [phrase_id(state.phrases.at(row)) for row in lost.tolist() if row < embedded]
        yield from self.storage.spaces[PHRASES].remove(names)
        yield from self.storage.records.delete(SIMILAR, names)
        if len(state.fact_vectors):
            gone = [fact_id(state.facts.at(column)) for column in lost_facts.tolist()]
            yield from self.storage.spaces[FACTS].remove(gone)
        state = replace(
            self._snapshots(state),
            phrases=state.phrases.without(lost),
            facts=state.facts.without(lost_facts),
            graph=graph,
        )
        number = np.cumsum(kept) - 1
        lists = yield from offload(
            searched, state.phrase_vectors, graph.synonym_lists, number[losers[full]], self.config
        )
        yield from store_lists(self.storage.records, state.phrase_vectors.ids.__getitem__, lists, number[losers])
        return replace(state, graph=replace(graph, synonym_lists=lists))

    def _embed_phrases(self, state: HippoRAGState) -> Steps[HippoRAGState]:
        """Store a vector and a list of similar phrases for each phrase that has none."""
        size = len(state.phrase_vectors)
        new = [state.phrases.at(row) for row in range(size, len(state.phrases))]
        if not new:
            return state
        vectors = yield from self.resources.embed(new, "phrases")
        ids = [phrase_id(phrase) for phrase in new]
        extended = ExtendedPhrases(state.phrase_vectors, ids, new, vectors)
        before = resized(state.graph.synonym_lists, size)
        lists, touched = yield from offload(with_new, before, extended, self.config)
        yield from store_lists(self.storage.records, extended.id_of, lists, touched)
        yield from self.storage.spaces[PHRASES].put(SpaceRows(ids, vectors, new, ids))
        graph = state.graph.extended([], [], [], [], [], lists)
        return replace(self._snapshots(state), graph=graph)

    def _embed_facts(self, state: HippoRAGState) -> Steps[HippoRAGState]:
        new = [fact for fact in state.facts if fact_id(fact) not in state.fact_vectors]
        if not new:
            return state
        vectors = yield from self.resources.embed([fact_text(fact) for fact in new], "facts")
        ids = [fact_id(fact) for fact in new]
        yield from self.storage.spaces[FACTS].put(SpaceRows(ids, vectors, [fact_key(fact) for fact in new], ids))
        return self._snapshots(state)

    # -- reading ------------------------------------------------------------------------------------

    def load(self) -> Steps[HippoRAGState]:
        """The stored state, with the remains of a killed write repaired."""
        entries = yield from self.storage.manifest.entries()
        passages = [self._reader.read(entries[i].record if i in entries else None) for i in self.storage.snapshot().ids]
        named = HippoRAGState().with_names(passages)
        yield from self._remove_unknown(named)
        state = self._snapshots(HippoRAGState())
        # Phrases with a vector come first, in the order of their vectors.
        state = replace(state, phrases=Numbering(record.key for record in state.phrase_vectors.records))
        state = state.with_names(passages)
        lists = yield from load_lists(self.storage.records, state.phrase_vectors, self.config)
        n = len(state.phrases)
        lists = resized(lists, n)
        blank = replace(KnowledgeGraph.empty(), named=csr_matrix((0, n)), about=csr_matrix((0, n)), synonym_lists=lists)
        return self._with_passages(replace(state, graph=blank), passages)

    def _remove_unknown(self, named: HippoRAGState) -> Steps[None]:
        """Remove vectors and lists of phrases and facts that no passage has."""
        phrase_space, fact_space = self.storage.spaces[PHRASES], self.storage.spaces[FACTS]
        orphans = [row.id for row in phrase_space.store.snapshot().records if row.key not in named.phrases]
        yield from phrase_space.remove(orphans)
        yield from self.storage.records.delete(SIMILAR, orphans)
        rows = fact_space.store.snapshot().records
        facts = facts_of(row.key for row in rows)
        yield from fact_space.remove([row.id for row, fact in zip(rows, facts, strict=True) if fact not in named.facts])
