"""The struct of an index in the index store, which is small because core rewrites it at every insert and delete."""

from dataclasses import dataclass, field
from typing import Any, ClassVar

from llama_index.core.data_structs.data_structs import IndexStruct
from llama_index.core.data_structs.registry import INDEX_STRUCT_TYPE_TO_INDEX_STRUCT_CLASS
from llama_index.core.indices.base import BaseIndex
from llama_index.core.indices.registry import INDEX_STRUCT_TYPE_TO_INDEX_CLASS

__all__ = ["FORMAT_VERSION", "DerivedStruct", "register_index"]

FORMAT_VERSION = 1


@dataclass
class DerivedStruct(IndexStruct):
    """The struct of a :class:`~llama_index.ragkit.DerivedIndex`: parameters and bookkeeping, no bulk data.

    Attributes
    ----------
    format_version : version of the layout of everything that the index stores; other versions are rejected at load
    uid : 8 hexadecimal digits in every name, which distinguish two indexes of one kind
    generation : incremented by every write; each part of the index stores it, so that parts of different generations
        are detected
    token : a random string of the last write, which each part of the index stores too: two writers that started from
        one generation arrive at the same number, but not at the same token
    building : whether a write is incomplete
    cached : whether records were extracted through a cache that outlives the process, which deletes must clear as well
    cache_id : the identity of that cache
    params : the parameters that determine what is stored, as JSON values; "dtype" is the data type of the vector
        spaces if it is not float32
    components : role -> fingerprint of the extractor, summarizer or clustering that was used
    embedding : name, dimension and probe vector of the embedding model (empty until the first vector)
    spaces : space -> namespace of its vector store in the storage context
    counters : numbers that can be read without loading the rest of the index
    """

    type_name: ClassVar[str]
    """The import path of the package: core's error for an unknown type then names what to import."""

    format_version: int = FORMAT_VERSION
    uid: str = ""
    generation: int = 0
    token: str = ""
    building: bool = False
    cached: bool = False
    cache_id: str = ""
    params: dict[str, Any] = field(default_factory=dict)
    components: dict[str, dict[str, str]] = field(default_factory=dict)
    embedding: dict[str, Any] = field(default_factory=dict)
    spaces: dict[str, str] = field(default_factory=dict)
    counters: dict[str, int] = field(default_factory=dict)

    @classmethod
    def get_type(cls) -> str:  # type: ignore[override]
        """The name under which core registers the struct and its index."""
        return cls.type_name


def register_index(index_cls: type[BaseIndex[Any]]) -> None:
    """Register an index class for `load_index_from_storage`, in both registries of llama-index-core.

    The type string of the struct is the import path of the package. If the import is missing, core's KeyError then
    names what to import.
    """
    struct_cls = index_cls.index_struct_cls
    key: Any = struct_cls.get_type()
    INDEX_STRUCT_TYPE_TO_INDEX_STRUCT_CLASS[key] = struct_cls
    INDEX_STRUCT_TYPE_TO_INDEX_CLASS[key] = index_cls
