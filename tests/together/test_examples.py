"""The short examples run as they stand, but for the vectors."""

import pytest
from tests.processes import Worker

PROGRAM = """
import asyncio, importlib, sys
from examples import demo_methods
from llama_index.mrag import SplitEmbedding
from llama_index.ragkit.testing import HashEmbedding
demo_methods.MiniLM = HashEmbedding
demo_methods.MiniLMHeads = lambda model: SplitEmbedding(embed_model=model, num_heads=4)
example = importlib.import_module(f"examples.{sys.argv[1]}")
example.minilm = HashEmbedding
asked = example.main(sys.argv[2])
if asked is not None:
    asyncio.run(asked)
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", ["fusion", "workflow"])
def test_an_example_answers_a_question(name: str):
    with Worker(PROGRAM, name, "Which lamp burned oil?") as worker:
        printed = worker.communicate()
    assert worker.returncode == 0
    assert printed.startswith("Which lamp burned oil?\n")
    assert printed.count("\n") > 3
