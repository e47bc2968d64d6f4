"""The texts of the conformance kit: few, short, and connected, so that every method finds something in them.

Text i has the number i and the tenant "odd" or "even", by which filters tell the texts apart.
"""

from collections.abc import Sequence
from typing import Any

import pytest
from llama_index.core.schema import NodeRelationship, NodeWithScore, RelatedNodeInfo, TextNode
from llama_index.core.vector_stores.types import FilterCondition, FilterOperator, MetadataFilter, MetadataFilters

__all__ = [
    "QUESTION",
    "TEXTS",
    "chunks",
    "each_condition",
    "each_operator",
    "odd_or_above_3",
    "texts_and_scores",
    "where",
]

TEXTS = [
    "Ada Byron met Charles Babbage in London.",
    "Babbage drew the Analytical Engine.",
    "The Analytical Engine used punched cards.",
    "Punched cards came from the Jacquard loom.",
    "The Jacquard loom wove silk in Lyon.",
    "Lyon lies on the Rhone.",
]
QUESTION = "Which engine used punched cards?"


def chunks(document: str, count: int, start: int = 0) -> list[TextNode]:
    """Nodes of a document, with ids and texts that follow from its name: `d-0`, "Ada Byron ... London. d 0".

    Parameters
    ----------
    document : its id; a text of another document never contains it between spaces
    count, start : how many nodes, and the number of the first
    """
    return [
        TextNode(
            id_=f"{document}-{i}",
            text=f"{TEXTS[i % 6]} {document} {i}",
            relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=document)},
        )
        for i in range(start, start + count)
    ]


def texts_and_scores(results: Sequence[NodeWithScore]) -> list[tuple[str, float]]:
    """The results of a retrieval without their ids, in order; scores rounded to six digits."""
    return [(result.node.get_content(), round(result.get_score(), 6)) for result in results]


def where(key: str, value: Any, operator: FilterOperator = FilterOperator.EQ) -> MetadataFilter:
    """A filter."""
    return MetadataFilter(key=key, value=value, operator=operator)


def each_operator(*more: tuple[MetadataFilter, set[int]]) -> pytest.MarkDecorator:
    """A test for a filter of each operator that all stores know, and for further ones, with the texts that pass."""
    passing = [
        (where("tenant", "odd"), {1, 3, 5}),
        (where("tenant", "odd", FilterOperator.NE), {0, 2, 4}),
        (where("number", 2, FilterOperator.LT), {0, 1}),
        (where("number", 2, FilterOperator.LTE), {0, 1, 2}),
        (where("number", 3, FilterOperator.GT), {4, 5}),
        (where("number", 3, FilterOperator.GTE), {3, 4, 5}),
        (where("number", [1, 4], FilterOperator.IN), {1, 4}),
        (where("number", [1, 4], FilterOperator.NIN), {0, 2, 3, 5}),
        *more,
    ]
    return pytest.mark.parametrize(("filter_", "wanted"), passing, ids=[each.operator.value for each, _ in passing])


each_condition = pytest.mark.parametrize(
    ("condition", "wanted"),
    [(FilterCondition.AND, {5}), (FilterCondition.OR, {1, 3, 4, 5})],
    ids=["and", "or"],
)


def odd_or_above_3(condition: FilterCondition) -> MetadataFilters:
    """Two filters, of which both must pass, or one, or none."""
    both: list[Any] = [where("tenant", "odd"), where("number", 3, FilterOperator.GT)]
    return MetadataFilters(filters=both, condition=condition)
