"""Tests of an index through LlamaIndex's public interface, one class for each capability."""

from llama_index.ragkit.testing.index_kit.asynchronous import AsyncTests, ConcurrencyTests
from llama_index.ragkit.testing.index_kit.building import BuildingTests, OddCorpusTests
from llama_index.ragkit.testing.index_kit.engines import EngineTests, FusionTests, PostprocessorTests
from llama_index.ragkit.testing.index_kit.faults import FaultTests
from llama_index.ragkit.testing.index_kit.harness import IndexHarness
from llama_index.ragkit.testing.index_kit.persistence import EmbeddingModelTests, PersistenceTests, SharedContextTests
from llama_index.ragkit.testing.index_kit.retrieving import FilterTests, RetrievalTests
from llama_index.ragkit.testing.index_kit.writing import DeletingTests, UpdatingTests

__all__ = [
    "AsyncTests",
    "BuildingTests",
    "ConcurrencyTests",
    "DeletingTests",
    "EmbeddingModelTests",
    "EngineTests",
    "FaultTests",
    "FilterTests",
    "FusionTests",
    "IndexConformance",
    "IndexHarness",
    "OddCorpusTests",
    "PersistenceTests",
    "PostprocessorTests",
    "RetrievalTests",
    "SharedContextTests",
    "UpdatingTests",
]


class IndexConformance(
    BuildingTests,
    OddCorpusTests,
    PersistenceTests,
    SharedContextTests,
    DeletingTests,
    UpdatingTests,
    RetrievalTests,
    FilterTests,
    AsyncTests,
    ConcurrencyTests,
    EmbeddingModelTests,
    FusionTests,
    EngineTests,
):
    """Everything that an index of these packages promises; its bases say what.

    Derive a class whose name begins with "Test", set `index_class`, and override the methods of
    :class:`~llama_index.ragkit.testing.index_kit.harness.IndexHarness` whose defaults do not fit. If your index
    promises less, inherit only the capability classes that it keeps. No test needs a network, an API key or a pytest
    plugin.
    """
