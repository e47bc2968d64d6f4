"""Replies have a bound, are read as far as they go, and are not kept where they repeat themselves or say nothing."""

import json
from typing import Any

import pytest
from llama_index.core.base.llms.types import CompletionResponse, CompletionResponseGen, LLMMetadata
from llama_index.core.llms import CustomLLM
from llama_index.core.llms.callbacks import llm_completion_callback
from llama_index.core.schema import TextNode
from tests.cases import Case
from tests.llm_server import Asked, LLMServer, Reply
from tests.ragkit.llm_cases import PROMPT, QUICK, like
from tests.together.plugins import ONCE, with_llm
from tests.together.test_pieces_that_fail import GOOD, each_asking, of_documents

from llama_index.graphrag.extraction.entity_extractor import EntityExtractor, Reading
from llama_index.hipporag import OpenIEExtractor
from llama_index.hipporag.extraction.openie_extractor import Triples
from llama_index.ragkit.llm.announcements import plain_answer
from llama_index.ragkit.llm.completion import complete
from llama_index.ragkit.llm.context_window import limited
from llama_index.ragkit.llm.json.shapes import bounded
from llama_index.ragkit.llm.reasoning import strip_reasoning
from llama_index.ragkit.steps import run_steps
from llama_index.ragkit.testing import HashEmbedding, ScriptedLLM
from llama_index.ragkit.text.held import TextWords
from llama_index.sprag import AutoContext, SpRAGIndex

TEXT = "Ada Byron met Charles Babbage in London in 1833. He showed her a boat."


def parsed_after_thought(reply: str) -> Any:
    return json.loads(strip_reasoning(reply))


def read(extractor: Any) -> Any:
    (found,) = run_steps(extractor.extract([TextNode(id_="n", text=TEXT)]))
    return found


# -- bounds -------------------------------------------------------------------------------------------------


@each_asking
def test_every_step_of_a_build_sends_a_bound(case: Case) -> None:
    with LLMServer(lambda asked: GOOD) as server:
        case.cls(nodes=of_documents(9), llm=like(server, timeout=30), embed_model=case.embed_model(), **with_llm(case))
        assert server.asked
        assert all(16 <= asked.body["max_tokens"] <= 1024 for asked in server.asked)


def test_a_bound_of_the_user_is_only_lowered() -> None:
    with LLMServer(lambda asked: "x") as server:
        for own, sent in ((None, 128), (50, 50), (4_000, 128)):
            run_steps(complete(like(server, max_tokens=own), PROMPT, parse=str, reply_tokens=100, text="t"))
            assert server.asked[-1].body["max_tokens"] == sent
        run_steps(complete(like(server), PROMPT, parse=str, text="t"))
        assert "max_tokens" not in server.asked[-1].body


class Bare(CustomLLM):
    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata()

    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        raise NotImplementedError

    @llm_completion_callback()
    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponseGen:
        raise NotImplementedError


class Ollama(Bare):
    additional_kwargs: dict[str, Any] = {"num_ctx": 4096}  # noqa: RUF012 - a field of pydantic


class LlamaCPP(Bare):
    generate_kwargs: dict[str, Any] = {"max_tokens": 256}  # noqa: RUF012 - a field of pydantic
    max_new_tokens: int = 256


class HuggingFaceLLM(Bare):
    max_new_tokens: int = 256


@pytest.mark.parametrize(
    ("llm", "field", "value"),
    [
        (Ollama(), "additional_kwargs", {"num_ctx": 4096, "num_predict": 128}),
        (LlamaCPP(), "generate_kwargs", {"max_tokens": 128}),
        (HuggingFaceLLM(), "max_new_tokens", 128),
    ],
)
def test_a_bound_has_the_name_that_the_class_of_the_model_gives_it(llm: Any, field: str, value: Any) -> None:
    before = getattr(llm, field)
    assert getattr(limited(llm, 100), field) == value
    assert getattr(llm, field) == before
    assert limited(llm, 100) is limited(llm, 128)  # so that clients are made once
    before = limited(llm, 100)
    llm.system_prompt = "Be brief."
    assert limited(llm, 100) is not before
    assert limited(llm, 100).system_prompt == "Be brief."


def test_a_class_that_takes_no_bound_is_asked_as_it_is() -> None:
    llm = Bare()
    assert limited(llm, 100, warmer=True) is llm


def test_bounds_that_a_server_refuses_are_left_out_and_remembered() -> None:
    def script(asked: Asked) -> Reply:
        said = "Unsupported parameter: max_tokens; use max_completion_tokens"
        return Reply(said, status=400) if "max_tokens" in asked.body else Reply("x")

    with LLMServer(script) as server:
        llm = like(server, timeout=30)
        for _ in range(3):
            assert run_steps(complete(llm, PROMPT, parse=str, retry=QUICK, reply_tokens=100, text="t")) == "x"
        assert ["max_tokens" in asked.body for asked in server.asked] == [True, False, False, False]


@pytest.mark.parametrize(("cut", "calls"), [("", 2 + 2 + 1), ("<think>First I list", 2 + 1 + 1)])
def test_a_model_that_thinks_for_longer_than_the_bound_is_asked_without(cut: str, calls: int) -> None:
    def script(asked: Asked) -> Reply:
        return Reply(cut, finish_reason="length") if "max_tokens" in asked.body else Reply(f"{cut} them.</think>[1]")

    with LLMServer(script) as server:
        llm = like(server, timeout=30)
        for _ in range(3):
            assert run_steps(complete(llm, PROMPT, parse=parsed_after_thought, reply_tokens=64, text="t")) == [1]
        assert len(server.asked) == calls


# -- schemas ------------------------------------------------------------------------------------------------


def test_schemas_that_are_sent_have_bounds_and_those_of_cache_keys_none() -> None:
    triples = bounded(Triples).model_json_schema()["properties"]["triples"]
    assert (triples["items"]["minItems"], triples["items"]["maxItems"], triples["maxItems"]) == (3, 3, 100)
    assert triples["items"]["items"]["maxLength"] == 300
    entity = bounded(Reading).model_json_schema()["properties"]["entities"]["items"]
    assert entity["required"] == ["name", "type", "description"]
    assert "maxItems" not in json.dumps([Triples.model_json_schema(), Reading.model_json_schema()])


def test_a_structured_reply_that_is_cut_off_is_read_as_far_as_it_goes() -> None:
    cut = json.dumps({"named_entities": ["Ada Byron", "London", "Charles"]})[:-8]
    with LLMServer(lambda asked: Reply(cut, finish_reason="length")) as server:
        llm = like(server, should_use_structured_outputs=True, timeout=30)
        extractor = OpenIEExtractor(llm=llm, retry=ONCE)
        found = read(extractor)
        assert found.record["entities"] == ["Ada Byron", "London"]
        first = server.asked[0].body["response_format"]["json_schema"]["schema"]
        assert first["properties"]["named_entities"]["maxItems"] == 100
        assert len([asked for asked in server.asked if "List the named" in asked.prompt]) == 1


# -- what is no content -------------------------------------------------------------------------------------


def test_loops_are_cut_and_counted_also_where_a_reply_comes_from_the_cache(tmp_path: Any) -> None:
    loop = '{"named_entities": ["Ada Byron", "1833"' + ', "1833"' * 30
    llm = ScriptedLLM(lambda prompt: loop if "List the named" in prompt else '{"triples": []}')
    for _ in range(2):
        record = read(OpenIEExtractor(llm=llm, retry=ONCE, cache=tmp_path / "cache.db")).record
        assert record["entities"] == ["Ada Byron", "1833"]
        assert record["dropped"] == {"repeated": 30}
    assert len(llm.prompts) == 2


def test_triples_of_one_thing_and_clauses_are_no_triples_and_no_names() -> None:
    clause = "Ada Byron was in London and has met Charles Babbage"
    triples = [["Ada Byron", "met", "ada byron"], [clause, "is", "London"], ["Ada Byron", "was in", "London"]]
    llm = ScriptedLLM(json.dumps({"named_entities": ["Ada Byron", clause], "triples": triples}))
    record = read(OpenIEExtractor(llm=llm, retry=ONCE)).record
    assert record["entities"] == ["Ada Byron"]
    assert record["triples"] == [["Ada Byron", "was in", "London"]]
    assert record["dropped"] == {"entities": 1, "triples": 2}
    entities = [{"name": clause}, {"name": "Ada Byron"}]
    relations = [{"source": "Ada Byron", "target": "Ada Byron"}, {"source": "Ada Byron", "target": "London"}]
    llm = ScriptedLLM(json.dumps({"entities": entities, "relations": relations}))
    record = read(EntityExtractor(llm=llm, retry=ONCE)).record
    assert [entity[0] for entity in record["entities"]] == ["Ada Byron", "London"]
    assert len(record["relations"]) == 1
    assert record["dropped"] == {"entities": 1, "relations": 1}


@pytest.mark.parametrize(
    ("word", "text", "share"),
    [
        ("Boar", "a boat", 0.0),
        ("boats", "the boat", 1.0),
        ("boat", "the boats", 1.0),
        ("city", "of cities", 1.0),
        ("Анна", "видел Анну", 1.0),
        ("Fred", "a friend", 0.0),
    ],
)
def test_of_short_words_only_a_common_ending_may_differ(word: str, text: str, share: float) -> None:
    assert TextWords(text).share(word) == share


@pytest.mark.parametrize(
    ("title", "summary", "kept"),
    [
        ("Ada Byron in London", "This document is about: Ada Byron and Charles Babbage.", (True, True)),
        ("What the Document is Called", "This document is about: Ada Byron and Charles Babbage.", (False, True)),
        ("Ada Byron in London", "It is a short summary of the document.", (True, False)),
    ],
)
def test_title_and_summary_of_a_document_are_held_against_it(title: str, summary: str, kept: tuple[bool, bool]) -> None:
    llm = ScriptedLLM(json.dumps({"title": title, "summary": summary}))
    index = SpRAGIndex(
        nodes=[TextNode(text=TEXT)], llm=llm, extractor=AutoContext(retry=ONCE), embed_model=HashEmbedding()
    )
    assert not index.failures()
    (document,) = index.state.documents.values()
    assert (title == document.title, summary == document.summary) == kept


def test_a_document_of_which_neither_is_in_the_text_fails_and_a_reply_cut_after_its_title_is_read() -> None:
    for reply, failures in (
        ('{"title": "The Ape", "summary": "An ape."}', 1),
        ('{"title": "Ada Byron", "summary": "Sh', 0),
    ):
        extractor = AutoContext(retry=ONCE)
        index = SpRAGIndex(
            nodes=[TextNode(text=TEXT)], llm=ScriptedLLM(reply), extractor=extractor, embed_model=HashEmbedding()
        )
        assert len(index.failures()) == failures


def test_a_summary_has_no_sentence_more_than_twice() -> None:
    said = "The lamp burned oil. Ada lit it. " + "The lamp burned oil. " * 5 + "It rained."
    assert plain_answer(said) == "The lamp burned oil. Ada lit it. It rained."
