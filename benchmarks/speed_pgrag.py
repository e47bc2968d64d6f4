"""Speed of PG-RAG: the walk, fusion, an insert, a query. One dictionary a measurement; no LLM, no embedding model."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.apart import apart
from benchmarks.measuring import peak_mb, repeated, spent_in, timed

__all__ = ["measurements"]

DIMENSION = 384


def _index(documents: int, facts: int) -> Any:
    """An index over documents of a few facts each; a text always has the same vector, and some facts come again."""
    import zlib

    from llama_index.core import MockEmbedding
    from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode

    from llama_index.pgrag import GivenMindMaps, PGRAGIndex

    class Words(MockEmbedding):
        def _vector(self, text: str) -> list[float]:
            return np.random.default_rng(zlib.crc32(text.encode())).normal(size=DIMENSION).tolist()

        def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
            return [self._vector(text) for text in texts]

        def _get_query_embedding(self, query: str) -> list[float]:
            return self._vector(query)

    def mind_map(i: int) -> dict[str, Any]:
        routes = {f"route {j}": [f"fact {i} {j} {k}" for k in range(3)] for j in range(facts // 3)}
        return {f"topic {i % (documents * 3 // 4)}": {**routes, "place": "Beijing"}}  # some documents share a title

    maps = {f"n{i}": mind_map(i) for i in range(documents + 50)}
    nodes = [
        TextNode(
            id_=f"n{i}", text=f"text {i}", relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=f"d{i}")}
        )
        for i in range(documents)
    ]
    return PGRAGIndex(nodes=nodes, embed_model=Words(embed_dim=DIMENSION), extractor=GivenMindMaps(maps=maps))


def walk_over_six_maps() -> Iterator[dict[str, Any]]:
    """From the question's vector to ranked paths over six candidate maps: template, similarities, walk, aggregation."""
    from llama_index.pgrag.config import SearchConfig
    from llama_index.pgrag.search.candidates import Allowed, find_candidates
    from llama_index.pgrag.search.ranking import FactScores, score_facts

    index = _index(1000, 12)
    question = np.asarray(index.embed_model.get_query_embedding("q"), dtype=np.float32)
    config = SearchConfig(seed_topics=6, seed_facts=0)

    def search() -> FactScores:
        candidates = find_candidates(index.graph, question, [question], config, Allowed())
        return score_facts(index.graph, [question], candidates, config, Allowed())

    found = search()
    times = repeated(search, 50)
    yield {
        "name": f"one query over {len(found.candidates)} candidate maps, {len(found.template.facts)} paths",
        "ours_ms": round(times.median_ms, 2),
        "to_reach_ms": 5,
    }


def insert_and_query(documents: int = 10_000) -> Iterator[dict[str, Any]]:
    """One document more, a delete, and a query, at ten thousand documents of ten facts or so."""
    from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode

    index = _index(documents, 9)
    retriever = index.as_retriever(similarity_top_k=8)
    retriever.retrieve("warm")
    numbers = iter(range(documents, documents + 50))

    def insert() -> None:
        i = next(numbers)
        source = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id=f"d{i}")}
        index.insert_nodes([TextNode(id_=f"n{i}", text=f"text {i}", relationships=source)])

    with spent_in(type(index.embed_model), "_get_text_embeddings") as embedding:
        inserts = repeated(insert, 20)
    size = f"{documents} documents, {len(index.graph.facts)} facts"
    yield {
        "name": f"inserting one document into {size}",
        "ours_ms": round(inserts.median_ms, 1),
        "of_which_embedding_ms": round(sum(embedding.wall_s) * 1000 / 20, 1),
        "to_reach_ms": 100,
    }
    gone = iter(range(documents))
    deletes = repeated(lambda: index.delete_ref_doc(f"d{next(gone)}"), 10)
    yield {"name": f"deleting one document of {size}", "ours_ms": round(deletes.median_ms, 1)}
    yield {"name": f"one query, {size}", "ours_ms": round(repeated(lambda: retriever.retrieve("q"), 20).median_ms, 1)}


def fusion(n: int = 100_000) -> dict[str, Any]:
    """Seconds and memory of a whole fusion, for a fresh process."""
    from llama_index.pgrag.fusion.super_nodes import components

    rng = np.random.default_rng(0)
    rows = rng.normal(size=(n, DIMENSION)).astype(np.float32)
    same = rng.integers(0, n, n // 10)  # a tenth of the facts says nearly what another says
    rows[same] = rows[(same + 1) % n] + 0.05 * rng.normal(size=(len(same), DIMENSION)).astype(np.float32)
    labels, wall_s, cpu_s = timed(lambda: components(rows, 0.98))
    return {
        "name": f"fusion of {n} facts of {DIMENSION} dimensions",
        "components_of_two_or_more": int((np.bincount(labels) > 1).sum()),
        "ours_s": round(wall_s, 1),
        "cpu_s": round(cpu_s, 1),
        "peak_mb": round(peak_mb()),
        "to_reach": "3 minutes on two cores, 2 GB",
    }


def measurements() -> Iterator[dict[str, Any]]:
    """All measurements, the quick ones first."""
    yield from walk_over_six_maps()
    yield from insert_and_query()
    yield apart(fusion)
