"""The nodes of each document, in reading order."""

from collections.abc import Sequence

from llama_index.core.schema import BaseNode

from llama_index.ragkit.ids import reading_key
from llama_index.ragkit.storage.nodes import sort_key

__all__ = ["document_groups"]


def document_groups(nodes: Sequence[BaseNode]) -> list[list[int]]:
    """Places of the nodes of each document, in reading order: by offset, and by content where that is not known.

    A node without a source document is a document of its own. The documents are in the order of their first nodes.
    """
    groups: dict[tuple[bool, str], list[int]] = {}
    for i, node in enumerate(nodes):
        key = (node.ref_doc_id is not None, node.ref_doc_id or node.node_id)
        groups.setdefault(key, []).append(i)
    return [sorted(group, key=lambda i: reading_key(sort_key(nodes[i]))) for group in groups.values()]
