"""What a handler of LlamaIndex's instrumentation sees, and prompts that a user replaces."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.instrumentation.span_handlers import SimpleSpanHandler
from llama_index.core.prompts import PromptTemplate
from llama_index.core.query_engine import RetrieverQueryEngine
from tests.cases import QUESTION, Case, chunks
from tests.together.plugins import postprocessor, with_llm
from tests.together.server import served

from llama_index.ragkit.errors import LanguageModelError


class Recorder(BaseEventHandler):
    events: list[Any] = []  # noqa: RUF012 - a field

    @classmethod
    def class_name(cls) -> str:
        return "Recorder"

    def handle(self, event: Any, **kwargs: Any) -> None:
        self.events.append(event)


@contextmanager
def recorded() -> Iterator[tuple[list[Any], SimpleSpanHandler]]:
    dispatcher = get_dispatcher()
    recorder, spans = Recorder(events=[]), SimpleSpanHandler()
    dispatcher.add_event_handler(recorder)
    dispatcher.add_span_handler(spans)
    try:
        yield recorder.events, spans
    finally:
        dispatcher.event_handlers.remove(recorder)
        dispatcher.span_handlers.remove(spans)


@pytest.mark.parametrize("how", ["sync", "async"])
def test_a_handler_sees_the_query_from_beginning_to_end(with_postprocessor: Case, how: str):
    index = with_postprocessor.build(chunks("d", 6))
    retriever = index.as_retriever(similarity_top_k=4)
    with served() as (_, llm):
        engine = RetrieverQueryEngine.from_args(
            retriever, llm=llm, node_postprocessors=[postprocessor(with_postprocessor, index)]
        )
        with recorded() as (events, spans):
            response = engine.query(QUESTION) if how == "sync" else asyncio.run(engine.aquery(QUESTION))
    order = [
        "QueryStartEvent",
        "RetrievalStartEvent",
        "RetrievalEndEvent",
        "ReRankStartEvent",
        "ReRankEndEvent",
        "SynthesizeStartEvent",
        "SynthesizeEndEvent",
        "QueryEndEvent",
    ]
    seen = [event.class_name() for event in events]
    assert [name for name in seen if name in order] == order
    assert seen.index("RetrievalStartEvent") < seen.index("EmbeddingStartEvent") < seen.index("RetrievalEndEvent")
    by_name = {event.class_name(): event for event in events}
    assert by_name["RetrievalEndEvent"].nodes
    assert by_name["ReRankStartEvent"].model_name == type(engine._node_postprocessors[0]).__name__
    assert [n.node.node_id for n in by_name["ReRankEndEvent"].nodes] == [n.node.node_id for n in response.source_nodes]
    a = "" if how == "sync" else "a"
    wanted = {f"{type(retriever).__name__}.{name}" for name in (f"{a}retrieve", f"_{a}retrieve")}
    ours = {type(retriever).__name__, by_name["ReRankStartEvent"].model_name}
    assert spanned(spans, ours) == wanted | {f"{by_name['ReRankStartEvent'].model_name}._{a}postprocess_nodes"}


def spanned(spans: SimpleSpanHandler, classes: set[str]) -> set[str]:
    """The methods of classes, by name, that had spans."""
    names = {span.id_.split("-")[0] for span in spans.completed_spans}
    return {name for name in names if name.split(".")[0] in classes}


def test_steps_of_extractors_have_no_spans_that_end_before_the_work_begins(case: Case):
    with recorded() as (_, spans):
        case.build(chunks("d", 2))
    assert not spanned(spans, {type(part).__name__ for part in case.components().values()})


def test_replaced_prompts_are_what_the_model_is_asked(case: Case):
    components = with_llm(case)
    if not components:
        pytest.skip("the method asks no LLM when it builds")
    with served() as (server, llm):
        index = case.cls(nodes=[], embed_model=case.embed_model(), llm=llm, **components)
        prompts = index.get_prompts()
        assert {name.split(":")[0] for name in prompts} == set(components)
        marked = {}
        for name, prompt in prompts.items():  # a plain prompt in place of chat turns too
            variables = " ".join(f"{{{variable}}}" for variable in prompt.template_vars)
            marked[name] = PromptTemplate(f"MARK {name}. {variables}")
        index.update_prompts(marked)
        assert {name: prompt.template for name, prompt in index.get_prompts().items()} == {
            name: prompt.template for name, prompt in marked.items()
        }
        with suppress(LanguageModelError):  # the model says the same to everything, so all nodes may fail
            index.insert_nodes(chunks("d", 4))
        assert server.asked
        assert all(asked.prompt.lstrip().startswith("MARK ") for asked in server.asked)
