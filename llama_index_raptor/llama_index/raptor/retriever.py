"""`RaptorRetriever`: retrieves chunks and summaries by a search over all layers or a traversal of the tree."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from llama_index.core.schema import NodeWithScore
from typing_extensions import Unpack

from llama_index.ragkit import DerivedIndex, DerivedRetriever, Query, Steps, offload
from llama_index.ragkit.index.results import deepened
from llama_index.ragkit.validation import chosen
from llama_index.raptor.builder import TreeBuilder
from llama_index.raptor.config import PAPER_SEARCHES, TreeConfig, TreeSearchConfig, Version
from llama_index.raptor.explanation import RaptorExplanation, explain
from llama_index.raptor.keywords import RaptorRetrieverKeywords
from llama_index.raptor.search.node_scores import NodeScores, as_results
from llama_index.raptor.search.tree_search import search_collapsed_tree, traverse_tree
from llama_index.raptor.state import RaptorState, ScoredNode
from llama_index.raptor.tree_view import RaptorContents

__all__ = ["RaptorRetriever"]


@dataclass(frozen=True)
class _FoundInTree:
    """The result of a search, with the values that explanations need."""

    query: Query[RaptorState]
    scores: NodeScores
    ranking: Iterable[ScoredNode]
    fallback: str


class RaptorRetriever(DerivedRetriever[RaptorState, _FoundInTree, RaptorExplanation]):
    """Retrieves chunks and summaries from a :class:`~llama_index.raptor.RaptorIndex`.

    A score is the nearness of a node in standard deviations of the question's hundred nearest chunks
    (:mod:`llama_index.raptor.search.node_scores`), mapped to [0, 1] so that 0.5 is a cutoff
    (:func:`~llama_index.ragkit.vectors.question_scores.result_scores`). Scores are comparable within one question.

    Parameters
    ----------
    mode : "collapsed" ranks the nodes of all layers together (the better mode in the paper); "tree_traversal" descends
        from the roots and keeps the best nodes at each step ["collapsed"]
    beam_width : nodes kept at each step of a traversal; default `similarity_top_k`
    min_cosine : instead of the best nodes, keep all nodes of a step with at least this cosine to the question, in
        [-1, 1] [None]
    start_layer : the layer where a traversal starts, 0 for the chunks; None for the roots [None]
    num_layers : the largest number of layers that a traversal visits; None for all down to the chunks [None]
    summary_margin : in collapsed mode, how far the cosine of a summary, the BM25 score of the best chunk below it, and
        its nearness may be below those of the best chunk, in standard deviations, at least 0; None for no limit. A
        summary covers many subjects: if one chunk stands out, the summary says less than that chunk; if none does, as
        for a thematic question, it says more [0.6; paper: None]
    lexical_weight : weight of BM25 in the nearness of a chunk, and of its two nearest chunks in that of a summary, in
        [0, 1]; the cosine has the rest [0.5; paper: 0]
    kwargs : see :class:`~llama_index.ragkit.DerivedRetriever`

    Raises
    ------
    ConfigurationError
        If a parameter has an invalid value.
    """

    method: ClassVar[str] = "raptor"
    keywords = RaptorRetrieverKeywords
    options_cls = TreeSearchConfig
    options: TreeSearchConfig
    _builder: TreeBuilder

    if TYPE_CHECKING:  # the keywords, for editors and type checkers

        def __init__(
            self, index: DerivedIndex[TreeConfig, RaptorState], **kwargs: Unpack[RaptorRetrieverKeywords]
        ) -> None: ...

    @staticmethod
    def paper(version: Version = "collapsed") -> dict[str, Any]:
        """A published search as keywords: `index.as_retriever(**RaptorRetriever.paper())`.

        Parameters
        ----------
        version : "collapsed", the paper's best: all layers together, 2,000 tokens; "code", the authors' defaults: ten
            nodes, 3,500 tokens; "tree_traversal": five nodes a layer; "threshold": all nodes of a layer with a cosine
            of at least .5

        Raises
        ------
        ConfigurationError
            If there is no such version.
        """
        return chosen("version", version, PAPER_SEARCHES)

    def _search(self, query: Query[RaptorState]) -> Steps[_FoundInTree]:
        scores = yield from self._scores(query)
        fallback = "" if query.state.has_summaries else "the tree has no summaries"
        if self.options.mode == "tree_traversal":
            return (yield from self._traverse(query, scores, fallback))
        rank = partial(_collapsed, scores, self.options.summary_margin)
        ranking = deepened((yield from offload(rank, query.wanted)), rank, query.wanted)
        return _FoundInTree(query, scores, ranking, fallback)

    def _scores(self, query: Query[RaptorState]) -> Steps[NodeScores]:
        nearness = yield from query.nearness(self.options.lexical_weight)
        return NodeScores(query.state, (yield from query.vector()), nearness, query.allowed)

    def _traverse(self, query: Query[RaptorState], scores: NodeScores, fallback: str) -> Steps[_FoundInTree]:
        options, tree = self.options, self._builder.tree
        if options.beam_width is None and options.min_cosine is None:
            options = replace(options, beam_width=self.similarity_top_k)
        asked = [query]  # each with more of the tree than the one before

        def reach(scores: NodeScores, nodes: Sequence[str]) -> Steps[NodeScores]:
            contents = yield from tree.reaching(asked[-1].contents, nodes, self.options.lexical_weight > 0)
            if contents is asked[-1].contents:
                return scores
            asked.append(asked[-1].over(contents))
            return (yield from self._scores(asked[-1]))

        start = yield from tree.start(query.contents, options.start_layer)
        scores, steps = yield from traverse_tree(scores, options, start, reach)
        ranking = yield from offload(scores.ranked, {node for step in steps for node, _ in step})
        return _FoundInTree(asked[-1], scores, as_results(ranking, scores), fallback)

    def _results(self, found: _FoundInTree) -> Steps[list[NodeWithScore]]:
        return (yield from self._take_best(found.ranking, derived=found.scores.state.written))

    def _explanations(self, found: _FoundInTree, nodes: Sequence[NodeWithScore]) -> Steps[list[RaptorExplanation]]:
        around = yield from self._builder.tree.around(found.query.contents, [each.node.node_id for each in nodes])
        scores = replace(found.scores, state=around)
        return (yield from offload(explain, scores, nodes, found.fallback))

    def _on_page(self, found: _FoundInTree) -> RaptorContents | None:
        """If the tree is not in memory, the page shows only the part near the answer."""
        return found.query.contents if not self._index.storage.is_whole else None


def _collapsed(scores: NodeScores, margin: float | None, count: int) -> list[ScoredNode]:
    return as_results(search_collapsed_tree(scores, count, margin), scores)
