"""`StoredChunkTerms`: the words of the chunks of an index that is served from stores, in its database."""

from collections.abc import Collection, Sequence

from llama_index.core.schema import BaseNode

from llama_index.ragkit.sql.lexical_index import SQLLexicalIndex
from llama_index.ragkit.steps import Steps, offload
from llama_index.ragkit.storage.nodes import embed_text
from llama_index.ragkit.text.lexical_index import LexicalIndex
from llama_index.ragkit.text.lexical_terms import lexical_terms

__all__ = ["StoredChunkTerms"]

_AT_ONCE = 1_000  # chunks in one transaction


class StoredChunkTerms:
    """Keeps the words of chunks in a database, where :class:`~llama_index.ragkit.storage.chunk_terms.ChunkTerms` keeps
    them in memory.

    Parameters
    ----------
    lexical : the words in the database
    """

    def __init__(self, lexical: SQLLexicalIndex) -> None:
        self.lexical = lexical

    def load(self) -> Steps[LexicalIndex]:
        """Nothing: the words stay in the database."""
        return LexicalIndex()
        yield

    def changed(
        self, lexical: LexicalIndex, removed: Collection[str], added: Sequence[BaseNode]
    ) -> Steps[LexicalIndex]:
        """Store the words of new chunks, and delete those of removed ones."""
        gone: Collection[str] = removed
        for start in range(0, len(added) or 1, _AT_ONCE):
            yield from offload(self._store, gone, added[start : start + _AT_ONCE])
            gone = ()
        return lexical

    def _store(self, removed: Collection[str], nodes: Sequence[BaseNode]) -> None:
        self.lexical.changed(removed, {node.node_id: lexical_terms(embed_text(node)) for node in nodes})

    def count(self) -> Steps[int]:
        """The number of chunks that have words."""
        return (yield from offload(len, self.lexical))
