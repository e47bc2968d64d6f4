"""Query and chat engines over every retriever, with every postprocessor and core's rerankers behind it."""

import asyncio

import pytest
from llama_index.core import Document
from llama_index.core.postprocessor import LLMRerank, LongContextReorder, SimilarityPostprocessor
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import IndexNode, NodeWithScore, QueryBundle, TextNode
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters
from tests.cases import QUESTION, TEXTS, Case, chunks, retriever
from tests.together.plugins import every_index, postprocessor
from tests.together.server import ANSWER, served


def both(engine, question: str = QUESTION) -> list:
    """The responses of the synchronous and of the asynchronous method, which must agree."""
    responses = [engine.query(question), asyncio.run(engine.aquery(question))]
    first, second = ([(n.node.node_id, n.score) for n in response.source_nodes] for response in responses)
    assert first == second
    return responses


def test_a_query_engine_answers_from_what_the_retriever_found(case: Case):
    retriever = case.build(chunks("d", 6)).as_retriever(similarity_top_k=4)
    with served() as (server, llm):
        for response in both(RetrieverQueryEngine.from_args(retriever, llm=llm)):
            assert str(response).strip() == ANSWER
            assert 1 <= len(response.source_nodes) <= 4
            assert all(n.node.get_content()[:20] in server.asked[-1].prompt for n in response.source_nodes)


def test_a_retriever_follows_objects_that_are_inserted_later(case: Case):
    index = case.build(chunks("d", 6))
    found = retriever(index, similarity_top_k=1)
    target = case.build(chunks("e", 1))
    index.insert_nodes([IndexNode(id_="see", text=QUESTION, index_id="e", obj=retriever(target))])
    assert [n.node.node_id for n in found.retrieve(QUESTION)] == ["e-0"]


def test_postprocessor_and_core_s_rerankers_stand_behind_one_another(with_postprocessor: Case):
    index = with_postprocessor.build([*chunks("d", 6), *chunks("e", 6), *chunks("f", 6)])
    with served() as (_, llm):
        chain = [
            postprocessor(with_postprocessor, index),
            SimilarityPostprocessor(similarity_cutoff=-100.0),  # drops what has no score
            LLMRerank(llm=llm, top_n=2),
            LongContextReorder(),
        ]
        retriever = index.as_retriever(similarity_top_k=5)
        engine = RetrieverQueryEngine.from_args(retriever, llm=llm, node_postprocessors=chain)
        processed = chain[0].postprocess_nodes(retriever.retrieve(QUESTION), QueryBundle(QUESTION))
        # The reranker prefers the second; a method may have put one node in the place of all.
        wanted = [processed[i].node.node_id for i in (1, 0) if i < len(processed)]
        for response in both(engine):
            assert str(response).strip() == ANSWER
            best_first = sorted(response.source_nodes, key=lambda n: -n.score)
            assert [n.node.node_id for n in best_first] == wanted


def test_a_core_reranker_alone_takes_our_nodes(case: Case):
    retriever = case.build(chunks("d", 6)).as_retriever(similarity_top_k=5)
    with served() as (_, llm):
        found = retriever.retrieve(QUESTION)
        reranked = LLMRerank(llm=llm, top_n=2).postprocess_nodes(found, QueryBundle(QUESTION))
        assert [n.node.node_id for n in reranked] == [found[1].node.node_id, found[0].node.node_id]
        kept = SimilarityPostprocessor(similarity_cutoff=-100.0).postprocess_nodes(found)
        assert len(kept) == len(found)
        reordered = LongContextReorder().postprocess_nodes(found)
        assert sorted(n.node.node_id for n in reordered) == sorted(n.node.node_id for n in found)


def test_every_postprocessor_takes_the_nodes_of_every_retriever(with_postprocessor: Case):
    indexes = every_index(chunks("d", 6))
    processor = postprocessor(with_postprocessor, indexes[with_postprocessor.name])
    stranger = NodeWithScore(node=TextNode(text="Nobody knows me.", id_="stranger"), score=0.01)
    for index in indexes.values():
        found = [*index.as_retriever(similarity_top_k=5).retrieve(QUESTION), stranger]
        before = [(n.node.node_id, n.score, n.node.hash) for n in found]
        results = processor.postprocess_nodes(found, QueryBundle(QUESTION))
        assert [(n.node.node_id, n.score, n.node.hash) for n in found] == before
        assert "stranger" in {n.node.node_id for n in results}
        assert len({n.node.node_id for n in results}) == len(results) > 1
        assert all(type(n.score) is float for n in results)
        again = asyncio.run(processor.apostprocess_nodes(found, QueryBundle(QUESTION)))
        assert [(n.node.node_id, n.score) for n in again] == [(n.node.node_id, n.score) for n in results]


def test_answers_stream(case: Case):
    retriever = case.build(chunks("d", 3)).as_retriever(similarity_top_k=2)
    with served() as (_, llm):
        engine = RetrieverQueryEngine.from_args(retriever, llm=llm, streaming=True)
        response = engine.query(QUESTION)
        pieces = list(response.response_gen)
        assert len(pieces) > 1
        assert "".join(pieces).strip() == ANSWER

        async def stream() -> list[str]:
            response = await engine.aquery(QUESTION)
            return [piece async for piece in response.async_response_gen()]

        assert "".join(asyncio.run(stream())).strip() == ANSWER


@pytest.mark.parametrize("mode", ["best", "context", "condense_question", "condense_plus_context"])
def test_chat_engines_talk(case: Case, mode: str):
    index = case.build(chunks("d", 3))
    with served() as (_, llm):
        chat = index.as_chat_engine(chat_mode=mode, llm=llm, similarity_top_k=2)
        first = chat.chat(QUESTION)
        assert str(first).strip() == ANSWER
        assert first.source_nodes
        assert str(asyncio.run(chat.achat("And then?"))).strip() == ANSWER
        assert "".join(chat.stream_chat("Who?").response_gen).strip() == ANSWER
        assert len(chat.chat_history) == 6


def test_a_filter_holds_from_the_retriever_to_the_prompt(case: Case):
    documents = [
        Document(text=text, id_=f"D{i}", metadata={"tenant": "ours" if i % 2 else "theirs"})
        for i, text in enumerate(TEXTS)
    ]
    index = case.from_documents(documents)
    ours = MetadataFilters(filters=[MetadataFilter(key="tenant", value="ours")])
    with served() as (server, llm):
        for response in both(index.as_query_engine(llm=llm, similarity_top_k=10, filters=ours)):
            assert response.source_nodes
            assert not any(text in server.asked[-1].prompt for text in TEXTS[::2])
            assert any(text in server.asked[-1].prompt for text in TEXTS[1::2])
