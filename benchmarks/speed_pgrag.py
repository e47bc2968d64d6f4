"""Speed of PG-RAG: the walk, fusion, an insert, a query. One dictionary a measurement; no LLM, no embedding model."""

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

__all__ = ["measurements"]

DIMENSION = 384


def _median_ms(work: Callable[[], Any], repeats: int) -> float:
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds) * 1000


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
    from llama_index.pgrag.allowed import Allowed
    from llama_index.pgrag.candidates import Reach
    from llama_index.pgrag.ranking import Settings, explore

    index = _index(1000, 12)
    question = np.asarray(index.embed_model.get_query_embedding("q"), dtype=np.float32)
    settings = Settings(reach=Reach(seed_topics=6, seed_facts=0))
    found = explore(index.graph, question, [question], settings, Allowed())
    milliseconds = _median_ms(lambda: explore(index.graph, question, [question], settings, Allowed()), 50)
    yield {
        "what": f"one query over {len(found.candidates)} candidate maps, {len(found.template.facts)} paths",
        "ours_ms": round(milliseconds, 2),
        "to_reach_ms": 5,
    }


def insert_and_query(documents: int = 10_000) -> Iterator[dict[str, Any]]:
    """One document more, a delete, and a query, at ten thousand documents of ten facts or so."""
    from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode

    index = _index(documents, 9)
    embed = index.embed_model
    spent = 0.0
    inner = type(embed)._get_text_embeddings

    def timed(self: Any, texts: list[str]) -> Any:
        nonlocal spent
        start = time.perf_counter()
        try:
            return inner(self, texts)
        finally:
            spent += time.perf_counter() - start

    type(embed)._get_text_embeddings = timed
    retriever = index.as_retriever(similarity_top_k=8)
    retriever.retrieve("warm")
    numbers = iter(range(documents, documents + 50))

    def insert() -> None:
        i = next(numbers)
        source = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id=f"d{i}")}
        index.insert_nodes([TextNode(id_=f"n{i}", text=f"text {i}", relationships=source)])

    milliseconds = _median_ms(insert, 20)
    size = f"{documents} documents, {len(index.graph.facts)} facts"
    yield {
        "what": f"inserting one document into {size}",
        "ours_ms": round(milliseconds, 1),
        "of_which_embedding_ms": round(spent * 1000 / 20, 1),
        "to_reach_ms": 100,
    }
    gone = iter(range(documents))
    yield {
        "what": f"deleting one document of {size}",
        "ours_ms": round(_median_ms(lambda: index.delete_ref_doc(f"d{next(gone)}"), 10), 1),
    }
    yield {"what": f"one query, {size}", "ours_ms": round(_median_ms(lambda: retriever.retrieve("q"), 20), 1)}


_FUSION = """
import json, resource, sys, time
import numpy as np
from llama_index.pgrag.fusion import components
n = int(sys.argv[1])
rng = np.random.default_rng(0)
rows = rng.normal(size=(n, 384)).astype(np.float32)
same = rng.integers(0, n, n // 10)  # a tenth of the facts says nearly what another says
rows[same] = rows[(same + 1) % n] + 0.05 * rng.normal(size=(len(same), 384)).astype(np.float32)
start, used = time.perf_counter(), time.process_time()
labels = components(rows, 0.98)
print(json.dumps({
    "what": f"fusion of {n} facts of 384 dimensions",
    "components_of_two_or_more": int((np.bincount(labels) > 1).sum()),
    "ours_s": round(time.perf_counter() - start, 1),
    "cpu_s": round(time.process_time() - used, 1),
    "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    "to_reach": "3 minutes on two cores, 2 GB",
}))
"""


def fusion(n: int = 100_000) -> Iterator[dict[str, Any]]:
    """Seconds and memory of a whole fusion, in a fresh process."""
    done = subprocess.run([sys.executable, "-c", _FUSION, str(n)], capture_output=True, text=True, check=True)
    yield json.loads(done.stdout.splitlines()[-1])


def measurements() -> Iterator[dict[str, Any]]:
    """All measurements, the quick ones first."""
    yield from walk_over_six_maps()
    yield from insert_and_query()
    yield from fusion()
