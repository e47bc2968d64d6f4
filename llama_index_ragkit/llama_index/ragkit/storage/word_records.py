"""`WordRecords`: the words of texts in compressed records, each of which holds those of many texts.

A record for each text would take more memory than the lexical index that is made of them. The id of a text determines
its record, so nothing else has to be stored, and a text that is removed leaves nothing behind.
"""

import base64
import json
import zlib
from collections.abc import Collection, Mapping

from llama_index.ragkit.steps import Steps, offload
from llama_index.ragkit.storage.records import Record, Records

__all__ = ["WordRecords"]

_COLLECTION, _EARLIER = "words", "terms"
_RECORDS = 4096  # so many that a change of one text rewrites little, also of a million texts
_LEVEL = 6

Words = dict[str, str]


class WordRecords:
    """The words of texts by id, in the records of an index.

    Parameters
    ----------
    records : of the index
    source : what the words were read from; those of another source do not count
    """

    def __init__(self, records: Records, source: str) -> None:
        self._records = records
        self._source = source

    def load(self) -> Steps[Words]:
        """The words of all texts; those that an earlier version stored, with a record for each, are deleted."""
        yield from self._records.delete(_EARLIER, (yield from self._records.get_all(_EARLIER)))
        stored = yield from self._records.get_all(_COLLECTION)
        return (yield from offload(self._all_of, list(stored.values())))

    def change(self, removed: Collection[str], added: Mapping[str, str]) -> Steps[None]:
        """Delete the words of texts, then store those of others; unknown ids are ignored."""
        keys = {_key(text_id) for text_id in (*removed, *added)}
        stored = yield from self._records.get_many(_COLLECTION, sorted(keys))
        changed = yield from offload(self._changed, stored, removed, added)
        yield from self._records.put(_COLLECTION, list(changed.items()))
        yield from self._records.delete(_COLLECTION, [key for key in stored if key not in changed])

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
