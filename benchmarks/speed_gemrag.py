"""Speed of GEM-RAG: the spectrum against dense solvers, planted themes, and queries. One dictionary a measurement."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.apart import ONE_THREAD, apart
from benchmarks.measuring import allocated_mb, in_turns, peak_mb, timed

__all__ = ["measurements", "planted"]

DIMENSION = 384
THEMES = 10
QUESTIONS = 5


def planted(
    n: int, themes: int = 7, seed: int = 0, questions: int = QUESTIONS
) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.intp]]:
    """Unit texts of unequal themes with anisotropic noise, their mean blended questions, and the themes' numbers.

    Themes have sizes as 1 : 2 : ... ; the noise is 2.1 times as strong in the first dimension as in the last; all
    texts share a direction, as texts of one encoder do; the cosine of a question with its text is about 0.75.
    """
    rng = np.random.default_rng(seed)
    sizes = np.arange(1, themes + 1) / (themes * (themes + 1) / 2)
    labels = rng.choice(themes, n, p=sizes)
    shared, centres = 0.7 * rng.normal(size=DIMENSION), 0.8 * rng.normal(size=(themes, DIMENSION))
    spread = np.linspace(1.5, 0.7, DIMENSION)
    texts = np.empty((n, DIMENSION), np.float32)
    means = np.empty((n, DIMENSION), np.float32)
    for start in range(0, n, 1 << 13):
        some = labels[start : start + (1 << 13)]
        rows = _unit(shared + centres[some] + rng.normal(size=(len(some), DIMENSION)) * spread)
        asked = _unit(rows[:, None] + 0.045 * rng.normal(size=(len(some), questions, DIMENSION)))
        texts[start : start + len(some)] = rows
        means[start : start + len(some)] = _unit(asked + rows[:, None]).mean(axis=1)
    return texts, means, labels


def _unit(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    unit: NDArray[np.float64] = rows / np.linalg.norm(rows, axis=-1, keepdims=True)
    return unit


def dense_spectrum(n: int) -> dict[str, Any]:
    """Build S and L as arrays of n x n and take `THEMES` vectors by `eigsh`."""
    from scipy.sparse.linalg import eigsh

    texts, means, _ = planted(n)

    def work() -> Any:
        similar = means.astype(np.float64) @ texts.T.astype(np.float64)
        similar = (similar + similar.T) / 2
        np.fill_diagonal(similar, 0)
        scale = 1 / np.sqrt(similar.sum(axis=1))
        similar *= scale[:, None]
        similar *= scale
        return eigsh(similar, k=THEMES, which="LA", v0=1 / scale)

    (values, _), wall, cpu = timed(work)
    return {"wall_s": wall, "cpu_s": cpu, "mb": allocated_mb(work), "values": np.sort(values)[::-1].tolist()}


def own_spectrum(n: int) -> dict[str, Any]:
    """The same from the factors."""
    from llama_index.gemrag.graph.memory_graph import MemoryGraph
    from llama_index.gemrag.themes.spectrum import leading

    texts, means, _ = planted(n)
    leading(MemoryGraph.of(means[:500], texts[:500]), 3)  # imports, and the threads of the BLAS

    def work() -> Any:
        return leading(MemoryGraph.of(means, texts), THEMES)

    (values, _), wall, cpu = timed(work)
    total = peak_mb()
    mb = allocated_mb(work) if n <= 20_000 else None
    return {"wall_s": wall, "cpu_s": cpu, "mb": mb, "total_mb": total, "values": values.tolist()}


def exactness() -> Iterator[dict[str, Any]]:
    """Matrix-free against dense: eigenvalues, top-10 sets, first eigenvalue, trace."""
    from scipy.linalg import eigh

    from llama_index.gemrag.graph.memory_graph import MemoryGraph
    from llama_index.gemrag.themes.eigenthemes import oriented, top_components
    from llama_index.gemrag.themes.spectrum import lanczos

    for n in (1000, 5000):
        texts, means, _ = planted(n)
        wide = MemoryGraph.of(means.astype(np.float64), texts.astype(np.float64))
        values, vectors = eigh(wide.dense(), subset_by_index=[n - THEMES, n - 1])
        values, vectors = values[::-1], oriented(vectors[:, ::-1])
        for kind, graph in (("float64", wide), ("float32", MemoryGraph.of(means, texts))):
            found, own = lanczos(graph, THEMES)
            own = oriented(own)
            same = sum(
                set(top_components(own[:, i], 10, 0.0).rows) == set(top_components(vectors[:, i], 10, 0.0).rows)
                for i in range(THEMES)
            )
            yield {
                "name": f"matrix-free against dense, n = {n}, {kind}",
                "largest_error_of_eigenvalues": float(np.abs(found - values).max()),
                "to_reach": 1e-8 if kind == "float64" else 1e-6,
                "same_top_10_sets": f"{same} of {THEMES}",
                "first_eigenvalue": float(found[0]),
                "trace": wide.trace,
            }


def against_dense(n: int = 10_000) -> Iterator[dict[str, Any]]:
    """Ten vectors, build included, against `eigsh` on the n x n matrix; each in its own process."""
    dense, ours = apart(dense_spectrum, n, **ONE_THREAD), apart(own_spectrum, n, **ONE_THREAD)
    yield {
        "name": f"{THEMES} eigenvectors of n = {n}, build included",
        "ours_cpu_s": round(ours["cpu_s"], 2),
        "dense_eigsh_cpu_s": round(dense["cpu_s"], 2),
        "times_faster_cpu": round(dense["cpu_s"] / ours["cpu_s"], 1),
        "times_faster_wall": round(dense["wall_s"] / ours["wall_s"], 1),
        "ours_mb": round(ours["mb"], 1),
        "dense_mb": round(dense["mb"], 1),
        "largest_difference_of_eigenvalues": float(np.abs(np.subtract(ours["values"], dense["values"])).max()),
        "to_reach": "20 times faster, 1/20 of the memory",
    }


def at_scale() -> Iterator[dict[str, Any]]:
    """The spectrum of large corpora, each in its own process; memory is that of the whole process."""
    for n, seconds in ((100_000, 15), (500_000, 60)):
        ours = apart(own_spectrum, n, **ONE_THREAD)
        yield {
            "name": f"{THEMES} eigenvectors of n = {n} x {DIMENSION}",
            "wall_s": round(ours["wall_s"], 1),
            "cpu_s": round(ours["cpu_s"], 1),
            "process_mb": round(ours["total_mb"]),
            "to_reach": f"{seconds} s, 4096 MB",
        }


def planted_themes() -> Iterator[dict[str, Any]]:
    """Themes found and purity of their ten strongest members, with the number of themes given and estimated."""
    from llama_index.gemrag.config import MemoryConfig
    from llama_index.gemrag.graph.memory_graph import MemoryGraph
    from llama_index.gemrag.themes.eigenthemes import find_themes

    for n, themes in ((1000, 7), (5000, 7), (5000, 17), (20_000, 17)):
        for given in (themes, None):
            found, purity = [], []
            for seed in range(3):
                texts, means, labels = planted(n, themes, seed)
                sets = find_themes(MemoryGraph.of(means, texts), MemoryConfig(num_themes=given))
                counts = [np.bincount(labels[members.rows], minlength=themes) for members in sets]
                found.append(len({int(count.argmax()) for count in counts}))
                purity += [count.max() / count.sum() for count in counts]
            yield {
                "name": f"{themes} planted themes, n = {n}, number {'given' if given else 'by the spectrum'}, 3 seeds",
                "themes_found": found,
                "mean_purity": round(float(np.mean(purity)), 3),
                "least_purity": round(float(np.min(purity)), 3),
                "to_reach": f"{themes}, 0.95",
            }


def queries(n: int = 100_000) -> Iterator[dict[str, Any]]:
    """The retriever over n chunks with five questions each, against one query of a store with all these vectors."""
    from llama_index.core import MockEmbedding
    from llama_index.core.schema import TextNode
    from llama_index.core.vector_stores.types import VectorStoreQuery

    from llama_index.gemrag import GEMRAGIndex, KeyphraseQuestionExtractor
    from llama_index.gemrag.layer import OWNER_KEY, TEXT_KEY
    from llama_index.gemrag.state import GEMRAGState
    from llama_index.ragkit import ExtractiveSummarizer, MatrixVectorStore

    rng = np.random.default_rng(0)
    texts = rng.normal(size=(n, DIMENSION)).astype(np.float32)
    prompt = rng.normal(size=DIMENSION).tolist()

    class Fixed(MockEmbedding):
        def _get_query_embedding(self, text: str) -> list[float]:
            return prompt

    nodes = [TextNode(id_=f"n{i:07d}", text=f"text {i}", embedding=row.tolist()) for i, row in enumerate(texts)]
    index = GEMRAGIndex(
        nodes=nodes,
        embed_model=Fixed(embed_dim=DIMENSION),
        extractor=KeyphraseQuestionExtractor(num_questions=0),
        summarizer=ExtractiveSummarizer(),
        num_themes=0,
    )
    questions = index.storage.space("questions").store  # filled at once: embedding is not what is measured
    step = 10_000
    for start in range(0, n, step):
        rows = np.repeat(texts[start : start + step], QUESTIONS, axis=0)
        rows = rows + rng.normal(size=rows.shape).astype(np.float32)
        owners = [f"n{start + i // QUESTIONS:07d}" for i in range(len(rows))]
        ids = [f"q{start * QUESTIONS + i:08d}" for i in range(len(rows))]
        metadatas = [{OWNER_KEY: o, TEXT_KEY: q} for o, q in zip(owners, ids, strict=True)]
        questions.put(ids, rows, metadatas=metadatas)
    index.writer.state = GEMRAGState.of(
        index.state.chunks, questions.snapshot(), *(2 * [index.state.theme_layer.texts]), {}, {}
    )
    store = MatrixVectorStore(stores_text=False)
    parts = [index.state.chunks, index.state.chunk_layer.questions]
    for part in parts:
        store.put(part.ids, part.matrix)
    query = VectorStoreQuery(query_embedding=prompt, similarity_top_k=10)
    retrievers = {
        "argmax": index.as_retriever(similarity_top_k=10),
        "half question, half text": index.as_retriever(similarity_top_k=10, blend=0.5),
        "best_first": index.as_retriever(similarity_top_k=10, mode="best_first"),
    }
    for name, retriever in retrievers.items():
        retriever.retrieve("warm")
        ask = partial(retriever.retrieve, "question")
        own, ours = in_turns({"store": lambda: store.query(query), "ours": ask}, 15).values()
        yield {
            "name": f"query of {n} chunks and {n * QUESTIONS} questions, top 10, {name}",
            "ours_ms": round(ours.median_ms, 1),
            "store_query_ms": round(own.median_ms, 1),
            "least_of_15_ms": [round(min(times.wall_s) * 1000, 1) for times in (ours, own)],
            "difference_ms": round(ours.difference_ms(own), 1),
            "to_reach": "difference of at most 5 ms" if name == "argmax" else None,
        }


def measurements() -> Iterator[dict[str, Any]]:
    """All measurements, the quick ones first."""
    yield from exactness()
    yield from planted_themes()
    yield from against_dense()
    yield from queries()
    yield from at_scale()
