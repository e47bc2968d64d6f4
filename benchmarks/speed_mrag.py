"""Speed of MRAG: whole questions, the vote over 100,000 nodes of 32 heads, importance, and embedding.

One dictionary a measurement.
"""

import statistics
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from benchmarks.apart import ONE_THREAD, apart
from benchmarks.measuring import in_turns, peak_mb, repeated, reset_peak, timed

__all__ = ["measurements"]

NODES, HEADS, HEAD_DIM, ASPECTS = 100_000, 32, 128, 8
TEXTS = 96
QUESTIONS, CLAUSES, CLAUSE_WORDS, CHUNK_WORDS = 100, (1, 2, 4), 8, 120
SENTENCE = "the lamp of the light keeper went out in the storm and a ship came to the rocks below the tower"


def measurements() -> Iterator[dict[str, Any]]:
    """Measure; each part in a process of its own, so that memory is that of the part."""
    for heads, head_dim in ((12, 32), (32, 128)):  # all-MiniLM-L6-v2, and a model of 7 billion parameters
        yield apart(_questions, 20_000, heads, head_dim, **ONE_THREAD)
    yield apart(_retrieval, NODES)
    yield apart(_importance)
    for fewest, most in ((2, 5), (5, 15), (20, 60)):  # clauses, sentences, paragraphs
        yield apart(_embedding, fewest, most)


def _questions(nodes: int, heads: int, head_dim: int) -> dict[str, Any]:
    """Whole questions to the retriever, from text to nodes, over made-up texts and vectors: all but embedding."""
    from llama_index.core import MockEmbedding
    from llama_index.core.schema import TextNode

    from benchmarks.made_up_texts import zipf_words
    from llama_index.mrag import MRAGIndex, SplitEmbedding

    class Random(MockEmbedding):
        """A vector of its own for every question."""

        def _get_query_embedding(self, query: str) -> list[float]:
            vector: list[float] = rng.standard_normal(self.embed_dim, dtype=np.float32).tolist()
            return vector

    rng = np.random.default_rng(0)
    dim = heads * head_dim
    model = SplitEmbedding(Random(dim), heads)
    index: MRAGIndex | None = None
    for start in range(0, nodes, 2000):  # fewer Python numbers in memory at once
        vectors = rng.standard_normal((min(2000, nodes - start), dim), dtype=np.float32)
        batch = [
            TextNode(id_=f"n{start + i}", text=zipf_words(rng, CHUNK_WORDS), embedding=vector.tolist())
            for i, vector in enumerate(vectors)
        ]
        if index is None:
            index = MRAGIndex(nodes=batch, embed_model=model)
        else:
            index.insert_nodes(batch)
    assert index is not None
    retriever = index.as_retriever()
    found: dict[str, Any] = {
        "name": f"a question to the retriever, {nodes:,} chunks x {heads} heads x {head_dim}, without embedding it"
    }
    for clauses in CLAUSES:
        texts = [
            ". ".join(zipf_words(rng, CLAUSE_WORDS).capitalize() for _ in range(clauses)) for _ in range(QUESTIONS)
        ]
        retriever.retrieve(texts[0])
        _, walls, cpus = zip(*(timed(partial(retriever.retrieve, text)) for text in texts), strict=True)
        for clock, seconds in (("wall", sorted(walls)), ("cpu", sorted(cpus))):
            late = seconds[int(0.95 * len(seconds))]
            found[f"{clauses}_sentences_{clock}_ms"] = round(statistics.median(seconds) * 1000, 1)
            found[f"{clauses}_sentences_{clock}_ms_p95"] = round(late * 1000, 1)
    return {**found, "to_reach": "under 60 ms with 12 heads of 32"}


def _retrieval(nodes: int) -> dict[str, Any]:
    """Exact search and vote, against one search a head and aspect in a FAISS index of that head."""
    from llama_index.core.vector_stores.types import VectorStoreQuery

    from llama_index.mrag.config import SearchConfig
    from llama_index.mrag.state import MRAGState
    from llama_index.mrag.voting.vote_result import run_vote
    from llama_index.ragkit import MatrixVectorStore

    rng = np.random.default_rng(0)
    store = MatrixVectorStore(stores_text=False, dtype="float16")
    for start in range(0, nodes, 5000):
        rows = rng.standard_normal((5000, HEADS * HEAD_DIM), dtype=np.float32)
        store.put([f"{start + i:06d}" for i in range(5000)], rows)
    state, _, opening_cpu_s = timed(lambda: MRAGState.of(store.snapshot(), HEADS))
    queries = rng.standard_normal((ASPECTS, HEADS * HEAD_DIM), dtype=np.float32)
    aspects = [str(i) for i in range(ASPECTS)]

    def ask() -> Any:
        return run_vote(state, aspects, queries, SearchConfig(), wanted=10)

    reset_peak()  # the peak of queries, not of the build
    ours = repeated(ask, 3)
    found: dict[str, Any] = {
        "name": f"one question of {ASPECTS} aspects, {nodes:,} nodes x {HEADS} heads x {HEAD_DIM}, exact, float16",
        "ours_s": min(ours.wall_s),
        "ours_cpu_s": min(ours.cpu_s),
        "ours_peak_gb": peak_mb() / 1024,
        "opening_cpu_s": opening_cpu_s,
    }
    import faiss
    from llama_index.core.schema import TextNode
    from llama_index.vector_stores.faiss import FaissVectorStore

    peer = FaissVectorStore(faiss.IndexFlatIP(HEAD_DIM))
    part = state.chunks.columns(0, HEAD_DIM)
    peer.add([TextNode(id_=str(i), embedding=row.tolist()) for i, row in enumerate(part)])
    asked = [VectorStoreQuery(query_embedding=query[:HEAD_DIM].tolist(), similarity_top_k=32) for query in queries]
    one_head = repeated(lambda: [peer.query(query) for query in asked], 3)
    return {
        **found,
        "peer_s": min(one_head.wall_s) * HEADS,
        "peer_cpu_s": min(one_head.cpu_s) * HEADS,
        "peer": "FAISS flat, 1 head x 32",
    }


def _importance() -> dict[str, Any]:
    from llama_index.mrag.heads.importance import HeadSums, importance

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

    over_pairs, _, pairs_cpu_s = timed(pairs)
    return {
        "name": f"importance of {HEADS} heads over {n} nodes",
        "ours_cpu_s": min(repeated(closed, 3).cpu_s),
        "pairs_cpu_s": pairs_cpu_s,
        "largest_difference": float(np.abs(closed() - over_pairs).max()),
    }


def _embedding(fewest: int, most: int) -> dict[str, Any]:
    """`MultiHeadEmbedding` against a plain forward pass over the same batches, and against one text at a time.

    Ours in bfloat16 is beside the same one text at a time, in float32; what it costs is how far its vectors turn.
    """
    import torch

    from benchmarks.embedding import minilm_folder
    from llama_index.mrag import MultiHeadEmbedding

    rng = np.random.default_rng(0)
    words = SENTENCE.split()
    texts = [" ".join(rng.choice(words, size=rng.integers(fewest, most + 1))) for _ in range(TEXTS)]
    model, bfloat16 = (
        MultiHeadEmbedding(minilm_folder(), device="cpu", max_length=256, dtype=dtype) for dtype in (None, "bfloat16")
    )
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

    embed, embed_bfloat16 = (partial(each.get_text_embedding_batch, texts) for each in (model, bfloat16))
    flat, flat_bfloat16 = np.array(embed()), np.array(embed_bfloat16())
    cosines = (flat * flat_bfloat16).sum(axis=1) / np.linalg.norm(flat, axis=1) / np.linalg.norm(flat_bfloat16, axis=1)
    works: dict[str, Callable[[], Any]] = {
        "ours": embed,
        "plain": plain,
        "single": one_by_one,
        "bfloat16": embed_bfloat16,
    }
    least = {name: min(times.cpu_s) for name, times in in_turns(works, 5).items()}
    return {
        "name": f"embedding {TEXTS} texts of {fewest} to {most} words, MiniLM, CPU",
        "ours_cpu_s": least["ours"],
        "plain_forward_cpu_s": least["plain"],
        "one_text_at_a_time_cpu_s": least["single"],
        "ours_bfloat16_cpu_s": least["bfloat16"],
        "share_of_plain": least["plain"] / least["ours"],
        "times_one_at_a_time": least["single"] / least["ours"],
        "times_one_at_a_time_bfloat16": least["single"] / least["bfloat16"],
        "smallest_cosine_bfloat16": float(cosines.min()),
    }
