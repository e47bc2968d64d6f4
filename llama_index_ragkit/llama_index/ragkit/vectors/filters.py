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
- Values that cannot be compared (`"n/a" > 2000`; "text_match" on a number) are an error (core raises TypeError, we
ConfigurationError), but, unlike in core, only if a row to be tested has such a value and no other filter decides about
the row. So a filter by tenant and year does not fail, or show a value, because of another tenant's years.
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
from numpy.typing import NDArray

from llama_index.ragkit.errors import ConfigurationError
from llama_index.ragkit.short_repr import shortened
from llama_index.ragkit.vectors.snapshot import Mask, Snapshot

__all__ = ["Compared", "is_comparable", "keys_of", "matches", "relaxed", "select"]

_MOST = 100  # conditions of one group; the whole filter is checked again here, so the others are not needed
_WHOLE = 10**15  # Python writes a float below this without an exponent
_NO_METADATA = frozenset({"ref_doc_id", "doc_id", "document_id", "_node_type"})  # stores have names of their own for it
_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")  # dots and brackets are paths in some stores
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")  # PostgreSQL's texts hold neither

# Three-valued logic: AND is the least verdict, OR the greatest.
_FAILS, _UNKNOWN, _PASSES = np.int8(0), np.int8(1), np.int8(2)
Verdicts = NDArray[np.int8]  # of rows, shape (n,)

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
    return (each.key for each in _single(filters))


def _single(filters: MetadataFilters) -> Iterator[MetadataFilter]:
    for part in filters.filters:
        if isinstance(part, MetadataFilters):
            yield from _single(part)
        else:
            yield part


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
        If a filter cannot be compared with the value of one of these rows, and the other filters do not decide.
    """
    mask = np.ones(len(snapshot), np.bool_)
    if node_ids is not None:
        rows = snapshot.rows_of(node_ids)
        mask[:] = False
        mask[rows[rows >= 0]] = True
    if doc_ids is not None:
        mask &= _has_one_of(snapshot, "ref_doc_id", doc_ids)
    if filters is None:
        return mask
    verdicts = _group(snapshot, filters)
    undecided = np.flatnonzero((verdicts == _UNKNOWN) & mask)
    if undecided.size:
        raise _incomparable(snapshot, filters, int(undecided[0]))
    passing: Mask = mask & (verdicts == _PASSES)
    return passing


def _has_one_of(snapshot: Snapshot, key: str, values: Sequence[Any]) -> Mask:
    column, codes = snapshot.column(key)
    return np.isin(codes, [code for value in values if (code := column.code_of.get(value)) is not None])


def _group(snapshot: Snapshot, group: MetadataFilters) -> Verdicts:
    parts = [
        _group(snapshot, part) if isinstance(part, MetadataFilters) else _one(snapshot, part) for part in group.filters
    ]
    if not parts:
        return np.full(len(snapshot), _PASSES)
    is_and = group.condition not in (FilterCondition.OR, FilterCondition.NOT)
    joined: Verdicts = reduce(np.minimum if is_and else np.maximum, parts)
    return _PASSES - joined if group.condition == FilterCondition.NOT else joined


def _one(snapshot: Snapshot, filter_: MetadataFilter) -> Verdicts:
    # Shortcuts for keys with many values: a dict lookup is equivalent to == and `in` (except for NaN).
    wanted: Any = filter_.value
    if filter_.operator == FilterOperator.EQ and isinstance(wanted, (str, int)):
        wanted = [wanted]
    elif filter_.operator != FilterOperator.IN or not isinstance(wanted, list):
        wanted = None
    if wanted is not None:
        verdicts: Verdicts = np.where(_has_one_of(snapshot, filter_.key, wanted), _PASSES, _FAILS)
        return verdicts
    column, codes = snapshot.column(filter_.key)
    verdict_of = {None: _UNKNOWN, False: _FAILS, True: _PASSES}
    return np.array([verdict_of[_verdict(value, filter_)] for value in column.values], np.int8)[codes]


def _incomparable(snapshot: Snapshot, group: MetadataFilters, row: int) -> ConfigurationError:
    """The error for a row that filters do not decide on; only its own value is shown."""
    for filter_ in _single(group):
        column, codes = snapshot.column(filter_.key)
        value = list(column.values)[codes[row]]
        if _verdict(value, filter_) is None:
            break
    return ConfigurationError(
        f"The filter {filter_.key!r} {filter_.operator.value} {shortened(filter_.value)} cannot be compared with "
        f"{shortened(value)}, the {filter_.key!r} of {snapshot.ids[row]!r}. Store values of one type under this key, "
        "or restrict the search (node_ids, doc_ids) to rows that have it."
    )


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
