"""Arrays in a file next to another file: the same content in its memory layout, which opens without being read.

Such a file is a copy. It is used only if it is complete and was made from the current state of the other file. It is
written after the other file and deleted before it.

The arrays lie one after the other, each at a multiple of 64 bytes. A JSON text follows with their names, types, shapes
and places, and the checksum of everything before it; then come the length and the checksum of this JSON.
"""

import json
import mmap
import os
import struct
import sys
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["ARRAYS", "ArrayFile", "array_path", "checksum", "encode_arrays", "read_arrays"]

ARRAYS = ".arrays"
_VERSION = b"llama_index.ragkit arrays 1\n"
_END = struct.Struct("<QI")
_ALIGNED = 64
_AT_ONCE = 1 << 20

Array = NDArray[Any]
Pieces = Iterator[bytes | memoryview]


class ArrayFile(NamedTuple):
    """The contents of a file.

    Attributes
    ----------
    about : JSON values
    arrays : by name, mapped from the file; writing to them does not change the file
    """

    about: dict[str, Any]
    arrays: dict[str, Array]


def array_path(path: str) -> str:
    """The path of the file with the arrays of a JSON file."""
    return path.removesuffix(".json") + ARRAYS


def encode_arrays(arrays: Mapping[str, Array | Iterable[Array]], about: Mapping[str, Any]) -> Pieces:
    """The content of a file, piece by piece.

    Parameters
    ----------
    arrays : by name; each whole, or as blocks of its rows, at least one block
    about : JSON values
    """
    size, sums, entries = 0, 0, {}
    for name, given in arrays.items():
        pad = bytes(-size % _ALIGNED)
        yield pad
        start, length, shape, dtype = size + len(pad), 0, (), ""
        sums, size = zlib.crc32(pad, sums), start
        for block in [given] if isinstance(given, np.ndarray) else given:
            data = np.ascontiguousarray(block).reshape(-1).view(np.uint8).data
            yield data
            sums, size, length = zlib.crc32(data, sums), size + len(data), length + len(block)
            shape, dtype = block.shape[1:], block.dtype.str
        entries[name] = [dtype, [length, *shape], start]
    end = json.dumps({"about": about, "arrays": entries, "crc32": sums}).encode()
    yield end + _END.pack(len(end), zlib.crc32(end)) + _VERSION


def read_arrays(path: str | Path) -> ArrayFile | None:
    """Map a file of :func:`encode_arrays`; None if there is none, or it is damaged or of another version.

    The whole file is read once, to compare its checksum, but not kept in memory.
    """
    if sys.byteorder != "little":
        return None
    with suppress(OSError, ValueError, LookupError, TypeError, struct.error), open(path, "rb") as file:
        tail = _END.size + len(_VERSION)
        size = file.seek(-tail, os.SEEK_END)
        length, own = _END.unpack(file.read(_END.size))
        if file.read() != _VERSION or length > size:
            return None
        file.seek(size - length)
        end = file.read(length)
        if zlib.crc32(end) != own:
            return None
        found = json.loads(end)
        if checksum(file.fileno(), size - length) != found["crc32"]:
            return None
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
        return ArrayFile(found["about"], {name: _array(mapped, *entry) for name, entry in found["arrays"].items()})
    return None


def _array(mapped: mmap.mmap, dtype: str, shape: list[int], start: int) -> Array:
    return np.frombuffer(mapped, np.dtype(dtype), int(np.prod(shape)), start).reshape(shape)


def checksum(descriptor: int, size: int) -> int:
    """The CRC-32 of the first `size` bytes of an open file; -1 if it is shorter."""
    sums, at = 0, 0
    with open(descriptor, "rb", buffering=0, closefd=False) as file:
        file.seek(0)
        while at < size:
            piece = file.read(min(_AT_ONCE, size - at))
            if not piece:
                return -1
            sums, at = zlib.crc32(piece, sums), at + len(piece)
    return sums
