"""`RaptorRetriever`: one search over all layers, or a walk down the tree."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
from llama_index.core.schema import NodeWithScore, QueryBundle, QueryType
from numpy.typing import NDArray

from llama_index.ragkit.checks import check_choice, check_count, check_number
from llama_index.ragkit.driver import Steps, arun_steps, offload, run_steps
from llama_index.ragkit.embedding import embed_query
from llama_index.ragkit.filters import select
from llama_index.ragkit.results import take_nodes
from llama_index.ragkit.retriever import DerivedRetriever
from llama_index.raptor.index import RaptorIndex
from llama_index.raptor.state import Mask, RaptorState, Scored, beam_descent, collapsed

__all__ = ["RaptorExplanation", "RaptorRetriever"]

# With a token budget, how many more candidates than results are looked at for ones that fit.
_CANDIDATES_PER_RESULT = 4


@dataclass(frozen=True)
class RaptorExplanation:
    """Why a node was retrieved.

    Attributes
    ----------
    node_id, text : the node
    score : as the retriever gives it
    level : 0 for a chunk, above for a summary
    paths : every way from a root down to the node, as (node id, cosine to the question) pairs; a summary
        that is not written yet has no cosine
    sources : ids of the chunks that the node stands on; a chunk stands on itself
    """

    node_id: str
    text: str
    score: float
    level: int
    paths: list[list[tuple[str, float | None]]]
    sources: list[str]


class RaptorRetriever(DerivedRetriever[RaptorIndex]):
    """Retrieves chunks and summaries from a :class:`RaptorIndex`.

    Scores are cosines between question and node, in [-1, 1], comparable between queries in both modes; in
    collapsed mode `summary_margin` is taken off those of summaries.

    Parameters
    ----------
    mode : "collapsed" ranks the nodes of all layers together (the paper's better one, and the default);
        "tree_traversal" walks from the roots down, keeping the best nodes at each step
    beam_width : nodes kept at each step of a traversal; default `similarity_top_k`
    summary_margin : in collapsed mode, how much nearer to the question than a chunk a summary must be to
        rank above it, in [0, 2]. A summary speaks of many things, and so is near to many questions that
        one of its chunks answers [0.05; paper: 0]
    keep_covered : in collapsed mode, whether a summary stays when a node below it ranks above it [False;
        paper: True]
    kwargs : see :class:`~llama_index.ragkit.DerivedRetriever`

    Raises
    ------
    ConfigurationError
        If a parameter has a value that it cannot have.
    """

    def __init__(
        self,
        index: RaptorIndex,
        *,
        mode: Literal["collapsed", "tree_traversal"] = "collapsed",
        beam_width: int | None = None,
        summary_margin: float = 0.05,
        keep_covered: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(index, **kwargs)
        self.mode = check_choice("mode", mode, ("collapsed", "tree_traversal"))
        self.beam_width = check_count("beam_width", beam_width, 1, none_ok=True)
        self.summary_margin = check_number("summary_margin", summary_margin, 0, 2)
        self.keep_covered = keep_covered

    def _retrieve_steps(self, query_bundle: QueryBundle) -> Steps[list[NodeWithScore]]:
        state, _, ranking = yield from self._rank(query_bundle)
        nodes = yield from take_nodes(
            ranking, partial(self._index._fetch, state), self.similarity_top_k, self.token_budget
        )
        self._index._last_query = (query_bundle.query_str, [(n.node.node_id, n.get_score()) for n in nodes])
        return nodes

    def _rank(self, bundle: QueryBundle) -> Steps[tuple[RaptorState, NDArray[np.float32], list[Scored]]]:
        index = self._index
        state = index._state  # one state from start to end, whatever is written meanwhile
        if not len(state.chunks):
            return state, np.zeros(0, np.float32), []
        yield from index._check_model()
        vector = yield from embed_query(index.embed_model, bundle.query_str, state.chunks.dim)
        wanted = self.similarity_top_k * (1 if self.token_budget is None else _CANDIDATES_PER_RESULT)
        allowed = self._allowed(state)
        if self.mode == "tree_traversal":
            beam = self.beam_width or self.similarity_top_k
            return state, vector, (yield from offload(beam_descent, state, vector, beam, allowed))
        candidates = None
        if allowed is None:
            candidates = yield from index._parts.chunks.search(vector, wanted)
        margin, keep = self.summary_margin, self.keep_covered
        ranking = yield from offload(collapsed, state, vector, wanted, allowed, candidates, margin, keep)
        return state, vector, ranking

    def _allowed(self, state: RaptorState) -> Mask | None:
        if self.filters is None and self.node_ids is None and self.doc_ids is None:
            return None
        return select(state.chunks, self.filters, self.node_ids, self.doc_ids)

    # -- explanations -------------------------------------------------------------------------------

    def explain(self, query: QueryType) -> list[RaptorExplanation]:
        """Why each node of the answer to a question was retrieved, in the order of the answer."""
        return run_steps(self._explain(query))

    async def aexplain(self, query: QueryType) -> list[RaptorExplanation]:
        """Why each node of the answer to a question was retrieved, in the order of the answer."""
        return await arun_steps(self._explain(query))

    def _explain(self, query: QueryType) -> Steps[list[RaptorExplanation]]:
        bundle = QueryBundle(query) if isinstance(query, str) else query
        state, vector, ranking = yield from self._rank(bundle)
        nodes = yield from take_nodes(
            ranking, partial(self._index._fetch, state), self.similarity_top_k, self.token_budget
        )
        allowed = self._allowed(state)
        hidden = _hidden(state, allowed)
        found = []
        for result in nodes:
            node_id = result.node.node_id
            above = state.tree.ancestors([node_id]) - hidden
            cosines = dict(state.cosines([node_id, *sorted(above)], vector))
            found.append(
                RaptorExplanation(
                    node_id=node_id,
                    text=result.node.get_content(),
                    score=result.get_score(),
                    level=state.tree.level(node_id),
                    paths=[[(n, cosines.get(n)) for n in path] for path in _paths(state, node_id, hidden)],
                    sources=self._index.leaves_of(node_id),
                )
            )
        return found


def _hidden(state: RaptorState, allowed: Mask | None) -> set[str]:
    """Summaries that a filter keeps from being shown."""
    shown = state.summary_mask(allowed)
    return set() if shown is None else {name for name, ok in zip(state.summaries.ids, shown, strict=True) if not ok}


def _paths(state: RaptorState, node: str, hidden: set[str]) -> list[list[str]]:
    parents: Sequence[str] = [parent for parent in state.tree.parents.get(node, ()) if parent not in hidden]
    return [[*path, node] for parent in parents for path in _paths(state, parent, hidden)] or [[node]]
