"""Nodes that an index derives from other nodes, and the conversion of nodes to records."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from llama_index.core.schema import BaseNode, NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.core.storage.docstore.utils import doc_to_json, json_to_doc

from llama_index.ragkit.steps import Steps
from llama_index.ragkit.storage.nodes import plain_text
from llama_index.ragkit.storage.records import Record
from llama_index.ragkit.storage.struct import damaged

__all__ = ["NodeFetch", "derived_node", "fetch_derived", "node_from_record", "node_to_record", "texts_of"]

NodeFetch = Callable[[str], Steps[BaseNode | None]]
"""Node id -> steps of a new node object; None for a node that no longer exists."""


def derived_node(node_id: str, text: str, metadata: dict[str, Any], sources: Sequence[str]) -> TextNode:
    """A text node derived from other nodes, which are its CHILD relationships.

    It has no SOURCE: core would list it among the document's own nodes. Its metadata marks it as derived, and is
    excluded from the text for the embedding model and the LLM.
    """
    return TextNode(
        id_=node_id,
        text=text,
        metadata=metadata,
        excluded_embed_metadata_keys=list(metadata),
        excluded_llm_metadata_keys=list(metadata),
        relationships={NodeRelationship.CHILD: [RelatedNodeInfo(node_id=source) for source in sources]},
    )


def texts_of(node_ids: Iterable[str], fetch: NodeFetch) -> Steps[dict[str, str]]:
    """The texts of the nodes that `fetch` finds."""
    texts = {}
    for node_id in node_ids:
        node = yield from fetch(node_id)
        if node is not None:
            texts[node_id] = plain_text(node)
    return texts


def node_to_record(node: BaseNode) -> Record:
    """A node as JSON values, the way LlamaIndex's own docstores write it."""
    record: Record = doc_to_json(node)
    return record


def node_from_record(record: Record) -> BaseNode:
    """The node that :func:`node_to_record` wrote."""
    return json_to_doc(record)


def fetch_derived(written: Mapping[str, Record], fetch: NodeFetch) -> NodeFetch:
    """`fetch`, with the derived nodes of some records found first.

    Parameters
    ----------
    written : id of a derived node -> a record that holds the node under "node"
    """
    return partial(_fetch, written, fetch)


def _fetch(written: Mapping[str, Record], fetch: NodeFetch, node_id: str) -> Steps[BaseNode | None]:
    if node_id not in written:
        return (yield from fetch(node_id))
    try:
        return node_from_record(written[node_id]["node"])
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise damaged(f"the derived node {node_id!r}", type(error).__name__) from error
