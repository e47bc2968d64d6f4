"""`RaptorPostprocessor`: replaces the nodes of any retriever by summaries of the tree."""

from collections import defaultdict
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NamedTuple

from llama_index.core.bridge.pydantic import Field
from llama_index.core.schema import NodeWithScore, QueryBundle
from typing_extensions import Unpack

from llama_index.ragkit import DerivedIndex, DerivedPostprocessor, Steps
from llama_index.ragkit.index.results import fresh
from llama_index.ragkit.storage.derived_nodes import fetch_derived
from llama_index.ragkit.validation import number
from llama_index.raptor.builder import TreeBuilder
from llama_index.raptor.config import TreeConfig
from llama_index.raptor.keywords import RaptorPostprocessorKeywords
from llama_index.raptor.state import RaptorState
from llama_index.raptor.tree import Tree

__all__ = ["Choice", "RaptorPostprocessor", "condense"]


class RaptorPostprocessor(DerivedPostprocessor):
    """Replaces chunks by the summary that covers them, removes redundant nodes, and fits a token budget.

    It works on the nodes of any retriever over the same texts and needs neither LLM nor embedding model:

    1. A summary replaces its chunks if at least `min_coverage` of the chunks below it, and at least two, are among the
       nodes. It takes the rank and score of the best one. If several summaries qualify, the highest is used.
    2. If one node is below another in the tree, the better ranked of the two is kept.

    Nodes that are not in the index keep their rank. Scores remain those of the retriever.

    Parameters
    ----------
    index : the :class:`~llama_index.raptor.RaptorIndex` whose tree is used
    min_coverage : share of the chunks below a summary that must be among the nodes, in (0, 1] [0.5]
    filters : metadata filters; chunks that do not match are dropped, and only summaries all of whose chunks match are
        used [None]
    top_n, token_budget : see :class:`~llama_index.ragkit.DerivedPostprocessor`

    Raises
    ------
    ConfigurationError
        If a parameter is unknown or has an invalid value.
    """

    method: ClassVar[str] = "raptor"
    keywords: ClassVar[type] = RaptorPostprocessorKeywords

    min_coverage: Annotated[float, number(0, 1, above=True)] = Field(
        default=0.5, description="Share of a summary's chunks that must be among the nodes."
    )

    if TYPE_CHECKING:  # the keywords, for editors and type checkers

        def __init__(
            self, index: DerivedIndex[TreeConfig, RaptorState], **kwargs: Unpack[RaptorPostprocessorKeywords]
        ) -> None: ...

    def _results(
        self, nodes: Sequence[NodeWithScore], bundle: QueryBundle | None, vectors: Any
    ) -> Steps[list[NodeWithScore]]:
        index: DerivedIndex[TreeConfig, RaptorState] = self._index
        builder: TreeBuilder = self._index.builder
        state = (yield from index.writer.recovered()).state
        covering = yield from builder.tree.covering(state, nodes, self.min_coverage, self._selection)
        shown = [place for place, name in enumerate(covering.matched) if name not in covering.hidden]
        nodes, matched = [nodes[place] for place in shown], [covering.matched[place] for place in shown]
        choices = condense(matched, covering.tree, covering.written, self.min_coverage)
        fetch = fetch_derived(covering.written, index.storage.get_node)
        results = []
        for position, summary in choices:
            node = nodes[position].node
            if summary is not None:
                node = (yield from fetch(summary)) or node
            results.append(fresh(node, nodes[position].score or 0.0))
        return results


class Choice(NamedTuple):
    """A node to keep: its position in the ranking, and the summary that replaces it, if any."""

    position: int
    summary: str | None = None


def condense(ranking: Sequence[str | None], tree: Tree, written: Collection[str], min_coverage: float) -> list[Choice]:
    """Replace leaves by summaries that they cover, and drop each node with an ancestor or descendant that is kept.

    Not in the paper.

    Parameters
    ----------
    ranking : ids, best first; None for a node that is not in the tree, which is always kept
    tree : the tree
    written : summaries that have a text
    min_coverage : share of the leaves below a summary that must be in the ranking, in (0, 1]

    Returns
    -------
    Choices in the order of the ranking. No chosen node is below another.
    """
    present = {node for node in ranking if node is not None and node not in tree.summaries}
    covering: dict[str, list[str]] = defaultdict(list)
    for name in sorted(tree.ancestors(present).intersection(written), key=lambda name: (-tree.level(name), name)):
        below = tree.leaves(name)
        there = below & present
        if len(there) >= 2 and len(there) >= min_coverage * len(below):
            for leaf in there:
                covering[leaf].append(name)  # the highest first
    chosen: list[Choice] = []
    kept: set[str] = set()
    for position, node in enumerate(ranking):
        if node is None:
            chosen.append(Choice(position))
        elif not ({node} | tree.ancestors([node])) & kept:
            for name in [*covering[node], node]:
                if not ({name} | tree.ancestors([name]) | tree.descendants(name)) & kept:
                    kept.add(name)
                    chosen.append(Choice(position, name if name != node else None))
                    break
    return chosen
