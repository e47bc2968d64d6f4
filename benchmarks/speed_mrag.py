"""Speed of MRAG: a question over 100,000 nodes of 32 heads, importance, and embedding. One dictionary a measurement."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["measurements"]

NODES, HEADS, HEAD_DIM, ASPECTS = 100_000, 32, 128, 8
TEXTS = 96


def measurements() -> Iterator[dict[str, Any]]:
    """Measure; each part in a process of its own, so that memory is that of the part."""
    for part in PARTS:
        command = [sys.executable, "-m", "benchmarks.speed_mrag", part]
        yield json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[-1])


def _seconds(work: Callable[[], Any], clock: Callable[[], float], repeats: int = 3) -> float:
    best = float("inf")
    for _ in range(repeats):
        start = clock()
        work()
        best = min(best, clock() - start)
    return best


def _memory_gb(field: str) -> float:
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field)) / 1024**2


def _retrieval() -> dict[str, Any]:
    """Exact search and vote, against one search a head and aspect in a FAISS index of that head."""
    from llama_index.core.vector_stores.types import VectorStoreQuery

    from llama_index.mrag.election import hold
    from llama_index.mrag.state import MRAGState
    from llama_index.ragkit import MatrixVectorStore

    rng = np.random.default_rng(0)
    store = MatrixVectorStore(stores_text=False, dtype="float16")
    for start in range(0, NODES, 5000):
        rows = rng.standard_normal((5000, HEADS * HEAD_DIM), dtype=np.float32)
        store.put([f"{start + i:06d}" for i in range(5000)], rows)
    start = time.process_time()
    state = MRAGState.of(store.snapshot(), HEADS)
    opening = time.process_time() - start
    queries = rng.standard_normal((ASPECTS, HEADS * HEAD_DIM), dtype=np.float32)
    aspects = [str(i) for i in range(ASPECTS)]

    def ask() -> Any:
        return hold(state, aspects, queries, vote="mrag", count=32, wanted=10)

    if os.access("/proc/self/clear_refs", os.W_OK):
        Path("/proc/self/clear_refs").write_text("5")  # the peak from here on: of queries, not of the build
    wall, cpu = _seconds(ask, time.perf_counter), _seconds(ask, time.process_time)
    found: dict[str, Any] = {
        "name": f"one question of {ASPECTS} aspects, {NODES:,} nodes x {HEADS} heads x {HEAD_DIM}, exact, float16",
        "ours_s": wall,
        "ours_cpu_s": cpu,
        "ours_peak_gb": _memory_gb("VmHWM"),
        "opening_cpu_s": opening,
    }
    import faiss
    from llama_index.core.schema import TextNode
    from llama_index.vector_stores.faiss import FaissVectorStore

    peer = FaissVectorStore(faiss.IndexFlatIP(HEAD_DIM))
    part = state.chunks.columns(0, HEAD_DIM)
    peer.add([TextNode(id_=str(i), embedding=row.tolist()) for i, row in enumerate(part)])
    asked = [VectorStoreQuery(query_embedding=query[:HEAD_DIM].tolist(), similarity_top_k=32) for query in queries]
    one_head = _seconds(lambda: [peer.query(query) for query in asked], time.perf_counter)
    one_head_cpu = _seconds(lambda: [peer.query(query) for query in asked], time.process_time)
    return {**found, "peer_s": one_head * HEADS, "peer_cpu_s": one_head_cpu * HEADS, "peer": "FAISS flat, 1 head x 32"}


def _importance() -> dict[str, Any]:
    from llama_index.mrag.importance import HeadSums, importance

    n = 2000
    vectors = np.random.default_rng(0).standard_normal((n, HEADS, HEAD_DIM), dtype=np.float32)

    def pairs() -> Any:
        scores = []
        for head in range(HEADS):
            wide = vectors[:, head].astype(np.float64)
            norms = np.linalg.norm(wide, axis=1)
            unit = wide / norms[:, None]
            scores.append(norms.mean() * (1 - unit @ unit.T).mean())
        return np.array(scores)

    def closed() -> Any:
        return importance(HeadSums.empty(HEADS, HEAD_DIM).add(vectors))

    return {
        "name": f"importance of {HEADS} heads over {n} nodes",
        "ours_cpu_s": _seconds(closed, time.process_time),
        "pairs_cpu_s": _seconds(pairs, time.process_time, 1),
        "largest_difference": float(np.abs(closed() - pairs()).max()),
    }


def _embedding(fewest: int, most: int) -> dict[str, Any]:
    """`MultiHeadEmbedding` against a plain forward pass over the same batches, and against one text at a time."""
    import torch

    from benchmarks.embedding import minilm_folder
    from llama_index.mrag import MultiHeadEmbedding

    words = [
        "the",
        "lamp",
        "of",
        "the",
        "light",
        "keeper",
        "went",
        "out",
        "in",
        "the",
        "storm",
        "and",
        "a",
        "ship",
        "came",
        "to",
        "the",
        "rocks",
        "below",
        "the",
        "tower",
    ]
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(words, size=rng.integers(fewest, most + 1))) for _ in range(TEXTS)]
    model = MultiHeadEmbedding(minilm_folder(), device="cpu", max_length=256)
    encoder = model.encoder
    rows = encoder.tokens(texts)
    order = sorted(range(len(rows)), key=lambda i: -len(rows[i]))
    batches = [order[i : i + encoder.batch_size] for i in range(0, len(order), encoder.batch_size)]

    def plain() -> None:
        rows = encoder.tokens(texts)
        with torch.inference_mode():
            for batch in batches:
                encoder.model(**encoder.batch([rows[i] for i in batch]))

    def one_by_one() -> None:
        for text in texts:
            with torch.inference_mode():
                encoder.model(**encoder.batch(encoder.tokens([text])))

    model.get_text_embedding_batch(texts[:8])
    # In turns, so that what else the machine does falls on all alike.
    times: dict[str, float] = {}
    for _ in range(5):
        for name, work in (
            ("ours", lambda: model.get_text_embedding_batch(texts)),
            ("plain", plain),
            ("single", one_by_one),
        ):
            times[name] = min(times.get(name, float("inf")), _seconds(work, time.process_time, 1))
    return {
        "name": f"embedding {TEXTS} texts of {fewest} to {most} words, MiniLM, CPU",
        "ours_cpu_s": times["ours"],
        "plain_forward_cpu_s": times["plain"],
        "one_text_at_a_time_cpu_s": times["single"],
        "share_of_plain": times["plain"] / times["ours"],
        "times_one_at_a_time": times["single"] / times["ours"],
    }


PARTS: dict[str, Callable[[], dict[str, Any]]] = {
    "retrieval": _retrieval,
    "importance": _importance,
    "embedding clauses": partial(_embedding, 2, 5),
    "embedding sentences": partial(_embedding, 5, 15),
    "embedding paragraphs": partial(_embedding, 20, 60),
}

if __name__ == "__main__":
    print(json.dumps(PARTS[sys.argv[1]]()))
