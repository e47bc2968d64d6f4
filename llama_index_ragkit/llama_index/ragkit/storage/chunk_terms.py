"""The words of the chunks of an index, and the compressed records that hold them."""

import base64
import json
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from types import MappingProxyType

from llama_index.core.schema import BaseNode

from llama_index.ragkit.nested_arrays import Arrays
from llama_index.ragkit.steps import Steps, offload
from llama_index.ragkit.storage.index_storage import IndexStorage
from llama_index.ragkit.storage.labels import labels_of
from llama_index.ragkit.storage.records import Record, Records
from llama_index.ragkit.text.lexical_index import LexicalIndex

__all__ = ["ChunkTerms", "WordRecords"]

_COLLECTION = "words"
_RECORDS = 4096  # so many that a change of one text rewrites little, also of a million texts
_LEVEL = 6
_AT_ONCE = 1_000  # chunks in one transaction, and whose words are dictionaries at once, which take much memory

Words = dict[str, str]


class ChunkTerms:
    """Keeps the words of chunks, and the labels by which filters look chunks up where words are in a
    database.

    Words that are in memory are in the records of the index too, so that loading it reads no text again: those of a
    chunk in alphabetical order, each as often as it occurs.
    """

    def __init__(
        self, storage: IndexStorage, source: str, terms_of: Callable[[BaseNode, Record | None], Counter[str]]
    ) -> None:
        self.words = storage.stores.words()
        self._storage = storage
        self._stored = WordRecords(storage.records, source)
        self._terms_of = terms_of

    def load(self, arrays: Arrays = MappingProxyType({})) -> Steps[None]:
        """Read the words of all chunks, if they are to be in memory.

        Records of other chunks, left by an interrupted write, are removed. Chunks without a record, which such a write
        has not reached, or with one of another source are read from the docstore, and their words are stored.
        """
        if arrays:
            yield from offload(self.words.load, LexicalIndex.of_arrays(arrays))
            return
        storage = self._storage
        chunks = storage.space().whole()
        if self.words.whole() is None or chunks is None:
            return
        stored = yield from self._stored.load()
        left = [node_id for node_id in stored if node_id not in chunks]
        if left:
            yield from self._stored.change(left, {})
        words = {node_id: stored[node_id] for node_id in chunks.ids if node_id in stored}
        missing = yield from storage.get_nodes([i for i in chunks.ids if i not in words])
        entries = yield from storage.manifest.entries_of(missing)
        records = {node_id: entry.record for node_id, entry in entries.items()}
        yield from offload(self.words.load, words)
        yield from self.changed((), list(missing.values()), records)

    def changed(
        self, removed: Collection[str], added: Sequence[BaseNode], records: Mapping[str, Record | None]
    ) -> Steps[None]:
        """Store the words of new chunks, and delete those of removed ones."""
        in_memory = self.words.whole() is not None
        gone: Collection[str] = removed
        stored: dict[str, str] = {}
        for start in range(0, len(added) or 1, _AT_ONCE):
            nodes = added[start : start + _AT_ONCE]
            counts = yield from offload(self._counted, nodes, records)
            if in_memory:
                stored.update((node_id, " ".join(sorted(found.elements()))) for node_id, found in counts.items())
                yield from offload(self.words.changed, gone, counts)
            else:
                labelled = {node.node_id: self.labelled(node, counts[node.node_id]) for node in nodes}
                yield from offload(self.words.changed, gone, labelled)
            gone = ()
        if in_memory:
            yield from self._stored.change(removed, stored)

    def _counted(self, nodes: Sequence[BaseNode], records: Mapping[str, Record | None]) -> dict[str, Counter[str]]:
        return {node.node_id: self._terms_of(node, records.get(node.node_id)) for node in nodes}

    @staticmethod
    def labelled(node: BaseNode, terms: Mapping[str, int]) -> dict[str, int]:
        """The terms of a chunk with its labels."""
        return {**terms, **labels_of(node.metadata, node.ref_doc_id)}

    def count(self) -> Steps[int]:
        """The number of chunks; of those that have words, where they are not in memory."""
        chunks = self._storage.space().whole()
        return (yield from offload(len, self.words)) if chunks is None else len(chunks)


class WordRecords:
    """The words of texts by id, in compressed records of an index, each of which holds those of many texts.

    A record for each text would take more memory than the lexical index that is made of them. The id of a text
    determines its record, so nothing else has to be stored, and a text that is removed leaves nothing behind.

    Parameters
    ----------
    source : what the words were read from; those of another source do not count
    """

    def __init__(self, records: Records, source: str) -> None:
        self._records = records
        self._source = source

    def load(self) -> Steps[Words]:
        """The words of all texts."""
        stored = yield from self._records.get_all(_COLLECTION)
        return (yield from offload(self._all_of, list(stored.values())))

    def change(self, removed: Collection[str], added: Mapping[str, str]) -> Steps[None]:
        """Delete the words of texts, then store those of others; unknown ids are ignored."""
        keys = {_key(text_id) for text_id in (*removed, *added)}
        stored = yield from self._records.get_many(_COLLECTION, sorted(keys))
        changed = yield from offload(self._changed, stored, removed, added)
        yield from self._records.update(_COLLECTION, {**dict.fromkeys(stored), **changed})

    def _all_of(self, stored: Collection[Record]) -> Words:
        return {text_id: words for record in stored for text_id, words in self._unpacked(record).items()}

    def _changed(
        self, stored: Mapping[str, Record], removed: Collection[str], added: Mapping[str, str]
    ) -> dict[str, Record]:
        """The records that are not empty after a change."""
        held = {key: self._unpacked(record) for key, record in stored.items()}
        for text_id in removed:
            held.get(_key(text_id), {}).pop(text_id, None)
        for text_id, words in added.items():
            held.setdefault(_key(text_id), {})[text_id] = words
        return {key: self._packed(words) for key, words in held.items() if words}

    def _packed(self, words: Words) -> Record:
        data = zlib.compress(json.dumps(words, ensure_ascii=False).encode(errors="surrogatepass"), _LEVEL)
        return {"source": self._source, "words": base64.b85encode(data).decode("ascii")}

    def _unpacked(self, record: Record) -> Words:
        if record["source"] != self._source:
            return {}
        words: Words = json.loads(zlib.decompress(base64.b85decode(record["words"])))
        return words


def _key(text_id: str) -> str:
    """The key of the record that holds a text."""
    return format(zlib.crc32(text_id.encode(errors="surrogatepass")) % _RECORDS, "03x")
