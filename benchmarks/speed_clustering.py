"""CPU time of RAPTOR's clusterings beside the published procedure, on the same vectors; ARI beside it.

CPU seconds with BLAS, OpenMP and numba limited to one thread, each run in a process of its own; what is compiled
just in time is compiled before the clock starts. ARI is against the planted sub-topics or the corpus's topics; since
it depends on the number of clusters, GraphClustering is also asked for as many as the published procedure found.
The last measurement is a tree's first layer of 50,000 leaves.
"""

import hashlib
import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks.apart import ONE_THREAD, apart
from benchmarks.measuring import peak_mb, timed

__all__ = ["Clusters", "measurements", "methods", "warm"]

Clusters = list[np.ndarray]
ROWS = (5_000, 10_000)
LARGE = 50_000


def methods(target_size: float | None = None) -> dict[str, Callable[[np.ndarray], Clusters]]:
    """The three, with their defaults, or GraphClustering with another target."""
    from tests.raptor.published_clustering import published_clusters

    from llama_index.raptor import GraphClustering, UMAPGMMClustering

    graph = GraphClustering(target_size=target_size, max_size=60) if target_size else GraphClustering()
    return {
        "GraphClustering": graph.cluster,
        "UMAPGMMClustering": UMAPGMMClustering().cluster,
        "published": published_clusters,
    }


def warm(name: str) -> None:
    """Compile what a method compiles: UMAP on few rows, and on more than 4096, where it searches otherwise."""
    from benchmarks.clustering_data import planted

    if name == "GraphClustering":
        return
    methods()[name](planted(200)[0])
    if name == "published":
        import umap

        umap.UMAP(n_neighbors=15, n_components=10, metric="cosine", n_epochs=1).fit_transform(planted(4200)[0])


def _load(data: str, rows: int) -> tuple[np.ndarray, np.ndarray]:
    from benchmarks.clustering_data import chunks, planted

    if data == "planted":
        return planted(rows)
    vectors, labels = chunks("mrag_legal", "topic", max(ROWS))
    return vectors[:rows], labels[:rows]


def _measure(name: str, data: str, rows: int, target_size: float | None) -> dict[str, Any]:
    """One run of one method, in this process."""
    from sklearn.metrics import adjusted_rand_score

    vectors, labels = _load(data, rows)
    warm(name)
    method = methods(target_size)[name]
    clusters, _, cpu_s = timed(lambda: method(vectors))
    first = np.full(rows, -1)
    for i, cluster in reversed(list(enumerate(clusters))):
        first[cluster] = i
    return {
        "cpu_s": round(cpu_s, 2),
        "ari": round(float(adjusted_rand_score(labels, first)), 3),
        "clusters": len(clusters),
        "peak_mb": round(peak_mb()),
        "digest": hashlib.sha256(b"".join(cluster.tobytes() + b"|" for cluster in clusters)).hexdigest()[:16],
    }


def _run(name: str, data: str, rows: int, target_size: float | None = None) -> dict[str, Any]:
    """The same in a process of its own."""
    return apart(_measure, name, data, rows, target_size, **ONE_THREAD)


def measurements() -> Iterator[dict[str, Any]]:
    """Ours against the published procedure, then the large layer; without `RAG_DATA`, on planted vectors alone."""
    for data in ("planted", "legal chunks") if "RAG_DATA" in os.environ else ("planted",):
        for rows in ROWS:
            published = _run("published", data, rows)
            for name in ("GraphClustering", "UMAPGMMClustering"):
                ours, again = _run(name, data, rows), _run(name, data, rows)
                as_many = {} if name != "GraphClustering" else _run(name, data, rows, rows / published["clusters"])
                yield {
                    "name": f"{name}, {rows} x 384, {data}",
                    "ours_cpu_s": ours["cpu_s"],
                    "published_cpu_s": published["cpu_s"],
                    "published_over_ours": round(published["cpu_s"] / ours["cpu_s"], 1),
                    "ours_ari": ours["ari"],
                    "published_ari": published["ari"],
                    "ours_clusters": ours["clusters"],
                    "published_clusters": published["clusters"],
                    **{f"ours_{key}_when_asked_for_as_many": as_many[key] for key in ("ari", "clusters") if as_many},
                    "two_runs_identical": ours["digest"] == again["digest"],
                }
    large = _run("GraphClustering", "planted", LARGE)
    yield {
        "name": f"GraphClustering, {LARGE} x 384, planted",
        "ours_cpu_s": large["cpu_s"],
        "ours_ari": large["ari"],
        "ours_clusters": large["clusters"],
        "peak_mb": large["peak_mb"],
        "to_reach": "under 90 CPU seconds and 4000 MB",
    }
