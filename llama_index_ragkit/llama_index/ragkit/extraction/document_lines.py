"""`DocumentLines`: the lines that repeat over the chunks of each document."""

from collections import defaultdict
from collections.abc import Iterable

from llama_index.core.schema import BaseNode, TextNode

from llama_index.ragkit.storage.nodes import plain_text
from llama_index.ragkit.text.repeated_lines import repeated_lines

__all__ = ["DocumentLines"]


class DocumentLines:
    """The repeated lines of documents, computed on the first request for each document.

    Parameters
    ----------
    nodes : the chunks of the documents; nodes without a source document have no repeated lines. Documents with the same
        `file_path` in their metadata are one, since readers of PDF files return each page as a document
    """

    def __init__(self, nodes: Iterable[BaseNode]) -> None:
        self._chunks: defaultdict[str, dict[str, BaseNode]] = defaultdict(dict)
        self._found: dict[str, frozenset[str]] = {}
        for node in nodes:
            document = _document_of(node)
            if document:
                self._chunks[document][node.node_id] = node

    def of(self, node: BaseNode) -> frozenset[str]:
        """The keys of the repeated lines of a node's document."""
        document = _document_of(node)
        if document not in self._chunks:
            return frozenset()
        if document not in self._found:  # two threads may both compute it, with the same result
            chunks = self._chunks[document].values()
            self._found[document] = repeated_lines([(plain_text(chunk), _position(chunk)) for chunk in chunks])
        return self._found[document]


def _document_of(node: BaseNode) -> str:
    path = node.metadata.get("file_path")
    return path if isinstance(path, str) and path else node.ref_doc_id or ""


def _position(chunk: BaseNode) -> tuple[str, int] | None:
    start = chunk.start_char_idx if isinstance(chunk, TextNode) else None
    return None if start is None else (chunk.ref_doc_id or "", start)
