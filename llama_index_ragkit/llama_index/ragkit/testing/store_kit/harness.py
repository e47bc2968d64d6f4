"""What you supply to hold a store against the kit, and the rows that all tests of vector stores use."""

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final
from uuid import NAMESPACE_OID, uuid5

import pytest
from llama_index.core.schema import BaseNode, NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.core.vector_stores.types import BasePydanticVectorStore, VectorStoreQuery, VectorStoreQueryResult

from llama_index.ragkit.errors import ConfigurationError
from llama_index.ragkit.testing.corpus import TEXTS

__all__ = ["StoreHarness", "VectorStoreHarness", "ids_of", "row", "rows"]

DIM = 32


class StoreHarness:
    """What a test class says about its store. Every capability class of the kit derives from it.

    Override the fixture `store`, and `reopen` where the class inherits tests of persistence.
    """

    @pytest.fixture
    def store(self) -> Any:
        """An empty store; override it, with a `yield` if the store must be closed."""
        raise ConfigurationError(f"{type(self).__name__} must override the fixture `store`: it gives an empty store.")

    def reopen(self, store: Any, folder: Path) -> Any:
        """Persist the store below the folder, and open it as a new process would; override it."""
        raise ConfigurationError(f"{type(self).__name__} must override reopen(), which tests of persistence call.")


def _vector(number: int) -> list[float]:
    """A unit vector in the plane of the first two axes, 0.1 radians further from the first with each number."""
    return [math.cos(number / 10), math.sin(number / 10), *[0.0] * (DIM - 2)]


def row(number: int, document: str = "d", /, **metadata: Any) -> TextNode:
    """A node of a document, with a vector of unit length; it is as near to a query as their numbers are close.

    Its id is a UUID, which some stores insist on.

    Parameters
    ----------
    number : 0 to 15
    """
    return TextNode(
        id_=str(uuid5(NAMESPACE_OID, f"{document}-{number}")),
        text=f"{TEXTS[number % 6]} {document} {number}",
        metadata=metadata,
        embedding=_vector(number),
        relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=document)},
    )


def rows(document: str, numbers: Iterable[int]) -> list[TextNode]:
    """Rows of one document."""
    return [row(number, document) for number in numbers]


def ids_of(nodes: Iterable[BaseNode]) -> list[str]:
    """The ids of nodes, in their order."""
    return [node.node_id for node in nodes]


class VectorStoreHarness(StoreHarness):
    """What a test class says about its vector store. Every capability class of vector stores derives from it.

    Override the fixture `store`; it is for vectors of `dim` numbers.

    Attributes
    ----------
    dim : length of the vectors, 32
    """

    dim: Final = DIM

    def query(self, number: int = 0, top_k: int = 50, **restrictions: Any) -> VectorStoreQuery:
        """A query for rows near a number."""
        return VectorStoreQuery(query_embedding=_vector(number), similarity_top_k=top_k, **restrictions)

    def found(self, store: BasePydanticVectorStore, number: int = 0, top_k: int = 50, **restrictions: Any) -> list[str]:
        """Ids of the rows near a number, nearest first."""
        return self.ids_in(store.query(self.query(number, top_k, **restrictions)))

    @staticmethod
    def ids_in(result: VectorStoreQueryResult) -> list[str]:
        """The ids of a result; stores that keep text may give only nodes."""
        return list(result.ids) if result.ids is not None else ids_of(result.nodes or [])
