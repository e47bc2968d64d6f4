"""`SQLLexicalIndex`: BM25 from postings in an SQL database, with the scores of the index in memory."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

import numpy as np
from sqlalchemy import Engine, text

from llama_index.ragkit.sql.arrays import integer_id
from llama_index.ragkit.sql.engine import reading, writing
from llama_index.ragkit.sql.lexical_tables import LEXICAL_NAMES, LEXICAL_TABLES, LexicalRows
from llama_index.ragkit.text.lexical_index import length_norms, question_stems, stem_scores, stem_weight

__all__ = ["SQLLexicalIndex"]

_BULK = 10_000  # postings in one write


class SQLLexicalIndex:
    """Texts by their words, in an SQL database; see `llama_index.ragkit.sql.lexical_tables`.

    Scores are those of :class:`~llama_index.ragkit.text.lexical_index.LexicalIndex`, to the last bit: the database
    selects the best texts by the same formula, and what their scores are computed from is read. A question is stemmed
    in its own language, and finds all words with the same stems in that language. For each language that questions or
    texts are written in, the stems of all words are stored once, and later writes add those of new words.

    Writes lock the index, so that those of several processes follow each other; a question reads one state.

    Parameters
    ----------
    engine : of :func:`~llama_index.ragkit.sql.make_engine`
    name : of the index; indexes of different names never see each other's texts
    vocabulary : gives all words of the stored texts, each at least once. It is called when a question or a text is in a
        language for the first time
    """

    def __init__(self, engine: Engine, name: str, vocabulary: Callable[[], Iterable[str]]) -> None:
        self._engine = engine
        self._name = name
        self._vocabulary = vocabulary

    def __len__(self) -> int:
        LEXICAL_TABLES.make(self._engine)
        with reading(self._engine, single=True) as connection:
            return LexicalRows(connection, self._name).size()[0]

    def changed(
        self, removed: Collection[str], added: Mapping[str, Mapping[str, int]], languages: Collection[str] = ()
    ) -> None:
        """Remove texts and add others, which replace those of the same id, in one transaction.

        Parameters
        ----------
        added : id -> how often the text has each term, see
            :func:`~llama_index.ragkit.text.lexical_terms.lexical_terms`
        languages : ISO 639-1 codes of those of the added texts, which questions need not prepare then
        """
        LEXICAL_TABLES.make(self._engine)
        with writing(self._engine) as connection:
            rows = LexicalRows(connection, self._name)
            rows.lock()
            rows.remove({*removed, *added})
            rows.add(added)
            words = sorted({word for counts in added.values() for word in counts})
            known = rows.languages()
            for language in known:
                rows.add_stems(language, words)
            for language in sorted({*languages} - {*known}):
                rows.add_stems(language, words)
                self._prepare(rows, language)
        if self._engine.dialect.name == "postgresql" and sum(map(len, added.values())) > _BULK:
            # Without statistics of the new rows, the next questions would be answered by scans of whole tables.
            with reading(self._engine, single=True) as connection:
                connection.execute(text(f"ANALYZE {', '.join(LEXICAL_NAMES)}"))

    def _prepare(self, rows: LexicalRows, language: str) -> None:
        rows.add_stems(language, self._vocabulary())
        rows.add_language(language)

    def scores(
        self, question: str, limit: int, only: Sequence[str] | None = None, also: Sequence[str] = ()
    ) -> dict[str, float]:
        """The texts with the best BM25 scores, best first, equal ones by id; none without a word of the question.

        Parameters
        ----------
        limit : how many at most
        only : ids of the texts that count; the others do not change the scores of these. None for all
        also : ids of texts whose scores are wanted in any case, beyond the limit

        Returns
        -------
        Scores, more than 0, by id.
        """
        LEXICAL_TABLES.make(self._engine)
        times_of, language = question_stems(question)
        chosen = None if only is None else [integer_id(name) for name in only]
        known = False
        while not known:
            with reading(self._engine) as connection:
                rows = LexicalRows(connection, self._name)
                n, words = rows.size(chosen)
                if not n:
                    return {}
                known = language in rows.languages()
                if known:
                    mean = words / n or 1.0
                    having = rows.having(language, list(times_of), chosen)
                    weights = {
                        stem: stem_weight(times, count, n)
                        for (stem, times), count in zip(times_of.items(), having, strict=True)
                        if count
                    }
                    beside = [integer_id(name) for name in also]
                    found = rows.best(language, weights, mean, limit, chosen, beside) if weights else []
            if not known:
                self._prepare_once(language)
        return _scored(found, list(weights.values()), mean)

    def _prepare_once(self, language: str) -> None:
        with writing(self._engine) as connection:
            rows = LexicalRows(connection, self._name)
            rows.lock()
            if language not in rows.languages():  # another process may have been faster
                self._prepare(rows, language)

    def drop(self) -> None:
        """Delete the index."""
        LEXICAL_TABLES.make(self._engine)
        with writing(self._engine) as connection:
            LexicalRows(connection, self._name).drop()


def _scored(found: Sequence[tuple[str, int, int, int]], weights: Sequence[float], mean: float) -> dict[str, float]:
    """The scores of texts, summed over the stems in the order of the question."""
    ids = sorted({text_id for text_id, _, _, _ in found})
    row_of = {text_id: row for row, text_id in enumerate(ids)}
    scores = np.zeros(len(ids))
    for place, weight in enumerate(weights):
        here = [(row_of[text_id], times, words) for text_id, words, at, times in found if at == place]
        if here:
            rows, counts, lengths = (np.array(column) for column in zip(*here, strict=True))
            norms = length_norms(lengths.astype(np.float32), mean)
            scores[rows] += stem_scores(weight, counts.astype(np.float64), norms)
    best = sorted(range(len(ids)), key=lambda row: (-scores[row], ids[row]))
    return {ids[row]: float(scores[row]) for row in best}
