"""Every index of the project, held against the public kit."""

import importlib
import inspect
from pathlib import Path
from typing import Any

import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.indices.base import BaseIndex
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from tests.cases import CASES, Case, retriever
from tests.together.plugins import has_postprocessor, postprocessor

from llama_index.ragkit.testing import HashEmbedding, IndexConformance, IndexHarness, PostprocessorTests
from llama_index.ragkit.testing.index_kit import ConcurrencyTests, EngineTests, FusionTests, PersistenceTests

ROOT = Path(__file__).parents[2]
WITH_POSTPROCESSOR = [case for case in CASES if has_postprocessor(case)]


class OfCase(IndexHarness):
    """What the kit asks for, as the cases of the other tests have it."""

    case: Case

    def take(self, case: Case) -> None:
        self.case, self.index_class = case, case.cls  # type: ignore[misc]

    def components(self) -> dict[str, Any]:
        return self.case.components()

    def embed_model(self, **options: Any) -> HashEmbedding:
        return self.case.embed_model(**options)

    def retriever(self, index: Any, **options: Any) -> BaseRetriever:
        return retriever(index, **options)

    def rebuild(self, index: Any) -> None:
        # Clusters, and what is written about them, follow the order of growth until they are made anew.
        if hasattr(index, "rebuild"):
            index.rebuild()


@pytest.mark.pairs
class TestEveryIndex(OfCase, IndexConformance):
    @pytest.fixture(autouse=True, params=CASES, ids=lambda case: case.name)
    def _case(self, request: pytest.FixtureRequest) -> None:
        self.take(request.param)


class TestEveryPostprocessor(OfCase, PostprocessorTests):
    @pytest.fixture(autouse=True, params=WITH_POSTPROCESSOR, ids=lambda case: case.name)
    def _case(self, request: pytest.FixtureRequest) -> None:
        self.take(request.param)

    def postprocessor(self, index: Any) -> BaseNodePostprocessor:
        return postprocessor(self.case, index)


class TestVectorStoreIndex(PersistenceTests, ConcurrencyTests, FusionTests, EngineTests):
    """Core's own: the classes need nothing of ours."""

    index_class = VectorStoreIndex
    # Core's promises nothing about threads that write: its struct may change while another thread stores it.
    test_threads_that_write_take_turns = None  # type: ignore[assignment]


def test_every_public_index_is_held_against_the_kit() -> None:
    held = {case.cls for case in CASES}
    for path in sorted(ROOT.glob("llama_index_*")):
        package = importlib.import_module(f"llama_index.{path.name.removeprefix('llama_index_')}")
        public = (getattr(package, name) for name in package.__all__)
        indexes = {kind for kind in public if inspect.isclass(kind) and issubclass(kind, BaseIndex)}
        missing = {kind.__name__ for kind in indexes - held if not inspect.isabstract(kind)}
        assert missing == set(), "an index of the project that tests/cases.py does not name"
