"""HippoRAG 1 as its published code does it, written anew, slowly and step by step, with igraph's PRPACK.

Input is what that code reads from its files: passages with triples, vectors of phrases, and the entities of
a question. Nothing here is shared with the package.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Embed = Callable[[list[str]], np.ndarray]


def processed(phrase: Any) -> str:
    return re.sub("[^A-Za-z0-9 ]", " ", str(phrase).lower()).strip()


class PublishedHippoRAG:
    """Index and search of branch `legacy`: undirected weighted graph, parallel edges, specificity, min-max."""

    def __init__(self, passages: Sequence[Sequence[Any]], embed: Embed, threshold: float = 0.8) -> None:
        self.passages = [
            [tuple(processed(part) for part in triple) for triple in triples if len(triple) == 3]
            for triples in passages
        ]
        self.phrases = sorted({end for triples in self.passages for h, _, t in triples for end in (h, t)})
        self.number = {phrase: i for i, phrase in enumerate(self.phrases)}
        vectors = np.asarray(embed(self.phrases), dtype=np.float64)
        self.vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        self.embed = embed
        self.weights = self.triple_edges()
        self.synonymy(threshold)
        self.graph = self.make_graph()
        self.matrices()

    def triple_edges(self) -> dict[tuple[int, int], float]:
        weights: dict[tuple[int, int], float] = defaultdict(float)
        for triples in self.passages:
            for head, _, tail in triples:
                h, t = self.number[head], self.number[tail]
                weights[h, t] += 1.0
                weights[t, h] += 1.0
        return weights

    def synonymy(self, threshold: float) -> None:
        for start in range(0, len(self.phrases), 1000):
            scores = self.vectors[start : start + 1000] @ self.vectors.T
            for i, row in enumerate(scores, start):
                if len(re.sub("[^A-Za-z0-9]", "", self.phrases[i])) <= 2:
                    continue
                accepted = 0
                near = np.flatnonzero(row >= threshold)
                for j in near[np.argsort(-row[near], kind="stable")]:
                    if accepted > 100:
                        break
                    if j != i:
                        self.weights[i, int(j)] = float(row[j])  # overwrites a count
                        accepted += 1

    def make_graph(self) -> Any:
        import igraph

        edges = [(pair, weight) for pair, weight in self.weights.items() if pair[0] != pair[1]]
        graph = igraph.Graph(len(self.phrases), [pair for pair, _ in edges], directed=False)
        graph.es["weight"] = [weight for _, weight in edges]
        return graph

    def matrices(self) -> None:
        self.phrase_counts = np.zeros((len(self.passages), len(self.phrases)))
        for row, triples in enumerate(self.passages):
            for head, _, tail in set(triples):
                for end in {head, tail}:
                    self.phrase_counts[row, self.number[end]] += 1.0
        self.document_frequency = (self.phrase_counts > 0).sum(axis=0)

    def search(self, entities: Sequence[str], damping: float = 0.1) -> np.ndarray:
        """Scores of all passages, min-max normalised."""
        reset = np.zeros(len(self.phrases))
        vectors = np.asarray(self.embed([processed(entity) for entity in entities]), dtype=np.float64)
        for vector in vectors:
            node = int(np.argmax(self.vectors @ vector))
            reset[node] = 1.0 / max(1, self.document_frequency[node])
        ranks = np.array(
            self.graph.personalized_pagerank(
                directed=False, damping=damping, weights="weight", reset=reset, implementation="prpack"
            )
        )
        scores = self.phrase_counts @ ranks
        return (scores - scores.min()) / (scores.max() - scores.min())

    @staticmethod
    def top(scores: np.ndarray, k: int) -> list[int]:
        """Best first; of equal scores the later passage, as published."""
        return [int(i) for i in np.argsort(scores, kind="mergesort")[::-1][:k]]
