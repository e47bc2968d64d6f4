"""`PhraseVectors`: keeps vectors of phrases, and for each phrase the list of similar ones."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from llama_index.hipporag.config import GraphConfig
from llama_index.hipporag.graph.synonym_search import ExtendedPhrases, resized, searched, with_new
from llama_index.hipporag.graph_view import PHRASES
from llama_index.hipporag.passage_graph import SIMILAR, PassageGraph, read_lists
from llama_index.hipporag.state import HippoRAGState, phrase_id
from llama_index.ragkit import Snapshot, SpaceRows, Steps, offload
from llama_index.ragkit.index.resources import Resources
from llama_index.ragkit.storage.index_storage import IndexStorage
from llama_index.ragkit.storage.records import Record

__all__ = ["PhraseVectors"]

_AT_ONCE = 200  # vectors whose neighbours are searched together
_MORE = 4  # factor by which more are requested while all that were found are similar
_MOST = 16_000

Ints = NDArray[np.int64]
Floats = NDArray[np.float32]


class _Held(NamedTuple):
    """Phrases with vectors, and their lists, shape (m, m): all phrases, or those that a write needs."""

    phrases: Snapshot
    lists: csr_matrix


class PhraseVectors:
    """Updates the vectors, the lists, and the edges that follow from the lists.

    A list is stored before the rows of the phrases on it, so that :meth:`load` can repair the remains of a killed
    write: a list with a phrase that has no row is recomputed, since it may lack an entry.
    """

    def __init__(self, storage: IndexStorage, resources: Resources, config: GraphConfig, rows: PassageGraph) -> None:
        self._storage, self._records = storage, storage.records
        self._resources, self._config, self._rows = resources, config, rows

    def load(self, phrases: Snapshot) -> Steps[csr_matrix]:
        """The stored lists of all phrases."""
        stored = yield from self._records.get_all(SIMILAR)
        lists, incomplete = read_lists(stored, phrases.ids)
        if len(incomplete):
            lists = yield from offload(searched, phrases, lists, incomplete, self._config)
            yield from self._store(lists, incomplete, phrases.ids.__getitem__)
        yield from self._records.delete(SIMILAR, [row_id for row_id in stored if row_id not in phrases])
        return lists

    def add(self, state: HippoRAGState, new: Sequence[str]) -> Steps[csr_matrix | None]:
        """Store a vector and a list for each phrase that has none; returns all lists, if they are in memory."""
        vectors = yield from self._resources.embed(list(new), "phrases")
        held = yield from self._around(state, vectors)
        ids = [phrase_id(phrase) for phrase in new]
        extended = ExtendedPhrases(held.phrases, ids, new, vectors)
        lists, touched = yield from offload(with_new, held.lists, extended, self._config)
        yield from self._store(lists, touched, extended.id_of)
        if self._rows.is_stored:
            name = extended.phrase_of
            old = touched[touched < held.lists.shape[0]]
            yield from self._rows.relist(_named(held.lists, old, name), _named(lists, touched, name))
        yield from self._storage.space(PHRASES).put(SpaceRows(ids, vectors, list(new), ids))
        return None if self._rows.is_stored else lists

    def remove(self, state: HippoRAGState, lost: Sequence[str]) -> Steps[csr_matrix | None]:
        """Delete the vectors and lists of phrases; returns all lists, if they are in memory.

        Full lists that lose a phrase are searched again for the next one.
        """
        space, ids = self._storage.space(PHRASES), [phrase_id(phrase) for phrase in lost]
        gone = yield from space.fetch(ids)
        held = yield from self._around(state, gone.matrix)
        kept, losers, full = self._losers(held, ids)
        if len(full):
            more = np.concatenate([gone.matrix, held.phrases.vectors_of([held.phrases.ids[row] for row in full])])
            held = yield from self._around(state, more)
            kept, losers, full = self._losers(held, ids)
        yield from space.remove(ids)
        yield from self._records.delete(SIMILAR, ids)
        left = held.phrases.without(np.flatnonzero(~kept))
        number = np.cumsum(kept) - 1
        lists = held.lists[kept][:, kept]
        lists = yield from offload(searched, left, lists, number[full], self._config)
        yield from self._store(lists, number[losers], left.ids.__getitem__)
        if self._rows.is_stored:
            before = np.concatenate([losers, np.flatnonzero(~kept)])
            old, new = ([record.key for record in rows.records].__getitem__ for rows in (held.phrases, left))
            yield from self._rows.relist(_named(held.lists, before, old), _named(lists, number[losers], new))
        return None if self._rows.is_stored else lists

    def forget(self, ids: Sequence[str]) -> Steps[None]:
        """Delete what a killed write has left of phrases."""
        yield from self._storage.space(PHRASES).remove(ids)
        yield from self._records.delete(SIMILAR, ids)

    def _losers(self, held: _Held, ids: Sequence[str]) -> tuple[NDArray[np.bool_], Ints, Ints]:
        """Which phrases stay, which of these lose a phrase from their list, and which lose one from a full list."""
        kept = np.ones(len(held.phrases), np.bool_)
        rows = held.phrases.rows_of(ids)
        kept[rows[rows >= 0]] = False
        counts = np.diff(held.lists.indptr)
        losers = np.flatnonzero(kept & (held.lists @ (~kept).astype(np.float64) > 0))
        return kept, losers, losers[counts[losers] >= self._config.max_synonyms]

    def _around(self, state: HippoRAGState, vectors: Floats) -> Steps[_Held]:
        """All phrases, or, if they are not in memory, those similar to some vectors and those on their lists."""
        space = self._storage.space(PHRASES)
        whole = space.whole()
        if whole is not None:
            return _Held(whole, resized(state.graph.synonym_lists, len(whole)))
        near = Snapshot.empty()
        for start in range(0, len(vectors), _AT_ONCE):
            near = near.joined((yield from self._similar(vectors[start : start + _AT_ONCE])))
        records = yield from self._records.get_many(SIMILAR, near.ids)
        listed = dict.fromkeys(row_id for record in records.values() for row_id in record["ids"])
        near = near.joined((yield from space.fetch([row_id for row_id in listed if row_id not in near])))
        return _Held(near, read_lists(records, near.ids)[0])

    def _similar(self, vectors: Floats) -> Steps[Snapshot]:
        """All phrases similar to some vectors."""
        wanted, threshold = self._config.max_synonyms + 1, self._config.synonym_threshold
        while True:
            found = yield from self._storage.space(PHRASES).near(vectors, wanted)
            hits = found.search(vectors, wanted)
            if wanted > _MOST or all(len(hit.rows) < wanted or hit.scores[-1] < threshold for hit in hits):
                return found
            wanted *= _MORE

    def _store(self, lists: csr_matrix, rows: Ints, id_of: Callable[[int], str]) -> Steps[None]:
        """Store the lists of some rows, and delete empty ones."""
        records: dict[str, Record | None] = {}
        for row in rows.tolist():
            part = slice(lists.indptr[row], lists.indptr[row + 1])
            near = [id_of(column) for column in lists.indices[part].tolist()]
            records[id_of(row)] = {"ids": near, "cosines": lists.data[part].tolist()} if near else None
        yield from self._records.update(SIMILAR, records)


def _named(lists: csr_matrix, rows: Ints, phrase_of: Callable[[int], str]) -> dict[str, dict[str, float]]:
    """The lists of some rows, by phrases."""
    ends = ((row, slice(lists.indptr[row], lists.indptr[row + 1])) for row in rows.tolist())
    return {
        phrase_of(row): dict(zip(map(phrase_of, lists.indices[part].tolist()), lists.data[part].tolist(), strict=True))
        for row, part in ends
    }
