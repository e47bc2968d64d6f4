"""`LexicalRows`: the rows of a lexical index in a database, read and written within a transaction.

    ragkit_lexical            an index: its number of texts and of words, and the number that the next text gets
    ragkit_lexical_texts      a text: its number, its id, its number of words, and its words packed
    ragkit_lexical_words      a word: the number of texts that have it
    ragkit_lexical_postings   a block of the postings of a word, packed (:mod:`llama_index.ragkit.sql.lexical_records`)
    ragkit_lexical_stems      a stem of a word, in some languages
    ragkit_lexical_shared     a stem of which texts have several words, and how many beyond the first in all

Indexes, texts, words and stems are 63-bit hashes: no word of a text is in the tables.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, Row, text

from llama_index.ragkit.sql.lexical_records import (
    SPAN,
    Block,
    StemTable,
    blocks_of,
    packed_terms,
    postings_in,
    postings_of,
    shared_stems,
    terms_in,
    without,
)
from llama_index.ragkit.sql.tables import Tables, integer_id, parameters, rows_as_table, store
from llama_index.ragkit.storage.labels import LABEL
from llama_index.ragkit.text.stems import language_bit, stem_masks

__all__ = ["LEXICAL_COLUMNS", "LEXICAL_TABLES", "AskedStem", "IndexSize", "LexicalRows", "StoredTexts"]

LEXICAL_COLUMNS = {
    "ragkit_lexical_texts": {
        "space": "bigint", "text": "bigint", "hash": "bigint", "id": "text", "words": "bigint", "packed": "bytea"
    },
    "ragkit_lexical_words": {"space": "bigint", "word": "bigint", "texts": "bigint"},
    "ragkit_lexical_postings": {"space": "bigint", "word": "bigint", "first": "bigint", "packed": "bytea"},
    "ragkit_lexical_stems": {"space": "bigint", "stem": "bigint", "word": "bigint", "languages": "bigint"},
    "ragkit_lexical_shared": {"space": "bigint", "stem": "bigint", "languages": "bigint", "texts": "bigint"},
}  # fmt: skip
"""Table -> column -> type in PostgreSQL, without `ragkit_lexical` itself."""

# Table -> its primary key, and what is updated in a row that is there.
_STORED = {
    "ragkit_lexical_texts": ("space, text", "packed = excluded.packed"),
    "ragkit_lexical_words": ("space, word", "texts = ragkit_lexical_words.texts + excluded.texts"),
    "ragkit_lexical_postings": ("space, word, first", "packed = excluded.packed"),
    "ragkit_lexical_stems": ("space, stem, word", "languages = excluded.languages"),
    "ragkit_lexical_shared": ("space, stem, languages", "texts = ragkit_lexical_shared.texts + excluded.texts"),
}

T = TypeVar("T")
Ints = NDArray[np.int64]

_KEYS = {"id": "bigint"}
_PAIRS = {"word": "bigint", "number": "bigint"}
_TEXTS_AT_ONCE = 10_000  # texts whose postings are held in memory together while writing
_KEYS_AT_ONCE = 4_000
_MOST = int(np.iinfo(np.int64).max)


def _statements(blob: str, ends: Mapping[str, str]) -> list[str]:
    """The statements for one kind of database; `ends` are those of the statements of some tables."""
    made = [
        "CREATE TABLE IF NOT EXISTS ragkit_lexical (space BIGINT PRIMARY KEY, name TEXT NOT NULL, "
        "texts BIGINT NOT NULL, words BIGINT NOT NULL, next BIGINT NOT NULL)"
    ]
    for table, columns in LEXICAL_COLUMNS.items():
        types = [f"{name} {blob if kind == 'bytea' else kind.upper()} NOT NULL" for name, kind in columns.items()]
        key = f"PRIMARY KEY ({_STORED[table][0]})"
        made.append(f"CREATE TABLE IF NOT EXISTS {table} ({', '.join([*types, key])}){ends.get(table, '')}")
    return [
        *made,
        "CREATE UNIQUE INDEX IF NOT EXISTS ragkit_lexical_of_hash ON ragkit_lexical_texts (space, hash)",
        "CREATE INDEX IF NOT EXISTS ragkit_lexical_of_word ON ragkit_lexical_stems (space, word)",
    ]


# On PostgreSQL packed columns stay in the row, uncompressed: otherwise each would be two or three rows of another
# table. On SQLite rows of texts are long, and a table with a row id keeps them on their pages; others need no such key.
_IN_ROW = " WITH (toast_tuple_target = 8160)"
LEXICAL_TABLES = Tables(
    *_statements("BYTEA", {"ragkit_lexical_texts": _IN_ROW, "ragkit_lexical_postings": _IN_ROW}),
    sqlite=_statements("BLOB", {table: " WITHOUT ROWID" for table in _STORED if table != "ragkit_lexical_texts"}),
)


class IndexSize(NamedTuple):
    """The number of texts, the number of their words, and the number that the next text gets."""

    texts: int
    words: int
    next: int

    @property
    def mean(self) -> float:
        """Mean number of words of a text; 1 if there are no texts."""
        return self.words / self.texts if self.words else 1.0


class AskedStem(NamedTuple):
    """A stem of a question: the hashes of the words that have it, and the number of texts with any of them."""

    words: tuple[int, ...]
    texts: int


class StoredTexts(NamedTuple):
    """Some texts and their terms, read once for many questions.

    Attributes
    ----------
    ids : m ids
    numbers : (m,) their numbers
    words : (m,) the number of their words
    places : (number of terms,) the text that each term belongs to
    terms : the terms, of type `TERM`
    """

    ids: list[str]
    numbers: Ints
    words: Ints
    places: Ints
    terms: NDArray[np.void]

    def times(self, stems: Sequence[AskedStem]) -> NDArray[np.float64]:
        """How often each text has each stem, shape (m, number of stems)."""
        place_of = {word: place for place, stem in enumerate(stems) for word in stem.words}
        words = np.array(sorted(place_of), np.int64)
        if not len(words):
            return np.zeros((len(self.ids), len(stems)))
        columns = np.array([place_of[word] for word in words.tolist()], np.int64)
        at = np.searchsorted(words, self.terms["word"])
        at[at == len(words)] = 0
        here = words[at] == self.terms["word"]
        cells = self.places[here] * len(stems) + columns[at[here]]
        counts = np.bincount(cells, self.terms["times"][here], len(self.ids) * len(stems))
        return counts.reshape(len(self.ids), len(stems)).astype(np.float64)


@dataclass(frozen=True)
class LexicalRows:
    """The rows of one index, within a transaction."""

    connection: Connection
    name: str

    @property
    def space(self) -> int:
        """The number of the index in its rows."""
        return integer_id(self.name)

    def _run(self, statement: str, **values: Any) -> Sequence[Row[Any]]:
        result = self.connection.execute(text(statement), {"space": self.space, **values})
        return result.all() if result.returns_rows else ()

    def _among(self, column: str) -> str:
        return f"{column} IN (SELECT id FROM {rows_as_table(self.connection, 'keys', _KEYS)})"

    def _for(self, keys: Iterable[int], statement: str, **values: Any) -> list[Row[Any]]:
        """The results of a statement for some keys, which are sent in groups."""
        groups = ([(key,) for key in some] for some in _parts(keys, _KEYS_AT_ONCE))
        sent = (parameters(self.connection, "keys", _KEYS, group) for group in groups)
        return [row for given in sent for row in self._run(statement, **given, **values)]

    def _store(self, table: str, rows: Iterable[tuple[Any, ...]]) -> None:
        table = f"ragkit_lexical_{table}"
        # In key order, so that neighbours are written to the same pages.
        space = self.space
        given = sorted((space, *row) for row in rows)
        store(self.connection, table, LEXICAL_COLUMNS[table], given, *_STORED[table])

    # -- writing ------------------------------------------------------------------------------------------

    def lock(self) -> None:
        """Lock the index until the transaction ends; create it if it does not exist."""
        self._run(
            "INSERT INTO ragkit_lexical (space, name, texts, words, next) VALUES (:space, :name, 0, 0, 0) "
            "ON CONFLICT (space) DO UPDATE SET texts = ragkit_lexical.texts",
            name=self.name,
        )

    def remove(self, ids: Iterable[str]) -> None:
        """Remove texts and everything derived from them."""
        for some in _parts(ids, _TEXTS_AT_ONCE):
            self._remove(some)

    def _remove(self, ids: Sequence[str]) -> None:
        found = self._for(
            map(integer_id, ids),
            f"SELECT text, words, packed FROM ragkit_lexical_texts WHERE space = :space AND {self._among('hash')}",
        )
        if not found:
            return
        places, terms = terms_in([bytes(row[2]) for row in found])
        texts = np.array([row[0] for row in found], np.int64)[places]
        words = terms["word"].astype(np.int64)
        table = self._stem_table(np.unique(words).tolist())
        self._remove_postings(words, texts)
        self._for(
            [row[0] for row in found],
            f"DELETE FROM ragkit_lexical_texts WHERE space = :space AND {self._among('text')}",
        )
        self._count(words, shared_stems(texts, words, table), -1)
        self._grow(-len(found), -sum(row[1] for row in found))

    def _remove_postings(self, words: Ints, texts: Ints) -> None:
        for some in _parts(sorted(zip(words.tolist(), texts.tolist(), strict=True)), _KEYS_AT_ONCE):
            gone: dict[tuple[int, int], list[int]] = {}
            for (_, number), key in self._located(some).items():
                gone.setdefault(key, []).append(number)
            left = [without(block, np.array(gone[block[:2]], np.int64)) for block in self._blocks_at(gone)]
            self._store("postings", (block for block in left if block.packed))
            self._run(
                "DELETE FROM ragkit_lexical_postings WHERE space = :space AND (word, first) IN "
                f"(SELECT word, number FROM {rows_as_table(self.connection, 'pairs', _PAIRS)})",
                **parameters(self.connection, "pairs", _PAIRS, [block[:2] for block in left if not block.packed]),
            )

    def _located(self, pairs: Sequence[tuple[int, int]]) -> dict[tuple[int, int], tuple[int, int]]:
        """The blocks where the postings of texts are, or belong: (word, number of the text) -> (word, first).

        Words without a block up to there are left out.
        """
        rows = self._run(
            "SELECT pairs.word, pairs.number, (SELECT max(p.first) FROM ragkit_lexical_postings p "
            "WHERE p.space = :space AND p.word = pairs.word AND p.first <= pairs.number) "
            f"FROM {rows_as_table(self.connection, 'pairs', _PAIRS)}",
            **parameters(self.connection, "pairs", _PAIRS, pairs),
        )
        return {(word, number): (word, first) for word, number, first in rows if first is not None}

    def _blocks_at(self, keys: Iterable[tuple[int, int]]) -> Iterator[Block]:
        # SQLite joins in this order only with CROSS JOIN.
        rows = self._run(
            f"SELECT p.word, p.first, p.packed FROM {rows_as_table(self.connection, 'pairs', _PAIRS)} "
            "CROSS JOIN ragkit_lexical_postings p WHERE p.space = :space AND p.word = pairs.word "
            "AND p.first = pairs.number",
            **parameters(self.connection, "pairs", _PAIRS, list(keys)),
        )
        return (Block(word, first, bytes(packed)) for word, first, packed in rows)

    def add(self, texts: Mapping[str, Mapping[str, int]]) -> None:
        """Add new texts: id -> term -> how often, 0 for labels."""
        for some in _parts(texts, _TEXTS_AT_ONCE):
            self._add(some, [texts[name] for name in some])

    def _add(self, ids: Sequence[str], texts: Sequence[Mapping[str, int]]) -> None:
        hashes = {word: integer_id(word) for word in dict.fromkeys(word for counts in texts for word in counts)}
        lengths = [sum(counts.values()) for counts in texts]
        numbers = self.size().next + np.arange(len(texts))
        postings = postings_of(texts, lengths, numbers, hashes)
        packed = packed_terms(postings, numbers)
        rows = zip(numbers.tolist(), map(integer_id, ids), ids, lengths, packed, strict=True)
        self._store("texts", rows)
        by_word = postings.by_word()
        for some in _parts(sorted(hashes.values()), _KEYS_AT_ONCE):
            last = self._blocks_at(self._located([(word, _MOST) for word in some]).values())
            new = by_word.of_words(some[0], some[-1])
            self._store("postings", blocks_of(new, {block.word: block for block in last}))
        table = self._with_stems(hashes)
        self._count(postings.word, shared_stems(postings.text, postings.word, table), 1)
        self._grow(len(texts), sum(lengths), len(texts))

    def _with_stems(self, hashes: Mapping[str, int]) -> StemTable:
        """The stems of words in every language; stores those of new words."""
        known = self._stem_table(hashes.values())
        there = set(known.word.tolist())
        new = [word for word, key in hashes.items() if key not in there and not word.startswith(LABEL)]
        rows = [
            (integer_id("stem", stem), hashes[word], languages)
            for word, masks in zip(new, stem_masks(new), strict=True)
            for stem, languages in masks.items()
        ]
        self._store("stems", rows)
        return _table(np.concatenate([np.stack([known.stem, known.word, known.languages], 1), _rows(rows)]))

    def _stem_table(self, words: Iterable[int]) -> StemTable:
        # Without statistics SQLite prefers the primary key to the index by word, and reads all stems.
        index = "INDEXED BY ragkit_lexical_of_word" if self.connection.dialect.name == "sqlite" else ""
        statement = f"SELECT stem, word, languages FROM ragkit_lexical_stems {index} WHERE space = :space AND "
        statement += self._among("word")
        return _table(_rows(self._for(words, statement)))

    def _count(self, words: Ints, shared: Mapping[tuple[int, int], int], sign: int) -> None:
        """Count the texts with words and with several words of a stem; remove words and stems that no text has."""
        keys, counts = np.unique(words, return_counts=True)
        self._store("words", zip(keys.tolist(), (sign * counts).tolist(), strict=True))
        self._store("shared", [(*key, sign * count) for key, count in shared.items()])
        if sign < 0:
            here = "space = :space AND texts = 0 AND"
            self._for(keys.tolist(), f"DELETE FROM ragkit_lexical_words WHERE {here} {self._among('word')}")
            self._for(
                {stem for stem, _ in shared}, f"DELETE FROM ragkit_lexical_shared WHERE {here} {self._among('stem')}"
            )
            self._for(
                keys.tolist(),
                f"DELETE FROM ragkit_lexical_stems WHERE space = :space AND {self._among('word')} AND word NOT IN "
                f"(SELECT word FROM ragkit_lexical_words WHERE space = :space AND {self._among('word')})",
            )

    def _grow(self, texts: int, words: int, numbers: int = 0) -> None:
        grown = "texts = texts + :texts, words = words + :words, next = next + :numbers"
        self._run(f"UPDATE ragkit_lexical SET {grown} WHERE space = :space", texts=texts, words=words, numbers=numbers)

    def drop(self) -> None:
        """Delete the index."""
        for table in ("ragkit_lexical", *LEXICAL_COLUMNS):
            self._run(f"DELETE FROM {table} WHERE space = :space")

    # -- reading ------------------------------------------------------------------------------------------

    def size(self) -> IndexSize:
        """The size of the index; 0 if it does not exist."""
        rows = self._run("SELECT texts, words, next FROM ragkit_lexical WHERE space = :space")
        return IndexSize(*map(int, rows[0])) if rows else IndexSize(0, 0, 0)

    def asked(self, stems: Iterable[tuple[str, str]]) -> list[AskedStem]:
        """The words of stems, each in a language, and the number of texts that have them."""
        keys = [(integer_id("stem", stem), language_bit(stem, language)) for stem, language in stems]
        words: dict[tuple[int, int], list[int]] = {key: [] for key in keys}
        texts = dict.fromkeys(words, 0)
        bits: dict[int, list[int]] = {}
        for stem, bit in words:
            bits.setdefault(stem, []).append(bit)
        found = self._for(
            bits,
            "SELECT s.stem, s.word, s.languages, w.texts FROM ragkit_lexical_stems s JOIN ragkit_lexical_words w "
            f"ON w.space = :space AND w.word = s.word WHERE s.space = :space AND {self._among('s.stem')}",
        )
        for stem, word, languages, count in found:
            for key in ((stem, bit) for bit in bits[stem] if languages & bit):
                words[key].append(word)
                texts[key] += count
        shared = self._for(
            dict.fromkeys(stem for (stem, _), some in words.items() if len(some) > 1),
            f"SELECT stem, languages, texts FROM ragkit_lexical_shared WHERE space = :space AND {self._among('stem')}",
        )
        for stem, languages, count in shared:
            for key in ((stem, bit) for bit in bits[stem] if languages & bit):
                texts[key] -= count
        return [AskedStem(tuple(sorted(words[key])), texts[key]) for key in keys]

    def blocks(self, words: Collection[int], first: int, end: int) -> list[Block]:
        """The blocks of words with texts from `first` to `end`, both multiples of the span, in any order."""
        statement = (
            "SELECT word, first, packed FROM ragkit_lexical_postings "
            f"WHERE space = :space AND {self._among('word')} AND first >= :first AND first < :end"
        )
        found = self._for(words, statement, first=first, end=end)
        return [Block(word, at, bytes(packed)) for word, at, packed in found]

    def named(self, ids: Iterable[str]) -> StoredTexts:
        """The texts that exist, by their ids."""
        return self.texts([integer_id(name) for name in ids], "hash")

    def texts(self, keys: Sequence[int], column: str = "text") -> StoredTexts:
        """The texts that exist, by their numbers or the hashes of their ids."""
        statement = "SELECT id, text, words, packed FROM ragkit_lexical_texts WHERE space = :space AND "
        found = self._for(keys, statement + self._among(column))
        places, terms = terms_in([bytes(row[3]) for row in found])
        numbers, words = (np.array([row[i] for row in found], np.int64) for i in (1, 2))
        return StoredTexts([str(row[0]) for row in found], numbers, words, places, terms)

    def ids_of(self, numbers: Sequence[int]) -> dict[int, str]:
        """The ids of the texts that exist, by number."""
        statement = f"SELECT text, id FROM ragkit_lexical_texts WHERE space = :space AND {self._among('text')}"
        return {row[0]: str(row[1]) for row in self._for(numbers, statement)}

    def counts(self, words: Iterable[int]) -> dict[int, int]:
        """How many texts have each of some words; words that no text has are left out."""
        statement = f"SELECT word, texts FROM ragkit_lexical_words WHERE space = :space AND {self._among('word')}"
        return {row[0]: row[1] for row in self._for(words, statement)}

    def postings(self, words: Collection[int]) -> Iterator[tuple[int, Ints, NDArray[np.void]]]:
        """The postings of words, block by block: the word, the numbers of the texts, and the postings."""
        for first in range(0, self.size().next, SPAN):
            for block in self.blocks(words, first, first + SPAN):
                records = postings_in([block])
                yield block.word, first + records["row"].astype(np.int64), records


def _parts(values: Iterable[T], size: int) -> Iterator[list[T]]:
    left = iter(values)
    while some := list(islice(left, size)):
        yield some


def _rows(rows: Iterable[Sequence[int]]) -> Ints:
    return np.array([tuple(row) for row in rows], np.int64).reshape(-1, 3)


def _table(rows: Ints) -> StemTable:
    """A table of (stem, word, languages)."""
    rows = rows[np.argsort(rows[:, 1], kind="stable")]
    return StemTable(word=rows[:, 1], stem=rows[:, 0], languages=rows[:, 2])
