"""What each method costs over the sample archive: the tables of docs/costs.md.

    python -m examples.costs

Without an LLM the indexes are built and asked, and every text that the embedding model is given is counted; with an LLM
the costs of the build are those of `estimate`, since none is called.
"""

import json
import os
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")

from benchmarks.embedding import minilm
from examples.demo_methods import METHODS, Method
from examples.sample import ARCHIVE, archive
from llama_index.core import Document, Settings
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.llms import MockLLM
from llama_index.core.node_parser import SentenceSplitter

from llama_index.mrag import SplitEmbedding

SPLITTER = SentenceSplitter(chunk_size=128, chunk_overlap=0)
HEADS = 12
PRICES = {"prompt": 0.15, "completion": 0.6}  # dollars a million tokens, as an example


class Counted(BaseEmbedding):
    """Counts the texts and questions that another model is given."""

    model: BaseEmbedding
    _texts: int = PrivateAttr(default=0)

    @property
    def texts(self) -> int:
        """Texts and questions so far."""
        return self._texts

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        self._texts += len(texts)
        return self.model.get_text_embedding_batch(texts)

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._get_text_embeddings([text])[0]

    def _get_query_embedding(self, query: str) -> list[float]:
        self._texts += 1
        return self.model.get_query_embedding(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_query_embedding(query)


def without_llm(method: Method, documents: Sequence[Document], questions: Sequence[str]) -> tuple[float, float]:
    """Embedded texts a chunk of a build, and the mean of them a question."""
    counted = Counted(model=minilm(), model_name="counted")
    embed_model: BaseEmbedding = SplitEmbedding(counted, num_heads=HEADS) if method.name == "mrag" else counted
    parts = {**method.offline(), "embed_model": embed_model, "transformations": [SPLITTER]}
    index = method.cls.from_documents(documents, **parts)
    chunks, built = len(index.docstore.docs), counted.texts
    retriever = index.as_retriever()
    retriever.retrieve(questions[0])  # what the first question prepares is part of no other
    asked = []
    for question in questions[1:]:
        before = counted.texts
        retriever.retrieve(question)
        asked.append(counted.texts - before)
    return built / chunks, statistics.mean(asked)


def with_llm(method: Method, documents: Sequence[Document], chunks: int) -> Mapping[str, float]:
    """Calls, tokens and cost a chunk, by `estimate`, with the default extractor and summarizer."""
    work = method.cls.estimate(documents, transformations=[SPLITTER], prices=PRICES)
    names = ("calls", "prompt_tokens", "completion_tokens", "embedded_texts", "cost")
    return {name: getattr(work, name) / chunks for name in names}


def main() -> None:
    """Print both tables as Markdown."""
    Settings.llm = MockLLM()  # estimates call nothing
    documents: Any = archive()
    rows = (ARCHIVE / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    questions = [json.loads(row)["question"] for row in rows]
    nodes = SPLITTER.get_nodes_from_documents(documents)
    tokens = sum(len(Settings.tokenizer(node.text)) for node in nodes)
    print(f"{len(documents)} documents, {len(nodes)} chunks of {tokens / len(nodes):.0f} tokens on average\n")
    print("| method | embedded texts a chunk | embedded texts a question |\n|---|---|---|")
    for method in METHODS:
        built, asked = without_llm(method, documents, questions)
        print(f"| {method.name} | {built:.2f} | {asked:.2f} |")
    print(
        "\n| method | LLM calls a chunk | tokens of prompts | tokens of replies | $ for 1,000 chunks | embedded texts |"
    )
    print("|---|---|---|---|---|---|")
    for method in METHODS:
        work = with_llm(method, documents, len(nodes))
        print(
            f"| {method.name} | {work['calls']:.2f} | {work['prompt_tokens']:,.0f} | {work['completion_tokens']:,.0f} |"
            f" {1000 * work['cost']:.2f} | {work['embedded_texts']:.2f} |"
        )


if __name__ == "__main__":
    main()
