"""`LocalVectors`: the vectors of an index in memory, and the user's store that its chunks are written to as well."""

from collections.abc import Mapping, Sequence

from llama_index.core.schema import BaseNode

from llama_index.ragkit.steps import Steps, immediate
from llama_index.ragkit.storage.external_store import ExternalVectorStore
from llama_index.ragkit.storage.interface import OtherNodes
from llama_index.ragkit.storage.manifest import NodeEntry
from llama_index.ragkit.storage.opening import CHUNKS, version_tag
from llama_index.ragkit.storage.struct import DerivedStruct
from llama_index.ragkit.storage.vector_spaces import SpaceRows, VectorSpace

__all__ = ["LocalVectors"]


class LocalVectors:
    """The :class:`~llama_index.ragkit.storage.interface.Vectors` of an index in memory.

    Parameters
    ----------
    struct : of the index
    spaces : by name
    external : the user's own vector store that chunks are written to as well, if there is one
    """

    def __init__(
        self, struct: DerivedStruct, spaces: Mapping[str, VectorSpace], external: ExternalVectorStore | None
    ) -> None:
        self._struct = struct
        self._spaces = spaces
        self.external = external

    @property
    def is_empty(self) -> bool:
        """Whether there are no chunks."""
        return not len(self._spaces[CHUNKS].whole())

    def space(self, name: str) -> VectorSpace:
        """A vector space."""
        return self._spaces[name]

    def add_space(self, name: str) -> None:
        """Nothing: all spaces are there from the start."""

    @immediate
    def begin(self) -> None:
        """Nothing: a write that ends early is repeated, or read again."""

    @immediate
    def abandon(self) -> None:
        """Nothing: one process writes."""

    @immediate
    def settle(self) -> None:
        """Nothing: rows are deleted at once."""

    def reload(self) -> Steps[None]:
        """Read the rows again from a document store on a server, after a write that did not end there."""
        for space in self._spaces.values():
            yield from space.reload()

    @property
    def are_of_commit(self) -> bool:
        """Whether all spaces are of the generation of the struct."""
        return all(space.store.tag == version_tag(self._struct) for space in self._spaces.values())

    def tag(self) -> None:
        """Note the generation of the index in each space, by which parts of different generations are detected."""
        for space in self._spaces.values():
            space.store.tag = version_tag(self._struct)

    def put_chunks(self, rows: SpaceRows, nodes: Sequence[BaseNode]) -> Steps[None]:
        """Add rows of chunks, and write `nodes` to the user's store, which must not hold the ids yet: some stores would
        keep both versions.
        """
        if self.external is not None and nodes:
            yield from self.external.add(nodes, rows.vectors)
        yield from self._spaces[CHUNKS].put(rows)

    def remove_chunks(self, entries: Mapping[str, NodeEntry], others: OtherNodes) -> Steps[None]:
        """Delete rows of chunks; `others` are written again to a store that deletes whole documents."""
        space = self._spaces[CHUNKS]
        if self.external is not None and entries:
            documents = sorted({entry.ref_doc_id or "None" for entry in entries.values()})
            stay = yield from others(documents)
            vectors_of = self.external.vectors_of or space.whole().vectors_of
            yield from self.external.delete(list(entries), documents, stay, vectors_of)
        yield from space.remove(entries)
