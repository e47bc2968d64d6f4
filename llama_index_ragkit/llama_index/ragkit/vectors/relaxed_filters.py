"""The part of a metadata filter that every vector store understands alike."""

from llama_index.core.vector_stores.types import FilterCondition, FilterOperator, MetadataFilter, MetadataFilters

__all__ = ["relaxed"]

# Stores differ in what a missing value is to the others, and in the details of matching texts and lists.
_ALIKE = frozenset({FilterOperator.EQ, FilterOperator.IN})
_OF_DOCUMENTS = frozenset({"ref_doc_id", "doc_id", "document_id"})  # stores have names of their own for these


def relaxed(filters: MetadataFilters | None) -> MetadataFilters | None:
    """A filter that all rows pass which pass `filters`, and perhaps others; None if there is no stricter one.

    It has the conditions of equality on metadata, alone or connected by AND and OR; not those on the document.
    """
    if filters is None or filters.condition == FilterCondition.NOT:
        return None
    parts = [_relaxed_part(part) for part in filters.filters]
    kept = [part for part in parts if part is not None]
    if not kept or (filters.condition == FilterCondition.OR and len(kept) < len(parts)):
        return None
    return MetadataFilters(filters=kept, condition=filters.condition)


def _relaxed_part(part: MetadataFilter | MetadataFilters) -> MetadataFilter | MetadataFilters | None:
    if isinstance(part, MetadataFilters):
        return relaxed(part)
    values = part.value if isinstance(part.value, list) else [part.value]
    plain = bool(values) and all(isinstance(value, (str, int)) for value in values)
    return part if plain and part.operator in _ALIKE and part.key not in _OF_DOCUMENTS else None
