"""Texts, canonical order and stable ids of nodes, and the check of what can be stored."""

import json
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from llama_index.core.schema import BaseNode, MetadataMode, NodeRelationship, RelatedNodeInfo, TextNode

from llama_index.ragkit.errors import ConfigurationError
from llama_index.ragkit.ids import content_id
from llama_index.ragkit.text.characters import without_unprinted

__all__ = ["check_nodes", "embed_text", "plain_text", "refuse_unstorable", "sort_key", "title_of", "with_stable_ids"]


def embed_text(node: BaseNode) -> str:
    """The text of a node that LlamaIndex passes to an embedding model."""
    return node.get_content(metadata_mode=MetadataMode.EMBED)


def plain_text(node: BaseNode) -> str:
    """The text of a node without its metadata."""
    return node.get_content(metadata_mode=MetadataMode.NONE)


def title_of(node: BaseNode, key: str | None) -> str:
    """The title of a node: the stripped text in its metadata under `key`, as it is printed, or ""."""
    title = node.metadata.get(key) if key is not None else None
    return without_unprinted(title).strip() if isinstance(title, str) else ""


def sort_key(node: BaseNode) -> str:
    """The canonical order: text and metadata hash, document id, position, then id.

    It does not depend on the order of insertion, so ties break alike in an index that was built at once and in one
    that grew by inserts.
    """
    position = node.start_char_idx if isinstance(node, TextNode) and node.start_char_idx is not None else 0
    return f"{node.hash}|{node.ref_doc_id or ''}|{position:012d}|{node.node_id}"


def _is_random(node_id: str) -> bool:
    try:
        return uuid.UUID(node_id).version == 4
    except ValueError:
        return False


def with_stable_ids(nodes: Sequence[BaseNode]) -> list[BaseNode]:
    """Replace the random ids of freshly parsed nodes by ids derived from their content.

    Core's splitters assign random ids. With them, a build that is killed and restarted would store everything twice,
    and all chunks of an updated document would be extracted and embedded again. A random (version 4) id is replaced by
    one derived from (document id, content hash, number of equal preceding nodes of the document), also in the
    relationships between the nodes. Other ids were chosen by the user and are kept. The nodes are changed in place.
    """
    seen: Counter[tuple[str, str]] = Counter()
    renamed: dict[str, str] = {}
    for node in nodes:
        if node.ref_doc_id is None or not _is_random(node.node_id):
            continue
        same = (node.ref_doc_id, node.hash)
        renamed[node.node_id] = content_id("node", *same, str(seen[same]))
        seen[same] += 1
    for node in nodes:
        node.id_ = renamed.get(node.node_id, node.node_id)
        for kind, related in node.relationships.items():
            if kind == NodeRelationship.SOURCE:
                continue
            for info in related if isinstance(related, list) else [related]:
                if isinstance(info, RelatedNodeInfo):
                    info.node_id = renamed.get(info.node_id, info.node_id)
    return list(nodes)


def check_nodes(nodes: Any) -> None:
    """Check that this is a list of nodes or documents; an iterator would be used up by that."""
    if isinstance(nodes, str | BaseNode | Iterator) or not isinstance(nodes, Iterable):
        raise ConfigurationError(f"A list of documents or nodes is needed, not {_named(nodes)}: put it into a list.")
    for node in nodes:
        if not isinstance(node, BaseNode):
            remedy = ": wrap the text, Document(text=...)" if isinstance(node, str) else ""
            raise ConfigurationError(f"A document or node is needed, not {_named(node)}{remedy}. Nothing was changed.")


def _named(given: object) -> str:
    shown = repr(given)
    return f"{type(given).__name__} {shown[:40]}{'...' if len(shown) > 40 else ''}"


def refuse_unstorable(nodes: Sequence[BaseNode]) -> None:
    """Reject nodes and documents that a store would refuse later, when a part of the write is done.

    These are texts with lone surrogates, which Python decodes invalid bytes to (`errors="surrogateescape"`, file
    names), and metadata that are not JSON values, on which core's `persist` fails after it has emptied the file.
    """
    for node in nodes:
        _check_text(node)
        _check_metadata(node)


def _check_text(node: BaseNode) -> None:
    for part in (node.node_id, node.ref_doc_id or "", node.get_content(metadata_mode=MetadataMode.ALL)):
        try:
            part.encode()
        except UnicodeEncodeError as error:
            raise ConfigurationError(
                f"{type(node).__name__} {node.node_id[:80]!r} contains a lone surrogate, {part[error.start]!r}, "
                "which can neither be embedded nor stored. Read its source with errors='replace', or clean text, "
                "metadata and id by value.encode('utf-8', 'replace').decode(). Nothing was changed."
            ) from None


def _check_metadata(node: BaseNode) -> None:
    try:
        json.dumps(node.metadata)
    except (TypeError, ValueError, RecursionError):
        pass
    else:
        return
    for key, value in node.metadata.items():
        try:
            json.dumps({key: value})
        except (TypeError, ValueError, RecursionError) as error:
            raise ConfigurationError(
                f"The metadata of {type(node).__name__} {node.node_id[:80]!r} cannot be stored: {key!r} is a "
                f"{type(value).__name__}, {str(value)[:80]!r} ({error}). Stores hold JSON values: text, numbers, "
                "booleans, None, and lists and dictionaries of these; convert others first, dates with isoformat(). "
                "Nothing was changed."
            ) from None
