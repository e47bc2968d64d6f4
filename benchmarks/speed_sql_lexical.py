"""Speed of BM25 in a database, beside the index in memory and SQLite's own full-text search (FTS5).

Texts of 60 words are made up by Zipf's law, as are questions of 10; a question asks for 100 texts, and for the scores
of 100 others, as nearness does. `RAG_STORES_TEXTS` sets the numbers of texts, separated by commas. Beyond `EMBEDDED`
texts the index in memory and FTS5 are left out. PostgreSQL is measured where `PG_DSN` names a server.
"""

import os
import sqlite3
import statistics
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sqlalchemy import Engine, text

from benchmarks.measuring import Times, peak_mb, repeated, reset_peak, resident_mb
from benchmarks.sql_databases import databases
from llama_index.ragkit.sql import SQLLexicalIndex, reading
from llama_index.ragkit.text.lexical_index import LexicalIndex

__all__ = ["measurements"]

TEXTS = "20000,100000"
EMBEDDED = 200_000
AT_ONCE = 10_000  # texts written in one transaction
WORDS, VOCABULARY = 60, 60_000
QUESTIONS, QUESTION_WORDS = 100, 10
LIMIT, ALSO = 100, 100
FTS5 = "SELECT rowid, rank FROM texts WHERE texts MATCH ? ORDER BY rank LIMIT ?"
WRITES = 20  # texts that are written and deleted alone

Texts = dict[str, Counter[str]]


def measurements() -> Iterator[dict[str, Any]]:
    """Each number of texts in turn."""
    for total in os.environ.get("RAG_STORES_TEXTS", TEXTS).split(","):
        yield from _measured(int(total))


def _measured(total: int) -> Iterator[dict[str, Any]]:
    asked = [" ".join(_words(np.random.default_rng([1, i]), QUESTION_WORDS)) for i in range(QUESTIONS)]
    embedded: list[dict[str, float]] = []
    if total <= EMBEDDED:
        yield from _in_memory(total, asked, embedded)
        yield _fts5(total, asked)
    with databases() as engines:
        for kind, engine in engines.items():
            yield from _stored(kind, engine, total, asked, embedded)


def _words(rng: np.random.Generator, count: int) -> list[str]:
    """Words with the frequencies of a natural language (Zipf's law)."""
    ranks = np.minimum((VOCABULARY + 1) ** rng.random(count), VOCABULARY).astype(int)
    return [f"w{rank:x}q" for rank in ranks.tolist()]


def _texts(first: int, last: int) -> Texts:
    return {f"n{i:07d}": Counter(_words(np.random.default_rng([0, i]), WORDS)) for i in range(first, last)}


def _parts(total: int) -> Iterator[Texts]:
    for first in range(0, total, AT_ONCE):
        yield _texts(first, min(total, first + AT_ONCE))


def _in_memory(total: int, asked: Sequence[str], best: list[dict[str, float]]) -> Iterator[dict[str, Any]]:
    """The index in memory; its best texts are added to `best`."""
    before, index, writing = resident_mb(), LexicalIndex(), Times()
    for part in _parts(total):
        index = writing.run(partial(index.changed, (), part))
    index.scores(asked[0])  # stems the vocabulary
    grown, times = resident_mb() - before, Times()
    ids = [name for block in index.ids for name in block]
    for question in asked:
        scores = times.run(lambda q=question: np.concatenate(index.scores(q)))  # type: ignore[misc]
        order = np.argsort(-scores, kind="stable")[:LIMIT].tolist()
        best.append({ids[row]: float(scores[row]) for row in order if scores[row]})
    yield {
        "name": f"BM25 of {total} texts in memory",
        "write_ms_a_thousand": _ms(sum(writing.wall_s) / total * 1000),
        "mb": round(grown),
        **_answered(times),
    }


def _fts5(total: int, asked: Sequence[str]) -> dict[str, Any]:
    """SQLite's own full-text search, with the same texts and questions and its own BM25."""
    with tempfile.TemporaryDirectory() as folder:
        connection = sqlite3.connect(Path(folder) / "fts5.db")
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("CREATE VIRTUAL TABLE texts USING fts5(words, content='')")
        writing, row = Times(), 0
        for part in _parts(total):
            given = [(row + i, " ".join(counts.elements())) for i, counts in enumerate(part.values())]
            row += len(given)

            def write(given: Sequence[tuple[int, str]] = given) -> None:
                with connection:
                    connection.executemany("INSERT INTO texts (rowid, words) VALUES (?, ?)", given)

            writing.run(write)
        times = Times()
        for question in asked:
            query = " OR ".join(dict.fromkeys(question.split()))
            times.run(lambda q=query: connection.execute(FTS5, (q, LIMIT)).fetchall())  # type: ignore[misc]
        connection.close()
        size = sum(file.stat().st_size for file in Path(folder).iterdir())
    return {
        "name": f"BM25 of {total} texts in SQLite's FTS5",
        "write_ms_a_thousand": _ms(sum(writing.wall_s) / total * 1000),
        "bytes_a_text": round(size / total),
        **_answered(times),
    }


def _stored(
    kind: str, engine: Engine, total: int, asked: Sequence[str], embedded: Sequence[Mapping[str, float]]
) -> Iterator[dict[str, Any]]:
    index, writing = SQLLexicalIndex(engine, "bench"), Times()
    for part in _parts(total):
        writing.run(partial(index.changed, (), part))
    size = _size(engine)
    inserted, deleted = Times(), Times()
    for name, counts in _texts(total, total + WRITES).items():
        inserted.run(partial(index.changed, (), {name: counts}))
    for i in range(WRITES):
        deleted.run(partial(index.changed, [f"n{total + i:07d}"], {}))
    yield {
        "name": f"BM25 of {total} texts stored in {kind}",
        "write_ms_a_thousand": _ms(sum(writing.wall_s) / total * 1000),
        "write_cpu_ms_a_thousand": _ms(sum(writing.cpu_s) / total * 1000),
        "slowest_write_ms_a_thousand": _ms(max(writing.wall_s) / min(total, AT_ONCE) * 1000),
        "bytes_a_text": round(size / total),
        "insert_of_one_ms": round(inserted.median_ms, 1),
        "delete_of_one_ms": round(deleted.median_ms, 1),
        "insert_of_one_cpu_ms": round(statistics.median(inserted.cpu_s) * 1000, 1),
        "delete_of_one_cpu_ms": round(statistics.median(deleted.cpu_s) * 1000, 1),
        "to_reach": "insert and delete in some tens of ms",
    }
    rng = np.random.default_rng(2)
    also = [[f"n{i:07d}" for i in rng.choice(total, ALSO, replace=False).tolist()] for _ in asked]

    def ask(i: int) -> dict[str, float]:
        (others,) = index.scores_of(also[i], [asked[i]])
        return index.scores(asked[i], LIMIT) | others

    ask(0)
    before, times = resident_mb(), Times()
    reset_peak()
    found = [times.run(partial(ask, i)) for i in range(len(asked))]
    grown = peak_mb() - before
    lists = [list(each.values())[:LIMIT] for each in found]
    expected = [list(each.values())[:LIMIT] for each in embedded]
    yield {
        "name": f"one question of {total} texts, {kind}",
        **_answered(times),
        "peak_grows_by_mb": round(grown, 1),
        "alone_median_ms": round(repeated(partial(index.scores, asked[0], LIMIT), 5).median_ms, 1),
        "scores_equal_to_the_last_bit": lists == expected if expected else None,
        "to_reach": "median under 50 ms with 1,000,000 texts",
    }


def _size(engine: Engine) -> int:
    """Bytes of the database."""
    with reading(engine, single=True) as connection:
        if engine.dialect.name == "sqlite":
            pages = connection.execute(text("PRAGMA page_count")).scalar_one()
            return int(pages) * int(connection.execute(text("PRAGMA page_size")).scalar_one())
        statement = (
            "SELECT sum(pg_total_relation_size(oid)) FROM pg_class "
            "WHERE relkind = 'r' AND relname LIKE 'ragkit%' AND pg_table_is_visible(oid)"
        )
        return int(connection.execute(text(statement)).scalar_one())


def _answered(times: Times) -> dict[str, Any]:
    return {
        "median_ms": round(times.median_ms, 1),
        "p95_ms": round(float(np.quantile(times.wall_s, 0.95)) * 1000, 1),
        "median_cpu_ms": round(statistics.median(times.cpu_s) * 1000, 1),
    }


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 1)
