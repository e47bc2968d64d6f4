"""`GEMRAGPostprocessor`: expands the nodes of any retriever by best-first search of the memory graph."""

from typing import TYPE_CHECKING, Annotated, ClassVar

import numpy as np
from llama_index.core.bridge.pydantic import Field
from llama_index.core.schema import NodeWithScore, QueryBundle

from llama_index.gemrag.config import MemoryConfig
from llama_index.gemrag.graph.similarity import Rule
from llama_index.gemrag.keywords import GEMRAGPostprocessorKeywords
from llama_index.gemrag.search.memory_scores import MemoryScores
from llama_index.gemrag.search.traversal import Traversal
from llama_index.gemrag.state import GEMRAGState
from llama_index.ragkit import (
    DerivedIndex,
    DerivedPostprocessor,
    Query,
    Steps,
    fetch_derived,
    fit_tokens,
    fresh,
    match_nodes,
    offload,
)
from llama_index.ragkit.validation import count, number
from llama_index.ragkit.vectors.nearness import LEXICAL_WEIGHT
from llama_index.ragkit.vectors.question_scores import squashed

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["GEMRAGPostprocessor"]


class GEMRAGPostprocessor(DerivedPostprocessor):
    """Adds the nearest nodes of the memory to the nodes of a retriever, up to a budget.

    It works on the nodes of any retriever over the same texts:

    1. All input nodes are kept, with their order and scores, even if they are not in the index.
    2. With `add_themes`, the written themes that contain them are added, those with the largest components first.
    3. A best-first search of the memory graph starts from them, until there are `top_n` nodes.
    4. Nodes that do not fit into the remaining `token_budget` are skipped.

    The score of an added node is at most that of the node before it. With a query, similarity to it counts too (one
    call of the embedding model); without one, only the edges count.

    Parameters
    ----------
    index : the :class:`~llama_index.gemrag.GEMRAGIndex` whose memory is searched
    top_n : total number of nodes after expansion, at least 1; input nodes beyond it are kept [10]
    edge_weight : weight of edges relative to similarity to the query, in [0, 1] [0.5]
    lexical_weight : weight of BM25 in the similarity of a chunk to the query, in [0, 1] [0.5]
    add_themes : whether the themes of the nodes are added before the search [False]
    max_summaries : largest number of themes to add, including those of `add_themes`; None for no limit [None]
    filters : metadata filters for added nodes; all members of a theme must match [None]
    token_budget : see :class:`~llama_index.ragkit.DerivedPostprocessor`

    Raises
    ------
    ConfigurationError
        If a parameter is unknown or has an invalid value.
    """

    method: ClassVar[str] = "gemrag"
    keywords: ClassVar[type] = GEMRAGPostprocessorKeywords

    top_n: Annotated[int, count(1)] = Field(default=10, description="Total number of nodes after expansion.")
    edge_weight: Annotated[float, number(0, 1)] = Field(
        default=0.5, description="Weight of edges relative to similarity to the query."
    )
    lexical_weight: Annotated[float, number(0, 1)] = Field(
        default=LEXICAL_WEIGHT, description="Weight of BM25 in similarity to the query."
    )
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

    def _postprocess_steps(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None
    ) -> Steps[list[NodeWithScore]]:
        index: DerivedIndex[MemoryConfig, GEMRAGState] = self._index
        index.storage.check_in_memory()
        contents = yield from index.writer.recovered()
        state = contents.state
        results = [fresh(given.node, given.score or 0.0) for given in nodes]
        matched = [found for found in match_nodes(nodes, state.chunks, state.written) if found is not None]
        if matched and len(results) < self.top_n:
            allowed = self._allowed(state.chunks)
            traversal = Traversal(state, index.config.blend, allowed)
            scores = None
            if query_bundle is not None and self.edge_weight < 1:
                yield from index.writer.checks.embed_model()
                query = Query(query_bundle, contents, allowed, self.top_n, index.resources)
                words = (yield from query.lexical_scores()) if self.lexical_weight else np.zeros(len(state.chunks))
                vector = yield from query.vector()
                found = yield from offload(
                    MemoryScores.of, state, vector, Rule(), words, self.lexical_weight, allowed,
                    full_score=(yield from query.full_score()) if self.lexical_weight else 0.0,
                )  # fmt: skip
                scores = found.all_nodes
            themes = self._themes(state, matched, traversal) if self.add_themes else []
            themes = themes[: self.top_n - len(results)]
            admit = traversal.admission(True, self.max_summaries)
            steps = yield from offload(
                traversal.run, scores, self.top_n - len(results) - len(themes), self.edge_weight,
                traversal.place([*matched, *themes]), admit,
            )  # fmt: skip
            least = min(result.get_score() for result in results)
            values = squashed(np.array([priority for _, priority, _ in steps])).tolist()
            added = [(name, least) for name in themes]
            added += [(name, value) for (name, _, _), value in zip(steps, values, strict=True)]
            fetch = fetch_derived(state.written, index.storage.get_node)
            for name, priority in added:
                node = yield from fetch(name)
                if node is not None:
                    least = min(least, priority)
                    results.append(fresh(node, least))
        return results

    def _themes(self, state: GEMRAGState, matched: list[str], traversal: Traversal) -> list[str]:
        """Written themes that pass the filter and contain matched nodes, by the sum of these members' components."""
        sums: dict[str, float] = {}
        for member in matched:
            for name in state.themes_of.get(member, ()):
                if name in state.written and name not in matched and traversal.may_show(name):
                    theme = state.themes[name]
                    sums[name] = sums.get(name, 0.0) + theme.weights[theme.members.index(member)]
        ranked = sorted(sums, key=lambda name: (-sums[name], name))
        return ranked if self.max_summaries is None else ranked[: self.max_summaries]
