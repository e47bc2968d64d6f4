"""The tables of lexical indexes.

    ragkit_lexical            an index: its number of texts and of words, and the number that the next text gets
    ragkit_lexical_texts      a text: its number, its id, its number of words, and its words packed
    ragkit_lexical_words      a word: the number of texts that have it
    ragkit_lexical_postings   a block of the postings of a word, packed (:mod:`llama_index.ragkit.sql.lexical_records`)
    ragkit_lexical_stems      a stem of a word, in some languages
    ragkit_lexical_shared     a stem of which texts have several words, and how many beyond the first in all

Indexes, texts, words and stems are 63-bit hashes: no word of a text is in the tables.
"""

from collections.abc import Mapping

from sqlalchemy import Engine

from llama_index.ragkit.sql.tables import Tables

__all__ = ["LEXICAL_COLUMNS", "lexical_tables"]

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

_KEYS = {
    "ragkit_lexical_texts": "space, text",
    "ragkit_lexical_words": "space, word",
    "ragkit_lexical_postings": "space, word, first",
    "ragkit_lexical_stems": "space, stem, word",
    "ragkit_lexical_shared": "space, stem, languages",
}


def _statements(blob: str, ends: Mapping[str, str]) -> Tables:
    """The statements for one kind of database; `ends` are those of the statements of some tables."""
    made = [
        "CREATE TABLE IF NOT EXISTS ragkit_lexical (space BIGINT PRIMARY KEY, name TEXT NOT NULL, "
        "texts BIGINT NOT NULL, words BIGINT NOT NULL, next BIGINT NOT NULL)"
    ]
    for table, columns in LEXICAL_COLUMNS.items():
        types = [f"{name} {blob if kind == 'bytea' else kind.upper()} NOT NULL" for name, kind in columns.items()]
        made.append(
            f"CREATE TABLE IF NOT EXISTS {table} ({', '.join(types)}, PRIMARY KEY ({_KEYS[table]}))"
            + ends.get(table, "")
        )
    return Tables(
        *made,
        "CREATE UNIQUE INDEX IF NOT EXISTS ragkit_lexical_of_hash ON ragkit_lexical_texts (space, hash)",
        "CREATE INDEX IF NOT EXISTS ragkit_lexical_of_word ON ragkit_lexical_stems (space, word)",
    )


# Rows of texts are long, and a table with a row id keeps them on their pages. Other tables need no second key.
_SQLITE = _statements("BLOB", {table: " WITHOUT ROWID" for table in _KEYS if table != "ragkit_lexical_texts"})
# Packed columns stay in the row, uncompressed: otherwise each would be two or three rows of another table.
_IN_ROW = " WITH (toast_tuple_target = 8160)"
_POSTGRESQL = _statements("BYTEA", {"ragkit_lexical_texts": _IN_ROW, "ragkit_lexical_postings": _IN_ROW})


def lexical_tables(engine: Engine) -> Tables:
    """The tables, for the database of an engine."""
    return _SQLITE if engine.dialect.name == "sqlite" else _POSTGRESQL
