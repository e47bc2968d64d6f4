"""`TreeTools`: what writes a tree, whether the index is in memory or in stores."""

from collections.abc import Mapping

from llama_index.ragkit import IndexStorage, Record, Resources, Steps, SummaryWriter
from llama_index.ragkit.validation import check_component
from llama_index.raptor.clustering.base import Clustering
from llama_index.raptor.clustering.graph import GraphClustering
from llama_index.raptor.config import TreeConfig
from llama_index.raptor.tree.tree import Tree
from llama_index.raptor.tree_store import TreeStore
from llama_index.raptor.tree_writer import TreeWriter

__all__ = ["TreeTools"]


class TreeTools:
    """The clustering and the summaries of one index.

    Parameters
    ----------
    storage, resources, config : of the index
    clustering : groups the nodes of a layer; default :class:`~llama_index.raptor.GraphClustering`

    Attributes
    ----------
    summaries : writes summaries
    """

    def __init__(
        self, storage: IndexStorage, resources: Resources, config: TreeConfig, clustering: Clustering | None
    ) -> None:
        self._storage = storage
        self._resources = resources
        self._config = config
        wanted = "a clustering of RAPTOR, such as GraphClustering() or UMAPGMMClustering()"
        chosen = GraphClustering() if clustering is None else clustering
        self._clustering: Clustering = check_component(
            "clustering", chosen, ("cluster", "fingerprint"), wanted, "raptor"
        )
        self.summaries = SummaryWriter(storage, resources, config.summary_tokens)

    @property
    def fingerprints(self) -> Mapping[str, dict[str, str]]:
        """The fingerprint of the clustering."""
        return {"clustering": self._clustering.fingerprint}

    def writer(self, store: TreeStore, tree: Tree, written: Mapping[str, Record]) -> TreeWriter:
        """A writer for a stored tree, and the records of its summaries."""
        return TreeWriter(
            store, self._storage, self._resources, self._config, self._clustering, self.summaries, tree, written
        )

    def write(self, writer: TreeWriter, tree: Tree) -> Steps[Tree]:
        """Write a tree with all its summaries; failures are counted."""
        tree = yield from writer.write(tree)
        self._storage.struct.counters["failed"] = len(writer.failed)
        return tree
