"""The chunks of a question, from stores: the nearness of a search over all of them."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any

import numpy as np
import pytest
from llama_index.core.vector_stores.types import FilterOperator, MetadataFilter, MetadataFilters
from numpy.typing import NDArray
from sqlalchemy import Engine

from llama_index.ragkit import MatrixVectorStore, Records, SpaceRows
from llama_index.ragkit.sql import SQLLexicalIndex, storage_context
from llama_index.ragkit.sql.lexical_rows import LexicalRows, StoredTexts
from llama_index.ragkit.steps import arun_steps, run_steps
from llama_index.ragkit.storage.selection import Selection
from llama_index.ragkit.storage.stored_chunks import ChunkView, StoredChunks
from llama_index.ragkit.storage.stored_space import StoredSpace
from llama_index.ragkit.testing import HashEmbedding
from llama_index.ragkit.text.lexical_index import LexicalIndex, lexical_terms
from llama_index.ragkit.vectors.question_scores import Nearness, best_rows, question_cosines

WORDS = [f"word{i}" for i in range(300)]


def texts(count: int) -> dict[str, str]:
    random = Random(11)
    weights = [1 / (i + 1) for i in range(len(WORDS))]
    return {f"c{i:04d}": " ".join(random.choices(WORDS, weights, k=30)) for i in range(count)}


class Both:
    """The same chunks in stores and in memory."""

    def __init__(self, engine: Engine, count: int) -> None:
        context = storage_context(engine)
        given = texts(count)
        model = HashEmbedding()
        vectors = np.array([model.vector(each) for each in given.values()], np.float32)
        self.vector_of = {name: vectors[i] for i, name in enumerate(given)}
        self.rows = SpaceRows(
            list(given), vectors, list(given), [None] * count, [{"year": i % 10} for i in range(count)]
        )
        self.terms = {name: lexical_terms(each) for name, each in given.items()}
        space = StoredSpace("chunks", "u", MatrixVectorStore(), Records(context.docstore, "method_u"))
        run_steps(space.put(self.rows))
        lexical = SQLLexicalIndex(engine, "u")
        lexical.changed((), self.terms)
        self.stored = StoredChunks(space, lexical)
        memory = MatrixVectorStore(stores_text=False)
        memory.put(self.rows.ids, vectors, keys=self.rows.keys, metadatas=self.rows.metadatas)
        self.snapshot = memory.snapshot()
        self.memory = LexicalIndex().changed((), self.terms)

    def expected(self, question: str, vector: NDArray[np.float32], k: int) -> list[tuple[str, float]]:
        (ids,), (scores,) = self.memory.ids, self.memory.scores(question)
        lexical = dict(zip(ids, scores.tolist(), strict=True))
        words = np.array([lexical[name] for name in self.snapshot.ids])
        return ranked(ChunkView(self.snapshot, words, self.memory.full_scores([question])[0]), vector, k)


def ranked(view: ChunkView, vector: NDArray[np.float32], k: int) -> list[tuple[str, float]]:
    rows = view.rows
    near = Nearness.of(question_cosines(rows, vector), view.lexical, 0.6, full_score=view.full_score).scores
    return [(rows.ids[row], float(near[row])) for row in best_rows(near, k, rows)]


def questions() -> list[tuple[str, NDArray[np.float32]]]:
    random = Random(2)
    asked = [" ".join(random.sample(WORDS[:60], 4)) for _ in range(6)]
    return [(each, np.array(HashEmbedding().vector(each), np.float32)) for each in asked]


def test_nearness_over_a_view_is_that_over_all_chunks(engine: Engine) -> None:
    both = Both(engine, 800)
    for question, vector in questions():
        view = run_steps(both.stored.view(question, vector, 10))
        assert 100 <= len(view.rows) < 500
        found = ranked(view, vector, 10)
        wanted = both.expected(question, vector, 10)
        assert [name for name, _ in found] == [name for name, _ in wanted]
        assert [score for _, score in found] == pytest.approx([score for _, score in wanted], abs=1e-9)


def test_vectors_of_chunks_that_a_view_has_are_not_read_again(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    both, read = Both(engine, 400), []
    rows = StoredSpace.rows

    def noted(self: StoredSpace, records: Mapping[str, Any]) -> Any:
        read.extend(records)
        return rows(self, records)

    monkeypatch.setattr(StoredSpace, "rows", noted)
    (question, vector), (aspect, aspect_vector) = questions()[:2]
    view = run_steps(both.stored.view(question, vector, 10))
    records = run_steps(both.stored.records_by_words(aspect, 100))
    records = {**records, **run_steps(both.stored.space.records_near(aspect_vector, 100))}
    near = {record["id"] for record in records.values()}
    assert near & set(view.rows.ids)
    joined = run_steps(both.stored.joined(view, question, records))
    assert set(joined.rows.ids) == near | set(view.rows.ids)
    assert len(read) == len(set(read)) == len(joined.rows)


def test_scores_for_several_texts_are_read_at_once(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    both, (one, other) = Both(engine, 400), [question for question, _ in questions()[:2]]
    reads, plain = list[int](), LexicalRows.texts

    def counted(self: LexicalRows, keys: Sequence[int], column: str = "text") -> StoredTexts:
        reads.append(len(keys))
        return plain(self, keys, column)

    monkeypatch.setattr(LexicalRows, "texts", counted)
    ids = both.snapshot.ids[:50]
    found = both.stored.lexical_scores(ids, [one, "no such word", other])
    assert reads == [50]
    expected = [dict(zip(both.memory.ids[0], both.memory.scores(text)[0], strict=True)) for text in (one, other)]
    assert found[0].tolist() == [expected[0][name] for name in ids]
    assert found[2].tolist() == [expected[1][name] for name in ids]
    assert found[0].any()
    assert not found[1].any()
    among = both.stored.lexical_scores(ids[:5], [one], Selection(only=both.snapshot.ids[:30]))
    alone = both.stored.terms.scores(one, 30, both.snapshot.ids[:30])
    assert among[0].tolist() == [alone.get(name, 0.0) for name in ids[:5]]


def test_the_asynchronous_view_is_the_same(engine: Engine) -> None:
    both = Both(engine, 400)
    question, vector = questions()[0]

    async def view() -> Any:
        return await arun_steps(both.stored.view(question, vector, 10))

    found, same = asyncio.run(view()), run_steps(both.stored.view(question, vector, 10))
    assert dict(zip(found.rows.ids, found.lexical, strict=True)) == dict(zip(same.rows.ids, same.lexical, strict=True))


@pytest.mark.parametrize(
    ("given", "keep"),
    [
        (MetadataFilter(key="year", value=3), lambda i: i % 10 == 3),
        (MetadataFilter(key="year", value=3, operator=FilterOperator.LT), lambda i: i % 10 < 3),
        (MetadataFilter(key="year", value=77), lambda i: False),
    ],
)
def test_a_view_shows_only_what_passes_the_filters(
    engine: Engine, given: MetadataFilter, keep: Callable[[int], bool]
) -> None:
    both = Both(engine, 800)
    question, vector = questions()[1]
    view = run_steps(both.stored.view(question, vector, 10, Selection(MetadataFilters(filters=[given]))))
    allowed = [i for i in range(800) if keep(i)]
    assert all(keep(int(name[1:])) for name in view.rows.ids)
    best = sorted(allowed, key=lambda i: -float(both.rows.vectors[i] @ vector))[:100]
    assert {both.rows.ids[i] for i in best} <= set(view.rows.ids)
    scores = dict(zip(both.memory.ids[0], both.memory.scores(question)[0].tolist(), strict=True))
    by_words = sorted((i for i in allowed if scores[f"c{i:04d}"]), key=lambda i: -scores[f"c{i:04d}"])[:100]
    least = scores[f"c{by_words[-1]:04d}"] if by_words else 0.0
    assert {f"c{i:04d}" for i in by_words if scores[f"c{i:04d}"] > least} <= set(view.rows.ids)
    assert [scores[name] for name in view.rows.ids] == view.lexical.tolist()


def test_without_words_vectors_alone_choose(engine: Engine) -> None:
    both = Both(engine, 50)
    question, vector = questions()[0]
    view = run_steps(StoredChunks(both.stored.space).view(question, vector, 10))
    assert len(view.rows) == 50
    assert not view.lexical.any()


def test_an_empty_store_gives_an_empty_view(engine: Engine) -> None:
    records = Records(storage_context(engine).docstore, "method_e")
    empty = StoredChunks(StoredSpace("chunks", "e", MatrixVectorStore(), records), SQLLexicalIndex(engine, "e"))
    question, vector = questions()[0]
    assert len(run_steps(empty.view(question, vector, 10)).rows) == 0
