"""Which chunks share a memory graph, and when its themes are due. Pure functions.

Each chunk has an own group, given by a value of its metadata. Own groups that are too small for their own themes share
one graph.
"""

import json
import uuid
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from llama_index.gemrag.config import MemoryConfig
from llama_index.gemrag.themes.eigenthemes import NODES_PER_THEME
from llama_index.ragkit.vectors.snapshot import Snapshot

__all__ = [
    "DOCUMENT_KEYS",
    "NO_DOCUMENT",
    "SHORT_DOCUMENTS",
    "ChunkGroup",
    "changed_groups",
    "group_of",
    "group_sizes",
    "own_group",
    "own_groups",
    "theme_id",
]

DOCUMENT_KEYS = ("doc_id", "ref_doc_id", "document_id")
NO_DOCUMENT = "None"  # the document id of chunks without a document, as in core
SHORT_DOCUMENTS = "short documents"  # not the JSON of a value
_NAMESPACE = uuid.UUID("8f0b1a0e-3a53-5a7e-9a0e-6c1d1f2b7a44")


def theme_id(members: Iterable[str]) -> str:
    """The id of the theme of a set of chunks: a UUID (version 5) of their sorted ids."""
    return str(uuid.uuid5(_NAMESPACE, "\n".join(sorted(set(members)))))


@dataclass(frozen=True)
class ChunkGroup:
    """A group of chunks, with its changes since its spectrum was computed."""

    size: int = 0  # number of chunks
    changed: int = 0  # number of chunks that were added, changed or removed
    theme_deleted: bool = False  # whether one of its themes was

    def is_due(self, share: float) -> bool:
        """Whether the spectrum must be recomputed, since more than a share of the chunks changed or a theme is gone."""
        return self.theme_deleted or (self.changed > 0 and self.changed > share * (self.size - self.changed))


def own_groups(chunks: Snapshot, group_by: str | None) -> list[str]:
    """The own group of each row: the JSON of its metadata value, or one name for all rows."""
    if group_by is None or not len(chunks):
        return ["null"] * len(chunks)
    column, codes = chunks.column(group_by)
    names = [own_group(value) for value in column.values]
    return [names[code] for code in codes]


def own_group(value: object) -> str:
    """The own group of the chunks with a value of the metadata key."""
    if isinstance(value, str):
        return json.dumps(value)  # options would make a new encoder for each document
    return json.dumps(value, sort_keys=True, default=str)


def group_of(own: str, size: int, config: MemoryConfig) -> str:
    """The group whose graph contains the chunks of an own group: that group, or the one that short documents share.

    The paper makes a graph for each document; a document with fewer chunks than a theme needs would have no themes.
    """
    shares = config.group_by == "ref_doc_id" and not config.paper
    return SHORT_DOCUMENTS if shares and size < NODES_PER_THEME else own


def group_sizes(own_sizes: Mapping[str, int], config: MemoryConfig) -> Counter[str]:
    """The number of chunks of each group, from the sizes of the own groups."""
    sizes: Counter[str] = Counter()
    for own, size in own_sizes.items():
        sizes[group_of(own, size, config)] += size
    return sizes


def changed_groups(
    own_changed: Mapping[str, int], before: Mapping[str, int], after: Mapping[str, int], config: MemoryConfig
) -> Counter[str]:
    """Changed chunks of each group, with those that joined or left it because their document grew or shrank.

    They follow from the number of changed chunks of each own group, and its sizes before and after.
    """
    changed: Counter[str] = Counter()
    for own, count in own_changed.items():
        sizes = before.get(own, 0), after.get(own, 0)
        was, now = (group_of(own, size, config) for size in sizes)
        changed[now if sizes[1] else was] += count
        if was != now and all(sizes):
            changed[was] += sizes[0]
            changed[now] += max(0, sizes[1] - count)
    return changed
