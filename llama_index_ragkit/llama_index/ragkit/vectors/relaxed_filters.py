"""The part of a metadata filter that a vector store can check."""

import re
from math import isfinite
from typing import Literal

from llama_index.core.vector_stores.types import FilterCondition, FilterOperator, MetadataFilter, MetadataFilters

__all__ = ["Compared", "is_comparable", "relaxed"]

_MOST = 100  # conditions of one group; the whole filter is checked again here, so the others are not needed
_WHOLE = 10**15  # Python writes a float below this without an exponent
_NO_METADATA = frozenset({"ref_doc_id", "doc_id", "document_id", "_node_type"})  # stores have names of their own for it
_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")  # dots and brackets are paths in some stores
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")  # PostgreSQL's texts hold neither

Compared = Literal["as here", "as JSON", "as text"]


def relaxed(filters: MetadataFilters | None, values: Compared) -> MetadataFilters | None:
    """A filter that passes all rows that pass `filters`, and perhaps others; None if it would pass all rows.

    Conditions on the document and on the class of a node are left out. Each of the others asks for the texts of a
    metadata value (operator IN), where it stands for equality. For a store that compares as the index does, it may also
    be a condition of `filters`, which then passes rows without the key: a value may not be in the store, see
    :func:`is_comparable`.

    Parameters
    ----------
    values : how the store compares: "as here" as :mod:`llama_index.ragkit.vectors.filters` does; "as JSON" numbers by
        their JSON text; "as text" texts alone. Then conditions on numbers and on keys that are not plain names are left
        out, since stores differ in how they read them
    """
    if filters is None or filters.condition == FilterCondition.NOT:
        return None
    parts = [_relaxed_part(part, values) for part in filters.filters]
    kept = [part for part in parts if part is not None]
    is_or = filters.condition == FilterCondition.OR
    if not kept or (is_or and (len(kept) < len(parts) or len(kept) > _MOST)):
        return None
    return MetadataFilters(filters=kept[:_MOST], condition=filters.condition)


def is_comparable(value: object) -> bool:
    """Whether stores get this key or value of metadata: a text, a truth value or a finite number."""
    if isinstance(value, str):
        return not _UNSTORABLE.search(value)
    return isinstance(value, int) or (isinstance(value, float) and isfinite(value))


def _relaxed_part(part: MetadataFilter | MetadataFilters, values: Compared) -> MetadataFilter | MetadataFilters | None:
    if isinstance(part, MetadataFilters):
        return relaxed(part, values)
    if part.key in _NO_METADATA:
        return None
    texts = _one_of_texts(part, numbers=values == "as JSON")
    if texts is not None or values != "as here":
        return texts
    not_stored = MetadataFilter(key=part.key, value=None, operator=FilterOperator.IS_EMPTY)
    return MetadataFilters(filters=[part, not_stored], condition=FilterCondition.OR)


def _one_of_texts(part: MetadataFilter, numbers: bool) -> MetadataFilter | None:
    if part.operator == FilterOperator.EQ:
        values: object = [part.value]
    else:
        values = part.value if part.operator == FilterOperator.IN else None
    if not isinstance(values, list) or not values or not is_comparable(part.key):
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
