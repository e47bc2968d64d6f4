"""`SQLLexicalIndex`: BM25 from postings in an SQL database, with the scores of the in-memory index."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import NamedTuple

import numpy as np
from llama_index.core.vector_stores.types import MetadataFilters
from numpy.typing import NDArray
from sqlalchemy import Engine, text

from llama_index.ragkit.sql.engine import reading
from llama_index.ragkit.sql.lexical_rows import (
    LEXICAL_COLUMNS,
    LEXICAL_TABLES,
    AskedStem,
    IndexSize,
    LexicalRows,
    StoredTexts,
)
from llama_index.ragkit.sql.lexical_search import TIED, best_texts, text_scores, times_among
from llama_index.ragkit.sql.tables import integer_id
from llama_index.ragkit.storage.labels import LABEL, CountedTexts, LabelledTexts, labels_in, passing_texts
from llama_index.ragkit.text.lexical_blocks import PROGRAM_WORDS
from llama_index.ragkit.text.lexical_index import (
    FullScore,
    LexicalIndex,
    QuestionStems,
    full_score,
    question_stems,
    stem_weight,
)

__all__ = ["SQLLexicalIndex"]

Ints = NDArray[np.int64]

_MOST_LABELLED = 100_000  # most texts with a filter's labels that a question looks up
_ANALYZED = 1000  # from this many texts on PostgreSQL takes statistics whenever a write doubles them


class SQLLexicalIndex:
    """Texts by their words, in an SQL database; see `llama_index.ragkit.sql.lexical_rows`.

    Scores equal those of :class:`~llama_index.ragkit.text.lexical_index.LexicalIndex` to the last bit, and none of the
    best texts is missed. A question is stemmed in its own language, and finds all words with the same stems in that
    language. It reads the postings of its rarer stems, and the words of the few texts that can be among the best
    (`llama_index.ragkit.sql.lexical_search`).

    A write locks the index, so several processes write in turn; a question reads one state.

    Parameters
    ----------
    engine : of :func:`~llama_index.ragkit.sql.make_engine`
    name : of the index; indexes of different names never see each other's texts
    """

    def __init__(self, engine: Engine, name: str) -> None:
        self._engine = engine
        self._name = name

    @contextmanager
    def _reading(self, *, single: bool = False) -> Iterator[LexicalRows]:
        with LEXICAL_TABLES.reading(self._engine, single=single) as connection:
            yield LexicalRows(connection, self._name)

    def __len__(self) -> int:
        with self._reading(single=True) as rows:
            return rows.size().texts

    def changed(self, removed: Collection[str], added: Mapping[str, Mapping[str, int]]) -> None:
        """See :meth:`~llama_index.ragkit.storage.interface.Words.changed`; in one transaction."""
        with LEXICAL_TABLES.writing(self._engine) as connection:
            rows = LexicalRows(connection, self._name)
            rows.lock()
            before = rows.size().texts
            rows.remove(dict.fromkeys([*removed, *added]))
            rows.add(added)
            after = rows.size().texts
        if self._engine.dialect.name == "postgresql" and after >= max(_ANALYZED, 2 * before):
            # Without statistics on the new rows, the next questions would scan whole tables.
            with reading(self._engine, single=True) as connection:
                connection.execute(text(f"ANALYZE {', '.join(LEXICAL_COLUMNS)}"))

    def load(self, texts: Mapping[str, str] | LexicalIndex) -> None:
        """Do nothing: the texts are in the database."""

    def passing(self, filters: MetadataFilters, few: int) -> CountedTexts | None:
        """See :meth:`~llama_index.ragkit.storage.interface.Words.passing`."""
        texts = self.labelled(filters)
        if texts is not None and len(texts) <= few:
            with self._reading() as rows:
                return list(rows.ids_of(texts.numbers.tolist()).values())
        return texts if texts is not None and texts.exact else None

    def labelled(self, filters: MetadataFilters) -> LabelledTexts | None:
        """The texts that pass a filter by their labels, and perhaps others.

        None if labels do not tell, if more than 100,000 texts have one of the filter's labels, or if texts were added
        without labels.
        """
        with self._reading() as rows:
            hashes = {label: integer_id(label) for label in (LABEL, *labels_in(filters))}
            found = rows.counts(hashes.values())
            counts = {label: found.get(key, 0) for label, key in hashes.items()}
            if not counts[LABEL] or counts[LABEL] != rows.size().texts:
                return None

            def read(labels: Sequence[str]) -> tuple[Ints, Ints]:
                blocks = [(n, records["words"]) for _, n, records in rows.postings({hashes[label] for label in labels})]
                none = np.empty(0, np.int64)
                numbers, first = np.unique(np.concatenate([none, *(n for n, _ in blocks)]), return_index=True)
                return numbers, np.concatenate([none, *(words for _, words in blocks)])[first]

            return passing_texts(filters, counts, read, _MOST_LABELLED)

    def scores(self, question: str, limit: int, only: CountedTexts | None = None) -> dict[str, float]:
        """See :meth:`~llama_index.ragkit.storage.interface.Words.scores`.

        Of the texts that share the last of these scores, at least the thousand written first are considered. If the
        texts that count are given by ids, all their words are read.
        """
        with self._reading() as rows:
            (asked,) = _Asked.each(rows, [question])
            if not any(stem.texts for stem in asked.stems):
                return {}
            if only is None:
                size = rows.size()
                weights = asked.weights([stem.texts for stem in asked.stems], size.texts)
                found = best_texts(rows, asked.stems, weights, size, limit) if limit else {}
            elif isinstance(only, LabelledTexts):
                found = asked.best_among(rows, only, limit)
            else:
                found = asked.scores(rows.named(only), None)
        best = sorted((name for name in found if found[name]), key=lambda name: (-found[name], name))
        return {name: found[name] for name in best[:limit]}

    def scores_of(
        self, ids: Sequence[str], questions: Sequence[str], only: CountedTexts | None = None
    ) -> list[dict[str, float]]:
        """See :meth:`~llama_index.ragkit.storage.interface.Words.scores_of`; the words of the texts are read once."""
        with self._reading() as rows:
            texts = rows.named(ids if only is None or isinstance(only, LabelledTexts) else only)
            all_asked = _Asked.each(rows, questions)
            if isinstance(only, LabelledTexts):
                found = [asked.among(rows, only).scores(texts, _size_of(only)) for asked in all_asked]
            else:
                size = rows.size() if only is None else None
                found = [asked.scores(texts, size) for asked in all_asked]
        wanted = set(ids)
        return [{name: score for name, score in scores.items() if score and name in wanted} for scores in found]

    def full_scores(self, questions: Sequence[str], only: CountedTexts | None = None) -> list[FullScore]:
        """See :meth:`~llama_index.ragkit.storage.interface.Words.full_scores`."""
        with self._reading() as rows:
            all_asked = [*_Asked.each(rows, questions), _Asked.of_words(rows, PROGRAM_WORDS)]
            if only is None:
                size = rows.size()
            elif isinstance(only, LabelledTexts):
                size = _size_of(only)
                all_asked = [asked.among(rows, only) for asked in all_asked]
            else:
                texts = rows.named(only)
                size = _size_of(texts)
                all_asked = [asked.within(texts) for asked in all_asked]
        *having, of_program = ([stem.texts for stem in asked.stems] for asked in all_asked)
        return [
            full_score(asked.question, counts, size.texts, size.words, sum(of_program))
            for asked, counts in zip(all_asked, having, strict=False)
        ]

    def whole(self) -> LexicalIndex | None:
        """None: the words stay in the database."""
        return None

    def drop(self) -> None:
        """Delete the index."""
        with LEXICAL_TABLES.writing(self._engine) as connection:
            LexicalRows(connection, self._name).drop()


def _size_of(texts: LabelledTexts | StoredTexts) -> IndexSize:
    """The size of an index of these texts alone."""
    return IndexSize(len(texts.words), int(texts.words.sum()), 0)


class _Asked(NamedTuple):
    """A question to the index, and its stems as the index has them, in the same order."""

    stems: Sequence[AskedStem]
    question: QuestionStems

    @classmethod
    def each(cls, rows: LexicalRows, questions: Sequence[str]) -> list["_Asked"]:
        """Several questions, whose stems are read at once."""
        asked = [question_stems(question) for question in questions]
        stems = iter(rows.asked((stem, each.language) for each in asked for stem in each.times))
        return [cls(list(islice(stems, len(each.times))), each) for each in asked]

    @classmethod
    def of_words(cls, rows: LexicalRows, words: Sequence[str]) -> "_Asked":
        """A question of these words, not their stems; those that no text has are left out."""
        found = rows.counts(map(integer_id, words))
        stems = [AskedStem((word,), texts) for word, texts in found.items()]
        return cls(stems, QuestionStems({str(word): 1 for word in found}, "", 1))

    def within(self, texts: StoredTexts) -> "_Asked":
        """The question with its stems counted in some texts, whose words have been read."""
        having = np.count_nonzero(texts.times(self.stems), axis=0).tolist()
        return self._replace(stems=[stem._replace(texts=n) for stem, n in zip(self.stems, having, strict=True)])

    def among(self, rows: LexicalRows, texts: LabelledTexts) -> "_Asked":
        """The question with its stems counted in some texts."""
        unknown = [stem for stem in self.stems if stem.words not in texts.having]
        if unknown:
            times_among(rows, unknown, texts)
        return self._replace(stems=[stem._replace(texts=texts.having[stem.words]) for stem in self.stems])

    def best_among(self, rows: LexicalRows, texts: LabelledTexts, limit: int) -> dict[str, float]:
        """The best of some texts and those that tie with them, by id, as if there were no others."""
        times = times_among(rows, self.stems, texts)
        having = [texts.having[stem.words] for stem in self.stems]
        weights = self.weights(having, len(texts))
        scores = text_scores(texts.words, times, weights, _size_of(texts).mean)
        count = min(limit, int(np.count_nonzero(scores)))
        if not count:
            return {}
        least = np.partition(scores, -count)[-count]
        found = np.concatenate([np.flatnonzero(scores > least), np.flatnonzero(scores == least)[: count + TIED]])
        ids = rows.ids_of(texts.numbers[found].tolist())
        return {ids[n]: score for n, score in zip(texts.numbers[found].tolist(), scores[found].tolist(), strict=True)}

    def weights(self, having: Iterable[int], n: int) -> list[float]:
        """The weights of the stems, given how many of n texts have each (`having`); 0 for stems that no text has."""
        asked = zip(self.question.times.values(), having, strict=True)
        return [stem_weight(often, some, n) if some else 0.0 for often, some in asked]

    def scores(self, texts: StoredTexts, size: IndexSize | None) -> dict[str, float]:
        """The scores of texts by id; as if these were all, if the `size` of the index is not given."""
        times = texts.times(self.stems)
        own = np.count_nonzero(times, axis=0).tolist() if size is None else [stem.texts for stem in self.stems]
        size = size or _size_of(texts)
        scores = text_scores(texts.words, times, self.weights(own, size.texts), size.mean)
        return dict(zip(texts.ids, scores.tolist(), strict=True))
