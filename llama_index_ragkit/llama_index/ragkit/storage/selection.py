"""`Selection`: which chunks count for a question that is answered from stores."""

from collections.abc import Sequence, Set
from dataclasses import dataclass

import numpy as np
from llama_index.core.vector_stores.types import MetadataFilters

from llama_index.ragkit.steps import Steps
from llama_index.ragkit.storage.commits import Unfinished
from llama_index.ragkit.storage.manifest import Manifest
from llama_index.ragkit.vectors.filters import select
from llama_index.ragkit.vectors.snapshot import Mask, Snapshot

__all__ = ["EVERYTHING", "Selection", "select_stored"]


@dataclass(frozen=True)
class Selection:
    """Which chunks count.

    Attributes
    ----------
    filters : on their metadata; None for no filter
    only : ids of the only ones that may count; None for all
    hidden_documents, hidden : ids of documents and nodes that do not count, since a write is not finished with them
    """

    filters: MetadataFilters | None = None
    only: Sequence[str] | None = None
    hidden_documents: Set[str] = frozenset()
    hidden: Set[str] = frozenset()

    @property
    def is_whole(self) -> bool:
        """Whether all chunks count."""
        return self.filters is None and self.only is None and not self.hidden_documents and not self.hidden

    def mask(self, rows: Snapshot) -> Mask:
        """Which rows count, shape (n,).

        Raises
        ------
        ConfigurationError
            If a filter cannot be compared with the value of a row.
        """
        shown = select(rows, self.filters, self.only)
        if self.hidden_documents or self.hidden:
            shown &= np.array(
                [row.ref_doc_id not in self.hidden_documents and row.id not in self.hidden for row in rows.records],
                np.bool_,
            )
        return shown


EVERYTHING = Selection()


def select_stored(
    manifest: Manifest,
    unfinished: Unfinished,
    filters: MetadataFilters | None = None,
    node_ids: Sequence[str] | None = None,
    doc_ids: Sequence[str] | None = None,
) -> Steps[Selection]:
    """Which chunks of an index that is served from stores count.

    Parameters
    ----------
    unfinished : what writes have begun and not finished, which does not count
    filters, node_ids, doc_ids : which others do; None for all
    """
    only = None if node_ids is None else list(dict.fromkeys(node_ids))
    if doc_ids is not None:
        of_documents = dict.fromkeys((yield from manifest.nodes_of_documents(doc_ids)))
        only = [node_id for node_id in (of_documents if only is None else only) if node_id in of_documents]
    hidden = {*unfinished.nodes, *(yield from manifest.nodes_of_documents(unfinished.documents))}
    return Selection(filters, only, frozenset(unfinished.documents), frozenset(hidden))
