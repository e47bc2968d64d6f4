"""`StateArrays`: what an index in memory makes of its records, as arrays beside them, so that it opens at once.

They belong to one commit. Those of another commit, or of a write that has not ended, do not count: the index is then
made of its records, as it is where there are no arrays.
"""

from llama_index.ragkit.nested_arrays import Arrays
from llama_index.ragkit.steps import Steps
from llama_index.ragkit.storage.commits import read_commit
from llama_index.ragkit.storage.local_vectors import LocalVectors
from llama_index.ragkit.storage.records import Records
from llama_index.ragkit.storage.struct import DerivedStruct

__all__ = ["StateArrays"]

_LAYOUT = 1  # raised when an array means something else, or what it is made of is read in another way


class StateArrays:
    """The arrays of an index in memory.

    Parameters
    ----------
    records, struct, vectors : of the index
    """

    def __init__(self, records: Records, struct: DerivedStruct, vectors: LocalVectors) -> None:
        self._records, self._struct, self._vectors = records, struct, vectors

    def read(self, source: str) -> Steps[Arrays]:
        """The arrays of the last commit, mapped from their file; none if there are none.

        Parameters
        ----------
        source : what words were counted in
        """
        found = self._records.arrays
        if found is None or not self._vectors.are_of_commit:
            return {}
        return found.arrays if found.about == (yield from self.about(source)) else {}

    def about(self, source: str) -> Steps[dict[str, object] | None]:
        """What arrays of the last commit say of themselves; None while a write has not ended."""
        stored = yield from read_commit(self._records)
        token = stored.get("token", "")
        if not token or token != self._struct.token or stored.get("writer") is not None or self._struct.building:
            return None
        return {"layout": _LAYOUT, "token": token, "source": source}
