"""Builds with the recorded replies of a small model: one that is killed and repeated is one that was not."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from benchmarks.live_model import ONCE, chunks_of_archive
from benchmarks.small_model_recall import replayed
from llama_index.core.schema import BaseNode

from llama_index.ragkit.check_llm.checking import TRIALS
from llama_index.ragkit.compare.methods import METHODS, Method
from llama_index.ragkit.steps import run_steps
from llama_index.ragkit.testing import HashEmbedding, ScriptedLLM, texts_and_scores

DATA = Path(os.environ.get("RAG_DATA", ""))
pytestmark = pytest.mark.skipif(
    not (DATA / "small_llm" / "replies.jsonl.gz").is_file(), reason="RAG_DATA has no small_llm"
)
ASKING = [method for method in METHODS if TRIALS[method.name].build(pytest.importorskip(method.module), ONCE)]


class Killed(BaseException):
    """Ends the process, as far as the index can tell."""


class Mortal(ScriptedLLM):
    """Says what was recorded, and is killed at a call."""

    def __init__(self, calls: int = 10**9) -> None:
        recorded = replayed(DATA)

        def reply(prompt: str) -> str:
            if len(self.prompts) > calls:
                raise Killed
            return recorded(prompt)

        super().__init__(reply)


def build(method: Method, nodes: Sequence[BaseNode], llm: ScriptedLLM, cache: Path) -> Any:
    package = pytest.importorskip(method.module)
    keywords = TRIALS[method.name].build(package, ONCE)
    given = {"llm": llm, "embed_model": HashEmbedding(), "cache": cache, "num_workers": 1, **keywords}
    return getattr(package, method.index)([node.model_copy(deep=True) for node in nodes], **given)


def contents(index: Any) -> Any:
    """What is stored of each node, what failed, and what is found."""
    records = {i: entry.record for i, entry in run_steps(index.storage.manifest.entries()).items()}
    found = index.as_retriever(similarity_top_k=12).retrieve("Who kept the lighthouse?")
    return records, index.failures(), texts_and_scores(found)


@pytest.mark.parametrize("method", ASKING, ids=lambda method: method.name)
def test_a_build_that_is_killed_half_way_and_repeated_is_the_same_and_pays_for_no_reply_twice(
    method: Method, tmp_path: Path
) -> None:
    nodes, llm, again = chunks_of_archive(12), Mortal(), Mortal()
    whole = build(method, nodes, llm, tmp_path / "whole.db")
    build(method, nodes, again, tmp_path / "whole.db")  # asks what could not be read
    killed, resumed = Mortal(len(llm.prompts) // 2), Mortal()
    with pytest.raises(Killed):
        build(method, nodes, killed, tmp_path / "killed.db")
    index = build(method, nodes, resumed, tmp_path / "killed.db")
    assert contents(index) == contents(whole)
    answered = set(killed.prompts[:-1])
    assert answered & set(resumed.prompts) <= set(again.prompts)
    assert answered | set(resumed.prompts) == set(llm.prompts)
