"""Tests of an index through LlamaIndex's public interface, one class for each capability."""

from llama_index.ragkit.testing.index_kit.asynchronous import AsyncTests
from llama_index.ragkit.testing.index_kit.building import BuildingTests
from llama_index.ragkit.testing.index_kit.concurrency import ConcurrencyTests
from llama_index.ragkit.testing.index_kit.conformance import IndexConformance
from llama_index.ragkit.testing.index_kit.deleting import DeletingTests
from llama_index.ragkit.testing.index_kit.embedding_models import EmbeddingModelTests
from llama_index.ragkit.testing.index_kit.engines import EngineTests, FusionTests
from llama_index.ragkit.testing.index_kit.faults import FaultTests
from llama_index.ragkit.testing.index_kit.filtering import FilterTests
from llama_index.ragkit.testing.index_kit.harness import IndexHarness
from llama_index.ragkit.testing.index_kit.odd_corpora import OddCorpusTests
from llama_index.ragkit.testing.index_kit.persistence import PersistenceTests
from llama_index.ragkit.testing.index_kit.postprocessing import PostprocessorTests
from llama_index.ragkit.testing.index_kit.retrieving import RetrievalTests
from llama_index.ragkit.testing.index_kit.sharing import SharedContextTests
from llama_index.ragkit.testing.index_kit.updating import UpdatingTests

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
