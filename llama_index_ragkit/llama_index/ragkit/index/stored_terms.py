"""`StoredChunkTerms`: the words of the chunks of an index that is served from stores, in its database."""

from collections.abc import Callable, Collection, Iterator, Sequence

from llama_index.core.schema import BaseNode

from llama_index.ragkit.sql.lexical_index import SQLLexicalIndex
from llama_index.ragkit.steps import Steps, offload, run_steps
from llama_index.ragkit.storage.index_storage import IndexStorage
from llama_index.ragkit.storage.nodes import embed_text
from llama_index.ragkit.text.function_words import written_language
from llama_index.ragkit.text.lexical_index import LexicalIndex
from llama_index.ragkit.text.lexical_terms import lexical_terms

__all__ = ["StoredChunkTerms"]

_AT_ONCE = 1_000  # chunks in one transaction


class StoredChunkTerms:
    """Keeps the words of chunks in a database, where :class:`~llama_index.ragkit.storage.chunk_terms.ChunkTerms` keeps
    them in memory.

    Parameters
    ----------
    storage : of the index
    open_lexical : (function that gives all words of the index) -> its words in the database
    """

    def __init__(
        self, storage: IndexStorage, open_lexical: Callable[[Callable[[], Iterator[str]]], SQLLexicalIndex]
    ) -> None:
        self._storage = storage
        self.lexical = open_lexical(self._words)

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
        texts = {node.node_id: embed_text(node) for node in nodes}
        counts = {node_id: lexical_terms(text) for node_id, text in texts.items()}
        self.lexical.changed(removed, counts, {written_language(text) for text in texts.values()})

    def count(self) -> Steps[int]:
        """The number of chunks that have words."""
        return (yield from offload(len, self.lexical))

    def _words(self) -> Iterator[str]:
        """All words of the index, from its nodes: asked for when a text is in a language for the first time."""
        for node_id in run_steps(self._storage.manifest.entries()):
            node = run_steps(self._storage.get_node(node_id))
            yield from () if node is None else lexical_terms(embed_text(node))
