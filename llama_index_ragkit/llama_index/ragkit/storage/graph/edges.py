"""Edges of a graph as packed records, and how the records of a hub are cut into segments; pure functions on arrays.

An edge has a *kind*: what it stands for, which decides its weight when it is read. It also has a *source*: what it was
derived from, such as a passage, so a filter can leave out edges from elsewhere. Its count is a whole number: what is
added and later subtracted leaves exactly nothing, in any order.

**Segments.** The records of a node are spread over a binary tree by a hash of their key. A tree node with more than
`SEGMENT` records has two children, `2 s` and `2 s + 1` of segment s; the root is segment 1. The segments therefore
depend on the records alone, not on the order in which they were written.
"""

from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from llama_index.ragkit.errors import StorageError

__all__ = [
    "RECORD",
    "SEGMENT",
    "TOTAL",
    "EdgeChange",
    "Records",
    "check_label",
    "content_number",
    "joined",
    "merged",
    "regrouped",
    "segment_counts",
    "segment_of",
    "segments_of",
    "totals_of",
    "unpacked",
]

Ints = NDArray[np.int64]
Records = NDArray[np.void]

SEGMENT = 512
"""Records of a segment at most."""

RECORD = np.dtype([("neighbor", "<i8"), ("source", "<i8"), ("count", "<i4"), ("kind", "u1")])
"""One edge, as seen from the node that the row belongs to; 21 bytes."""

TOTAL = np.dtype([("kind", "u1"), ("records", "<i8"), ("sum", "<i8")])
"""Number of records of a kind and sum of their counts, in the first row of a node with segments."""

_DEEPEST = 1 << 60  # segments beyond have equal hashes and are not cut
_MOST = np.iinfo(np.int32).max


def content_number(kind: int, *parts: str) -> int:
    """A signed 64-bit number derived from content, whose lowest two bits are `kind` (0 to 3).

    The same content has the same number in every index, so that workers need no sequence. Of ten million different
    contents of one kind, some two have the same number with a probability of one in 90,000; labels tell
    (:func:`check_label`).

    >>> content_number(1, "a") & 3, content_number(1, "ab", "c") == content_number(1, "a", "bc")
    (1, False)
    """
    text = "\x1f".join(f"{len(part)}:{part}" for part in parts)
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True) & ~3 | kind


def check_label(node: int, known: str, given: str) -> None:
    """Raise a `StorageError` unless a node is written under the label that it is stored with."""
    if known != given:
        raise StorageError(
            f"{known!r} and {given!r} have the same number in the graph, {node}: they cannot both be stored. "
            "Nothing was changed."
        )


class EdgeChange(NamedTuple):
    """Differences of edge counts, one row each; rows with the same key add up."""

    nodes: Ints  # (e,) int64, the node that the edge leaves
    records: Records  # (e,) of type `RECORD`; counts are negative where edges are removed

    @classmethod
    def of(cls, edges: Iterable[tuple[int, int, int, int, int]]) -> "EdgeChange":
        """A change from (node, neighbor, source, kind, count)."""
        table = np.array(list(edges), np.int64).reshape(-1, 5)
        records = np.empty(len(table), RECORD)
        for place, name in enumerate(("neighbor", "source", "kind", "count"), 1):
            records[name] = table[:, place]
        return cls(table[:, 0].copy(), records)

    def negative(self) -> "EdgeChange":
        """The change that undoes this one."""
        records = self.records.copy()
        records["count"] *= -1
        return EdgeChange(self.nodes, records)

    @classmethod
    def together(cls, changes: Sequence["EdgeChange"]) -> "EdgeChange":
        """Several changes as one."""
        return cls(
            np.concatenate([np.empty(0, np.int64), *(change.nodes for change in changes)]),
            joined([change.records for change in changes]),
        )


def joined(parts: Sequence[Records]) -> Records:
    """Records one after the other, read-only; `np.concatenate` compares the fields of each part anew."""
    return unpacked([part.tobytes() for part in parts])


def unpacked(blobs: Sequence[bytes]) -> Records:
    """The records of several blobs, one after the other."""
    return np.frombuffer(b"".join(blobs), RECORD)


def merged(owners: Ints, records: Records) -> tuple[Ints, Records]:
    """Records with the same owner and key as one with the sum of their counts; none with a sum of 0.

    Parameters
    ----------
    owners : (e,) the number of the row that each record belongs to

    Returns
    -------
    owners, records : sorted by owner and key

    Raises
    ------
    StorageError
        If a count is negative, since more was removed than had been added, or too large.
    """
    if not len(records):
        return owners, records
    order = np.lexsort((records["kind"], records["source"], records["neighbor"], owners))
    owners, records = owners[order], records[order]
    keys = ("neighbor", "source", "kind")
    differs = np.any([records[name][1:] != records[name][:-1] for name in keys], axis=0)
    first = np.flatnonzero(np.r_[True, differs | (owners[1:] != owners[:-1])])
    sums = np.add.reduceat(records["count"].astype(np.int64), first)
    if sums.min() < 0 or sums.max() > _MOST:
        raise StorageError(
            "The count of an edge would fall below zero or exceed 2^31: something is removed that was not added, or is "
            "removed twice. Nothing was changed."
        )
    owners, records = owners[first], records[first].copy()
    records["count"] = sums
    return owners[sums > 0], records[sums > 0]


def totals_of(records: Records) -> Records:
    """Number and sum of counts for each kind, ascending, of type `TOTAL`."""
    kinds, inverse = np.unique(records["kind"], return_inverse=True)
    totals = np.empty(len(kinds), TOTAL)
    totals["kind"] = kinds
    totals["records"] = np.bincount(inverse, minlength=len(kinds))
    totals["sum"] = np.bincount(inverse, records["count"], len(kinds)).astype(np.int64)
    return totals


def _hashes(records: Records) -> NDArray[np.uint64]:
    """A hash of the key of each record: the finalizer of splitmix64."""
    mixed: NDArray[np.uint64] = records["neighbor"].astype(np.uint64)
    for part in (records["source"].astype(np.uint64), records["kind"].astype(np.uint64)):
        mixed = mixed + np.uint64(0x9E3779B97F4A7C15) + part
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        mixed ^= mixed >> np.uint64(31)
    return mixed


def segments_of(records: Records, root: int = 1) -> dict[int, Records]:
    """The records of a node, or of its segment `root`, sorted by key: by segment; a single one if they are few."""
    if len(records) <= SEGMENT or root >= _DEEPEST:
        return {root: records}
    depth = np.uint64(63 - (root.bit_length() - 1))
    right = ((_hashes(records) >> depth) & np.uint64(1)).astype(np.bool_)
    return {**segments_of(records[~right], 2 * root), **segments_of(records[right], 2 * root + 1)}


def segment_counts(indptr: Ints, records: Records) -> Ints:
    """How many segments the records of each row are cut into, shape (m,); 0 where they are few. `indptr`: (m + 1,)."""
    counts = np.zeros(len(indptr) - 1, np.int64)
    for i in np.flatnonzero(np.diff(indptr) > SEGMENT).tolist():
        counts[i] = len(segments_of(records[indptr[i] : indptr[i + 1]]))
    return counts


def segment_of(records: Records, leaves: Iterable[int]) -> Ints:
    """The segment that each record belongs to, of those that a node is cut into."""
    known, hashes = sorted(leaves), _hashes(records)
    found = np.zeros(len(records), np.int64)
    for depth in sorted({leaf.bit_length() - 1 for leaf in known}):
        prefix = (hashes >> np.uint64(64 - depth)).astype(np.int64) | (1 << depth)
        here = np.isin(prefix, known)
        found[here] = prefix[here]
    return found


def regrouped(sizes: Mapping[int, int]) -> dict[int, list[int]]:
    """Segments that together have become so small that they are one: parent -> the segments below it.

    `sizes` has the number of records of every segment without children.
    """
    sizes = dict(sizes)
    found: dict[int, list[int]] = {}
    for segment in sorted(sizes, reverse=True):  # children before their parents
        _regroup(segment, sizes, found)
    return found


def _regroup(segment: int, sizes: dict[int, int], found: dict[int, list[int]]) -> None:
    while segment > 1 and segment in sizes and segment ^ 1 in sizes:
        total = sizes[segment] + sizes[segment ^ 1]
        if total > SEGMENT:
            return
        parts = [part for side in (segment & ~1, segment | 1) for part in found.pop(side, [side])]
        del sizes[segment], sizes[segment ^ 1]
        segment //= 2
        sizes[segment], found[segment] = total, parts
