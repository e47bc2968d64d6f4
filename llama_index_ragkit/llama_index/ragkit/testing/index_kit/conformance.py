"""All that a user takes for granted of an index, in one class to inherit from."""

from llama_index.ragkit.testing.index_kit.asynchronous import AsyncTests
from llama_index.ragkit.testing.index_kit.building import BuildingTests
from llama_index.ragkit.testing.index_kit.concurrency import ConcurrencyTests
from llama_index.ragkit.testing.index_kit.deleting import DeletingTests
from llama_index.ragkit.testing.index_kit.embedding_models import EmbeddingModelTests
from llama_index.ragkit.testing.index_kit.engines import EngineTests, FusionTests
from llama_index.ragkit.testing.index_kit.filtering import FilterTests
from llama_index.ragkit.testing.index_kit.odd_corpora import OddCorpusTests
from llama_index.ragkit.testing.index_kit.persistence import PersistenceTests
from llama_index.ragkit.testing.index_kit.retrieving import RetrievalTests
from llama_index.ragkit.testing.index_kit.sharing import SharedContextTests
from llama_index.ragkit.testing.index_kit.updating import UpdatingTests

__all__ = ["IndexConformance"]


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
