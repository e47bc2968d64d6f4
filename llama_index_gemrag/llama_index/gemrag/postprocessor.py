"""`GEMRAGPostprocessor` expands the nodes of any retriever by a best-first search of the memory graph."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, ClassVar

import numpy as np
from llama_index.core.bridge.pydantic import Field
from llama_index.core.schema import NodeWithScore, QueryBundle
from numpy.typing import NDArray
from typing_extensions import Unpack

from llama_index.gemrag.builder import GEMRAGBuilder
from llama_index.gemrag.config import MemoryConfig
from llama_index.gemrag.graph.similarity import Rule
from llama_index.gemrag.keywords import GEMRAGPostprocessorKeywords
from llama_index.gemrag.memory_view import MemoryContents
from llama_index.gemrag.search.memory_scores import MemoryScores
from llama_index.gemrag.search.traversal import Traversal
from llama_index.gemrag.state import GEMRAGState
from llama_index.ragkit import DerivedIndex, DerivedPostprocessor, Query, Steps, offload
from llama_index.ragkit.index.matching import matched_in
from llama_index.ragkit.index.results import fit_tokens, fresh, unchanged
from llama_index.ragkit.storage.derived_nodes import fetch_derived
from llama_index.ragkit.text.lexical_index import NOT_KNOWN
from llama_index.ragkit.validation import Count, Share, count
from llama_index.ragkit.vectors.question_scores import LEXICAL_WEIGHT, result_scores, squashed

__all__ = ["GEMRAGPostprocessor"]


class GEMRAGPostprocessor(DerivedPostprocessor):
    """Adds the nearest nodes of the memory to the nodes of a retriever, up to a budget.

    It works on the nodes of any retriever over the same texts:

    1. The input nodes keep their order and scores, even if they are not in the index.
    2. With `add_themes`, the written themes that contain them are added, those with the largest components first.
    3. A best-first search of the memory graph starts from all of these, until there are `top_n` nodes.
    4. Nodes that do not fit into the remaining `token_budget` are skipped.

    The score of an added node is at most that of the node before it. With a query, similarity to the query also counts,
    which takes one call of the embedding model; without a query, only the edges count.

    Parameters
    ----------
    index : the :class:`~llama_index.gemrag.GEMRAGIndex` whose memory is searched
    top_n : total number of nodes after expansion, at least 1; input nodes beyond it are kept [10]
    edge_weight : weight of edges relative to similarity to the query, in [0, 1] [0.5]
    lexical_weight : weight of BM25 in the similarity of a chunk to the query, in [0, 1] [0.5]
    add_themes : whether the themes of the nodes are added before the search [False]
    max_summaries : largest number of themes to add, including those of `add_themes`; None for no limit [None]
    filters : metadata filters; chunks that do not match are dropped or not added; all members of an added theme match
        [None]
    token_budget : see :class:`~llama_index.ragkit.DerivedPostprocessor`

    Raises
    ------
    ConfigurationError
        If a parameter is unknown or has an invalid value.
    """

    method: ClassVar[str] = "gemrag"
    keywords: ClassVar[type] = GEMRAGPostprocessorKeywords

    top_n: Count = Field(default=10, description="Total number of nodes after expansion.")
    edge_weight: Share = Field(default=0.5, description="Weight of edges relative to similarity to the query.")
    lexical_weight: Share = Field(default=LEXICAL_WEIGHT, description="Weight of BM25 in similarity to the query.")
    add_themes: bool = Field(default=False, description="Whether the themes of the nodes are added.")
    max_summaries: Annotated[int | None, count(0, none_ok=True)] = Field(
        default=None, description="Largest number of themes to add; None for no limit."
    )

    if TYPE_CHECKING:  # the keywords, for editors and type checkers

        def __init__(
            self, index: DerivedIndex[MemoryConfig, GEMRAGState], **kwargs: Unpack[GEMRAGPostprocessorKeywords]
        ) -> None: ...

    def _cut(self, results: list[NodeWithScore]) -> list[NodeWithScore]:
        return fit_tokens(results, self.token_budget)

    def _vectors(self, nodes: Sequence[NodeWithScore], bundle: QueryBundle | None) -> Steps[NDArray[np.float32] | None]:
        enough = len(nodes) >= self.top_n and self.filters is None  # a filter may drop some
        if bundle is None or self.edge_weight == 1 or enough:
            return None
        vector: NDArray[np.float32] | None = yield from self._index.reader.vector(bundle)
        return vector

    def _results(
        self, nodes: Sequence[NodeWithScore], bundle: QueryBundle | None, vectors: NDArray[np.float32] | None
    ) -> Steps[list[NodeWithScore]]:
        """The given nodes and the nodes added to them."""
        results = unchanged(nodes)
        if len(nodes) >= self.top_n:
            return results
        bundle, vector = bundle if self.edge_weight < 1 else None, vectors
        index: DerivedIndex[MemoryConfig, GEMRAGState] = self._index
        builder: GEMRAGBuilder = self._index.builder
        whole = yield from index.writer.recovered()
        chunks = yield from matched_in(index.storage, nodes, whole.state.written)
        given = [chunk or each.node.node_id for chunk, each in zip(chunks, nodes, strict=True)]
        question = "" if bundle is None else bundle.query_str
        contents = yield from builder.contents_with(whole, given, self._selection, self.top_n, question, vector)
        start = [node_id for node_id in given if node_id in contents.state.chunks or node_id in contents.state.written]
        if not start:
            return results
        query = None
        if bundle is not None:
            yield from index.writer.checks.embed_model()
            query = Query(bundle, contents, None, self.top_n, index.resources, vector)
            yield from query.vector()
        if self.add_themes:
            contents = yield from builder.memory.with_themes_of(contents, start)
        themes = self._themes(contents.state, start)[: self.top_n - len(results)]
        start += themes
        search = partial(self._reached, query, start, self.top_n - len(results) - len(themes))
        contents, reached = yield from builder.memory.explored(contents, search, dict, start, index.config.blend)
        least = min(result.get_score() for result in results)
        fetch = fetch_derived(contents.state.written, index.storage.get_node)
        for name, priority in [*((name, least) for name in themes), *reached]:
            node = yield from fetch(name)
            if node is not None:
                least = min(least, priority)
                results.append(fresh(node, least))
        return results

    def _reached(
        self, query: Query[GEMRAGState] | None, start: Sequence[str], count: int, contents: MemoryContents
    ) -> Steps[list[tuple[str, float]]]:
        """The nodes that a search from `start` selects in the contents, with their priorities."""
        state, scores = contents.state, None
        allowed = state.allowed(self._selection.allowed)
        if query is not None:
            scores = yield from self._scores(replace(query, contents=contents, allowed=allowed, _lexical=None))
        traversal = Traversal(state, self._index.config.blend, allowed)
        limits = True, self.max_summaries
        steps = yield from offload(traversal.run, scores, count, self.edge_weight, start, *limits)
        priorities = np.array([priority for _, priority, _ in steps])
        # Without a query, priorities are weights of edges and already in standard deviations.
        values = squashed(priorities) if scores is None else result_scores(priorities, scores[: len(state.chunks)])
        return [(name, value) for (name, _, _), value in zip(steps, values.tolist(), strict=True)]

    def _scores(self, query: Query[GEMRAGState]) -> Steps[NDArray[np.float64]]:
        """The scores of all nodes for the query, first of chunks, then of themes."""
        words, full_score = np.zeros(len(query.state.chunks)), NOT_KNOWN
        if self.lexical_weight:
            words, full_score = (yield from query.lexical_scores()), (yield from query.full_score())
        state, vector = query.state.counting(query.allowed), (yield from query.vector())
        scores = yield from offload(
            MemoryScores.of, state, vector, Rule(), words, self.lexical_weight, query.allowed, full_score=full_score
        )
        return scores.all_nodes

    def _themes(self, state: GEMRAGState, matched: Sequence[str]) -> list[str]:
        """Written themes that pass the filter and contain matched nodes, by the sum of these nodes' components."""
        if not self.add_themes:
            return []
        traversal = Traversal(state, 0.0, state.allowed(self._selection.allowed))
        sums: dict[str, float] = {}
        for member in matched:
            for name in state.themes_of.get(member, ()):
                if name in state.written and name not in matched and traversal.may_show(name):
                    theme = state.themes[name]
                    sums[name] = sums.get(name, 0.0) + theme.weights[theme.members.index(member)]
        ranked = sorted(sums, key=lambda name: (-sums[name], name))
        return ranked if self.max_summaries is None else ranked[: self.max_summaries]
