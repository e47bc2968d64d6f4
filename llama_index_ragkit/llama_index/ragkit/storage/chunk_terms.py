"""The words of chunks, in the records of the index: loading it reads no text again."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from llama_index.core.schema import BaseNode

from llama_index.ragkit.steps import Steps, offload
from llama_index.ragkit.storage.index_storage import IndexStorage
from llama_index.ragkit.storage.nodes import embed_text
from llama_index.ragkit.text.lexical_index import LexicalIndex
from llama_index.ragkit.text.lexical_terms import lexical_terms

__all__ = ["ChunkTerms"]

_TERMS = "terms"
_READ_AT_ONCE = 1_000  # chunks whose words are dictionaries at the same time, which takes many times their memory


class ChunkTerms:
    """Keeps the words of chunks, and the lexical index of them.

    A record holds the words of one chunk, each as often as it occurs, in alphabetical order.
    """

    def __init__(self, storage: IndexStorage) -> None:
        self._storage = storage

    def load(self) -> Steps[LexicalIndex]:
        """The lexical index of the stored chunks; records of others, left by an interrupted write, are removed.

        Chunks without a record, which such a write has not reached, are read from the docstore.
        """
        chunks = self._storage.snapshot()
        stored = yield from self._storage.records.get_all(_TERMS)
        yield from self._storage.records.delete(_TERMS, [node_id for node_id in stored if node_id not in chunks])
        missing = []
        for node_id in chunks.ids:
            node = None if node_id in stored else (yield from self._storage.get_node(node_id))
            missing += [] if node is None else [node]
        words = {node_id: str(stored[node_id]["words"]) for node_id in chunks.ids if node_id in stored}
        return (yield from offload(_index_of, words, missing))

    def count(self) -> Steps[int]:
        """The number of chunks."""
        return len(self._storage.snapshot())
        yield

    def changed(
        self, lexical: LexicalIndex, removed: Collection[str], added: Sequence[BaseNode]
    ) -> Steps[LexicalIndex]:
        """Store the words of new chunks, delete those of removed ones, and return the new lexical index."""
        yield from self._storage.records.delete(_TERMS, removed)
        gone: Collection[str] = removed
        for start in range(0, len(added) or 1, _READ_AT_ONCE):
            counts = yield from offload(_counted, added[start : start + _READ_AT_ONCE])
            records = [(node_id, {"words": " ".join(sorted(found.elements()))}) for node_id, found in counts.items()]
            yield from self._storage.records.put(_TERMS, records)
            lexical = yield from offload(lexical.changed, gone, counts)
            gone = ()
        return lexical


def _counted(nodes: Sequence[BaseNode]) -> dict[str, Counter[str]]:
    return {node.node_id: lexical_terms(embed_text(node)) for node in nodes}


def _index_of(words: Mapping[str, str], missing: Sequence[BaseNode]) -> LexicalIndex:
    lexical = LexicalIndex().changed((), _counted(missing))
    ids = list(words)
    for start in range(0, len(ids), _READ_AT_ONCE):
        block = {node_id: Counter(words[node_id].split()) for node_id in ids[start : start + _READ_AT_ONCE]}
        lexical = lexical.changed((), block)
    return lexical
