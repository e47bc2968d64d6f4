"""`CorpusRows`: how often the documents of an index have each term, as records."""

from collections.abc import Iterable, Mapping

from llama_index.ragkit import Steps
from llama_index.ragkit.storage.index_storage import IndexStorage
from llama_index.ragkit.text.salient_terms import CorpusTerms

__all__ = ["CorpusRows"]

_TERMS = "sprag_terms"
_TOTAL = "all terms"  # the key of their number; a term has no space


class CorpusRows:
    """A row for each term, so that a write reads and changes only those of its documents.

    Parameters
    ----------
    storage : of the index
    """

    def __init__(self, storage: IndexStorage) -> None:
        self._records = storage.records

    def of(self, terms: Iterable[str], more: Mapping[str, int]) -> Steps[CorpusTerms]:
        """The corpus after a change, only with the counts of some terms.

        Parameters
        ----------
        more : how often the change adds each term; less than 0 if it removes more
        """
        counts = yield from self._counts([*terms, _TOTAL])
        total = counts.pop(_TOTAL, 0) + sum(more.values())
        return CorpusTerms({term: counts.get(term, 0) + more.get(term, 0) for term in terms}, total)

    def change(self, more: Mapping[str, int]) -> Steps[None]:
        """Add to the counts of terms; see :meth:`of`."""
        if not more:
            return
        counts = yield from self._counts([*more, _TOTAL])
        new = {term: counts.get(term, 0) + count for term, count in more.items() if count}
        yield from self._store({**new, _TOTAL: counts.get(_TOTAL, 0) + sum(more.values())})

    def put_all(self, terms: Mapping[str, int]) -> Steps[None]:
        """Store the terms of all documents in place of the stored counts."""
        stored = {term: row["count"] for term, row in (yield from self._records.get_all(_TERMS)).items()}
        wanted = {**terms, _TOTAL: sum(terms.values())}
        other = {term: count for term, count in wanted.items() if stored.get(term) != count}
        yield from self._store({**dict.fromkeys(stored.keys() - wanted.keys(), 0), **other})

    def _counts(self, terms: Iterable[str]) -> Steps[dict[str, int]]:
        rows = yield from self._records.get_many(_TERMS, terms)
        return {term: row["count"] for term, row in rows.items()}

    def _store(self, counts: Mapping[str, int]) -> Steps[None]:
        yield from self._records.put(_TERMS, [(term, {"count": count}) for term, count in counts.items() if count > 0])
        yield from self._records.delete(_TERMS, [term for term, count in counts.items() if count <= 0])
