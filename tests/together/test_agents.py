"""Our engines in agents and workflows, and everything under a running event loop."""

import asyncio
import json

from llama_index.core import Document
from llama_index.core.agent.workflow import FunctionAgent, ReActAgent
from llama_index.core.schema import NodeWithScore
from llama_index.core.tools import QueryEngineTool
from llama_index.core.workflow import Context, Event, StartEvent, StopEvent, Workflow, step
from tests.cases import QUESTION, Case, ask, chunks
from tests.llm_server import Asked, Reply
from tests.together.plugins import every_index
from tests.together.server import ANSWER, served


def calls_a_tool_first(asked: Asked) -> Reply | str:
    """Call the first tool once; answer the question of its engine, then that of the user."""
    if asked.body.get("tools") and not any(m["role"] == "tool" for m in asked.body["messages"]):
        return Reply(tool_arguments=json.dumps({"input": QUESTION}))
    return "Cards, says the engine." if asked.body.get("tools") else ANSWER


def test_a_function_agent_uses_our_engine(case: Case):
    index = case.build(chunks("d", 4))
    with served(calls_a_tool_first, is_function_calling_model=True) as (server, llm):
        tool = QueryEngineTool.from_defaults(index.as_query_engine(llm=llm), name="engines", description="On engines.")
        agent = FunctionAgent(tools=[tool], llm=llm, streaming=False)

        async def talk():
            return await agent.run(user_msg="What did engines use?")

        output = asyncio.run(talk())
        assert str(output) == "Cards, says the engine."
        (call,) = output.tool_calls
        assert call.tool_output.content.strip() == ANSWER
        assert call.tool_output.raw_output.source_nodes
        assert any("Analytical Engine used punched cards" in asked.prompt for asked in server.asked)


def test_a_reasoning_agent_uses_our_engine(case: Case):
    def reasons(asked: Asked) -> str:
        if "Thought:" not in asked.prompt:
            return ANSWER  # the engine's own question
        if f"Observation: {ANSWER}" in asked.prompt:
            return "Thought: I can answer without using any more tools.\nAnswer: Cards, says the engine."
        return f"Thought: I need the engine.\nAction: engines\nAction Input: {json.dumps({'input': QUESTION})}"

    index = case.build(chunks("d", 4))
    with served(reasons) as (_, llm):
        tool = QueryEngineTool.from_defaults(index.as_query_engine(llm=llm), name="engines", description="On engines.")

        async def talk():
            return await ReActAgent(tools=[tool], llm=llm).run(user_msg="What did engines use?")

        assert str(asyncio.run(talk())) == "Cards, says the engine."


class Found(Event):
    nodes: list[NodeWithScore]


class AskAll(Workflow):
    """Every retriever at once, then one list: what a `QueryPipeline` did before core 0.14."""

    def __init__(self, retrievers: list, **kwargs) -> None:
        super().__init__(**kwargs)
        self.retrievers = retrievers

    @step
    async def retrieve(self, ctx: Context, ev: StartEvent) -> Found:
        found = await asyncio.gather(*(retriever.aretrieve(ev.question) for retriever in self.retrievers))
        return Found(nodes=[node for nodes in found for node in nodes])

    @step
    async def gather(self, ctx: Context, ev: Found) -> StopEvent:
        return StopEvent(result={n.node.node_id for n in ev.nodes})


def test_a_workflow_asks_all_of_ours_at_once():
    indexes = every_index(chunks("d", 6))
    retrievers = [index.as_retriever(similarity_top_k=3) for index in indexes.values()]

    async def run() -> set[str]:
        return await AskAll(retrievers).run(question=QUESTION)

    wanted = {n.node.node_id for retriever in retrievers for n in retriever.retrieve(QUESTION)}
    assert asyncio.run(run()) == wanted


def test_synchronous_methods_work_inside_a_running_loop_and_leave_the_client_usable(case: Case):
    twin = case.build(chunks("d", 4))
    twin.insert(Document(text="Zanzibar exports cloves.", id_="z"))
    with served() as (_, llm):

        async def work() -> None:
            index = case.build(chunks("d", 4))
            index.insert(Document(text="Zanzibar exports cloves.", id_="z"))
            assert ask(index) == ask(twin)
            engine = index.as_query_engine(llm=llm)
            assert str(engine.query(QUESTION)).strip() == ANSWER
            assert str(await engine.aquery(QUESTION)).strip() == ANSWER
            answers = await asyncio.gather(*(index.as_query_engine(llm=llm).aquery(QUESTION) for _ in range(3)))
            assert {str(one).strip() for one in answers} == {ANSWER}
            await index.adelete_ref_doc("z", delete_from_docstore=True)
            assert set(index.ref_doc_info) == {"d"}

        asyncio.run(work())
        asyncio.run(work())
