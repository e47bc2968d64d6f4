"""Which chunks of an index given nodes are."""

from collections.abc import Container, Sequence

from llama_index.core.schema import NodeWithScore

from llama_index.ragkit.steps import Steps
from llama_index.ragkit.storage.index_storage import IndexStorage
from llama_index.ragkit.vectors.snapshot import Snapshot

__all__ = ["match_nodes", "matched_in"]


def matched_in(
    storage: IndexStorage, nodes: Sequence[NodeWithScore], derived: Container[str] = ()
) -> Steps[list[str | None]]:
    """For each node its id in an index, wherever the index lives; see :func:`match_nodes`."""
    rows = yield from storage.rows_matching([each.node for each in nodes if each.node.node_id not in derived])
    return match_nodes(nodes, rows, derived)


def match_nodes(nodes: Sequence[NodeWithScore], chunks: Snapshot, derived: Container[str] = ()) -> list[str | None]:
    """For each node its id in the index, or None: matched by id, then by hash.

    Parameters
    ----------
    chunks : rows of the index's chunks, whose sort keys begin with the hash of the node
    derived : ids of derived nodes, for which no copy is looked for
    """
    matched = [r.node.node_id if r.node.node_id in chunks or r.node.node_id in derived else None for r in nodes]
    unknown = {r.node.hash for r, found in zip(nodes, matched, strict=True) if found is None}
    by_hash: dict[str, tuple[str, str]] = {}
    for record in chunks.records if unknown else ():
        node_hash = record.key.split("|", 1)[0]
        if node_hash in unknown:
            by_hash[node_hash] = min(by_hash.get(node_hash, ("~", "")), (record.key, record.id))
    return [
        found if found is not None else by_hash[r.node.hash][1] if r.node.hash in by_hash else None
        for r, found in zip(nodes, matched, strict=True)
    ]
