"""The parts of a document, each read by a model in one call."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from llama_index.core.schema import BaseNode, TextNode

from llama_index.ragkit.storage.nodes import plain_text
from llama_index.ragkit.text.pieces import pieces_of
from llama_index.ragkit.text.tokens import count_tokens

__all__ = ["DocumentPart", "parts_of"]


class DocumentPart(NamedTuple):
    """A part of a document, and the places of its nodes."""

    text: str
    places: tuple[int, ...]


def parts_of(nodes: Sequence[BaseNode], most: int, count: Callable[[str], int] = count_tokens) -> list[DocumentPart]:
    """The nodes of a document in as few parts of whole nodes as possible; a longer node is split into its own parts.

    Text that a node shares with the node before it, as overlapping chunks do, is read once.

    Parameters
    ----------
    nodes : in reading order
    most : largest number of tokens of a part, at least 1
    count : counts the tokens of a text
    """
    parts: list[DocumentPart] = []
    open_: list[tuple[str, int]] = []
    left = most
    for place, node in enumerate(nodes):
        text = plain_text(node).strip()
        new = text if not open_ else _without_overlap(nodes[place - 1], node)
        cost = count(new) + 1
        if open_ and cost > left:
            parts.append(_joined(open_))
            open_, left, new = [], most, text
            cost = count(new) + 1
        if count(text) > most:
            parts += [DocumentPart(piece, (place,)) for piece in pieces_of(text, most, count)]
        else:
            open_.append((new, place))
            left -= cost
    return [*parts, _joined(open_)] if open_ else parts


def _joined(open_: Sequence[tuple[str, int]]) -> DocumentPart:
    return DocumentPart("\n".join(text for text, _ in open_ if text), tuple(place for _, place in open_))


def _without_overlap(before: BaseNode, node: BaseNode) -> str:
    """The text of a node without its overlap with the node before it, found by positions and words."""
    text = plain_text(node).strip()
    if not (isinstance(before, TextNode) and isinstance(node, TextNode)):
        return text
    if before.end_char_idx is None or node.start_char_idx is None:
        return text
    shared = before.end_char_idx - node.start_char_idx
    is_shared = 0 < shared < len(text) and plain_text(before).strip().endswith(text[:shared].strip())
    return text[shared:].strip() if is_shared else text
