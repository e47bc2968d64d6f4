"""What every postprocessor of these packages shares: both drivers, foreign nodes, events."""

from abc import abstractmethod
from collections.abc import Container, Sequence
from typing import TYPE_CHECKING, Any

from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.instrumentation import get_dispatcher  # type: ignore[attr-defined]
from llama_index.core.instrumentation.events.rerank import ReRankEndEvent, ReRankStartEvent
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import NodeWithScore, QueryBundle

from llama_index.ragkit.driver import Steps, arun_steps, run_steps
from llama_index.ragkit.matrix import Snapshot

if TYPE_CHECKING:
    from llama_index.ragkit.index import DerivedIndex

__all__ = ["DerivedPostprocessor", "match_nodes"]

dispatcher = get_dispatcher(__name__)


class DerivedPostprocessor(BaseNodePostprocessor):
    """Applies a method to the nodes of any retriever.

    Nodes are matched with those of the index by id, then by hash (text and metadata). Nodes that the
    index does not know are kept. The nodes given are not changed: results are fresh objects.

    Parameters
    ----------
    index : the index whose knowledge is applied; not part of the serialised postprocessor
    """

    _index: Any = PrivateAttr()

    def __init__(self, index: "DerivedIndex[Any, Any]", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._index = index

    @abstractmethod
    def _postprocess_steps(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None
    ) -> Steps[list[NodeWithScore]]:
        """The work, described once for both drivers; never called with an empty list."""

    def _start(self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None) -> None:
        dispatcher.event(
            ReRankStartEvent(query=query_bundle, nodes=nodes, top_n=len(nodes), model_name=self.class_name())
        )

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        if not nodes:
            return []
        self._start(nodes, query_bundle)
        results = run_steps(self._postprocess_steps(nodes, query_bundle))
        dispatcher.event(ReRankEndEvent(nodes=results))
        return results

    async def _apostprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        if not nodes:
            return []
        self._start(nodes, query_bundle)
        results = await arun_steps(self._postprocess_steps(nodes, query_bundle))
        dispatcher.event(ReRankEndEvent(nodes=results))
        return results


def match_nodes(nodes: Sequence[NodeWithScore], chunks: Snapshot, derived: Container[str] = ()) -> list[str | None]:
    """For each node the id that the index knows it by, or None: by id, then by hash.

    Parameters
    ----------
    chunks : rows of the index's chunks, whose sort keys begin with the hash of the node
    derived : ids of derived nodes
    """
    matched = [r.node.node_id if r.node.node_id in chunks or r.node.node_id in derived else None for r in nodes]
    unknown = {r.node.hash for r, found in zip(nodes, matched, strict=True) if found is None}
    by_hash: dict[str, tuple[str, str]] = {}
    for record in chunks.records if unknown else ():
        node_hash = record.key.split("|", 1)[0]
        if node_hash in unknown:
            by_hash[node_hash] = min(by_hash.get(node_hash, ("~", "")), (record.key, record.id))
    return [
        found if found is not None else by_hash[r.node.hash][1] if r.node.hash in by_hash else None
        for r, found in zip(nodes, matched, strict=True)
    ]
