"""The weakest model that can be had, live: each step of each package on six chunks."""

import pytest
from benchmarks.live_model import REPLY_TOKENS, build, chunks_of_archive
from benchmarks.smollm2 import SmolLM2, missing

from llama_index.ragkit.check_llm import check_llm
from llama_index.ragkit.compare.methods import METHODS, Method
from llama_index.ragkit.steps import run_steps

pytestmark = [
    pytest.mark.live_llm,
    pytest.mark.slow,
    pytest.mark.skipif(bool(missing()), reason=f"not installed: {missing()}"),
]


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_a_live_model_leaves_an_index_and_each_of_its_failures_is_counted(method: Method) -> None:
    nodes, llm = chunks_of_archive(6), SmolLM2(max_tokens=REPLY_TOKENS)
    found = check_llm(llm, nodes, chunks=6, methods=[method.name])
    assert found.not_tried == {}
    assert found.steps
    assert [step for step in found.steps if step.usage.failed and not step.reason] == []
    index = build(method, nodes, llm)
    entries = run_steps(index.storage.manifest.entries())
    # Rules did what the model failed at, unless a part was read, such as entities without triples.
    assert all(failure.by or entries[failure.node_id].record for failure in index.failures())
    assert index.as_retriever(similarity_top_k=3).retrieve("Who kept the lighthouse?")
