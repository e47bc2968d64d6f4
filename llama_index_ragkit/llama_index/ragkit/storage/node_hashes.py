"""`NodeHashes`: the chunks of an index in stores by the hash of their text and metadata, to find copies of them."""

from collections.abc import Iterable, Mapping

from llama_index.ragkit.steps import Steps
from llama_index.ragkit.storage.records import Records

__all__ = ["NodeHashes"]

_HASHES = "hashes"


class NodeHashes:
    """A record for each hash, with the ids of the chunks that have it; none for chunks that earlier versions stored.

    Parameters
    ----------
    records : of the index
    """

    def __init__(self, records: Records) -> None:
        self._records = records

    def nodes_with(self, hashes: Iterable[str]) -> Steps[list[str]]:
        """The chunks that have one of some hashes."""
        found = yield from self._records.get_many(_HASHES, dict.fromkeys(hashes))
        return [node_id for record in found.values() for node_id in record["nodes"]]

    def add(self, keys: Mapping[str, str]) -> Steps[None]:
        """Add chunks, by their sort keys, which begin with the hash."""
        stored, changed = yield from self._of(keys)
        for node_id, key in keys.items():
            changed[_hash_of(key)].add(node_id)
        yield from self._store(stored, changed)

    def remove(self, keys: Mapping[str, str]) -> Steps[None]:
        """Remove chunks; see :meth:`add`."""
        stored, changed = yield from self._of(keys)
        for node_id, key in keys.items():
            changed[_hash_of(key)].discard(node_id)
        yield from self._store(stored, changed)

    def _of(self, keys: Mapping[str, str]) -> Steps[tuple[dict[str, list[str]], dict[str, set[str]]]]:
        """The stored chunks of the hashes of some chunks, twice."""
        hashes = dict.fromkeys(map(_hash_of, keys.values()))
        rows = yield from self._records.get_many(_HASHES, hashes)
        stored = {node_hash: row["nodes"] for node_hash, row in rows.items()}
        return stored, {node_hash: set(stored.get(node_hash, ())) for node_hash in hashes}

    def _store(self, stored: Mapping[str, list[str]], changed: Mapping[str, set[str]]) -> Steps[None]:
        new = {node_hash: sorted(ids) for node_hash, ids in changed.items() if ids}
        other = [(node_hash, {"nodes": ids}) for node_hash, ids in new.items() if stored.get(node_hash) != ids]
        yield from self._records.put(_HASHES, other)
        yield from self._records.delete(_HASHES, [node_hash for node_hash in stored if node_hash not in new])


def _hash_of(key: str) -> str:
    return key.split("|", 1)[0]
