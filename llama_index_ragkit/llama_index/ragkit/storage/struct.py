"""The struct of an index in the index store, which is small because core rewrites it at every insert and delete."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from types import MappingProxyType
from typing import Any, ClassVar

from llama_index.core.data_structs.data_structs import IndexStruct
from llama_index.core.data_structs.registry import INDEX_STRUCT_TYPE_TO_INDEX_STRUCT_CLASS
from llama_index.core.indices.base import BaseIndex
from llama_index.core.indices.registry import INDEX_STRUCT_TYPE_TO_INDEX_CLASS
from pydantic import TypeAdapter, ValidationError
from typing_extensions import Self

from llama_index.ragkit.errors import FormatVersionError, HalfWrittenError, RagKitError
from llama_index.ragkit.llm.embeddings import check_description
from llama_index.ragkit.redaction import redact

__all__ = ["FORMAT_VERSION", "DerivedStruct", "check_format", "damaged", "reading_struct", "register_index"]

FORMAT_VERSION = 1


def check_format(version: object) -> None:
    """Check the version of the layout of a stored index."""
    if version != FORMAT_VERSION:
        raise FormatVersionError(
            f"The index was written in format {version!r}; this version reads format {FORMAT_VERSION}. "
            "Build it again, or install the version that wrote it."
        )


@dataclass
class DerivedStruct(IndexStruct):
    """The struct of a :class:`~llama_index.ragkit.DerivedIndex`: parameters and bookkeeping, no bulk data.

    Attributes
    ----------
    format_version : version of the layout of everything that the index stores; other versions are rejected at load
    uid : 8 hexadecimal digits in every name, which distinguish two indexes of one kind
    generation : incremented by every write; each part of the index stores it, so that parts of different generations
        are detected
    token : a random string of the last write, which each part of the index stores too. Two writers that started from
        one generation get the same number, but not the same token
    building : whether a write is incomplete
    cached : whether records were extracted through a cache that outlives the process, which deletes must clear as well
    cache_id : the identity of that cache
    params : the parameters that determine what is stored, as JSON values; "dtype" is the data type of the vector
        spaces if it is not float32
    components : role -> fingerprint of the extractor, summarizer or clustering that was used
    embedding : name, dimension and probe vector of the embedding model (empty until the first vector)
    spaces : space -> namespace of its vector store in the storage context
    counters : numbers that can be read without loading the rest of the index
    advantage, measured : of words over cosines (:mod:`~llama_index.ragkit.vectors.self_retrieval`), and the number of
        chunks of the write that measured it; 0 before one has
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
    advantage: float = 0.0
    measured: int = 0

    @classmethod
    def from_json(cls, s: Any, **kwargs: Any) -> Self:
        """The struct of an entry of the index store, JSON text or an object of it.

        Raises
        ------
        HalfWrittenError
            If a value is not of its type.
        FormatVersionError
        """
        text = s if isinstance(s, str | bytes | bytearray) else json.dumps(s)
        try:
            struct: Self = _adapter(cls).validate_json(text, strict=True)
        except ValidationError as error:
            check_format(_version_of(text))
            raise damaged("an index", error) from None
        return struct

    def to_dict(self, encode_json: bool = False) -> dict[str, Any]:
        """The values of all fields, in a tenth of the time that core takes: each write stores the struct twice."""
        values: dict[str, Any] = _adapter(type(self)).dump_python(self, warnings=False)
        return values

    @property
    def in_stores(self) -> bool:
        """Whether its vectors are only in vector stores, and no process holds all of the index."""
        return self.params.get("serve_from") == "stores"

    def count(self, **more: int) -> None:
        """Add to counters."""
        for name, number in more.items():
            self.counters[name] = self.counters.get(name, 0) + number

    def parameters_of(self, method: str, needed: Mapping[str, type] = MappingProxyType({})) -> dict[str, Any]:
        """The stored parameters of a method.

        Parameters
        ----------
        needed : those that must be there, with their types

        Raises
        ------
        HalfWrittenError
            If they are not a JSON object, or if a needed one is missing or of another type.
        """
        found = self.params.get(method, {})
        if not isinstance(found, dict) or any(type(found.get(name)) is not kind for name, kind in needed.items()):
            raise damaged(f"index {self.index_id!r}", f"its parameters of {method!r}, {found!r}")
        return found

    def check(self) -> None:
        """Check the types of all values."""
        self.from_json(self.to_json())
        check_description(self.embedding)

    @classmethod
    def get_type(cls) -> str:  # type: ignore[override]
        """The name under which core registers the struct and its index."""
        return cls.type_name


@contextmanager
def reading_struct(struct: DerivedStruct | None) -> Iterator[None]:
    """Turn errors in the block into errors about damaged stored data; None for an index that is not stored yet."""
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        if struct is None or isinstance(error, RagKitError):
            raise
        raise damaged(f"index {struct.index_id!r}", error) from error


def damaged(what: str, reason: str | Exception) -> HalfWrittenError:
    """The error for stored data that cannot be read, such as "index 'a'"."""
    if isinstance(reason, ValidationError):
        first = reason.errors(include_input=False, include_url=False)[0]
        reason = ": ".join([*map(str, first["loc"]), first["msg"]])
    elif isinstance(reason, Exception):
        reason = f"{type(reason).__name__}: {reason}"
    return HalfWrittenError(
        f"The stored data of {what} cannot be read ({redact(reason)[:300]}): they are damaged, or were changed. "
        "Restore a copy, or build the index again."
    )


@cache
def _adapter(cls: type[DerivedStruct]) -> TypeAdapter[Any]:
    return TypeAdapter(cls)


def _version_of(text: str | bytes | bytearray) -> object:
    """The format of a struct that cannot be read; ours if it says none."""
    try:
        return json.loads(text)["format_version"]
    except (LookupError, RecursionError, TypeError, ValueError):
        return FORMAT_VERSION


def register_index(index_cls: type[BaseIndex[Any]]) -> None:
    """Register an index class for `load_index_from_storage`, in both registries of llama-index-core.

    The type string of the struct is the import path of the package. If the import is missing, core's KeyError then
    names what to import.
    """
    struct_cls = index_cls.index_struct_cls
    key: Any = struct_cls.get_type()
    INDEX_STRUCT_TYPE_TO_INDEX_STRUCT_CLASS[key] = struct_cls
    INDEX_STRUCT_TYPE_TO_INDEX_CLASS[key] = index_cls
