"""Building blocks for the tests of Graph RAG's classes."""

import pytest
from llama_index.core import Settings
from llama_index.core.llms import MockLLM

from llama_index.ragkit.testing import HashEmbedding


@pytest.fixture(autouse=True)
def offline() -> None:
    Settings.embed_model = HashEmbedding()
    Settings.llm = MockLLM(max_tokens=8)
