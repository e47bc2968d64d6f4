"""`Selection`: which chunks count for a question that is answered from stores."""

from collections.abc import Sequence
from dataclasses import dataclass

from llama_index.core.vector_stores.types import MetadataFilters

from llama_index.ragkit.vectors.filters import select
from llama_index.ragkit.vectors.snapshot import Mask, Snapshot

__all__ = ["EVERYTHING", "Selection"]


@dataclass(frozen=True)
class Selection:
    """Which chunks count.

    Attributes
    ----------
    filters : on their metadata; None for no filter
    only : ids of the only ones that may count; None for all
    """

    filters: MetadataFilters | None = None
    only: Sequence[str] | None = None

    @property
    def is_whole(self) -> bool:
        """Whether all chunks count."""
        return self.filters is None and self.only is None

    def mask(self, rows: Snapshot) -> Mask:
        """Which rows count, shape (n,).

        Raises
        ------
        ConfigurationError
            If a filter cannot be compared with the value of a row.
        """
        return select(rows, self.filters, self.only)


EVERYTHING = Selection()
