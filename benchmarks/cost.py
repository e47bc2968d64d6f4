"""`python -m benchmarks.cost METHOD --data DIR`: what an index costs, as one JSON object.

Seconds of building (beside those of a `VectorStoreIndex` on the same nodes), median milliseconds of a query, memory
that the process gained, and calls of the LLM. Embeddings come from the disk cache where they are in it: what the
embedding model takes is the same for every method that embeds the same texts, and is printed as `embedded`, the
texts that a first run embeds.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from llama_index.core import Settings, VectorStoreIndex
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.indices.base import BaseIndex
from llama_index.core.llms import MockLLM

from benchmarks.data import load
from benchmarks.embedding import minilm
from benchmarks.measuring import Times, resident_mb, timed
from benchmarks.systems import METHODS, adapter

__all__ = ["main", "measure"]

TOP_K = 10
QUESTIONS = 50


class Counting(BaseEmbedding):
    """Counts the texts that a model is asked for, each once, as the cache would."""

    model: Any
    _seen: set[str] = PrivateAttr(default_factory=set)

    @property
    def texts(self) -> int:
        """Distinct texts so far."""
        return len(self._seen)

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        self._seen.update(texts)
        return self.model.get_text_embedding_batch(texts)  # type: ignore[no-any-return]

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._get_text_embeddings([text])[0]

    def _get_query_embedding(self, query: str) -> list[float]:
        return self.model.get_query_embedding(query)  # type: ignore[no-any-return]

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_query_embedding(query)


class CountingLLM(MockLLM):
    """Counts its calls; no benchmark should make one."""

    _calls: int = PrivateAttr(default=0)

    @property
    def calls(self) -> int:
        """Completions and chats so far."""
        return self._calls

    def complete(self, *args: Any, **kwargs: Any) -> Any:
        """Count, then answer with the prompt."""
        self._calls += 1
        return super().complete(*args, **kwargs)


def measure(method: str, folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Build the index of a method over a folder, and ask it."""
    task = load(folder)[0]
    Settings.llm = llm = CountingLLM()
    embed_model = Counting(model=minilm(), embed_batch_size=2048)
    embed_model.get_text_embedding_batch([node.get_content() for node in task.corpus.nodes])  # warms cache and model
    dense, dense_s, _ = timed(lambda: VectorStoreIndex(task.corpus.fresh_nodes(), embed_model=embed_model))
    chunks, before = embed_model.texts, resident_mb()
    index, index_s, _ = timed(lambda: adapter(method).make_index(task.corpus, embed_model, options))  # type: ignore[attr-defined]
    gained = resident_mb() - before
    questions = [query.question for query in task.queries[:QUESTIONS]]
    return {
        "method": method,
        "data": folder.resolve().name,
        "nodes": len(task.corpus.nodes),
        "index_s": round(index_s, 2),
        "vector_store_index_s": round(dense_s, 2),
        "embedded": embed_model.texts - chunks + len(task.corpus.nodes),
        "query_ms": median_ms(index, questions),
        "vector_store_index_query_ms": median_ms(dense, questions),
        "gained_mb": round(gained),
        "llm_calls": llm.calls,
    }


def median_ms(index: BaseIndex[Any], questions: Sequence[str]) -> float:
    """Median milliseconds of a question whose embedding is known."""
    retriever = index.as_retriever(similarity_top_k=TOP_K)
    for question in questions:
        retriever.retrieve(question)  # the embeddings of the questions are not what is measured
    times = Times()
    for question in questions:
        times.run(partial(retriever.retrieve, question))
    return round(times.median_ms, 2)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmark from the command line."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cost", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("method", choices=sorted(METHODS))
    parser.add_argument("--data", type=Path, required=True)
    for method in [argument for argument in given if argument in METHODS][:1]:
        adapter(method).add_arguments(parser)  # type: ignore[attr-defined]
    options = parser.parse_args(given)
    print(json.dumps(measure(options.method, options.data, options)))


if __name__ == "__main__":
    main()
