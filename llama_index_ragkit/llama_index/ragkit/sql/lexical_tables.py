"""The tables of lexical indexes, and what is written to them and read from them within a transaction.

    ragkit_lexical            an index: its number of texts and of words, and the languages that are prepared
    ragkit_lexical_texts      a text: its id and its number of words
    ragkit_lexical_postings   how often a text has a word
    ragkit_lexical_stems      which words have a stem in a language

Indexes, texts, words and stems are 63-bit hashes: no word of a text is in the tables, and processes that write at once
need no common sequence of ids.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from sqlalchemy import Connection, Row, text

from llama_index.ragkit.sql.arrays import insert, integer_id, parameters, rows_as_table
from llama_index.ragkit.sql.tables import Tables
from llama_index.ragkit.text.lexical_index import BM25_B, BM25_K1, MOST_COUNTED
from llama_index.ragkit.text.stems import stems

__all__ = ["LEXICAL_NAMES", "LEXICAL_TABLES", "LexicalRows"]

LEXICAL_TABLES = Tables(
    "CREATE TABLE IF NOT EXISTS ragkit_lexical (space BIGINT PRIMARY KEY, name TEXT NOT NULL, texts BIGINT NOT NULL, "
    "words BIGINT NOT NULL, languages TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS ragkit_lexical_texts (space BIGINT NOT NULL, text BIGINT NOT NULL, id TEXT NOT NULL, "
    "words BIGINT NOT NULL, PRIMARY KEY (space, text))",
    "CREATE TABLE IF NOT EXISTS ragkit_lexical_postings (space BIGINT NOT NULL, word BIGINT NOT NULL, "
    "text BIGINT NOT NULL, times INTEGER NOT NULL, PRIMARY KEY (space, word, text))",
    "CREATE INDEX IF NOT EXISTS ragkit_lexical_of_text ON ragkit_lexical_postings (space, text, word)",
    "CREATE TABLE IF NOT EXISTS ragkit_lexical_stems (space BIGINT NOT NULL, language TEXT NOT NULL, "
    "stem BIGINT NOT NULL, word BIGINT NOT NULL, PRIMARY KEY (space, language, stem, word))",
    "CREATE INDEX IF NOT EXISTS ragkit_lexical_of_word ON ragkit_lexical_stems (space, word)",
)
LEXICAL_NAMES = ("ragkit_lexical_stems", "ragkit_lexical_postings", "ragkit_lexical_texts", "ragkit_lexical")
_TEXT = {"space": "bigint", "text": "bigint", "id": "text", "words": "bigint"}
_POSTING = {"space": "bigint", "word": "bigint", "text": "bigint", "times": "integer"}
_STEM = {"space": "bigint", "language": "text", "stem": "bigint", "word": "bigint"}
_KEYS = {"id": "bigint"}
_ASKED = {"place": "integer", "stem": "bigint", "weight": "float8"}
_WORDS_AT_ONCE = 50_000


@dataclass(frozen=True)
class LexicalRows:
    """The rows of one index, within a transaction.

    Attributes
    ----------
    connection : in the transaction
    name : of the index
    """

    connection: Connection
    name: str

    @property
    def space(self) -> int:
        """The index, as its rows have it."""
        return integer_id(self.name)

    def _run(self, statement: str, **values: Any) -> Sequence[Row[Any]]:
        result = self.connection.execute(text(statement), {"space": self.space, **values})
        return result.all() if result.returns_rows else ()

    def _among(self, column: str, name: str) -> str:
        return f"{column} IN (SELECT id FROM {rows_as_table(self.connection, name, _KEYS)})"

    def _keys(self, name: str, keys: Iterable[int]) -> dict[str, Any]:
        return parameters(self.connection, name, _KEYS, [(key,) for key in keys])

    def lock(self) -> None:
        """Lock the index until the transaction ends; it is made if it is not there."""
        self._run(
            "INSERT INTO ragkit_lexical (space, name, texts, words, languages) VALUES (:space, :name, 0, 0, '') "
            "ON CONFLICT (space) DO UPDATE SET texts = ragkit_lexical.texts",
            name=self.name,
        )

    def languages(self) -> list[str]:
        """The languages whose stems are stored."""
        rows = self._run("SELECT languages FROM ragkit_lexical WHERE space = :space")
        return str(rows[0][0]).split() if rows else []

    def size(self, only: Collection[int] | None = None) -> tuple[int, int]:
        """The number of texts, and of their words; of those in `only`."""
        if only is None:
            rows = self._run("SELECT texts, words FROM ragkit_lexical WHERE space = :space")
        else:
            chosen = f"space = :space AND {self._among('text', 'chosen')}"
            statement = f"SELECT count(*), coalesce(sum(words), 0) FROM ragkit_lexical_texts WHERE {chosen}"
            rows = self._run(statement, **self._keys("chosen", only))
        return (int(rows[0][0]), int(rows[0][1])) if rows else (0, 0)

    # -- writing ------------------------------------------------------------------------------------------

    def remove(self, ids: Collection[str]) -> None:
        """Remove texts with their postings, and the stems of words that no text has any more."""
        if not ids:
            return
        gone = [integer_id(name) for name in ids]
        keys = self._keys("gone", gone)
        here = f"space = :space AND {self._among('text', 'gone')}"
        touched = [
            row[0] for row in self._run(f"SELECT DISTINCT word FROM ragkit_lexical_postings WHERE {here}", **keys)
        ]
        texts, words = self.size(gone)
        self._run(f"DELETE FROM ragkit_lexical_postings WHERE {here}", **keys)
        self._run(f"DELETE FROM ragkit_lexical_texts WHERE {here}", **keys)
        self._run(
            f"DELETE FROM ragkit_lexical_stems WHERE space = :space AND {self._among('word', 'words')} AND NOT EXISTS "
            "(SELECT 1 FROM ragkit_lexical_postings p WHERE p.space = :space AND p.word = ragkit_lexical_stems.word)",
            **self._keys("words", touched),
        )
        self._grow(-texts, -words)

    def add(self, texts: Mapping[str, Mapping[str, int]]) -> None:
        """Add texts that are not there, by id -> term -> how often."""
        lengths = {name: sum(counts.values()) for name, counts in texts.items()}
        words = {word: integer_id(word) for counts in texts.values() for word in counts}
        insert(
            self.connection,
            "ragkit_lexical_texts",
            _TEXT,
            [(self.space, integer_id(name), name, length) for name, length in lengths.items()],
        )
        postings = [
            (self.space, words[word], integer_id(name), min(times, MOST_COUNTED))
            for name, counts in texts.items()
            for word, times in counts.items()
        ]
        insert(self.connection, "ragkit_lexical_postings", _POSTING, sorted(postings))
        self._grow(len(texts), sum(lengths.values()))

    def _grow(self, texts: int, words: int) -> None:
        self._run(
            "UPDATE ragkit_lexical SET texts = texts + :texts, words = words + :words WHERE space = :space",
            texts=texts,
            words=words,
        )

    def add_stems(self, language: str, words: Iterable[str]) -> None:
        """Store the stems of words in a language."""
        left = iter(words)
        while some := list(dict.fromkeys(islice(left, _WORDS_AT_ONCE))):
            rows = [
                (self.space, language, integer_id(language, stem), integer_id(word))
                for word, stem in zip(some, stems(some, language), strict=True)
            ]
            insert(self.connection, "ragkit_lexical_stems", _STEM, sorted(rows))

    def add_language(self, language: str) -> None:
        """Note that the stems of all words are stored."""
        known = " ".join(sorted({*self.languages(), language}))
        self._run("UPDATE ragkit_lexical SET languages = :known WHERE space = :space", known=known)

    def drop(self) -> None:
        """Delete the index."""
        for table in LEXICAL_NAMES:
            self._run(f"DELETE FROM {table} WHERE space = :space")

    # -- reading ------------------------------------------------------------------------------------------

    def having(self, language: str, stems_asked: Sequence[str], only: Collection[int] | None) -> list[int]:
        """How many texts have each stem."""
        asked, values = self._asked(language, stems_asked, [0.0] * len(stems_asked), only)
        rows = self._run(f"SELECT place, count(DISTINCT text) FROM {asked} GROUP BY place", **values)
        found = {row[0]: int(row[1]) for row in rows}
        return [found.get(place, 0) for place in range(len(stems_asked))]

    def best(
        self,
        language: str,
        weights: Mapping[str, float],
        mean: float,
        limit: int,
        only: Collection[int] | None,
        also: Collection[int],
    ) -> list[tuple[str, int, int, int]]:
        """What the scores of the best texts, and of those in `also`, are computed from: (id, words, place of the stem,
        times) for each stem that each of them has. Which of equal texts are among the best depends on their hashes.
        """
        asked, values = self._asked(language, list(weights), list(weights.values()), only)
        beside = rows_as_table(self.connection, "also", _KEYS)
        rows = self._run(
            f"""WITH found AS (SELECT place, weight, text, sum(times) AS times FROM {asked}
                GROUP BY place, weight, text),
            best AS (SELECT f.text, CAST(1e9 * sum(
                    f.weight * CAST(f.times AS float8) * {BM25_K1 + 1} / (CAST(f.times AS float8)
                    + {BM25_K1} * ({1 - BM25_B} + {BM25_B} * CAST(t.words AS float8) / CAST(:mean AS float8)))
                ) AS BIGINT) AS score
                FROM found f JOIN ragkit_lexical_texts t ON t.space = :space AND t.text = f.text
                GROUP BY f.text ORDER BY score DESC, f.text LIMIT :limit)
            SELECT t.id, t.words, f.place, f.times
                FROM (SELECT text FROM best UNION SELECT id FROM {beside}) AS wanted
                JOIN found f ON f.text = wanted.text
                JOIN ragkit_lexical_texts t ON t.space = :space AND t.text = f.text""",
            mean=mean,
            limit=limit,
            **values,
            **self._keys("also", also),
        )
        return [(str(row[0]), int(row[1]), int(row[2]), int(row[3])) for row in rows]

    def _asked(
        self, language: str, stems_asked: Sequence[str], weights: Sequence[float], only: Collection[int] | None
    ) -> tuple[str, dict[str, Any]]:
        """A query expression for the postings of stems, and its parameters."""
        rows = [(place, integer_id(language, stem), weights[place]) for place, stem in enumerate(stems_asked)]
        values = {"language": language, **parameters(self.connection, "asked", _ASKED, rows)}
        condition = "true"
        if only is not None:
            condition = self._among("p.text", "chosen")
            values.update(self._keys("chosen", only))
        # SQLite joins in this order only if it is told to by CROSS JOIN; it would begin with all postings.
        return (
            f"""(SELECT asked.place, asked.weight, p.text, p.times
            FROM {rows_as_table(self.connection, "asked", _ASKED)}
            CROSS JOIN ragkit_lexical_stems s CROSS JOIN ragkit_lexical_postings p
            WHERE s.space = :space AND s.language = :language AND s.stem = asked.stem
            AND p.space = :space AND p.word = s.word AND {condition}) AS postings""",
            values,
        )
