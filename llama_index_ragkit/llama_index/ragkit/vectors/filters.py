"""Metadata filters as row masks, and the part of them that another vector store can check.

Each predicate is evaluated once per distinct value, not once per row.

The meaning of every operator is that of `build_metadata_filter_fn` in llama-index-core 0.14, also under
older cores, whose own in-memory store differs (0.13 has no NOT, lets a missing value fail "!=" and
"nin", and ignores case in "text_match"). The less obvious rules of core apply here too:

- A missing key, a None and a NaN, which core stores as None, are the same. They match "!=", "nin" and "is_empty" and
  nothing else: not even `== None`.
- "is_empty" also matches the empty string.
- On text, "contains", "any" and "all" look for substrings; "in" with a text as its value tests whether the metadata is
a substring of it.
- Values that cannot be compared (`"n/a" > 2000`; "text_match" on a number) are an error, but only if one of the rows
to be tested has such a value: core raises TypeError, we ConfigurationError.
- NOT means that none of its filters matches. A group without filters matches everything, also under NOT.
- The keys "doc_id", "ref_doc_id" and "document_id" mean the id of the document ("None" if there is none)
  whatever the metadata says, and "_node_type" the class of the node.

Beyond core, groups may be nested; core raises ValueError for that.
"""

import operator
import re
from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from math import isfinite
from typing import Any, Literal

import numpy as np
from llama_index.core.vector_stores.types import FilterCondition, FilterOperator, MetadataFilter, MetadataFilters

from llama_index.ragkit.errors import ConfigurationError
from llama_index.ragkit.vectors.snapshot import Mask, Snapshot

__all__ = ["Compared", "is_comparable", "keys_of", "matches", "relaxed", "select"]

_MOST = 100  # conditions of one group; the whole filter is checked again here, so the others are not needed
_WHOLE = 10**15  # Python writes a float below this without an exponent
_NO_METADATA = frozenset({"ref_doc_id", "doc_id", "document_id", "_node_type"})  # stores have names of their own for it
_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")  # dots and brackets are paths in some stores
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")  # PostgreSQL's texts hold neither

Compared = Literal["as here", "as JSON", "as text"]


def _text_match(have: Any, want: Any) -> bool:
    if not (isinstance(have, str) and isinstance(want, str)):
        raise TypeError("a text match needs text on both sides")
    return want in have


# The predicate of each operator on a value that is not missing.
_TESTS: dict[FilterOperator, Callable[[Any, Any], Any]] = {
    FilterOperator.EQ: operator.eq,
    FilterOperator.NE: operator.ne,
    FilterOperator.GT: operator.gt,
    FilterOperator.GTE: operator.ge,
    FilterOperator.LT: operator.lt,
    FilterOperator.LTE: operator.le,
    FilterOperator.IN: lambda have, want: have in want,
    FilterOperator.NIN: lambda have, want: have not in want,
    FilterOperator.CONTAINS: lambda have, want: want in have,
    FilterOperator.ANY: lambda have, want: any(one in have for one in want),
    FilterOperator.ALL: lambda have, want: all(one in have for one in want),
    FilterOperator.TEXT_MATCH: _text_match,
    FilterOperator.TEXT_MATCH_INSENSITIVE: lambda have, want: _text_match(_lower(have), _lower(want)),
    FilterOperator.IS_EMPTY: lambda have, want: have in ("", []),
}


_MISSING = frozenset({FilterOperator.NE, FilterOperator.NIN, FilterOperator.IS_EMPTY})  # match a missing value


def _lower(value: Any) -> Any:
    return value.lower() if isinstance(value, str) else value


def matches(value: Any, filter_: MetadataFilter) -> bool:
    """Whether a metadata value (None or NaN: missing) passes one filter.

    Raises
    ------
    TypeError
        If the two cannot be compared.
    """
    if value is None or value != value:
        return filter_.operator in _MISSING
    return bool(_TESTS[filter_.operator](value, filter_.value))


def _verdict(value: Any, filter_: MetadataFilter) -> bool | None:
    try:
        return matches(value, filter_)
    except TypeError:
        return None


def keys_of(filters: MetadataFilters) -> Iterator[str]:
    """The keys of all filters, also of those in groups."""
    for part in filters.filters:
        if isinstance(part, MetadataFilters):
            yield from keys_of(part)
        else:
            yield part.key


def select(
    snapshot: Snapshot,
    filters: MetadataFilters | None = None,
    node_ids: Sequence[str] | None = None,
    doc_ids: Sequence[str] | None = None,
) -> Mask:
    """Which rows pass all restrictions, shape (n,); None does not restrict.

    No row passes an empty list of ids. Filters are applied only to rows that pass the ids.

    Raises
    ------
    ConfigurationError
        If a filter cannot be compared with the value of one of these rows.
    """
    mask = np.ones(len(snapshot), np.bool_)
    if node_ids is not None:
        rows = snapshot.rows_of(node_ids)
        mask[:] = False
        mask[rows[rows >= 0]] = True
    if doc_ids is not None:
        mask &= _has_one_of(snapshot, "ref_doc_id", doc_ids)
    return mask if filters is None else mask & _group(snapshot, filters, mask)


def _has_one_of(snapshot: Snapshot, key: str, values: Sequence[Any]) -> Mask:
    column, codes = snapshot.column(key)
    return np.isin(codes, [code for value in values if (code := column.code_of.get(value)) is not None])


def _group(snapshot: Snapshot, group: MetadataFilters, rows: Mask) -> Mask:
    parts: list[Mask] = [
        _group(snapshot, part, rows) if isinstance(part, MetadataFilters) else _one(snapshot, part, rows)
        for part in group.filters
    ]
    if not parts:
        return np.ones(len(snapshot), np.bool_)
    if group.condition == FilterCondition.OR:
        return reduce(operator.or_, parts)
    if group.condition == FilterCondition.NOT:
        return ~reduce(operator.or_, parts)
    return reduce(operator.and_, parts)


def _one(snapshot: Snapshot, filter_: MetadataFilter, rows: Mask) -> Mask:
    # Shortcuts for keys with many values: a dict lookup is equivalent to == and `in` (except for NaN).
    if filter_.operator == FilterOperator.EQ and isinstance(filter_.value, (str, int)):
        return _has_one_of(snapshot, filter_.key, [filter_.value])
    if filter_.operator == FilterOperator.IN and isinstance(filter_.value, list):
        return _has_one_of(snapshot, filter_.key, filter_.value)
    column, codes = snapshot.column(filter_.key)
    values = list(column.values)
    verdicts = [_verdict(value, filter_) for value in values]
    if None in verdicts:
        wrong = np.array([verdict is None for verdict in verdicts])
        bad = np.flatnonzero(wrong[codes] & rows)
        if bad.size:
            raise ConfigurationError(
                f"The filter {filter_.key!r} {filter_.operator.value} {filter_.value!r} cannot be compared with "
                f"{values[codes[bad[0]]]!r}, the {filter_.key!r} of {snapshot.ids[bad[0]]!r}. Store values of one "
                "type under this key, or restrict the search (node_ids, doc_ids) to rows that have it."
            )
    return np.array(verdicts, np.bool_)[codes]


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
