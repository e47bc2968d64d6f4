"""A conformance kit for indexes and stores of LlamaIndex, and models to test with.

Inherit from its test classes: what a class inherits is what your index or store promises, and each base says what that
is. :class:`IndexConformance` holds an index to everything that its users take for granted;
:class:`VectorStoreConformance`, :class:`DocumentStoreConformance` and :class:`KeyValueStoreConformance` hold a store
to what these packages rely on. Single capabilities are in :mod:`~llama_index.ragkit.testing.index_kit` and
:mod:`~llama_index.ragkit.testing.store_kit`. The kit needs the extra `llama-index-ragkit[testing]`, which is pytest.
"""

from llama_index.ragkit.extras import need

# Before the kits are imported, so that their failed assertions show values, and none vanishes under `python -O`.
need("pytest", "llama_index.ragkit.testing", "llama-index-ragkit[testing]").register_assert_rewrite(
    "llama_index.ragkit.testing.index_kit", "llama_index.ragkit.testing.store_kit"
)

from llama_index.ragkit.testing.corpus import chunks, texts_and_scores  # noqa: E402
from llama_index.ragkit.testing.faults import (  # noqa: E402
    Fault,
    FaultPlace,
    FaultyKVStore,
    faulty_context,
)
from llama_index.ragkit.testing.index_kit import (  # noqa: E402
    FaultTests,
    IndexConformance,
    IndexHarness,
    PostprocessorTests,
)
from llama_index.ragkit.testing.models import HashEmbedding, ScriptedLLM  # noqa: E402
from llama_index.ragkit.testing.store_kit import (  # noqa: E402
    DocumentStoreConformance,
    KeyValueStoreConformance,
    VectorStoreConformance,
)

__all__ = [
    "DocumentStoreConformance",
    "Fault",
    "FaultPlace",
    "FaultTests",
    "FaultyKVStore",
    "HashEmbedding",
    "IndexConformance",
    "IndexHarness",
    "KeyValueStoreConformance",
    "PostprocessorTests",
    "ScriptedLLM",
    "VectorStoreConformance",
    "chunks",
    "faulty_context",
    "texts_and_scores",
]
