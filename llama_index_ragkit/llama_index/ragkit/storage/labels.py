"""Labels of texts: their metadata as terms of a lexical index, by which the texts that pass a filter are looked up.

A label is a term that does not count as a word: it has postings, and no stem, and its text is no longer for it. So the
postings of a label are the texts with that value of a metadata key, and how rare a word is among these is known without
reading others.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import numpy as np
from llama_index.core.vector_stores.types import FilterCondition, FilterOperator, MetadataFilter, MetadataFilters
from numpy.typing import NDArray

__all__ = ["LABEL", "CountedTexts", "LabelledTexts", "labels_in", "labels_of", "passing_texts"]

Ints = NDArray[np.int64]
Part = MetadataFilter | MetadataFilters

LABEL = "\x00"
"""What labels begin with, and words never have; alone, the label of every text with labels."""

_OF_DOCUMENT = frozenset({"ref_doc_id", "doc_id", "document_id"})


@dataclass(frozen=True)
class LabelledTexts:
    """Texts with some labels."""

    numbers: Ints  # of the texts, ascending, shape (n,)
    words: Ints  # how many words each has, shape (n,)
    exact: bool = True  # whether these are the texts that pass the filter; if not, others are among them
    # words of a stem -> how many of the texts have any of them, where that was counted
    having: dict[tuple[int, ...], int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.numbers)


CountedTexts = Sequence[str] | LabelledTexts
"""The texts that count for a question: by their ids, or as a lexical index finds them by their labels."""


def labels_of(metadata: Mapping[str, Any], document: str | None) -> dict[str, int]:
    """The labels of a text as terms, each 0 times."""
    given = {key: metadata[key] for key in metadata if key not in _OF_DOCUMENT}
    given["ref_doc_id"] = "None" if document is None else document
    labels = [LABEL, *(_label(key, value) for key, value in given.items())]
    return dict.fromkeys([label for label in labels if label is not None], 0)


def _label(key: str, value: Any) -> str | None:
    """The label of a value; None for one that is not looked up. Equal numbers have one label, as in filters."""
    if isinstance(value, str):
        return f"{LABEL}{key}{LABEL}={value}"
    if isinstance(value, (int, float)) and not math.isnan(value):
        return f"{LABEL}{key}{LABEL}#{hash(value)}"
    return None


def _labels(part: MetadataFilter) -> list[str] | None:
    """The labels of which a text must have one to pass; None where labels do not tell."""
    if part.operator == FilterOperator.EQ:
        values: Any = [part.value]
    elif part.operator == FilterOperator.IN and isinstance(part.value, list):
        values = part.value
    else:
        return None
    key = "ref_doc_id" if part.key in _OF_DOCUMENT else part.key
    labels = [label for value in values if (label := _label(key, value)) is not None]
    return labels if len(labels) == len(values) and key != "_node_type" else None


def labels_in(filters: MetadataFilters) -> Iterator[str]:
    """All labels that a filter asks for."""
    for part in filters.filters:
        yield from labels_in(part) if isinstance(part, MetadataFilters) else _labels(part) or ()


def passing_texts(
    part: Part, counts: Mapping[str, int], read: Callable[[Sequence[str]], tuple[Ints, Ints]], most: int
) -> LabelledTexts | None:
    """The texts that pass a filter, and perhaps others; None where labels do not tell, or there may be too many.

    Parameters
    ----------
    read : labels -> the numbers of the texts with any of them, ascending, and how many words these have
    most : texts that are read for a part of the filter
    """
    if isinstance(part, MetadataFilter):
        labels = _labels(part)
        if labels is None or sum(counts.get(label, 0) for label in labels) > most:
            return None
        return LabelledTexts(*read(labels))
    if part.condition == FilterCondition.NOT or not part.filters:
        return None
    parts = [passing_texts(each, counts, read, most) for each in part.filters]
    known = [texts for texts in parts if texts is not None]
    if not known or (part.condition == FilterCondition.OR and len(known) < len(parts)):
        return None
    together = reduce(_either if part.condition == FilterCondition.OR else _both, known)
    exact = all(texts.exact for texts in known) and len(known) == len(parts)
    return LabelledTexts(together.numbers, together.words, exact)


def _either(one: LabelledTexts, other: LabelledTexts) -> LabelledTexts:
    numbers, first = np.unique(np.concatenate([one.numbers, other.numbers]), return_index=True)
    return LabelledTexts(numbers, np.concatenate([one.words, other.words])[first])


def _both(one: LabelledTexts, other: LabelledTexts) -> LabelledTexts:
    numbers, places, _ = np.intersect1d(one.numbers, other.numbers, assume_unique=True, return_indices=True)
    return LabelledTexts(numbers, one.words[places])
