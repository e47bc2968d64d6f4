"""`StoredChunkTerms`: the words of the chunks of an index that is served from stores, in its database."""

from collections.abc import Callable, Collection, Mapping, Sequence

from llama_index.core.schema import BaseNode

from llama_index.ragkit.sql.lexical_index import SQLLexicalIndex
from llama_index.ragkit.steps import Steps, offload
from llama_index.ragkit.storage.records import Record
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
    text_of : the text whose words are kept, from a node and its record
    """

    def __init__(self, lexical: SQLLexicalIndex, text_of: Callable[[BaseNode, Record | None], str]) -> None:
        self.lexical = lexical
        self._text_of = text_of

    def load(self) -> Steps[LexicalIndex]:
        """Nothing: the words stay in the database."""
        return LexicalIndex()
        yield

    def changed(
        self,
        lexical: LexicalIndex,
        removed: Collection[str],
        added: Sequence[BaseNode],
        records: Mapping[str, Record | None],
    ) -> Steps[LexicalIndex]:
        """Store the words of new chunks, and delete those of removed ones."""
        gone: Collection[str] = removed
        for start in range(0, len(added) or 1, _AT_ONCE):
            texts = {n.node_id: self._text_of(n, records.get(n.node_id)) for n in added[start : start + _AT_ONCE]}
            yield from offload(self._store, gone, texts)
            gone = ()
        return lexical

    def _store(self, removed: Collection[str], texts: Mapping[str, str]) -> None:
        self.lexical.changed(removed, {node_id: lexical_terms(text) for node_id, text in texts.items()})

    def count(self) -> Steps[int]:
        """The number of chunks that have words."""
        return (yield from offload(len, self.lexical))
