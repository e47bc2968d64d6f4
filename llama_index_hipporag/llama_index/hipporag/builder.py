"""`GraphBuilder`: keeps the knowledge graph of an index up to date, with the vectors of its phrases and facts.

Unless the index embeds phrases and facts with each write, they are embedded when a search first compares a question
with them or walks along synonym edges. From then on every write embeds those that it adds.

What a passage adds to the graph depends on no other passage. Within a write, deletes come first, so that the remains of
a killed write can be repaired (:meth:`GraphBuilder.load`).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain

import numpy as np

from llama_index.hipporag.config import GraphConfig
from llama_index.hipporag.graph.passage import Fact, Passage, record_reader
from llama_index.hipporag.graph_view import FACTS, PHRASES, GraphView
from llama_index.hipporag.passage_graph import PassageGraph
from llama_index.hipporag.phrase_vectors import PhraseVectors
from llama_index.hipporag.state import HippoRAGState, fact_id, fact_key, fact_text, facts_of, phrase_id
from llama_index.ragkit import Builder, Change, Selection, Snapshot, SpaceRows, Steps
from llama_index.ragkit.index.resources import Resources
from llama_index.ragkit.nested_arrays import Arrays
from llama_index.ragkit.steps import immediate
from llama_index.ragkit.storage.index_storage import IndexStorage
from llama_index.ragkit.storage.stored_chunks import ChunkView

__all__ = ["GraphBuilder"]

Write = Callable[[HippoRAGState], Steps[HippoRAGState]]


class GraphBuilder(Builder[GraphConfig, HippoRAGState]):
    """Updates the rows of passages, and vectors of phrases and facts; `graph` reads the part that questions need."""

    def __init__(self, storage: IndexStorage, resources: Resources, config: GraphConfig) -> None:
        super().__init__(storage, resources, config)
        self._read = record_reader(config)
        self._rows = PassageGraph(storage.stores.graph(), storage.records)
        self._phrases = PhraseVectors(storage, resources, config, self._rows)
        self.graph = GraphView(storage, self._rows)
        self._always = {PHRASES: config.phrase_vectors, FACTS: config.fact_vectors}
        for name, is_kept in self._always.items():
            if is_kept and not storage.struct.generation:
                storage.add_space(name)

    # -- the state ----------------------------------------------------------------------------------

    def load(self) -> Steps[HippoRAGState]:
        """The whole index if it is in memory, with the remains of a killed write repaired; else an empty state."""
        chunks = self.storage.space().whole()
        if chunks is None:
            return HippoRAGState()
        entries = yield from self.storage.manifest.entries()
        passages = [self._read(entries[i].record if i in entries else None) for i in chunks.ids]
        yield from self._remove_unknown(HippoRAGState().with_names(passages))
        phrases, facts = self._vectors
        lists = yield from self._phrases.load(phrases)
        return HippoRAGState.of(chunks, passages, phrases, facts, lists)

    def arrays_of(self, state: HippoRAGState) -> Arrays:
        """Phrases, facts and graph."""
        return state.arrays() if self.storage.is_whole else {}

    def load_arrays(self, arrays: Arrays) -> HippoRAGState | None:
        """The state of :meth:`arrays_of`, made into objects when a search needs them."""
        return HippoRAGState.of_arrays(arrays, self.storage.snapshot(), *self._vectors)

    @property
    def _vectors(self) -> tuple[Snapshot, Snapshot]:
        """The vectors of phrases and facts, if all of them are in memory."""
        phrases, facts = (self.storage.space(name).whole() for name in (PHRASES, FACTS))
        return phrases or Snapshot.empty(), facts or Snapshot.empty()

    def _remove_unknown(self, named: HippoRAGState) -> Steps[None]:
        """Remove vectors and lists of phrases and facts that no passage has."""
        phrases, facts = self._vectors
        yield from self._phrases.forget([row.id for row in phrases.records if row.key not in named.phrases])
        stored = zip(facts.records, facts_of(row.key for row in facts.records), strict=True)
        yield from self.storage.space(FACTS).remove([row.id for row, fact in stored if fact not in named.facts])

    def _over(self, state: HippoRAGState) -> HippoRAGState:
        """The state with the current vectors."""
        phrases, facts = self._vectors
        return replace(state, phrase_vectors=phrases, fact_vectors=facts)

    def _counted(self, state: HippoRAGState) -> HippoRAGState:
        _, phrases, facts = state.graph.shape
        # The names of the counters are part of the stored format.
        self.storage.struct.counters.update(phrases=phrases, facts=facts, near_phrases=state.graph.synonym_lists.nnz)
        return state

    # -- changing -----------------------------------------------------------------------------------

    def apply(self, state: HippoRAGState, change: Change) -> Steps[HippoRAGState]:
        """Store what is derived from a change, and return the new state."""
        passages = [self._read(change.records.get(node.node_id)) for node in change.added]
        added = {node.node_id: passage for node, passage in zip(change.added, passages, strict=True)}
        before = yield from self._rows.replace({**dict.fromkeys(change.removed), **added})
        left = yield from self._without(state, change.removed, before)
        named = left.with_names(passages)
        if self._embeds(state, PHRASES):
            named = yield from self._with_phrases(named, chain.from_iterable(map(Passage.phrases, passages)))
        if self._embeds(state, FACTS):
            named = yield from self._with_facts(named, chain.from_iterable(each.statements for each in passages))
        chunks = self.storage.space().whole()
        if chunks is None:
            return state
        places = chunks.rows_of([node.node_id for node in change.added])
        p = left.graph.shape[0]
        if not np.array_equal(places, np.arange(p, p + len(passages))):
            # Resume an incomplete write, some of whose rows are already stored.
            return self._counted((yield from self.load()))
        return self._counted(replace(self._over(named), chunks=chunks, graph=named.graph_with(passages)))

    def _without(
        self, state: HippoRAGState, removed: Sequence[str], before: Mapping[str, Passage]
    ) -> Steps[HippoRAGState]:
        """Delete the vectors of phrases and facts that no passage has any more.

        If the graph has rows, `before` has the earlier passages of changed chunks.
        """
        rows = state.chunks.rows_of(list(removed))
        left, phrases, facts = state.without(rows[rows >= 0].astype(np.int64))
        embeds_phrases, embeds_facts = self._embeds(state, PHRASES), self._embeds(state, FACTS)
        if before and (embeds_phrases or embeds_facts):
            phrases, facts = yield from self.graph.lost(before.values())
        if phrases and embeds_phrases:
            lists = yield from self._phrases.remove(state, phrases)
            left = left if lists is None else left.with_lists(lists)
        if facts and embeds_facts:
            yield from self.storage.space(FACTS).remove(map(fact_id, facts))
        return left

    def _embeds(self, state: HippoRAGState, name: str) -> bool:
        """Whether phrases or facts, by the name of their space, are embedded with each write."""
        if self._rows.is_stored:
            return name in self.storage.struct.spaces
        return self._always[name] or len(state.phrase_vectors if name == PHRASES else state.fact_vectors) > 0

    def _with_phrases(self, state: HippoRAGState, phrases: Iterable[str]) -> Steps[HippoRAGState]:
        """Store a vector and a list of similar phrases for each of these phrases that has none."""
        ids = {phrase_id(phrase): phrase for phrase in phrases}
        known = yield from self.storage.space(PHRASES).described(ids)
        new = [phrase for row_id, phrase in ids.items() if row_id not in known]
        lists = (yield from self._phrases.add(state, new)) if new else None
        return state if lists is None else state.with_lists(lists)

    def _with_facts(self, state: HippoRAGState, facts: Iterable[Fact]) -> Steps[HippoRAGState]:
        space = self.storage.space(FACTS)
        ids = {fact_id(fact): fact for fact in facts}
        known = yield from space.described(ids)
        new = {row_id: fact for row_id, fact in ids.items() if row_id not in known}
        if new:
            vectors = yield from self.resources.embed([fact_text(fact) for fact in new.values()], "facts")
            yield from space.put(SpaceRows(list(new), vectors, list(map(fact_key, new.values())), list(new)))
        return state

    def embedding(self, state: HippoRAGState, phrases: bool, facts: bool) -> Steps[list[Write]]:
        """The writes that embed all phrases or facts, as chosen; later writes keep the vectors complete."""
        chosen = [name for name, is_chosen in ((PHRASES, phrases), (FACTS, facts)) if is_chosen]
        if self._rows.is_stored and chosen:
            yield from self.storage.commits.refresh()
        lacking = [name for name in chosen if not self._is_embedded(state, name)]
        works: list[Write] = [partial(self._embed_all, names=lacking)]
        if self._rows.is_stored:  # each space is added by its own write
            works = [partial(self._add_spaces, names=lacking), *works]
        return works if lacking else []

    def _is_embedded(self, state: HippoRAGState, name: str) -> bool:
        if self._rows.is_stored:
            embedded = self.storage.struct.counters.get(f"{name}_embedded", 0) > 0
            return self._always[name] or self.graph.passages == 0 or embedded
        if name == PHRASES:
            return len(state.phrase_vectors) >= len(state.phrases)
        return len(state.fact_vectors) >= len(state.facts)

    @immediate
    def _add_spaces(self, state: HippoRAGState, names: Sequence[str]) -> HippoRAGState:
        for name in names:
            self.storage.add_space(name)
        return state

    def _embed_all(self, state: HippoRAGState, names: Sequence[str]) -> Steps[HippoRAGState]:
        named = state.with_names((yield from self._rows.all_passages()))
        if PHRASES in names:
            named = yield from self._with_phrases(named, named.phrases)
        if FACTS in names:
            named = yield from self._with_facts(named, named.facts)
        if not self._rows.is_stored:
            return self._counted(self._over(named))
        self.storage.struct.counters.update({f"{name}_embedded": 1 for name in names})
        return state

    # -- questions if the graph has rows ------------------------------------------------------------

    @immediate
    def state_of(self, near: ChunkView, selection: Selection) -> HippoRAGState:
        """The state of some chunks; a question reads the graph as needed."""
        return HippoRAGState(near.rows)
