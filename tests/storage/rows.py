"""Rows of a space, what a slow search finds among them, and vector stores with habits of their own."""

from collections.abc import Callable
from typing import Any

import numpy as np
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.schema import BaseNode
from llama_index.core.vector_stores.types import (
    BasePydanticVectorStore,
    FilterCondition,
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
    VectorStoreQuery,
    VectorStoreQueryResult,
)
from numpy.typing import NDArray
from tests.returning_store import ReturningStore

from llama_index.ragkit import MatrixVectorStore, SpaceRows

__all__ = ["DIM", "FILTERS", "STORES", "Approximate", "Ignoring", "all_of", "exact", "space_rows", "unit_rows", "where"]

DIM = 32


class Approximate(BasePydanticVectorStore):
    """Finds rows by half of their coordinates, and knows no filters."""

    stores_text: bool = True
    _inner: MatrixVectorStore = PrivateAttr(default_factory=MatrixVectorStore)
    _asked: list[int] = PrivateAttr(default_factory=list)

    @property
    def client(self) -> Any:
        return None

    @property
    def rows(self) -> int:
        return len(self._inner.snapshot())

    def _half(self, vector: list[float]) -> list[float]:
        return vector[: DIM // 2]

    def add(self, nodes: list[BaseNode], **kwargs: Any) -> list[str]:  # type: ignore[override]
        return self._inner.add([n.model_copy(update={"embedding": self._half(n.get_embedding())}) for n in nodes])

    def delete(self, ref_doc_id: str, **kwargs: Any) -> None:
        self._inner.delete(ref_doc_id)

    def delete_nodes(self, node_ids: Any = None, filters: Any = None, **kwargs: Any) -> None:
        if filters is not None:
            raise ValueError("filters are not supported")
        self._inner.delete_nodes(node_ids or [])

    def query(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        if query.filters is not None:
            raise ValueError("filters are not supported")
        self._asked.append(query.similarity_top_k)
        assert query.query_embedding is not None
        half = VectorStoreQuery(
            query_embedding=self._half(query.query_embedding), similarity_top_k=query.similarity_top_k
        )
        return self._inner.query(half)


class Ignoring(MatrixVectorStore):
    """Ignores filters, as some stores do."""

    def query(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        query.filters = None
        return super().query(query)


STORES: list[Callable[[], BasePydanticVectorStore]] = [MatrixVectorStore, Approximate, ReturningStore, Ignoring]


def unit_rows(count: int, seed: int = 0) -> NDArray[np.float32]:
    found = np.random.default_rng(seed).normal(size=(count, DIM)).astype(np.float32)
    result: NDArray[np.float32] = found / np.linalg.norm(found, axis=1, keepdims=True)
    return result


def space_rows(count: int, seed: int = 0, prefix: str = "r") -> SpaceRows:
    ids = [f"{prefix}{i}" for i in range(count)]
    return SpaceRows(
        ids=ids,
        vectors=unit_rows(count, seed),
        keys=[f"k{i:04d}" for i in range(count)],
        ref_doc_ids=[f"d{i % 7}" for i in range(count)],
        metadatas=[{"year": (1900 if i % 3 else 1900.0) + i % 10, "tags": ["a", "b"][: i % 3]} for i in range(count)],
    )


def exact(
    rows: SpaceRows, vector: NDArray[np.float32], k: int, keep: Callable[[int], bool] = lambda i: True
) -> list[str]:
    cosines = np.round(rows.vectors.astype(np.float64) @ vector.astype(np.float64), 12)
    order = sorted(filter(keep, range(len(rows.ids))), key=lambda i: (-cosines[i], rows.keys[i]))
    return [rows.ids[i] for i in order[:k]]


def all_of(*filters: Any, condition: FilterCondition = FilterCondition.AND) -> MetadataFilters:
    return MetadataFilters(filters=list(filters), condition=condition)


def where(key: str, value: Any, operator: FilterOperator = FilterOperator.EQ) -> MetadataFilter:
    return MetadataFilter(key=key, value=value, operator=operator)


FILTERS: list[tuple[MetadataFilters, Callable[[int], bool]]] = [
    (all_of(where("year", 1903)), lambda i: i % 10 == 3),
    (all_of(where("year", [1903, 1904], FilterOperator.IN)), lambda i: i % 10 in (3, 4)),
    (all_of(where("year", 1903, FilterOperator.NE)), lambda i: i % 10 != 3),
    (all_of(where("tags", "b", FilterOperator.CONTAINS)), lambda i: i % 3 == 2),
    (all_of(where("year", 1908, FilterOperator.GTE), where("tags", "a", FilterOperator.CONTAINS)),
     lambda i: i % 10 >= 8 and i % 3 > 0),
    (all_of(where("year", 1903), where("year", 1908, FilterOperator.GTE), condition=FilterCondition.OR),
     lambda i: i % 10 in (3, 8, 9)),
    (all_of(where("ref_doc_id", "d3")), lambda i: i % 7 == 3),
]  # fmt: skip
