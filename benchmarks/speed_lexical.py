"""What the words of chunks cost: 100,000 made-up chunks of 60 words, with and without the lexical part of nearness."""

import tempfile
from collections.abc import Iterator
from typing import Any

import numpy as np
from llama_index.core import StorageContext, load_index_from_storage
from llama_index.core.embeddings import MockEmbedding
from llama_index.core.schema import QueryBundle, TextNode

from benchmarks.apart import ONE_THREAD, apart
from benchmarks.made_up_texts import zipf_words
from benchmarks.measuring import in_turns, resident_mb, timed
from llama_index.ragkit import ExtractiveSummarizer
from llama_index.raptor import RaptorIndex
from llama_index.raptor.builder import TreeBuilder

__all__ = ["loaded", "measurements", "with_words"]

CHUNKS, WORDS, DIMENSION = 100_000, 60, 384
QUESTIONS, QUESTION_WORDS = 100, 10


def measurements() -> Iterator[dict[str, Any]]:
    """One index with words and one without, each in a process of its own."""
    with_them, without = _measured(True), _measured(False)
    added = with_them["mb"] - without["mb"]
    yield {
        "name": f"the words of {CHUNKS} chunks of {WORDS} words, {DIMENSION} dimensions",
        "query_ms": with_them["query_ms"],
        "cosines_alone_ms": with_them["cosines_ms"],
        "added_ms": round(with_them["added_ms"], 1),
        "index_mb": round(with_them["mb"]),
        "added_mb": round(added),
        "added_share": round(added / without["mb"], 3),
        "build_s": with_them["build_s"],
        "build_without_s": without["build_s"],
        "load_s": with_them["load_s"],
        "load_without_s": without["load_s"],
        "to_reach": "10 ms and a tenth of the memory",
    }


def _measured(kept: bool) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        return {**apart(with_words, kept, folder, **ONE_THREAD), **apart(loaded, kept, folder, **ONE_THREAD)}


def with_words(kept: bool, folder: str) -> dict[str, float]:
    """Build an index that keeps the words of chunks or not, in a folder; the medians of queries with and without them.

    Its memory is measured once it is loaded, when no node or list of numbers is left of those that it was built from.
    """
    TreeBuilder.keeps_terms = kept
    rng = np.random.default_rng(0)
    index, build_s, _ = timed(lambda: RaptorIndex(nodes=_nodes(rng), **_components()))
    found: dict[str, float] = {"build_s": round(build_s, 1)}
    if kept:
        questions = iter([_question(rng) for _ in range(2 * QUESTIONS + 2)])
        asked = {
            "both": index.as_retriever(),
            "cosines": index.as_retriever(lexical_weight=0.0),
        }
        for retriever in asked.values():
            retriever.retrieve(next(questions))
        works = {name: (lambda r=retriever: r.retrieve(next(questions))) for name, retriever in asked.items()}
        times = in_turns(works, QUESTIONS)
        found["query_ms"], found["cosines_ms"] = round(times["both"].median_ms, 1), round(times["cosines"].median_ms, 1)
        found["added_ms"] = times["both"].difference_ms(times["cosines"])
    index.storage_context.persist(folder)
    return found


def loaded(kept: bool, folder: str) -> dict[str, float]:
    """The memory of the index in a folder, after a question."""
    TreeBuilder.keeps_terms = kept
    before = resident_mb()
    index, load_s, _ = timed(
        lambda: load_index_from_storage(StorageContext.from_defaults(persist_dir=folder), **_components())
    )
    index.as_retriever().retrieve(_question(np.random.default_rng(1)))
    return {"mb": resident_mb() - before, "load_s": round(load_s, 1)}


def _components() -> dict[str, Any]:
    return {"max_layers": 0, "summarizer": ExtractiveSummarizer(), "embed_model": MockEmbedding(DIMENSION)}


def _nodes(rng: np.random.Generator) -> list[TextNode]:
    vectors = rng.normal(size=(CHUNKS, DIMENSION)).astype(np.float32)
    return [
        TextNode(id_=f"n{i}", text=zipf_words(rng, WORDS), embedding=vector.tolist())
        for i, vector in enumerate(vectors)
    ]


def _question(rng: np.random.Generator) -> QueryBundle:
    return QueryBundle(zipf_words(rng, QUESTION_WORDS), embedding=rng.normal(size=DIMENSION).tolist())
