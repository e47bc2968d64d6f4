"""`RowVersions`: under which ids the rows of a space lie in a vector store, and which of them are to be deleted there.

Vector stores take no part in transactions. So a row that replaces another gets an id of its own in the store, and the
old one stays there until the write is committed: whoever reads the records as they were before finds its vector.
"""

from collections.abc import Mapping, Sequence

from llama_index.ragkit.ids import content_id
from llama_index.ragkit.steps import Steps
from llama_index.ragkit.storage.records import Record, Records

__all__ = ["RowVersions"]


class RowVersions:
    """The versions of the rows of a space.

    Parameters
    ----------
    space : its name
    records : of the index
    """

    def __init__(self, space: str, records: Records) -> None:
        self._records = records
        self._replacing = f"versions/{space}"  # keys of rows, by the ids in the store that are not their keys
        self._doomed = f"doomed/{space}"

    @staticmethod
    def in_store(key: str, record: Record) -> str:
        """The id in the store of the row with this key: the key, or another id where it has replaced a row."""
        version = record.get("version", 0)
        return content_id("version", key, str(version)) if version else key

    def versioned(self, records: Mapping[str, Record]) -> Steps[dict[str, Record]]:
        """Records with the first versions whose ids in the store are not those of rows to be deleted there, by key.

        A node that changed is removed and put by the same write: its old row is still in the store.
        """
        found = dict(records)
        while True:
            ids = {key: self.in_store(key, record) for key, record in found.items()}
            doomed = yield from self._records.get_many(self._doomed, list(ids.values()))
            if not doomed:
                break
            for key, one in ids.items():
                if one in doomed:
                    found[key] = {**found[key], "version": found[key].get("version", 0) + 1}
        yield from self._records.put(self._replacing, [(one, {"key": key}) for key, one in ids.items() if one != key])
        return found

    def replaced(self, ids: Sequence[str]) -> Steps[list[str]]:
        """The keys of rows that lie under some of these ids in the store, which are not their keys."""
        found = yield from self._records.get_many(self._replacing, ids)
        return [version["key"] for version in found.values()]

    def forget(self, records: Mapping[str, Record]) -> Steps[None]:
        """Note that the vectors of rows are to be deleted, by their records by key."""
        ids = [self.in_store(key, record) for key, record in records.items()]
        yield from self._records.put(self._doomed, [(one, {}) for one in ids])
        yield from self._records.delete(self._replacing, [one for one in ids if one not in records])

    def doomed(self) -> Steps[list[str]]:
        """The ids that are to be deleted in the store."""
        return list((yield from self._records.get_all(self._doomed)))

    def settled(self, ids: Sequence[str]) -> Steps[None]:
        """Note that ids were deleted in the store."""
        yield from self._records.delete(self._doomed, ids)
