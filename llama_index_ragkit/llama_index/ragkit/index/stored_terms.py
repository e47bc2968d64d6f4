"""`StoredChunkTerms`: the words of the chunks of an index that is served from stores, in its database."""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence

from llama_index.core.schema import BaseNode

from llama_index.ragkit.steps import Steps, offload
from llama_index.ragkit.storage.interface import Words
from llama_index.ragkit.storage.labels import labels_of
from llama_index.ragkit.storage.records import Record
from llama_index.ragkit.text.lexical_index import LexicalIndex

__all__ = ["StoredChunkTerms"]

_AT_ONCE = 1_000  # chunks in one transaction


class StoredChunkTerms:
    """Keeps the words of chunks in a database, where :class:`~llama_index.ragkit.storage.chunk_terms.ChunkTerms` keeps
    them in memory; beside them the labels by which filters look chunks up.

    Parameters
    ----------
    lexical : the words in the database
    terms_of : the terms of a node, from it and its record
    """

    def __init__(self, lexical: Words, terms_of: Callable[[BaseNode, Record | None], Counter[str]]) -> None:
        self.lexical = lexical
        self._terms_of = terms_of

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
            yield from offload(self._store, gone, added[start : start + _AT_ONCE], records)
            gone = ()
        return lexical

    def _store(self, removed: Collection[str], added: Sequence[BaseNode], records: Mapping[str, Record | None]) -> None:
        terms = {n.node_id: self.labelled(n, self._terms_of(n, records.get(n.node_id))) for n in added}
        self.lexical.changed(removed, terms)

    @staticmethod
    def labelled(node: BaseNode, terms: Mapping[str, int]) -> dict[str, int]:
        """The terms of a chunk with its labels."""
        return {**terms, **labels_of(node.metadata, node.ref_doc_id)}

    def count(self) -> Steps[int]:
        """The number of chunks that have words."""
        return (yield from offload(len, self.lexical))
