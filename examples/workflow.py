"""A Workflow instead of a query pipeline: all retrievers run concurrently, then one answer is synthesised.

    python -m examples.workflow "Who kept the light?"

It replaces `QueryPipeline`, which core 0.14 no longer has. It needs no API key and no network.
"""

import asyncio
import sys
from itertools import zip_longest

from benchmarks.embedding import minilm
from examples.demo_methods import METHODS
from examples.extracted_answer import ExtractedAnswer
from examples.sample import archive
from llama_index.core import Settings, StorageContext
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.llms import MockLLM
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.response_synthesizers import BaseSynthesizer
from llama_index.core.schema import NodeWithScore
from llama_index.core.workflow import Event, StartEvent, StopEvent, Workflow, step

QUESTION = "As a grown man, what calling did the infant have whose cradle floated off with a cat aboard?"


class Retrieved(Event):
    question: str
    nodes: list[NodeWithScore]


class AskEveryMethod(Workflow):
    """Two steps; the types of their events determine the order."""

    def __init__(self, retrievers: list[BaseRetriever], synthesizer: BaseSynthesizer) -> None:
        super().__init__(timeout=60)
        self.retrievers = retrievers
        self.synthesizer = synthesizer

    @step
    async def retrieve(self, event: StartEvent) -> Retrieved:
        lists = await asyncio.gather(*(retriever.aretrieve(event.question) for retriever in self.retrievers))
        best: dict[str, NodeWithScore] = {}
        for of_one_rank in zip_longest(*lists):  # rank 1 of each method, then rank 2 of each
            for node in filter(None, of_one_rank):
                best.setdefault(node.node.node_id, node)
        return Retrieved(question=event.question, nodes=list(best.values()))

    @step
    async def answer(self, event: Retrieved) -> StopEvent:
        return StopEvent(result=await self.synthesizer.asynthesize(event.question, nodes=event.nodes))


async def main(question: str) -> None:
    Settings.llm = MockLLM()  # never called: the answer consists of sentences of the texts
    Settings.embed_model = minilm()
    nodes = SentenceSplitter(chunk_size=128, chunk_overlap=0).get_nodes_from_documents(archive()[:20])
    context = StorageContext.from_defaults()
    retrievers = []
    for method in METHODS:
        components = {**method.offline(), **method.models(), **method.settings}
        index = method.cls(nodes, storage_context=context, **components)
        retrievers.append(index.as_retriever(similarity_top_k=3, **method.passages))
    workflow = AskEveryMethod(retrievers, ExtractedAnswer())
    response = await workflow.run(question=question)
    print(f"{question}\n{response}")
    for source in response.source_nodes:
        print("   ", source.node.metadata.get("title", "derived from several chunks"))


if __name__ == "__main__":
    asyncio.run(main(" ".join(sys.argv[1:]) or QUESTION))
