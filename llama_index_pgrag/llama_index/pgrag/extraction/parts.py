"""The parts of a document that a model reads at once."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from llama_index.core.llms import LLM
from llama_index.core.schema import BaseNode, TextNode

from llama_index.ragkit import count_tokens, plain_text
from llama_index.ragkit.text.sentences import split_sentences

__all__ = ["DocumentPart", "part_budget", "parts_of"]

_WINDOW_SHARE = 3  # prompt and text, and a reply that is up to twice as long as the text


class DocumentPart(NamedTuple):
    """A part of a document, and the places of the nodes that it is from."""

    text: str
    places: tuple[int, ...]


def part_budget(most: int, llm: LLM | None) -> int:
    """The tokens of text for one call: `most`, or a third of the context window of the model if that is less."""
    return most if llm is None else max(1, min(most, llm.metadata.context_window // _WINDOW_SHARE))


def parts_of(nodes: Sequence[BaseNode], most: int, count: Callable[[str], int] = count_tokens) -> list[DocumentPart]:
    """The nodes of a document in as few parts of whole nodes as fit; a longer node is split into parts of its own.

    Text that a node shares with the one before it, as chunks that overlap do, is read once.

    Parameters
    ----------
    nodes : in reading order
    most : tokens of a part, at least 1
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
            parts += [DocumentPart(piece, (place,)) for piece in _pieces(text, most, count)]
        else:
            open_.append((new, place))
            left -= cost
    return [*parts, _joined(open_)] if open_ else parts


def _joined(open_: Sequence[tuple[str, int]]) -> DocumentPart:
    return DocumentPart("\n".join(text for text, _ in open_ if text), tuple(place for _, place in open_))


def _without_overlap(before: BaseNode, node: BaseNode) -> str:
    """The text of a node without what it shares with the one before it, by their positions and their words."""
    text = plain_text(node).strip()
    if not (isinstance(before, TextNode) and isinstance(node, TextNode)):
        return text
    if before.end_char_idx is None or node.start_char_idx is None:
        return text
    shared = before.end_char_idx - node.start_char_idx
    is_shared = 0 < shared < len(text) and plain_text(before).strip().endswith(text[:shared].strip())
    return text[shared:].strip() if is_shared else text


def _pieces(text: str, most: int, count: Callable[[str], int]) -> list[str]:
    """A text in pieces of whole sentences of at most `most` tokens; longer sentences are cut."""
    parts: list[str] = []
    open_: list[str] = []
    left = most
    for sentence in split_sentences(text):
        pieces = [sentence]
        while (tokens := count(pieces[-1])) > most:
            cut = max(1, len(pieces[-1]) * most // tokens * 9 // 10)
            pieces[-1:] = [pieces[-1][:cut], pieces[-1][cut:]]
        for piece in pieces:
            cost = count(piece) + 1
            if cost > left and open_:
                parts.append("\n".join(open_))
                open_, left = [], most
            open_.append(piece)
            left -= cost
    return [*parts, "\n".join(open_)] if open_ else parts
