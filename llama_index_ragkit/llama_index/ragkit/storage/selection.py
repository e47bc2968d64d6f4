"""`Selection`: which chunks count for a question, or may be shown on a page."""

from collections.abc import Sequence
from dataclasses import dataclass

from llama_index.core.vector_stores.types import MetadataFilters

from llama_index.ragkit.errors import ConfigurationError
from llama_index.ragkit.steps import Steps
from llama_index.ragkit.storage.labels import LabelledTexts
from llama_index.ragkit.storage.manifest import Manifest
from llama_index.ragkit.validation import check_component, check_ids
from llama_index.ragkit.vectors.filters import keys_of, select
from llama_index.ragkit.vectors.snapshot import Mask, Snapshot

__all__ = ["EVERYTHING", "Selection", "select_stored"]

_NODE_TYPE = "_node_type"


@dataclass(frozen=True)
class Selection:
    """Which chunks count.

    Attributes
    ----------
    filters : on their metadata; None for no filter
    only : ids of the only ones that may count; None for all
    documents : ids of the only documents whose chunks may count; None for all. Stores look chunks up by `only` alone
    texts : of a question that is answered from stores, the texts of its lexical index that pass the filter; None where
        there is no filter, or the index cannot tell

    Raises
    ------
    ConfigurationError
        If the filters or ids are of another kind, or a filter is on the class of a node, which no index stores.
    """

    filters: MetadataFilters | None = None
    only: Sequence[str] | None = None
    documents: Sequence[str] | None = None
    texts: LabelledTexts | None = None

    def __post_init__(self) -> None:
        if self.filters is not None:
            check_component("filters", self.filters, MetadataFilters, "MetadataFilters(filters=[...])")
            if _NODE_TYPE in keys_of(self.filters):
                raise ConfigurationError(
                    f"An index does not store the class of a node, so it has no filter by {_NODE_TYPE!r}: give such "
                    "nodes a metadata key of your own."
                )
        for name, ids in (("node_ids", self.only), ("doc_ids", self.documents)):
            if ids is not None:
                check_ids(name, ids)

    @property
    def is_whole(self) -> bool:
        """Whether all chunks count."""
        return self.filters is None and self.only is None and self.documents is None

    def allowed(self, rows: Snapshot) -> Mask | None:
        """Which rows count, shape (n,); None for all."""
        return None if self.is_whole else self.mask(rows)

    def mask(self, rows: Snapshot) -> Mask:
        """Which rows count, shape (n,).

        Raises
        ------
        ConfigurationError
            If a filter cannot be compared with the value of a row.
        """
        return select(rows, self.filters, self.only, self.documents)


EVERYTHING = Selection()


def select_stored(manifest: Manifest, given: Selection) -> Steps[Selection]:
    """Which chunks of an index that is served from stores count: those of its documents are looked up by their ids."""
    only = None if given.only is None else list(dict.fromkeys(given.only))
    if given.documents is not None:
        of_documents = dict.fromkeys((yield from manifest.nodes_of_documents(given.documents)))
        only = [node_id for node_id in (of_documents if only is None else only) if node_id in of_documents]
    return Selection(given.filters, only)
