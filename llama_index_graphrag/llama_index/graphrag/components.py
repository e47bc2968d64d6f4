"""What the builders of an index in memory and of one in stores check and know of its components."""

import json

from llama_index.graphrag.clustering.agglomerative import AgglomerativeClustering
from llama_index.graphrag.clustering.base import Clustering
from llama_index.graphrag.config import GraphRAGConfig
from llama_index.ragkit import DerivedStruct, Resources
from llama_index.ragkit.errors import ConfigurationError
from llama_index.ragkit.validation import check_component

__all__ = ["check_fixed", "checked_clustering", "maker_of"]


def checked_clustering(clustering: Clustering | None) -> Clustering:
    """A clustering, or the default.

    Raises
    ------
    ConfigurationError
        If it is none.
    """
    wanted = "a clustering of Graph RAG, such as AgglomerativeClustering() or LeidenClustering()"
    chosen = AgglomerativeClustering() if clustering is None else clustering
    checked: Clustering = check_component("clustering", chosen, ("cluster", "fingerprint"), wanted, "graphrag")
    return checked


def check_fixed(struct: DerivedStruct, config: GraphRAGConfig) -> None:
    """Check that the parameters that cannot be changed are those of the stored index.

    Raises
    ------
    ConfigurationError
    """
    stored = struct.parameters_of("graphrag")
    for name in ("partition_by", "entity_vectors"):
        if stored and stored.get(name) != getattr(config, name):
            raise ConfigurationError(
                f"The index was built with {name}={stored.get(name)!r}, not {getattr(config, name)!r}. "
                "Leave it out, or build a new index."
            )


def maker_of(resources: Resources) -> str:
    """What decides how reports are written, for their keys."""
    summarizer = resources.summarizer
    return "" if summarizer is None else json.dumps(summarizer.fingerprint, sort_keys=True)
