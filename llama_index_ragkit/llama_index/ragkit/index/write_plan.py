"""`plan_write`: which nodes of a write are embedded, extracted, stored and removed, as a pure function."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from llama_index.ragkit.storage.manifest import NodeEntry

__all__ = ["GivenNode", "WritePlan", "plan_write"]


class Embedded(Protocol):
    """Node ids with a vector."""

    def __contains__(self, node_id: str, /) -> bool: ...


@dataclass(frozen=True)
class GivenNode:
    """A node as the input of a plan.

    Attributes
    ----------
    key : canonical sort key, which changes with text and metadata
    has_text : whether there is something to embed
    """

    node_id: str
    key: str
    has_text: bool


@dataclass(frozen=True)
class WritePlan:
    """What a write does with each new and each stored node.

    Attributes
    ----------
    write : ids of the nodes to be embedded and stored, in the order given: new, changed, or to be repeated
    read : those of `write` that the extractor reads
    repeated : those of `write` that are stored unchanged already: requested again, or left by an incomplete write
    reused : entries of unchanged nodes of `write` whose extraction is kept: an incomplete write stored it, with or
        without a vector
    changed : old entries of nodes whose content changed
    obsolete : entries of stored nodes of the documents that are not among the new nodes
    """

    write: Sequence[str]
    read: Sequence[str]
    repeated: Mapping[str, NodeEntry] = field(default_factory=dict)
    reused: Mapping[str, NodeEntry] = field(default_factory=dict)
    changed: Mapping[str, NodeEntry] = field(default_factory=dict)
    obsolete: Mapping[str, NodeEntry] = field(default_factory=dict)

    @property
    def removed(self) -> dict[str, NodeEntry]:
        """Entries of the nodes whose rows are deleted: obsolete ones, then changed ones."""
        return {**self.obsolete, **self.changed}

    @property
    def replaced(self) -> dict[str, NodeEntry]:
        """Old entries of the nodes that get a new one."""
        return {**self.changed, **self.repeated}


def plan_write(
    nodes: Sequence[GivenNode],
    known: Mapping[str, NodeEntry],
    embedded: Embedded,
    *,
    stored: Mapping[str, NodeEntry] | None = None,
    again: Collection[str] = (),
) -> WritePlan:
    """Plan a write.

    A node is unchanged when it is stored under the same key and, if it has text, has a vector. Unchanged nodes are
    skipped, unless they are requested again or the write that added them is incomplete.

    Parameters
    ----------
    nodes : the new nodes, each id once
    known : entries of those that are already stored
    embedded : ids with a row in the space of the chunks
    stored : entries of all nodes of the documents that the nodes replace; None where nothing is replaced
    again : ids to process again although they did not change
    """
    given = {node.node_id for node in nodes}
    read_before = {
        node.node_id: known[node.node_id]
        for node in nodes
        if node.node_id in known and known[node.node_id].key == node.key
    }
    without_text = {node.node_id for node in nodes if not node.has_text}
    same = {i: entry for i, entry in read_before.items() if i in embedded or i in without_text}
    repeated = {node_id: entry for node_id, entry in same.items() if node_id in again or not entry.done}
    write = [node.node_id for node in nodes if node.node_id not in same or node.node_id in repeated]
    reused = {
        node_id: read_before[node_id]
        for node_id in write
        if node_id in read_before and node_id not in again and read_before[node_id].record is not None
    }
    return WritePlan(
        write=write,
        read=[node_id for node_id in write if node_id not in reused],
        repeated=repeated,
        reused=reused,
        changed={node_id: known[node_id] for node_id in write if node_id in known and node_id not in repeated},
        obsolete={node_id: entry for node_id, entry in (stored or {}).items() if node_id not in given},
    )
