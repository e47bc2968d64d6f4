"""The result of a search of the pseudo-graph: the intermediate values, the ranked paths and the ranked nodes."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from llama_index.pgrag.config import SearchConfig
from llama_index.pgrag.search.name_walk import NameWalk
from llama_index.pgrag.search.ranking import REPEATED, FactScores, MergedPath, rank_paths
from llama_index.pgrag.state import PseudoGraph
from llama_index.ragkit.index.chunk_scores import Structure
from llama_index.ragkit.vectors.question_scores import Nearness, best_rows, result_scores
from llama_index.ragkit.vectors.trust import combine

__all__ = ["Answer"]

Floats = NDArray[np.float64]

_PATHS = 500  # to rank; more if more results are wanted
_BESIDE_OTHERS = 0.5  # weight of its walk over names next to that of HippoRAG


@dataclass(frozen=True)
class Answer:
    """A question and everything computed for it.

    Attributes
    ----------
    graph : the graph that was searched
    config : the options
    key_points : the key points
    cosines : shape (key points, nodes)
    near : the nearness of nodes to the question
    facts : the facts, and the walk over the candidate maps
    names : the walk over names; None without a walk
    nodes : shape (nodes,), their scores; -inf for nodes that are not results
    paths : shape (facts,), the scores of fact paths without their words; -inf for paths that are not results
    wanted : the number of results wanted
    fallback : which part of the method was not used, and why; empty otherwise
    """

    graph: PseudoGraph
    config: SearchConfig
    key_points: list[str]
    cosines: Floats
    near: Nearness
    facts: FactScores
    names: NameWalk | None
    nodes: Floats
    paths: Floats
    wanted: int
    fallback: str = ""

    @property
    def lexical_weight(self) -> float:
        """Weight of words for this question, in [0, 1]."""
        return self.near.lexical_weight

    @property
    def added(self) -> list[Structure]:
        """The contributions of names and facts to the scores of nodes, beyond nearness."""
        shown = np.isfinite(self.nodes) & np.isfinite(self.near.scores)
        both, names = np.zeros(len(self.nodes)), np.zeros(len(self.nodes))
        both[shown] = self.nodes[shown] - self.near.scores[shown]
        if self.names is not None and self.names.trust:
            names = combine(names, self.names.shares, self.config.bridge_weight * self.names.trust)
        return [Structure(names, "names", _BESIDE_OTHERS), Structure(both - names, "facts")]

    @property
    def ranking(self) -> Iterator[tuple[str, float]]:
        """Nodes with their scores, best first."""
        chunks, scores = self.graph.chunks, self._shown(self.nodes, self.nodes)
        given, total, k = 0, int(np.isfinite(self.nodes).sum()), self.wanted
        while given < total:
            rows = best_rows(self.nodes, k, chunks)
            for row in rows[given:]:
                yield chunks.ids[row], float(scores[row])
            given, k = len(rows), 4 * k

    @cached_property
    def results(self) -> list[MergedPath]:
        """The paths, best first; paths with the same text are merged."""
        facts, count = self.graph.facts, max(_PATHS, 20 * self.wanted)
        if self.config.ranks_texts:
            walked = 0.0 if self.names is None else self.config.bridge_weight * self.names.trust
            ranked = rank_paths(
                self.graph, self.paths, count, "\n".join(self.key_points), self.lexical_weight, REPEATED * walked
            )
        else:
            ranked = [(row, float(self.paths[row])) for row in best_rows(self.paths, count, facts)]
        found = np.array([score for _, score in ranked])
        scores = self._shown(found, found).tolist()
        return MergedPath.of(
            [(self.graph.fact(facts.ids[row]), score) for (row, _), score in zip(ranked, scores, strict=True)]
        )

    @cached_property
    def row_of(self) -> dict[str, int]:
        """The row of each fact in the template of the walk."""
        return {fact.id: row for row, fact in enumerate(self.facts.template.facts)}

    def best_fact(self, node_id: str) -> MergedPath | None:
        """The fact of a node that is nearest to a key point; None if the node has no fact that counts."""
        facts = self.graph.of_node.get(node_id, ())
        rows = self.graph.facts.rows_of([fact.id for fact in facts])
        counted = np.isfinite(self.facts.nearness[rows])  # a filter may exclude some of them
        own, rows = [fact for fact, counts in zip(facts, counted.tolist(), strict=True) if counts], rows[counted]
        if not own:
            return None
        best = int(np.argmax(self.facts.nearness[rows]))
        return MergedPath(own[best], float(self._shown(self.paths[rows[best]], self.paths)), (own[best],))

    def _shown(self, scores: Floats, of: Floats) -> Floats:
        """Scores mapped to [0, 1]; shares of support already are."""
        return scores if self.config.ranking == "support" else result_scores(scores, of)
