"""Speed of HippoRAG's index: near phrases, one insert, opening. One dictionary a measurement; no model is asked.

Growing and opening each have a process of their own, so that their memory can be told. Vectors are made up: groups of
near phrases around random directions, unlike one another.
"""

import statistics
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from llama_index.core import Settings, StorageContext, load_index_from_storage
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.schema import TextNode

from benchmarks.apart import apart
from benchmarks.measuring import peak_mb, spent_in, timed
from llama_index.hipporag import HippoRAGIndex, RecordedExtractor, phrase_vectors

__all__ = ["measurements"]

DIMENSION = 384
GROUP = 4  # phrases of one group are near to one another (cosine about .87)
INSERTS = 15

Records = dict[str, dict[str, Any]]


class MadeUp(BaseEmbedding):
    """The number at the end of a text decides its group, its checksum where there is none."""

    embed_batch_size: int = 2048

    def vectors(self, texts: list[str]) -> list[list[float]]:
        out = []
        for text in texts:
            last = text.split()[-1]
            number = int(last) if last.isdigit() else zlib.crc32(text.encode())
            centre = np.random.default_rng(number // GROUP).normal(size=DIMENSION)
            noise = np.random.default_rng(10**9 + number).normal(size=DIMENSION)
            out.append((centre + 0.38 * noise).tolist())
        return out

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return self.vectors(texts)

    def _get_text_embedding(self, text: str) -> list[float]:
        return self.vectors([text])[0]

    def _get_query_embedding(self, query: str) -> list[float]:
        return self.vectors([query])[0]

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self.vectors([query])[0]


def _passage(phrases: Sequence[int]) -> dict[str, Any]:
    names = [f"phrase number {n}" for n in phrases]
    return {"entities": names, "triples": [[a, "has", b] for a, b in pairwise(names)]}


def _corpus(passages: int, phrases: int) -> Records:
    """Nine phrases a passage; every phrase at least once, some of them often."""
    random = np.random.default_rng(0)
    again = (phrases * random.random(9 * passages - phrases) ** 3).astype(int)
    rows = np.concatenate([random.permutation(phrases), again])
    return {f"p{i:06d}": _passage(row.tolist()) for i, row in enumerate(rows.reshape(passages, 9))}


def _nodes(ids: Iterable[str]) -> list[TextNode]:
    random = np.random.default_rng(1)
    return [TextNode(id_=i, text=f"passage {i}", embedding=random.normal(size=DIMENSION).tolist()) for i in ids]


def _without_embedding(work: Callable[[], Any]) -> tuple[Any, float, float]:
    """What the work returns, and its seconds on the wall and on the processor, less those of making vectors up."""
    with spent_in(MadeUp, "vectors") as embedding:
        result, wall_s, cpu_s = timed(work)
    return result, wall_s - sum(embedding.wall_s), cpu_s - sum(embedding.cpu_s)


def _growing(phrases: int) -> list[dict[str, Any]]:
    """A build, inserts into it, and two questions."""
    records = _corpus(phrases // 8, phrases)
    extractor = RecordedExtractor(records)

    def build() -> HippoRAGIndex:
        return HippoRAGIndex(nodes=_nodes(records), extractor=extractor, embed_model=MadeUp(), phrase_vectors=True)

    with spent_in(phrase_vectors, "with_new") as searching:
        index, build_s, _ = _without_embedding(build)
    built = {
        "name": f"near phrases of {len(index.state.phrases)} phrases, exact, {DIMENSION} dimensions",
        "near_phrases": index.index_struct.counters["near_phrases"],
        "search_wall_s": round(sum(searching.wall_s), 1),
        "search_cpu_s": round(sum(searching.cpu_s), 1),
        "whole_build_wall_s": round(build_s, 1),
        "peak_mb": round(peak_mb()),
        "to_reach": "under 300 s and 2 GB on two cores",
    }

    walls, cpus = [], []
    for i in range(INSERTS):
        extractor.add({f"new{i}": _passage([10_000_000 + 9 * i + k for k in range(8)] + [i])})
        node = TextNode(id_=f"new{i}", text=f"new {i}", embedding=np.ones(DIMENSION).tolist())
        _, wall_s, cpu_s = _without_embedding(partial(index.insert_nodes, [node]))
        walls.append(wall_s)
        cpus.append(cpu_s)
    inserted = {
        "name": f"inserting one passage with 8 new phrases into {phrases} phrases, without LLM and embedding",
        "wall_ms": round(statistics.median(walls) * 1000, 1),
        "cpu_ms": round(statistics.median(cpus) * 1000, 1),
        "to_reach": "under 50 ms",
    }

    _, first_s, _ = _without_embedding(lambda: index.as_retriever().retrieve("phrase number 17"))
    _, again_s, _ = _without_embedding(lambda: index.as_retriever().retrieve("phrase number 4711 and phrase number 99"))
    asked = {
        "name": f"a question over {phrases} phrases and {len(index.state.chunks)} passages, after an insert and again",
        "first_ms": round(first_s * 1000, 1),
        "again_ms": round(again_s * 1000, 1),
    }
    return [built, inserted, asked]


def _store(passages: int, folder: str) -> None:
    records = _corpus(passages, 8 * passages)
    index = HippoRAGIndex(nodes=_nodes(records), extractor=RecordedExtractor(records), embed_model=MadeUp())
    index.storage_context.persist(folder)


def _open(folder: str) -> dict[str, Any]:
    Settings.embed_model = MadeUp()

    def load() -> Any:
        return load_index_from_storage(StorageContext.from_defaults(persist_dir=folder), extractor=RecordedExtractor())

    def ask() -> Any:
        return index.as_retriever(similarity_top_k=5).retrieve("What about phrase number 4711?")

    index, opening_wall_s, opening_cpu_s = timed(load)
    found, answer_wall_s, answer_cpu_s = timed(ask)
    sizes = f"{len(index.state.chunks)} passages, {len(index.state.phrases)} phrases and {len(index.state.facts)} facts"
    return {
        "name": f"opening a persisted index of {sizes}, and answering the first question",
        "wall_s": round(opening_wall_s + answer_wall_s, 2),
        "cpu_s": round(opening_cpu_s + answer_cpu_s, 2),
        "of_which_opening_s": round(opening_wall_s, 2),
        "passages_found": len(found),
        "peak_mb": round(peak_mb()),
        "to_reach": "under 3 s",
    }


def measurements(passages: int = 6000, phrases: int = 160_000) -> Iterator[dict[str, Any]]:
    """Opening an index of some passages, then near phrases of many phrases and an insert among them."""
    with tempfile.TemporaryDirectory() as folder:
        apart(_store, passages, folder)
        yield apart(_open, folder)
    yield from apart(_growing, phrases)
