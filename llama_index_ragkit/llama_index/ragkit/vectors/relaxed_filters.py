"""The part of a metadata filter that a vector store can check by comparing texts."""

import re

from llama_index.core.vector_stores.types import FilterCondition, FilterOperator, MetadataFilter, MetadataFilters

__all__ = ["is_comparable", "relaxed"]

_MOST = 100  # conditions of one group; the whole filter is checked again here, so the others are not needed
_WHOLE = 10**15  # Python writes a float below this without an exponent
_OF_DOCUMENTS = frozenset({"ref_doc_id", "doc_id", "document_id"})  # stores have names of their own for these
_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")  # dots and brackets are paths in some stores
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")  # PostgreSQL's texts hold neither


def relaxed(filters: MetadataFilters | None, *, numbers: bool) -> MetadataFilters | None:
    """A filter that passes all rows that pass `filters`, and perhaps others; None if it would pass all rows.

    Each condition is that a metadata value, as text, is one of some texts (operator IN); conditions are connected by
    AND and OR. They stand for the conditions of `filters` that ask for equality; those on the document are left out.

    Parameters
    ----------
    numbers : whether the store compares numbers by their JSON text. Otherwise conditions on numbers and on keys that
        are not plain names are left out, since stores differ in how they read them
    """
    if filters is None or filters.condition == FilterCondition.NOT:
        return None
    parts = [_relaxed_part(part, numbers) for part in filters.filters]
    kept = [part for part in parts if part is not None]
    is_or = filters.condition == FilterCondition.OR
    if not kept or (is_or and (len(kept) < len(parts) or len(kept) > _MOST)):
        return None
    return MetadataFilters(filters=kept[:_MOST], condition=filters.condition)


def is_comparable(value: object) -> bool:
    """Whether a relaxed filter may ask for this key or value of metadata."""
    return isinstance(value, int) or (isinstance(value, str) and not _UNSTORABLE.search(value))


def _relaxed_part(part: MetadataFilter | MetadataFilters, numbers: bool) -> MetadataFilter | MetadataFilters | None:
    if isinstance(part, MetadataFilters):
        return relaxed(part, numbers=numbers)
    if part.operator == FilterOperator.EQ:
        values: object = [part.value]
    else:
        values = part.value if part.operator == FilterOperator.IN else None
    if not isinstance(values, list) or not values or part.key in _OF_DOCUMENTS or not is_comparable(part.key):
        return None
    kinds = (str, int) if numbers else (str,)
    if not all(isinstance(value, kinds) and is_comparable(value) for value in values):
        return None
    if not numbers and not _PLAIN_KEY.fullmatch(part.key):
        return None
    texts = [_texts(value) for value in values]
    if None in texts:
        return None
    distinct = list(dict.fromkeys(text for some in texts for text in some or ()))
    return MetadataFilter(key=part.key, value=distinct, operator=FilterOperator.IN)


def _texts(value: str | int) -> list[str] | None:
    """The JSON texts of everything that equals a value in Python; None if there are too many."""
    if isinstance(value, str):
        return [value]
    number = int(value)
    if abs(number) >= _WHOLE:
        return None
    truth = {0: ["-0.0", "false"], 1: ["true"]}.get(number, [])
    return [str(number), f"{number}.0", *truth]
