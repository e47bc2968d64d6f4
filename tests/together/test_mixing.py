"""Our retrievers beside one another and beside core's: fused, routed, asked part by part."""

import asyncio

import pytest
from llama_index.core import QueryBundle, StorageContext, VectorStoreIndex
from llama_index.core.query_engine import RouterQueryEngine, SubQuestionQueryEngine
from llama_index.core.question_gen import LLMQuestionGenerator
from llama_index.core.retrievers import BaseRetriever, QueryFusionRetriever, RouterRetriever
from llama_index.core.selectors import EmbeddingSingleSelector, LLMMultiSelector, LLMSingleSelector
from llama_index.core.tools import QueryEngineTool, RetrieverTool
from llama_index.retrievers.bm25 import BM25Retriever
from tests.cases import QUESTION, chunks
from tests.together.plugins import every_index
from tests.together.server import ANSWER, answer, served

from llama_index.ragkit.testing import HashEmbedding


def every_retriever() -> dict[str, BaseRetriever]:
    """All of ours, core's vector retriever and BM25, over the same nodes in one storage context."""
    nodes = [*chunks("d", 6), *chunks("e", 6)]
    context = StorageContext.from_defaults()
    core = VectorStoreIndex(nodes, storage_context=context, embed_model=HashEmbedding())
    ours = {name: i.as_retriever(similarity_top_k=5) for name, i in every_index(nodes, context).items()}
    bm25 = BM25Retriever.from_defaults(docstore=context.docstore, similarity_top_k=5)
    return {**ours, "vector": core.as_retriever(similarity_top_k=5), "bm25": bm25}


@pytest.mark.parametrize("mode", ["reciprocal_rerank", "relative_score", "dist_based_score", "simple"])
def test_all_retrievers_are_fused(mode: str):
    retrievers = every_retriever()
    before = {name: [(n.node.node_id, n.score) for n in r.retrieve(QUESTION)] for name, r in retrievers.items()}
    with served() as (_, llm):
        fused = QueryFusionRetriever(
            list(retrievers.values()), llm=llm, num_queries=1, mode=mode, use_async=False, similarity_top_k=6
        )
        found = fused.retrieve(QUESTION)
        assert len(found) == 6
        assert len({n.node.get_content() for n in found}) == 6
        assert all("punched cards" in n.node.get_content().lower() for n in found[:2])
        bundle = QueryBundle(QUESTION, embedding=[9.0])  # core's vector retriever leaves its own there
        ours = [r for name, r in retrievers.items() if name not in ("vector", "bm25")]
        for retriever in ours:
            retriever.retrieve(bundle)
        assert bundle.embedding == [9.0]
        concurrent = QueryFusionRetriever(
            list(retrievers.values()), llm=llm, num_queries=1, mode=mode, use_async=True, similarity_top_k=6
        )
        for again in (concurrent.retrieve(QUESTION), asyncio.run(concurrent.aretrieve(QUESTION))):
            assert {n.node.node_id for n in again} == {n.node.node_id for n in found}
    # Fusion writes into the scores that it is given: what a retriever gives is its own each time.
    assert before == {name: [(n.node.node_id, n.score) for n in r.retrieve(QUESTION)] for name, r in retrievers.items()}


def test_queries_that_an_llm_makes_up_are_fused_too():
    with served() as (server, llm):
        fused = QueryFusionRetriever(
            list(every_retriever().values()), llm=llm, num_queries=3, mode="reciprocal_rerank", similarity_top_k=8
        )
        texts = [n.node.get_content() for n in fused.retrieve(QUESTION)]
        assert len(server.asked) == 1
        assert any("Babbage drew" in text for text in texts)


def test_a_router_picks_the_retriever():
    retrievers = every_retriever()
    tools = [RetrieverTool.from_defaults(r, name=name, description=f"{name} search") for name, r in retrievers.items()]
    for i, name in enumerate(retrievers):
        with served(lambda asked, i=i: f'[{{"choice": {i + 1}, "reason": "so"}}]') as (_, llm):
            router = RouterRetriever(LLMSingleSelector.from_defaults(llm=llm), tools, llm=llm)
            found = router.retrieve(QUESTION)
            assert [n.node.node_id for n in found] == [n.node.node_id for n in retrievers[name].retrieve(QUESTION)]
            assert {n.node.node_id for n in asyncio.run(router.aretrieve(QUESTION))} == {n.node.node_id for n in found}


def test_a_router_asks_several_retrievers_at_once():
    retrievers = every_retriever()
    tools = [RetrieverTool.from_defaults(r, name=name, description=f"{name} search") for name, r in retrievers.items()]
    choices = ", ".join(f'{{"choice": {i + 1}, "reason": "so"}}' for i in range(len(tools)))
    with served(lambda asked: f"[{choices}]") as (_, llm):
        router = RouterRetriever(LLMMultiSelector.from_defaults(llm=llm, max_outputs=len(tools)), tools, llm=llm)
        wanted = {n.node.node_id for r in retrievers.values() for n in r.retrieve(QUESTION)}
        assert {n.node.node_id for n in router.retrieve(QUESTION)} == wanted
        assert {n.node.node_id for n in asyncio.run(router.aretrieve(QUESTION))} == wanted


def test_engines_are_routed_and_asked_part_by_part():
    indexes = every_index(chunks("d", 6))
    with served(answer, context_window=20_000) as (_, llm):
        tools = [
            QueryEngineTool.from_defaults(
                index.as_query_engine(llm=llm, similarity_top_k=3), name=f"about_{name}", description=f"All of {name}."
            )
            for name, index in indexes.items()
        ]
        selector = EmbeddingSingleSelector.from_defaults(embed_model=HashEmbedding())
        routed = RouterQueryEngine(selector=selector, query_engine_tools=tools, llm=llm)
        assert routed.query(QUESTION).source_nodes
        for use_async in (False, True):
            parts = SubQuestionQueryEngine.from_defaults(
                tools,
                question_gen=LLMQuestionGenerator.from_defaults(llm=llm),
                llm=llm,
                use_async=use_async,
                verbose=False,
            )
            responses = [parts.query(QUESTION), asyncio.run(parts.aquery(QUESTION))]
            for response in responses:
                assert str(response).strip() == ANSWER
                asked = " ".join(n.node.get_content() for n in response.source_nodes)
                assert all(f"Who of about_{name}?" in asked for name in indexes)
