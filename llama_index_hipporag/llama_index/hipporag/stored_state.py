"""`StoredGraphState`: what one question to an index that is served from stores is answered from."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import inf

import numpy as np
from numpy.typing import NDArray

from llama_index.hipporag.graph.knowledge_graph import most_passages
from llama_index.hipporag.graph.passage_edges import passage_number
from llama_index.hipporag.passage_graph import PassageGraph
from llama_index.hipporag.search.question_graph import QuestionGraph
from llama_index.hipporag.state import HippoRAGState
from llama_index.ragkit import ChunkView, Selection, StoredChunks, run_steps

__all__ = ["StoredGraphState"]

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class StoredGraphState(HippoRAGState):
    """The passages near to a question, as `chunks`, and where the others and the graph are.

    Attributes
    ----------
    passage_graph : the graph in the database
    stored : all passages
    near : those near to the question
    selection : which passages count
    passages : how many there are
    """

    passage_graph: PassageGraph = field(kw_only=True)
    stored: StoredChunks = field(kw_only=True)
    near: ChunkView = field(kw_only=True)
    selection: Selection = field(kw_only=True)
    passages: int = field(kw_only=True)

    @contextmanager
    def question_graph(self, subject_weight: float, max_phrase_share: float = 1.0) -> Iterator[QuestionGraph]:
        """The part of the graph that one question needs; to be read in this block."""
        is_whole, graph = self.selection.is_whole, self.passage_graph
        most = most_passages(max_phrase_share, self.passages) if is_whole else inf
        with graph.reader() as reader:
            part = QuestionGraph(reader, None if is_whole else self.allowed, subject_weight, most, graph.common)
            yield part
        if is_whole:
            graph.common = frozenset(part.common)

    def allowed(self, numbers: Ints) -> NDArray[np.bool_]:
        """Which passages may be returned, by the numbers of their nodes."""
        selection = self.selection
        if selection.filters is not None:
            rows = run_steps(self.stored.space.described(run_steps(self.passage_graph.node_ids(numbers))))
            shown = [rows.ids[row] for row in np.flatnonzero(selection.mask(rows))] if len(rows) else []
            return np.isin(numbers, _numbers(shown))
        if selection.only is None:
            return np.ones(len(numbers), np.bool_)
        return np.isin(numbers, _numbers(selection.only))


def _numbers(node_ids: Iterable[str]) -> Ints:
    return np.array([passage_number(node_id) for node_id in node_ids], np.int64)
