"""An index that is served from stores, held against the parts of the public kit that need no folder."""

from collections.abc import Sequence
from typing import Any

import pytest
from llama_index.core import Document
from llama_index.core.schema import BaseNode
from tests.cases import Case
from tests.conformance.test_indexes import OfCase
from tests.serving.places import Place

from llama_index.ragkit.testing.index_kit import (
    AsyncTests,
    BuildingTests,
    ConcurrencyTests,
    EngineTests,
    FilterTests,
    FusionTests,
    RetrievalTests,
    UpdatingTests,
)


@pytest.mark.pairs
class TestServedFromStores(
    OfCase, AsyncTests, BuildingTests, ConcurrencyTests, EngineTests, FilterTests, FusionTests, RetrievalTests,
    UpdatingTests,
):  # fmt: skip
    """Each index of a test has a tenant of its own."""

    @pytest.fixture(autouse=True)
    def _served(self, case: Case, here: Place) -> None:
        self.take(case)
        self.place, self.tenants = here, 0

    def stores(self, given: dict[str, Any]) -> dict[str, Any]:
        if given.get("storage_context") is None:
            self.tenants += 1
            given = {**given, "storage_context": self.place.open(str(self.tenants))}
        return given

    def build(self, nodes: Sequence[BaseNode], **options: Any) -> Any:
        return super().build(nodes, **self.stores(options))

    def from_documents(self, documents: Sequence[Document], **options: Any) -> Any:
        return super().from_documents(documents, **self.stores(options))

    async def afrom_documents(self, documents: Sequence[Document], **options: Any) -> Any:
        return await super().afrom_documents(documents, **self.stores(options))
