"""`python -m benchmarks.clustering_quality --data DIR`: RAPTOR's clusterings on real embeddings, as a Markdown table.

MiniLM embeddings of corpora with known labels: 1,250 Wikipedia articles of 25 categories and their chunks, 6,205 legal
documents of 620 topics and 5,000 of their chunks. The published procedure runs twice, since its runs differ.

Each cluster is one summary to pay for, so methods are to be compared at a similar number of clusters. Purity is the
share of items whose cluster mostly has their label: clusters of one item are pure. AMI is corrected for chance,
but still sinks when labels are divided. Therefore the last column says how pure :class:`GraphClustering` is when it
is asked for the number of clusters that the row has.
"""

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from sklearn.metrics import adjusted_mutual_info_score, adjusted_rand_score

from benchmarks.apart import ONE_THREAD
from benchmarks.clustering_data import chunks, documents
from benchmarks.measuring import timed
from benchmarks.speed_clustering import Clusters, warm
from llama_index.raptor import GraphClustering, UMAPGMMClustering

__all__ = ["main"]

TARGETS = (5, 8, 10, 12, 15, 20)
COLUMNS = ("method", "clusters", "purity", "ARI", "AMI", "CPU s", "two runs agree", "GraphClustering's purity there")


@dataclass(frozen=True)
class Scores:
    clusters: int
    purity: float
    ari: float
    ami: float


def _graph(target_size: float) -> GraphClustering:
    """The size limit grows with the target, as the defaults have it."""
    return GraphClustering(
        target_size=target_size, max_size=max(35, round(3.5 * target_size)), min_size=min(3, int(target_size))
    )


def _first(clusters: Clusters, n: int) -> np.ndarray:
    first = np.full(n, -1)
    for i, cluster in reversed(list(enumerate(clusters))):
        first[cluster] = i
    return first


def _score(clusters: Clusters, labels: np.ndarray) -> Scores:
    first = _first(clusters, len(labels))
    most = sum(np.bincount(labels[first == i]).max() for i in np.unique(first[first >= 0]))
    return Scores(
        clusters=len(clusters),
        purity=float(most) / len(labels),
        ari=float(adjusted_rand_score(labels, first)),
        ami=float(adjusted_mutual_info_score(labels, first)),
    )


def _same_number(vectors: np.ndarray, labels: np.ndarray, clusters: int) -> Scores:
    """GraphClustering with about as many clusters; it dissolves the smallest, so a second try corrects the target."""
    target = len(vectors) / clusters
    for _ in range(3):
        scores = _score(_graph(target).cluster(vectors), labels)
        if abs(scores.clusters / clusters - 1) < 0.03:
            break
        target *= scores.clusters / clusters
    return scores


def _table(vectors: np.ndarray, labels: np.ndarray) -> list[list[str]]:
    from tests.raptor.published_clustering import published_clusters

    methods: dict[str, Callable[[np.ndarray], Clusters]] = {
        f"GraphClustering, target {target}": _graph(target).cluster for target in TARGETS
    }
    methods["UMAPGMMClustering"] = UMAPGMMClustering().cluster
    methods["published"] = published_clusters
    rows = []
    for name, method in methods.items():
        clusters, _, seconds = timed(partial(method, vectors))
        again = method(vectors)
        agreement = adjusted_rand_score(_first(clusters, len(labels)), _first(again, len(labels)))
        same = [a.tolist() for a in clusters] == [b.tolist() for b in again]
        runs = [clusters, again] if name == "published" else [clusters]
        for run in runs:
            scores = _score(run, labels)
            row = [name, str(scores.clusters), *(f"{x:.3f}" for x in (scores.purity, scores.ari, scores.ami))]
            row += [f"{seconds:.1f}", "yes" if same else f"no, ARI {agreement:.2f}"]
            if not name.startswith("Graph"):
                graph = _same_number(vectors, labels, scores.clusters)
                row.append(f"{graph.purity:.3f} (AMI {graph.ami:.3f}) at {graph.clusters}")
            else:
                row.append("")
            rows.append(row)
    return rows


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmark from the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--data", default=os.environ.get("RAG_DATA"), help="default: RAG_DATA")
    options = parser.parse_args(sys.argv[1:] if arguments is None else arguments)
    if not options.data:
        raise SystemExit("Name the folder of the corpora: --data DIR, or RAG_DATA.")
    os.environ["RAG_DATA"] = options.data
    if any(os.environ.get(name) != value for name, value in ONE_THREAD.items()):
        # The limits are read when the libraries are loaded.
        os.execve(
            sys.executable,
            [sys.executable, "-m", "benchmarks.clustering_quality", "--data", options.data],
            os.environ | ONE_THREAD,
        )
    warm("UMAPGMMClustering")
    warm("published")
    for title, (vectors, labels) in {
        "Wikipedia articles, 25 categories of 50": documents("mrag_wikipedia", "category"),
        "Legal documents, 620 topics of 10": documents("mrag_legal", "topic"),
        "Chunks of the Wikipedia articles": chunks("mrag_wikipedia", "category", 5_000),
        "5,000 chunks of the legal documents": chunks("mrag_legal", "topic", 5_000),
    }.items():
        print(f"\n{title} ({len(vectors)} vectors)\n")
        print(f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}")
        for row in _table(vectors, labels):
            print(f"| {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    main()
