"""Fact paths as LlamaIndex nodes that can be cited like their sources."""

from collections.abc import Iterable, Sequence
from typing import Any

from llama_index.core.schema import BaseNode, NodeRelationship, RelatedNodeInfo, TextNode

from llama_index.pgrag.search.ranking import MergedPath
from llama_index.ragkit import Steps
from llama_index.ragkit.storage.derived_nodes import NodeFetch, derived_node

__all__ = ["outline_node", "path_node", "sources_of"]

_READ = 100  # nodes of a result whose metadata are compared


def path_node(result: MergedPath, fetch: NodeFetch) -> Steps[TextNode]:
    """A fact path as a node."""
    metadata = {"pgrag_path": list(result.fact.path), "pgrag_documents": result.documents}
    node = derived_node(result.fact.id, result.fact.text, metadata, result.sources)
    return (yield from _citable(node, result, fetch))


def outline_node(name: str, text: str, topic: str, whole: MergedPath, fetch: NodeFetch) -> Steps[TextNode]:
    """The outline of some paths of a topic as a node.

    Parameters
    ----------
    name : the id of the node
    whole : the paths, merged into one result
    """
    metadata = {"pgrag_topic": topic, "pgrag_documents": whole.documents}
    return (yield from _citable(derived_node(name, text, metadata, whole.sources), whole, fetch))


def sources_of(results: Iterable[MergedPath]) -> list[str]:
    """Ids of the nodes that are read for these results, each once."""
    return list(dict.fromkeys(node_id for result in results for node_id in result.sources[:_READ]))


def _citable(node: TextNode, result: MergedPath, fetch: NodeFetch) -> Steps[TextNode]:
    """A derived node with the metadata that all its sources share, and their document if they have only one.

    Metadata that the sources hide from the LLM are also hidden here; none are part of the text to embed.
    """
    sources: list[BaseNode] = []
    for node_id in result.sources[:_READ]:
        source = yield from fetch(node_id)
        sources += [] if source is None else [source]
    shared = _shared_metadata(sources)
    documents = result.documents
    hidden = {key for source in sources for key in source.excluded_llm_metadata_keys}
    node.metadata = {**node.metadata, **shared}  # the user's own keys stay as they are
    node.excluded_embed_metadata_keys = list(node.metadata)
    node.excluded_llm_metadata_keys = [key for key in node.metadata if key not in shared or key in hidden]
    if len(documents) == 1 and all(fact.document for fact in result.facts):
        node.relationships[NodeRelationship.SOURCE] = RelatedNodeInfo(node_id=documents[0])
    return node


def _shared_metadata(sources: Sequence[BaseNode]) -> dict[str, Any]:
    first = sources[0].metadata if sources else {}
    return {key: value for key, value in first.items() if all(node.metadata.get(key) == value for node in sources)}
