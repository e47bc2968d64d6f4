"""Which nodes of a write are embedded, extracted, stored and removed, and in which parts; pure functions."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from llama_index.core.schema import BaseNode

from llama_index.ragkit.storage.manifest import NodeEntry
from llama_index.ragkit.storage.nodes import sort_key
from llama_index.ragkit.vectors.snapshot import Snapshot

__all__ = ["WritePlan", "first_part", "parts", "plan_write"]

NodeT = TypeVar("NodeT", bound=BaseNode)

AT_ONCE = 1_000
"""Documents, or nodes, of a part: few enough for readers to see the index grow."""


@dataclass(frozen=True)
class WritePlan:
    """What a write does with each new and each stored node.

    `repeated` are stored unchanged already: requested again, or left by an incomplete write. `reused` are unchanged
    nodes whose extraction is kept: an incomplete write stored it, with or without a vector.
    """

    write: Sequence[str]  # to be embedded and stored, in the order given: new, changed, or to be repeated
    read: Sequence[str]  # those of `write` that the extractor reads
    repeated: Mapping[str, NodeEntry] = field(default_factory=dict)  # of `write`
    reused: Mapping[str, NodeEntry] = field(default_factory=dict)  # of `write`
    changed: Mapping[str, NodeEntry] = field(default_factory=dict)  # old entries of nodes whose content changed
    obsolete: Mapping[str, NodeEntry] = field(default_factory=dict)  # of the documents, and not among the new nodes

    @property
    def removed(self) -> dict[str, NodeEntry]:
        """Entries of the nodes whose rows are deleted: obsolete ones, then changed ones."""
        return {**self.obsolete, **self.changed}

    @property
    def replaced(self) -> dict[str, NodeEntry]:
        """Old entries of the nodes that get a new one."""
        return {**self.changed, **self.repeated}


def plan_write(
    keys: Mapping[str, str],
    without_text: Collection[str],
    known: Mapping[str, NodeEntry],
    embedded: Snapshot | Collection[str],
    *,
    stored: Mapping[str, NodeEntry] | None = None,
    again: Collection[str] = (),
) -> WritePlan:
    """Plan a write.

    A node is unchanged when it is stored under the same key and, if it has text, has a vector. Unchanged nodes are
    skipped, unless they are requested again or the write that added them is incomplete.

    Parameters
    ----------
    keys : id of a new node -> its canonical sort key, which changes with text and metadata
    without_text : ids of new nodes with nothing to embed
    known : entries of those that are already stored
    embedded : ids with a row in the space of the chunks
    stored : entries of all nodes of the documents that the nodes replace; None where nothing is replaced
    again : ids to process again although they did not change
    """
    read_before = {i: known[i] for i, key in keys.items() if i in known and known[i].key == key}
    same = {i: entry for i, entry in read_before.items() if i in embedded or i in without_text}
    repeated = {i: entry for i, entry in same.items() if i in again or not entry.done}
    write = [i for i in keys if i not in same or i in repeated]
    kept = {i: entry for i, entry in read_before.items() if i not in again and entry.record is not None}
    return WritePlan(
        write=write,
        read=[i for i in write if i not in kept],
        repeated=repeated,
        reused={i: kept[i] for i in write if i in kept},
        changed={i: known[i] for i in write if i in known and i not in repeated},
        obsolete={i: entry for i, entry in (stored or {}).items() if i not in keys},
    )


def first_part(given: Sequence[NodeT]) -> Sequence[NodeT]:
    """The first thousand in canonical order, in the order in which they are given; all if there are no more.

    Their order is that of hashes, so they are a random sample, with which every index measures
    (:mod:`llama_index.ragkit.index.advantage`), in stores as in memory.
    """
    if len(given) <= AT_ONCE:
        return given
    first = {each.node_id for each in sorted(given, key=sort_key)[:AT_ONCE]}
    return [each for each in given if each.node_id in first]


def parts(given: Sequence[NodeT]) -> Iterator[tuple[Sequence[NodeT], bool]]:
    """The parts, and whether others follow: :func:`first_part`, then the others as they are given."""
    first = first_part(given)
    written = {each.node_id for each in first}
    rest = [each for each in given if each.node_id not in written]
    yield first, bool(rest)
    for start in range(0, len(rest), AT_ONCE):
        yield rest[start : start + AT_ONCE], start + AT_ONCE < len(rest)
