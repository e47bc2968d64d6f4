"""`FileKVStore`: core's key-value store in memory, whose values stay in their file until somebody asks for them.

The file is the JSON that core reads and writes. Beside it lie where each entry begins and, by checksum, which key it
has. A value that is asked for is read and parsed alone. What is put or deleted is in memory, until the file is written
again: the new file takes the place of the old one, which open stores go on to read.

In the same file lie arrays that indexes make of their values, so that opening them computes nothing.
"""

import json
import os
import weakref
import zlib
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from itertools import pairwise
from typing import Any

import fsspec  # type: ignore[import-untyped]
import numpy as np
from fsspec.core import strip_protocol  # type: ignore[import-untyped]
from fsspec.implementations.local import LocalFileSystem  # type: ignore[import-untyped]
from llama_index.core.storage.docstore.types import BaseDocumentStore
from llama_index.core.storage.kvstore.simple_kvstore import SimpleKVStore
from llama_index.core.storage.kvstore.types import DEFAULT_COLLECTION
from numpy.typing import NDArray

from llama_index.ragkit.core_internals import collections_of, docstore_tables, replace_kvstore
from llama_index.ragkit.errors import HalfWrittenError
from llama_index.ragkit.nested_arrays import nested, part_of
from llama_index.ragkit.vectors.array_file import ArrayFile, array_path, checksum, encode_arrays, read_arrays
from llama_index.ragkit.vectors.file_format import write_atomically

__all__ = ["FileKVStore", "keep_in_file"]

Value = dict[str, Any]

_AT_ONCE = 1000  # entries
_BLOCK = 2**20  # bytes that are written at once
_BETWEEN = b", "


class _File:
    """A file that is read at any place, by threads and forked processes alike, also after its name has a new one."""

    def __init__(self, path: str) -> None:
        self.descriptor = os.open(path, os.O_RDONLY)
        weakref.finalize(self, os.close, self.descriptor)

    def read(self, start: int, stop: int) -> bytes:
        return os.pread(self.descriptor, stop - start, start)


class _FileMapping(MutableMapping[str, Value]):
    """A collection of a file, and what has changed since it was opened; it has the order of a dictionary.

    Parameters
    ----------
    starts : int64, shape (n + 1,), where each entry begins, and the end of the last with what would follow it
    sums, places : the checksums of the keys, ascending, and the entry of each
    """

    def __init__(
        self, file: _File, starts: NDArray[np.int64], sums: NDArray[np.uint32], places: NDArray[np.int32]
    ) -> None:
        self._file = file
        # One number of a memory view is read in a tenth of the time of one of an array.
        self._starts, self._sums = np.asarray(starts, np.int64).data, np.asarray(sums, np.uint32).data
        self._places = np.asarray(places, np.int32).data
        self._changed: dict[int, Value] = {}
        self._gone: set[int] = set()
        self._further: dict[str, Value] = {}

    def copy(self) -> "_FileMapping":
        """The same, unaffected by later changes of this one."""
        other = _FileMapping(self._file, *map(np.asarray, (self._starts, self._sums, self._places)))
        other._changed, other._gone, other._further = self._changed.copy(), self._gone.copy(), self._further.copy()
        return other

    def _find(self, key: str) -> tuple[int, bytes]:
        """The entry of a key in the file, and its bytes; -1 if it has none."""
        start = _key(key)
        wanted = zlib.crc32(start)
        at = bisect_left(self._sums, wanted)
        while at < len(self._sums) and self._sums[at] == wanted:
            place = self._places[at]
            entry = self._file.read(self._starts[place], self._starts[place + 1] - len(_BETWEEN))
            if place not in self._gone and entry.startswith(start + b": "):
                return place, entry
            at += 1
        return -1, b""

    def __getitem__(self, key: str) -> Value:
        if key in self._further:
            return self._further[key]
        place, entry = self._find(key)
        if place < 0:
            raise KeyError(key)
        return self._changed[place] if place in self._changed else _parsed(entry)[key]

    def __setitem__(self, key: str, value: Value) -> None:
        place = -1 if key in self._further else self._find(key)[0]
        if place < 0:
            self._further[key] = value
        else:
            self._changed[place] = value

    def __delitem__(self, key: str) -> None:
        if key in self._further:
            del self._further[key]
            return
        place, _ = self._find(key)
        if place < 0:
            raise KeyError(key)
        self._gone.add(place)
        self._changed.pop(place, None)

    def __len__(self) -> int:
        return len(self._sums) - len(self._gone) + len(self._further)

    def __iter__(self) -> Iterator[str]:
        return iter(self.whole())

    def whole(self) -> dict[str, Value]:
        """All entries as a dictionary."""
        found: dict[str, Value] = {}
        for first, entries in self._pieces():
            for place, (key, value) in enumerate(_parsed(_BETWEEN.join(entries)).items(), first):
                if place not in self._gone:
                    found[key] = self._changed.get(place, value)
        return {**found, **self._further}

    def encoded(self) -> Iterator[tuple[int, bytes]]:
        """The checksum of the key of each entry, and its bytes; what has not changed is copied."""
        sums = np.empty(len(self._sums), np.uint32)
        sums[np.asarray(self._places)] = self._sums
        for first, entries in self._pieces():
            for place, entry in enumerate(entries, first):
                if place in self._changed:
                    (key,) = _parsed(entry)
                    yield _encoded(key, self._changed[place])
                elif place not in self._gone:
                    yield int(sums[place]), entry
        yield from (_encoded(key, value) for key, value in self._further.items())

    def _pieces(self) -> Iterator[tuple[int, list[bytes]]]:
        """The entries of the file, some at once, each time with the place of the first."""
        for first in range(0, len(self._sums), _AT_ONCE):
            starts = self._starts[first : first + _AT_ONCE + 1].tolist()
            read = self._file.read(starts[0], starts[-1])
            ends = [start - starts[0] for start in starts]
            yield first, [read[start : end - len(_BETWEEN)] for start, end in pairwise(ends)]


def _key(key: str) -> bytes:
    return json.dumps(key).encode("ascii")


def _encoded(key: str, value: Value) -> tuple[int, bytes]:
    start = _key(key)
    return zlib.crc32(start), start + b": " + json.dumps(value).encode("ascii")


def _parsed(entries: bytes) -> dict[str, Value]:
    try:
        found: dict[str, Value] = json.loads(b"{%b}" % entries)
        if all(isinstance(value, dict) for value in found.values()):
            return found
        reason = "an entry that is not an object"
    except ValueError as error:
        reason = str(error)
    raise HalfWrittenError(
        f"The file of the document store is damaged or has changed while open ({reason}): load the folder again."
    )


class _Encoder:
    """The JSON of collections, in blocks.

    Attributes
    ----------
    arrays : where the entries are, once all blocks were taken
    size, sum : number and checksum of all bytes
    """

    def __init__(self, collections: Mapping[str, Mapping[str, Value]]) -> None:
        self._collections = {
            name: mapping.copy() if isinstance(mapping, _FileMapping) else dict(mapping)
            for name, mapping in list(collections.items())
        }
        self.arrays: dict[str, NDArray[Any]] = {}
        self.size, self.sum = 0, 0

    @property
    def names(self) -> list[str]:
        """The collections."""
        return list(self._collections)

    def __iter__(self) -> Iterator[bytes]:
        block: list[bytes] = []
        begun = 0
        for piece in self._pieces():
            block.append(piece)
            self.size += len(piece)
            if self.size - begun >= _BLOCK:
                yield self._joined(block)
                begun = self.size
        yield self._joined(block)

    def _joined(self, block: list[bytes]) -> bytes:
        joined = b"".join(block)
        block.clear()
        self.sum = zlib.crc32(joined, self.sum)
        return joined

    def _pieces(self) -> Iterator[bytes]:
        yield b"{"
        for number, (name, mapping) in enumerate(self._collections.items()):
            yield (_BETWEEN if number else b"") + _key(name) + b": {"
            starts, sums = list[int](), list[int]()
            for own, entry in _entries(mapping):
                if starts:
                    yield _BETWEEN
                starts.append(self.size)
                sums.append(own)
                yield entry
            starts.append(self.size + len(_BETWEEN))
            yield b"}"
            places = np.argsort(np.array(sums, np.uint32), kind="stable").astype(np.int32)
            found = (np.array(starts, np.int64), np.array(sums, np.uint32)[places], places)
            self.arrays.update(zip(_names_of(number), found, strict=True))
        yield b"}"


def _entries(mapping: _FileMapping | dict[str, Value]) -> Iterator[tuple[int, bytes]]:
    return mapping.encoded() if isinstance(mapping, _FileMapping) else (_encoded(*entry) for entry in mapping.items())


def _names_of(number: int) -> list[str]:
    return [f"{number}/{part}" for part in ("starts", "sums", "places")]


class FileKVStore(SimpleKVStore):
    """A `SimpleKVStore` whose values may lie in its file; it writes the file at once and as a whole.

    Copies and pickles have all values in memory.
    """

    def __init__(self, data: dict[str, Any] | None = None) -> None:
        super().__init__()
        if data is not None:
            self._collections_mappings = data
        self._read: dict[str, ArrayFile] = {}
        self._offered: dict[str, weakref.WeakMethod[Callable[[], ArrayFile | None]]] = {}

    @classmethod
    def opened(cls, path: str) -> "FileKVStore | None":
        """The values of a file; None if what :meth:`persist` writes beside it is missing, or of another state of it."""
        found = read_arrays(array_path(path)) if hasattr(os, "pread") else None
        if found is None:
            return None
        file = _File(path)
        size = os.fstat(file.descriptor).st_size
        if found.about["of"] != [size, checksum(file.descriptor, size)]:
            return None
        opened = cls(
            {
                name: _FileMapping(file, *(found.arrays[part] for part in _names_of(number)))
                for number, name in enumerate(found.about["collections"])
            }
        )
        made = found.about.get("made", {})  # of an earlier version without
        opened._read = {owner: ArrayFile(about, part_of(found.arrays, owner)) for owner, about in made.items()}
        return opened

    def __reduce__(self) -> tuple[Any, ...]:
        return FileKVStore, (self.to_dict(),)

    def get(self, key: str, collection: str = DEFAULT_COLLECTION) -> Value | None:
        """A copy of a value, or None."""
        found = self._get_collection_mapping(collection).get(key)
        return None if found is None else found.copy()

    def get_all(self, collection: str = DEFAULT_COLLECTION) -> dict[str, Value]:
        """All values of a collection."""
        return _whole(self._get_collection_mapping(collection))

    def to_dict(self) -> dict[str, dict[str, Value]]:
        """All values by collection."""
        return {name: _whole(mapping) for name, mapping in self._collections_mappings.items()}

    def arrays_of(self, owner: str) -> ArrayFile | None:
        """The arrays that lay beside the values when these were opened."""
        return self._read.get(owner)

    def offer(self, owner: str, made: Callable[[], ArrayFile | None]) -> None:
        """Have arrays written with the values."""
        self._offered[owner] = weakref.WeakMethod(made)

    def drop_arrays(self, owner: str) -> None:
        """Forget the arrays that lay beside the values: these are about to change."""
        self._read.pop(owner, None)

    def _made(self) -> dict[str, ArrayFile]:
        """The arrays to write, those of an owner that is not open as they were read."""
        made = dict(self._read)
        for owner, reference in self._offered.items():
            method = reference()
            if method is not None:
                made.pop(owner, None)
                found = method()
                made.update({} if found is None else {owner: found})
        return made

    def persist(self, persist_path: str, fs: fsspec.AbstractFileSystem | None = None) -> None:
        """Write the file that core reads and, on the local disk, beside it what :meth:`opened` needs."""
        encoder, path = _Encoder(self._collections_mappings), str(persist_path)
        is_local = fs is None or isinstance(fs, LocalFileSystem)
        beside = array_path(strip_protocol(path))
        if is_local and os.path.exists(beside):
            os.unlink(beside)
        made = self._made() if is_local else {}
        write_atomically(encoder, path, fs)
        if is_local:
            about = {"of": [encoder.size, encoder.sum], "collections": encoder.names}
            about["made"] = {owner: found.about for owner, found in made.items()}
            arrays = {**encoder.arrays, **nested({owner: found.arrays for owner, found in made.items()})}
            write_atomically(encode_arrays(arrays, about), beside)


def _whole(mapping: Mapping[str, Value]) -> dict[str, Value]:
    return mapping.whole() if isinstance(mapping, _FileMapping) else dict(mapping)


def keep_in_file(docstore: BaseDocumentStore) -> None:
    """Let a document store in memory be written so that it opens without being read."""
    kvstore = docstore_tables(docstore).kvstore
    if type(kvstore) is SimpleKVStore:
        replace_kvstore(docstore, FileKVStore(collections_of(kvstore)))
