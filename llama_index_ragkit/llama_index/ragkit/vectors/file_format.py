"""The file of a `MatrixVectorStore`: JSON that llama-index-core reads as a `SimpleVectorStore` without vectors.

`StorageContext.from_defaults(persist_dir=...)` takes every `*vector_store.json` for a `SimpleVectorStore`.
So the file is a `SimpleVectorStore`, empty except for a single entry of its `metadata_dict`, under :data:`MARKER`:

    format_version, stores_text, tag
    dim, count, dtype          shape and data type of the matrix
    vectors                    the rows in pieces
    rows                       ids, documents, keys, metadata and nodes in pieces
    vectors_crc32, rows_crc32  the checksums of the bytes of both

Each piece is a base64 string, which contains no escapes, so that JSON readers process it at the speed of a copy.
A piece of vectors is two strings, the low bytes of all its numbers (three of a float32, one of a float16)
and the high byte (sign and most of the exponent) of all. The high bytes vary little, so Huffman coding reduces them to
a third; the low bytes do not compress. That offsets most of base64's overhead of a third. File size matters since
core's reader holds a file in memory three times. A piece of rows is one string, compressed text of lines: a JSON list
of columns, then the metadata of each row, then its node if the store keeps text.

A file may have been tampered with, so its header is believed only as far as the strings are long: nothing is allocated
for rows that are not there, and rows are decompressed to at most 64 times their size. The writer stores rows that
compress better than that without compression.

The file is written piece by piece to a second file, which then replaces the first: an interrupted write leaves the old
file intact.
"""

import binascii
import json
import os
import zlib
from collections.abc import Generator, Iterable, Iterator
from typing import Any, TypeGuard
from uuid import uuid4

import fsspec  # type: ignore[import-untyped]
import numpy as np
from fsspec.core import strip_protocol  # type: ignore[import-untyped]
from fsspec.implementations.local import LocalFileSystem  # type: ignore[import-untyped]
from llama_index.core.vector_stores.simple import SimpleVectorStore
from llama_index.core.vector_stores.types import BasePydanticVectorStore

from llama_index.ragkit.errors import (
    ConfigurationError,
    FormatVersionError,
    HalfWrittenError,
    MissingSpaceError,
    StorageError,
)
from llama_index.ragkit.vectors.kernels import Floats
from llama_index.ragkit.vectors.row_buffer import Record, check_finite
from llama_index.ragkit.vectors.snapshot import Snapshot

__all__ = [
    "FORMAT_VERSION",
    "MARKER",
    "decode",
    "encode",
    "entry_of",
    "identity",
    "is_persisted_matrix",
    "read",
    "write_atomically",
]

MARKER = "llama_index.ragkit.MatrixVectorStore"
FORMAT_VERSION = 1

_PIECE = 512  # rows
_ENDS = 4096  # bytes
_HIGHEST_RATIO = 64  # of the decompressed to the compressed rows
_ALWAYS_ALLOWED = 1 << 24  # bytes of decompressed rows in any file
_LITTLE_ENDIAN = {"float32": "<f4", "float16": "<f2"}


def _vector_pieces(snapshot: Snapshot) -> Iterator[tuple[bytes, list[bytes]]]:
    for block in snapshot.blocks(_PIECE):
        piece = np.ascontiguousarray(block, dtype=_LITTLE_ENDIAN[block.dtype.name])
        planes = np.ascontiguousarray(piece.view(np.uint8).reshape(-1, piece.itemsize).T)
        coder = zlib.compressobj(1, zlib.DEFLATED, zlib.MAX_WBITS, 9, zlib.Z_HUFFMAN_ONLY)
        yield piece.tobytes(), [planes[:-1].tobytes(), coder.compress(planes[-1].tobytes()) + coder.flush()]


def _row_pieces(snapshot: Snapshot, stores_text: bool) -> Iterator[tuple[bytes, list[bytes]]]:
    for start in range(0, len(snapshot), _PIECE):
        ids, ref_doc_ids, keys, metadatas, types, nodes = zip(*snapshot.records[start : start + _PIECE], strict=True)
        lines = [json.dumps([ids, ref_doc_ids, keys, types]), *metadatas, *(nodes if stores_text else ())]
        piece = "\n".join(lines).encode("utf-8", "surrogatepass")
        packed = zlib.compress(piece, 1)
        yield piece, [packed if len(piece) <= _HIGHEST_RATIO * len(packed) else zlib.compress(piece, 0)]


def _array(name: str, pieces: Iterable[tuple[bytes, list[bytes]]]) -> Generator[bytes, None, int]:
    yield f', "{name}": ['.encode()
    checksum, comma = 0, b""
    for piece, strings in pieces:
        checksum = zlib.crc32(piece, checksum)
        for string in strings:
            yield comma + b'"' + binascii.b2a_base64(string, newline=False) + b'"'
            comma = b","
    yield b"]"
    return checksum


def encode(snapshot: Snapshot, stores_text: bool, tag: dict[str, Any]) -> Iterator[bytes]:
    """The file's content, piece by piece, without deleted rows.

    Raises
    ------
    ConfigurationError
        If the tag is not JSON.
    """
    head = {
        "format_version": FORMAT_VERSION,
        "stores_text": stores_text,
        "tag": tag,
        "dim": snapshot.dim or 0,
        "count": len(snapshot),
        "dtype": snapshot.dtype,
    }
    try:
        start = json.dumps({"embedding_dict": {}, "text_id_to_ref_doc_id": {}, "metadata_dict": {MARKER: head}})
    except (TypeError, ValueError) as error:
        raise ConfigurationError(f"The tag of a store must be JSON-serialisable; {tag!r} is not: {error}.") from error
    yield start[:-3].encode()
    vectors = yield from _array("vectors", _vector_pieces(snapshot))
    rows = yield from _array("rows", _row_pieces(snapshot, stores_text))
    # Checksums come last, so that the beginning and the end of a file identify it: see `identity`.
    yield f', "vectors_crc32": {vectors}, "rows_crc32": {rows}}}}}}}'.encode()


def identity(path: str) -> list[int]:
    """The size of a file and the checksums of its first and last bytes, which tell it from others without reading it.

    These bytes hold the tag and the checksums of the rows.
    """
    with open(path, "rb") as file:
        head = file.read(_ENDS)
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - _ENDS))
        return [size, zlib.crc32(head), zlib.crc32(file.read())]


def _read_vectors(entry: dict[str, Any]) -> Floats:
    dtype = entry.get("dtype", "float32")  # absent in files of the first releases
    count, dim, strings = entry["count"], entry["dim"], entry["vectors"]
    if type(count) is not int or type(dim) is not int or count < 0 or dim < 0:
        raise ValueError(f"shape ({count!r}, {dim!r})")
    low_bytes = np.dtype(_LITTLE_ENDIAN[dtype]).itemsize - 1
    sizes = [min(_PIECE, count - start) * dim for start in range(0, min(count, len(strings) * _PIECE), _PIECE)]
    if len(strings) != 2 * -(-count // _PIECE) or any(
        len(low) != -(-low_bytes * size // 3) * 4 for low, size in zip(strings[::2], sizes, strict=True)
    ):
        raise ValueError(f"a shape of ({count}, {dim}), which the vectors do not have")
    matrix = np.empty((count, dim), _LITTLE_ENDIAN[dtype])
    checksum = 0
    for start, size, low, high in zip(range(0, count, _PIECE), sizes, strings[::2], strings[1::2], strict=True):
        piece = matrix[start : start + _PIECE]
        numbers = piece.view(np.uint8).reshape(size, low_bytes + 1)
        lows = np.frombuffer(binascii.a2b_base64(low), np.uint8).reshape(low_bytes, size)
        for byte, plane in enumerate(lows):
            numbers[:, byte] = plane
        numbers[:, -1] = np.frombuffer(_decompressed(binascii.a2b_base64(high), size), np.uint8)
        checksum = zlib.crc32(piece.data, checksum)
    _check("vectors", checksum, entry)
    return matrix.astype(dtype, copy=False)


def _read_records(entry: dict[str, Any]) -> list[Record]:
    records: list[Record] = []
    checksum, left = 0, _ALWAYS_ALLOWED
    for string in entry["rows"]:
        packed = binascii.a2b_base64(string)
        left += _HIGHEST_RATIO * len(packed)
        piece = _decompressed(packed, left)
        left -= len(piece)
        checksum = zlib.crc32(piece, checksum)
        head, *lines = piece.decode("utf-8", "surrogatepass").split("\n")
        ids, ref_doc_ids, keys, types = json.loads(head)
        nodes = lines[len(ids) :] if entry["stores_text"] else [None] * len(ids)
        if not len(ids) == len(ref_doc_ids) == len(keys) == len(types) == len(nodes) <= len(lines):
            raise ValueError("columns of different lengths")
        if not all(isinstance(value, str) for value in (*ids, *keys)):
            raise ValueError("ids and keys that are not text")
        if not all(isinstance(value, dict) for value in json.loads(f"[{','.join(lines[: len(ids)])}]")):
            raise ValueError("metadata that are not objects")
        records += map(Record, ids, ref_doc_ids, keys, lines[: len(ids)], types, nodes)
    _check("rows", checksum, entry)
    if len({record.id for record in records}) != len(records):
        raise ValueError("duplicate ids")
    return records


def _decompressed(packed: bytes, most: int) -> bytes:
    """The decompressed bytes; ValueError if there are more than `most`."""
    decoder = zlib.decompressobj()
    found = decoder.decompress(packed, most + 1)
    if len(found) > most or not decoder.eof:
        raise ValueError(f"compressed data of more than {most} bytes, or cut off")
    return found


# Errors that readers of JSON, base64, zlib and arrays raise for other data.
_DAMAGED = (
    ArithmeticError, AttributeError, LookupError, MemoryError, RecursionError, TypeError, ValueError, zlib.error,
)  # fmt: skip


def _check(name: str, checksum: int, entry: dict[str, Any]) -> None:
    if checksum != entry[f"{name}_crc32"]:
        raise ValueError(f"checksum of the {name}")


def decode(entry: dict[str, Any]) -> tuple[Snapshot, bool, dict[str, Any]]:
    """The rows, `stores_text` and the tag of an entry that :func:`encode` wrote.

    Raises
    ------
    FormatVersionError
        If another version of the format wrote it.
    HalfWrittenError
        If a part is missing or damaged.
    """
    version = entry.get("format_version")
    if version != FORMAT_VERSION:
        raise FormatVersionError(
            f"A MatrixVectorStore of format version {version!r}; this release of llama-index-ragkit reads "
            f"{FORMAT_VERSION}. Load it with the release that wrote it, or build the index again."
        )
    try:
        vectors, records = _read_vectors(entry), _read_records(entry)
        if len(vectors) != len(records):
            raise ValueError("number of rows")
        squares = check_finite(vectors, [record.id for record in records])
        stores_text, tag = entry["stores_text"], entry["tag"]
        if not isinstance(stores_text, bool) or not isinstance(tag, dict):
            raise ValueError("stores_text or tag")
        return Snapshot.of(vectors, records, squares), stores_text, tag
    except _DAMAGED as error:
        raise HalfWrittenError(
            f"A persisted MatrixVectorStore is damaged ({repr(error)[:300]}): restore a copy, or build the index again."
        ) from error


def entry_of(store: BasePydanticVectorStore) -> dict[str, Any]:
    """The entry of :func:`encode` in the store that core read from the file; StorageError for other stores."""
    if not is_persisted_matrix(store):
        raise StorageError(
            f"This {type(store).__name__} was not written by MatrixVectorStore.persist: "
            "call is_persisted_matrix(store) first."
        )
    if store.data.embedding_dict:
        raise StorageError(
            f"{len(store.data.embedding_dict)} rows were added to a persisted MatrixVectorStore while it was loaded as "
            "a SimpleVectorStore. Load the folder again, convert the store with from_simple(), then add the rows."
        )
    entry = store.data.metadata_dict[MARKER]
    if not isinstance(entry, dict):
        raise HalfWrittenError(
            f"A persisted MatrixVectorStore is damaged (a {type(entry).__name__} in place of its entry): restore a "
            "copy, or build the index again."
        )
    return entry


def is_persisted_matrix(store: object) -> TypeGuard[SimpleVectorStore]:
    """Whether this is a store that core read from a file of this format."""
    return isinstance(store, SimpleVectorStore) and MARKER in (store.data.metadata_dict or {})


def read(path: str, fs: fsspec.AbstractFileSystem | None = None) -> SimpleVectorStore:
    """The file as core reads it; MissingSpaceError if there is none, HalfWrittenError if it is not complete JSON."""
    fs = fs or LocalFileSystem()
    if not fs.exists(path):
        raise MissingSpaceError(f"There is no vector store file {path!r}.")
    try:
        return SimpleVectorStore.from_persist_path(path, fs)
    except _DAMAGED as error:
        raise HalfWrittenError(f"The vector store file {path!r} is not a complete JSON document: {error}.") from error


def write_atomically(
    pieces: Iterable[bytes | memoryview], path: str, fs: fsspec.AbstractFileSystem | None = None
) -> None:
    """Write a temporary file of `fs` (default: the local disk) next to `path`, then rename it to `path`.

    The rename is atomic on the local disk; elsewhere it is the file system's `mv`.
    """
    fs = fs or LocalFileSystem()
    folder = os.path.dirname(path)
    if folder:
        fs.makedirs(folder, exist_ok=True)
    # The name must not end in "vector_store.json": core would load it as a namespace.
    beside = f"{path}.{uuid4().hex}.tmp"
    try:
        with fs.open(beside, "wb") as file:
            for piece in pieces:
                file.write(piece)
            if isinstance(fs, LocalFileSystem):
                file.flush()
                os.fsync(file.fileno())
        if isinstance(fs, LocalFileSystem):
            os.replace(strip_protocol(beside), strip_protocol(path))
        else:
            fs.mv(beside, path)
    except BaseException:
        if fs.exists(beside):
            fs.rm(beside)
        raise
