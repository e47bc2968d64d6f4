"""`GraphBuilder`: keeps phrases, facts and synonym edges of the knowledge graph up to date.

Order within a write, so that the remains of one that is killed can be repaired (:meth:`GraphBuilder.load`): deletes
come first; lists of similar phrases are stored before the rows of the phrases in them. A list with a phrase that has
no row is recomputed if it may lack an entry.
"""

from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from llama_index.hipporag.config import GraphConfig
from llama_index.hipporag.graph.knowledge_graph import KnowledgeGraph
from llama_index.hipporag.graph.passage import Fact, Passage, read_record
from llama_index.hipporag.graph.synonym_edges import ExtendedPhrases, searched, with_new
from llama_index.hipporag.state import HippoRAGState, fact_id, fact_key, fact_text, facts_of, phrase_id
from llama_index.hipporag.synonym_records import SIMILAR, load_lists, store_lists
from llama_index.hipporag.text.normalization import Normalizer, normalise
from llama_index.ragkit import Builder, Change, IndexStorage, Resources, SpaceRows, Steps, offload

__all__ = ["GraphBuilder"]

PHRASES = "phrases"
FACTS = "facts"

Ints = NDArray[np.int64]


class GraphBuilder(Builder[GraphConfig, HippoRAGState]):
    """Updates the stored phrases, facts and synonym edges from the records of the extractor."""

    def __init__(self, storage: IndexStorage, resources: Resources, config: GraphConfig) -> None:
        super().__init__(storage, resources, config)
        self._normalised = _Normalised(config.normalizer)

    def read(self, record: Mapping[str, Any] | None) -> Passage:
        """A record as phrases and facts."""
        config = self.config
        known = self._normalised.__getitem__
        return read_record(record or {}, known, config.entity_nodes, empty=config.normalizer == "legacy")

    # -- changing -----------------------------------------------------------------------------------

    def apply(self, state: HippoRAGState, change: Change) -> Steps[HippoRAGState]:
        """Store what is derived from a change, and return the new state."""
        state = yield from self._applied(state, change)
        _, phrases, facts = state.graph.shape
        # The names of the counters are part of the stored format.
        self.storage.struct.counters.update(phrases=phrases, facts=facts, near_phrases=state.graph.synonym_lists.nnz)
        return state

    def _applied(self, state: HippoRAGState, change: Change) -> Steps[HippoRAGState]:
        gone = state.chunks.rows_of(list(change.removed))
        state = yield from self._without_passages(state, gone[gone >= 0].astype(np.int64))
        passages = [self.read(change.records.get(node.node_id)) for node in change.added]
        phrases = list(dict.fromkeys(phrase for passage in passages for phrase in passage.phrases()))
        facts = list(dict.fromkeys(fact for passage in passages for fact in passage.statements))
        state = yield from self._add_phrases(state, phrases)
        yield from self._add_fact_vectors(facts)
        chunks = self.storage.snapshot()
        places = chunks.rows_of([node.node_id for node in change.added])
        p = state.graph.shape[0]
        if not np.array_equal(places, np.arange(p, p + len(passages))):
            return (yield from self.load())  # resume an incomplete write, whose rows are among the others
        row_of = dict(zip(phrases, state.rows_of_phrases(phrases).tolist(), strict=True))
        return self._with_passages(state, passages, facts, row_of)

    def _with_passages(
        self, state: HippoRAGState, passages: Sequence[Passage], facts: Sequence[Fact], row_of: Mapping[str, int]
    ) -> HippoRAGState:
        """The state with passages whose phrases all have rows, given in `row_of`."""
        columns = {**state.facts}
        new = [fact for fact in facts if fact not in columns]
        columns.update({fact: len(columns) + i for i, fact in enumerate(new)})
        graph = state.graph.extended(
            named=[{row_of[phrase]: times for phrase, times in passage.named.items()} for passage in passages],
            about=[dict.fromkeys((row_of[phrase] for phrase in passage.subjects), 1) for passage in passages],
            statements=[{columns[fact]: times for fact, times in passage.statements.items()} for passage in passages],
            heads=[row_of[head] for head, _, _ in new],
            tails=[row_of[tail] for _, _, tail in new],
            synonym_lists=state.graph.synonym_lists,
        )
        return replace(self._snapshots(state), facts=columns, graph=graph)

    def _snapshots(self, state: HippoRAGState) -> HippoRAGState:
        rows = self.storage.snapshot
        return replace(state, chunks=rows(), phrases=rows(PHRASES), fact_vectors=rows(FACTS), has_terms=self._has_terms)

    @property
    def _has_terms(self) -> bool:
        """Whether the graph has terms in lower case: not if its extractor is set to extract none."""
        return self.storage.struct.components.get("extractor", {}).get("terms") != "false"

    def _without_passages(self, state: HippoRAGState, passages: Ints) -> Steps[HippoRAGState]:
        """Remove passages, with the phrases and facts that no other passage has."""
        if not passages.size:
            return state
        graph, lost, lost_facts = state.graph.without(passages)
        names = [state.phrases.ids[row] for row in lost]
        kept = np.ones(len(state.phrases), np.bool_)
        kept[lost] = False
        # Full lists that lose a phrase are searched again for the next one.
        lists = state.graph.synonym_lists
        losers = np.flatnonzero((np.diff(lists.indptr) > 0) & kept & (lists @ (~kept).astype(np.float64) > 0))
        full = np.diff(lists.indptr)[losers] >= self.config.max_synonyms
        yield from self.storage.spaces[PHRASES].remove(names)
        yield from self.storage.records.delete(SIMILAR, names)
        gone = {state.fact_list[column] for column in lost_facts}
        yield from self.storage.spaces[FACTS].remove([fact_id(fact) for fact in gone])
        facts = [fact for fact in state.facts if fact not in gone]
        state = replace(self._snapshots(state), facts={fact: column for column, fact in enumerate(facts)}, graph=graph)
        number = np.cumsum(kept) - 1
        lists = yield from offload(searched, state.phrases, graph.synonym_lists, number[losers[full]], self.config)
        yield from store_lists(self.storage.records, lambda row: state.phrases.records[row].id, lists, number[losers])
        return replace(state, graph=replace(graph, synonym_lists=lists))

    def _add_phrases(self, state: HippoRAGState, phrases: Sequence[str]) -> Steps[HippoRAGState]:
        """Store a vector, a list of similar phrases and a row for new phrases."""
        new = [phrase for phrase in phrases if phrase_id(phrase) not in state.phrases]
        if not new:
            return state
        vectors = yield from self.resources.embed(new, "phrases")
        ids = [phrase_id(phrase) for phrase in new]
        extended = ExtendedPhrases(state.phrases, ids, new, vectors)
        lists, touched = yield from offload(self._with_new, state, extended)
        yield from store_lists(self.storage.records, extended.id_of, lists, touched)
        yield from self.storage.spaces[PHRASES].put(SpaceRows(ids, vectors, new, ids))
        return replace(self._snapshots(state), graph=state.graph.extended([], [], [], [], [], lists))

    def _with_new(self, state: HippoRAGState, extended: ExtendedPhrases) -> tuple[csr_matrix, Ints]:
        return with_new(state.graph.synonym_lists, extended, self.config)

    def _add_fact_vectors(self, facts: Sequence[Fact]) -> Steps[None]:
        if not self.config.fact_vectors:
            return
        space = self.storage.spaces[FACTS]
        rows = space.store.snapshot()
        new = [fact for fact in facts if fact_id(fact) not in rows]
        if new:
            vectors = yield from self.resources.embed([fact_text(fact) for fact in new], "facts")
            ids = [fact_id(fact) for fact in new]
            yield from space.put(SpaceRows(ids, vectors, [fact_key(fact) for fact in new], ids))

    # -- reading ------------------------------------------------------------------------------------

    def load(self) -> Steps[HippoRAGState]:
        """The stored state, with the remains of a killed write repaired."""
        entries = yield from self.storage.manifest.entries()
        chunks = self.storage.snapshot()
        passages = [self.read(entries[i].record) if i in entries else self.read(None) for i in chunks.ids]
        phrase_space, fact_space = self.storage.spaces[PHRASES], self.storage.spaces[FACTS]
        wanted = {phrase for passage in passages for phrase in passage.phrases()}
        statements = list(dict.fromkeys(fact for passage in passages for fact in passage.statements))
        embedded = set(statements) if self.config.fact_vectors else set()
        orphans = [row.id for row in phrase_space.store.snapshot().records if row.key not in wanted]
        yield from phrase_space.remove(orphans)
        yield from self.storage.records.delete(SIMILAR, orphans)
        rows = fact_space.store.snapshot().records
        facts = facts_of(row.key for row in rows)
        yield from fact_space.remove([row.id for row, fact in zip(rows, facts, strict=True) if fact not in embedded])
        state = self._snapshots(HippoRAGState())
        lists = yield from load_lists(self.storage.records, state.phrases, self.config)
        row_of = {record.key: row for row, record in enumerate(state.phrases.records)}
        if len(row_of) < len(wanted):  # an incomplete write has phrases without rows: resume it
            passages = [_among(passage, row_of) for passage in passages]
            statements = [fact for fact in statements if fact[0] in row_of and fact[2] in row_of]
        n = len(row_of)
        blank = replace(KnowledgeGraph.empty(), named=csr_matrix((0, n)), about=csr_matrix((0, n)), synonym_lists=lists)
        return self._with_passages(replace(state, graph=blank), passages, statements, row_of)


class _Normalised(dict[str, str]):
    """A cache of normalised texts, which may be empty."""

    def __init__(self, normalizer: Normalizer) -> None:
        super().__init__()
        self._normalizer = normalizer

    def __missing__(self, text: str) -> str:
        phrase = self[text] = normalise(text, self._normalizer)
        return phrase


def _among(passage: Passage, known: Container[str]) -> Passage:
    return Passage(
        {phrase: times for phrase, times in passage.named.items() if phrase in known},
        {fact: times for fact, times in passage.statements.items() if fact[0] in known and fact[2] in known},
        [phrase for phrase in passage.subjects if phrase in known],
    )
