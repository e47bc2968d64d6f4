"""The words of chunks, in the records of the index: loading it reads no text again."""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence

from llama_index.core.schema import BaseNode

from llama_index.ragkit.steps import Steps, offload
from llama_index.ragkit.storage.index_storage import IndexStorage
from llama_index.ragkit.storage.records import Record
from llama_index.ragkit.storage.word_records import WordRecords
from llama_index.ragkit.text.lexical_index import LexicalIndex

__all__ = ["ChunkTerms"]

_READ_AT_ONCE = 1_000  # chunks whose words are dictionaries at the same time, which takes many times their memory


class ChunkTerms:
    """Keeps the words of chunks, and the lexical index of them.

    The words of a chunk are kept each as often as it occurs, in alphabetical order.

    Parameters
    ----------
    source : what `terms_of` counts
    terms_of : the terms of a node, from it and its record
    """

    def __init__(
        self, storage: IndexStorage, source: str, terms_of: Callable[[BaseNode, Record | None], Counter[str]]
    ) -> None:
        self._storage = storage
        self._words = WordRecords(storage.records, source)
        self._terms_of = terms_of

    def load(self) -> Steps[LexicalIndex]:
        """The lexical index of the stored chunks; records of others, left by an interrupted write, are removed.

        Chunks without a record, which such a write has not reached, or with one of another source are read from the
        docstore, and their words are stored.
        """
        storage = self._storage
        chunks = storage.snapshot()
        stored = yield from self._words.load()
        left = [node_id for node_id in stored if node_id not in chunks]
        if left:
            yield from self._words.change(left, {})
        words = {node_id: stored[node_id] for node_id in chunks.ids if node_id in stored}
        missing = []
        for node_id in (i for i in chunks.ids if i not in words):
            node = yield from storage.get_node(node_id)
            missing += [] if node is None else [node]
        entries = yield from storage.manifest.entries_of(node.node_id for node in missing)
        records = {node_id: entry.record for node_id, entry in entries.items()}
        lexical = yield from offload(LexicalIndex.of, words)
        return (yield from self.changed(lexical, (), missing, records))

    def count(self) -> Steps[int]:
        """The number of chunks."""
        return len(self._storage.snapshot())
        yield

    def changed(
        self,
        lexical: LexicalIndex,
        removed: Collection[str],
        added: Sequence[BaseNode],
        records: Mapping[str, Record | None],
    ) -> Steps[LexicalIndex]:
        """Store the words of new chunks, delete those of removed ones, and return the new lexical index.

        Parameters
        ----------
        records : what the extractor read from the new chunks
        """
        gone: Collection[str] = removed
        words: dict[str, str] = {}
        for start in range(0, len(added) or 1, _READ_AT_ONCE):
            counts = yield from offload(self._counted, added[start : start + _READ_AT_ONCE], records)
            words.update((node_id, " ".join(sorted(found.elements()))) for node_id, found in counts.items())
            lexical = yield from offload(lexical.changed, gone, counts)
            gone = ()
        yield from self._words.change(removed, words)
        return lexical

    def _counted(self, nodes: Sequence[BaseNode], records: Mapping[str, Record | None]) -> dict[str, Counter[str]]:
        return {node.node_id: self._terms_of(node, records.get(node.node_id)) for node in nodes}
