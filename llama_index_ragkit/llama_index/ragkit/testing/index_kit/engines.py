"""Does a retriever of the index work where core's own retrievers do, and its postprocessor behind any retriever?"""

import asyncio
import json
from typing import Any

import pytest
from llama_index.core import Document, StorageContext, VectorStoreIndex
from llama_index.core.agent.workflow import ReActAgent
from llama_index.core.base.response.schema import StreamingResponse
from llama_index.core.postprocessor import LLMRerank, LongContextReorder, SimilarityPostprocessor
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.query_engine import RetrieverQueryEngine, RouterQueryEngine
from llama_index.core.retrievers import QueryFusionRetriever, RouterRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from llama_index.core.selectors import EmbeddingSingleSelector
from llama_index.core.tools import QueryEngineTool, RetrieverTool
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters
from llama_index.core.workflow import StartEvent, StopEvent, Workflow, step

from llama_index.ragkit.errors import ConfigurationError
from llama_index.ragkit.testing.corpus import QUESTION, TEXTS, chunks
from llama_index.ragkit.testing.index_kit.harness import Index, IndexHarness, SyncOrAsync, both_ways, call
from llama_index.ragkit.testing.models import ScriptedLLM

__all__ = ["EngineTests", "FusionTests", "PostprocessorTests"]

ANSWER = "The Analytical Engine did."


class FusionTests(IndexHarness):
    """`QueryFusionRetriever` combines this index with core's own, in each of its modes."""

    @pytest.mark.parametrize("mode", ["reciprocal_rerank", "relative_score", "dist_based_score", "simple"])
    @pytest.mark.parametrize("use_async", [False, True], ids=["sync", "async"])
    def test_results_are_fused(self, mode: Any, use_async: bool) -> None:
        """Results of both come back, those of both only once, and the retrievers stay as they were."""
        context = StorageContext.from_defaults()
        ours = self.retriever(self.build(chunks("d", 6), storage_context=context), similarity_top_k=5)
        core = VectorStoreIndex(
            [*chunks("d", 3), *chunks("e", 2)], storage_context=context, embed_model=self.embed_model()
        )
        before = [(result.node.node_id, result.score) for result in ours.retrieve(QUESTION)]
        fusion = QueryFusionRetriever(
            [ours, core.as_retriever(similarity_top_k=5)],
            llm=ScriptedLLM(""),
            num_queries=1,
            mode=mode,
            use_async=use_async,
            similarity_top_k=10,
        )
        texts = [result.node.get_content() for result in fusion.retrieve(QUESTION)]
        assert any("d 3" in text for text in texts), "only this index has it"
        assert any("e 1" in text for text in texts), "only core's index has it"
        assert len(set(texts)) == len(texts)
        assert [(result.node.node_id, result.score) for result in ours.retrieve(QUESTION)] == before


class EngineTests(IndexHarness):
    """Query and chat engines, routers, rerankers, workflows and agents work over the index."""

    @both_ways
    def test_a_query_engine_answers_from_what_was_retrieved(self, how: SyncOrAsync) -> None:
        """The LLM is shown the source nodes of the response."""
        llm = ScriptedLLM(ANSWER)
        retriever = self.retriever(self.build(chunks("d", 6)), similarity_top_k=3)
        response = call(how, RetrieverQueryEngine.from_args(retriever, llm=llm), "query", QUESTION)
        assert str(response) == ANSWER
        expected = [(result.node.node_id, result.score) for result in retriever.retrieve(QUESTION)]
        assert [(result.node.node_id, result.score) for result in response.source_nodes] == expected
        assert all(result.node.get_content() in llm.prompts[-1] for result in response.source_nodes)

    @both_ways
    def test_the_index_makes_a_query_engine(self, how: SyncOrAsync) -> None:
        """`as_query_engine` passes on the retriever's options, and a filter holds up to the prompt."""
        documents = [
            Document(text=text, id_=f"D{i}", metadata={"tenant": "odd" if i % 2 else "even"})
            for i, text in enumerate(TEXTS)
        ]
        llm = ScriptedLLM(ANSWER)
        odd = MetadataFilters(filters=[MetadataFilter(key="tenant", value="odd")])
        engine = self.from_documents(documents).as_query_engine(llm=llm, similarity_top_k=10, filters=odd)
        response = call(how, engine, "query", QUESTION)
        assert str(response) == ANSWER
        assert response.source_nodes
        assert any(text in llm.prompts[-1] for text in TEXTS[1::2])
        assert not any(text in llm.prompts[-1] for text in TEXTS[::2])

    def test_an_answer_is_streamed(self) -> None:
        """In pieces that make up the whole."""
        retriever = self.retriever(self.build(chunks("d", 3)), similarity_top_k=2)
        engine = RetrieverQueryEngine.from_args(retriever, llm=ScriptedLLM(ANSWER), streaming=True)
        response = engine.query(QUESTION)
        assert isinstance(response, StreamingResponse)
        pieces = list(response.response_gen)
        assert len(pieces) > 1
        assert "".join(pieces) == ANSWER

    @pytest.mark.parametrize("mode", ["context", "condense_question", "condense_plus_context"])
    def test_a_chat_engine_talks(self, mode: Any) -> None:
        """It answers from the index, again and again, and remembers what was said."""
        chat = self.build(chunks("d", 3)).as_chat_engine(chat_mode=mode, llm=ScriptedLLM(ANSWER), similarity_top_k=2)
        first = chat.chat(QUESTION)
        assert first.source_nodes
        assert str(first) == str(asyncio.run(chat.achat("And then?"))) == ANSWER
        assert len(chat.chat_history) == 4

    def test_routers_reach_the_index(self) -> None:
        """As a retriever and as an engine among the tools."""
        index = self.build(chunks("d", 4))
        selector = EmbeddingSingleSelector.from_defaults(embed_model=self.embed_model())
        about: dict[str, Any] = {"name": "engines", "description": "On engines."}
        retriever = self.retriever(index, similarity_top_k=3)
        router = RouterRetriever(selector, [RetrieverTool.from_defaults(retriever, **about)], llm=ScriptedLLM(""))
        expected = [result.node.node_id for result in retriever.retrieve(QUESTION)]
        assert [result.node.node_id for result in router.retrieve(QUESTION)] == expected
        engine = RetrieverQueryEngine.from_args(retriever, llm=ScriptedLLM(ANSWER))
        tools = [QueryEngineTool.from_defaults(engine, **about)]
        assert RouterQueryEngine(selector, tools, llm=ScriptedLLM("")).query(QUESTION).source_nodes

    def test_rerankers_of_core_take_the_results(self) -> None:
        """By an LLM, by a cutoff and by position."""
        found = self.retriever(self.build(chunks("d", 6)), similarity_top_k=4).retrieve(QUESTION)
        ids = [result.node.node_id for result in found]
        second_first = ScriptedLLM("Doc: 2, Relevance: 9\nDoc: 1, Relevance: 4")
        reranked = LLMRerank(llm=second_first, top_n=2).postprocess_nodes(list(found), QueryBundle(QUESTION))
        assert [result.node.node_id for result in reranked] == [ids[1], ids[0]]
        kept = SimilarityPostprocessor(similarity_cutoff=-1e9).postprocess_nodes(list(found))
        assert len(kept) == len(found)
        reordered = LongContextReorder().postprocess_nodes(list(found))
        assert sorted(result.node.node_id for result in reordered) == sorted(ids)

    def test_a_workflow_awaits_the_retriever(self) -> None:
        """As a step of core's workflows."""
        retriever = self.retriever(self.build(chunks("d", 4)), similarity_top_k=3)

        class Ask(Workflow):
            @step
            async def ask(self, event: StartEvent) -> StopEvent:
                found = await retriever.aretrieve(event.question)
                return StopEvent(result=[result.node.node_id for result in found])

        async def run() -> Any:
            return await Ask().run(question=QUESTION)

        assert asyncio.run(run()) == [result.node.node_id for result in retriever.retrieve(QUESTION)]

    def test_an_agent_uses_the_engine_as_a_tool(self) -> None:
        """The tool's output is the engine's answer, with its sources."""

        def reason(prompt: str) -> str:
            if "Thought:" not in prompt:
                return ANSWER  # the engine's own question
            if f"Observation: {ANSWER}" in prompt:
                return "Thought: I can answer without using any more tools.\nAnswer: Cards, says the engine."
            return f"Thought: I need the engine.\nAction: engines\nAction Input: {json.dumps({'input': QUESTION})}"

        llm = ScriptedLLM(reason)
        engine = self.build(chunks("d", 4)).as_query_engine(llm=llm)
        tool = QueryEngineTool.from_defaults(engine, name="engines", description="On engines.")

        async def talk() -> Any:
            return await ReActAgent(tools=[tool], llm=llm).run(user_msg="What did engines use?")

        output = asyncio.run(talk())
        assert str(output) == "Cards, says the engine."
        assert any("punched cards" in prompt for prompt in llm.prompts if "Thought:" not in prompt)


class PostprocessorTests(IndexHarness):
    """A method's postprocessor takes the nodes of any retriever, and drops none for being unknown.

    Inherit it in addition to `IndexConformance` if the method has a postprocessor, and override `postprocessor`.
    """

    def postprocessor(self, index: Index) -> BaseNodePostprocessor:
        """The method's postprocessor over an index, with its defaults; override it."""
        raise ConfigurationError(f"{type(self).__name__} must override postprocessor() to use PostprocessorTests.")

    def _over_core(self) -> tuple[BaseNodePostprocessor, list[NodeWithScore]]:
        """The postprocessor, and what core's own index retrieves over the same nodes."""
        nodes, context = chunks("d", 6), StorageContext.from_defaults()
        index = self.build(nodes, storage_context=context)
        core = VectorStoreIndex(nodes, storage_context=context, embed_model=self.embed_model())
        return self.postprocessor(index), core.as_retriever(similarity_top_k=4).retrieve(QUESTION)

    def test_what_it_is_given_is_not_changed(self) -> None:
        """Results are fresh: the retriever's own nodes and scores stay as they are."""
        processor, given = self._over_core()
        before = [(result.node.node_id, result.node.hash, result.score) for result in given]
        for result in processor.postprocess_nodes(given, QueryBundle(QUESTION)):
            result.score = -1.0
        assert [(result.node.node_id, result.node.hash, result.score) for result in given] == before

    def test_its_results_are_scored_and_unique(self) -> None:
        """Python floats, and no node twice."""
        processor, given = self._over_core()
        results = processor.postprocess_nodes(given, QueryBundle(QUESTION))
        assert results
        assert all(type(result.score) is float for result in results)
        assert len({result.node.node_id for result in results}) == len(results)

    def test_nodes_that_it_does_not_know_are_kept(self) -> None:
        """A node of another index passes through."""
        processor, given = self._over_core()
        stranger = NodeWithScore(node=TextNode(id_="stranger", text="Nobody knows me."), score=0.01)
        results = processor.postprocess_nodes([*given, stranger], QueryBundle(QUESTION))
        assert "stranger" in {result.node.node_id for result in results}

    def test_it_does_the_same_asynchronously(self) -> None:
        """`apostprocess_nodes` gives what `postprocess_nodes` gives."""
        processor, given = self._over_core()
        results = processor.postprocess_nodes(given, QueryBundle(QUESTION))
        awaited = asyncio.run(processor.apostprocess_nodes(given, QueryBundle(QUESTION)))
        assert [(r.node.node_id, r.score) for r in awaited] == [(r.node.node_id, r.score) for r in results]

    def test_nothing_stays_nothing(self) -> None:
        """Without nodes there is no result."""
        processor, _ = self._over_core()
        assert processor.postprocess_nodes([], QueryBundle(QUESTION)) == []

    def test_it_does_without_a_question(self) -> None:
        """Core calls postprocessors without a query bundle, too."""
        processor, given = self._over_core()
        assert processor.postprocess_nodes(given)
