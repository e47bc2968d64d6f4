"""Which steps a language model can do."""

import json
from typing import Any

import pytest
from llama_index.core import Settings
from tests.llm_server import Asked, LLMServer, Reply
from tests.together.server import client

from llama_index.ragkit.check_llm import check_llm
from llama_index.ragkit.check_llm.__main__ import main
from llama_index.ragkit.compare.methods import METHODS
from llama_index.ragkit.errors import ConfigurationError, LanguageModelError
from llama_index.ragkit.testing import ScriptedLLM, chunks

FACT = "Ada Hale kept Tern Rock Lighthouse."
DIARY = "Hale wrote a diary of every ship that passed, which is now in the museum of Port Ellery."
GOOD = {
    "named_entities": ["Ada Hale"],
    "triples": [["Ada Hale", "kept", "Tern Rock Lighthouse"]],
    "entities": [{"name": "Ada Hale"}, {"name": "Tern Rock"}],
    "relations": [{"source": "Ada Hale", "target": "Tern Rock", "description": f"{FACT} {DIARY}"}],
    "claims": [],
    "questions": ["Who kept Tern Rock Lighthouse?"],
    "queries": ["Who kept Tern Rock Lighthouse?"],
    "key_points": ["Who kept Tern Rock Lighthouse?"],
    "topic": "Tern Rock Lighthouse",
    "statements": [FACT],
    "mind_map": {"Tern Rock": {"kept by": FACT}},
    "title": "Tern Rock Lighthouse",
    "summary": FACT,
    "sections": [{"first": 0, "title": "Tern Rock Lighthouse"}],
    "findings": [{"text": FACT, "sources": [1]}],
    "ratings": [{"number": 1, "rating": 5}],
    "points": [{"text": FACT, "score": 80, "sources": [1]}],
    "relevant": "yes",
    "facts": [1],
    "answer": FACT,
    "sources": [1],
    "score": 80,
}
PROSE = ("Summarise the passages", "Write what a report", "Answer the question from the points", "next step")


def good(prompt: str) -> str:
    return FACT if any(mark in prompt for mark in PROSE) else json.dumps(GOOD)


def test_each_step_of_each_method_is_tried() -> None:
    found = check_llm(ScriptedLLM(good))
    tried = {(step.method, step.step) for step in found.steps}
    assert found.not_tried == {}
    assert {
        ("RAPTOR", "summary"),
        ("spRAG", "document"),
        ("spRAG", "sections"),
        ("spRAG", "queries"),
        ("GEM-RAG", "questions"),
        ("HippoRAG", "entities"),
        ("HippoRAG", "triples"),
        ("HippoRAG", "question"),
        ("HippoRAG", "facts"),
        ("HippoRAG", "thought"),
        ("Graph RAG", "extract"),
        ("Graph RAG", "glean"),
        ("Graph RAG", "claims"),
        ("Graph RAG", "report"),
        ("Graph RAG", "map"),
        ("Graph RAG", "answer"),
        ("Graph RAG", "rate"),
        ("Graph RAG", "relevance"),
        ("Graph RAG", "hypothesis"),
        ("Graph RAG", "primer"),
        ("Graph RAG", "follow_up"),
        ("PG-RAG", "mind_map"),
        ("PG-RAG", "key_points"),
        ("MRAG", "aspects"),
    } <= tried


def test_what_a_model_cannot_do_is_told_with_the_reason_and_a_reply() -> None:
    llm = ScriptedLLM(lambda prompt: "I would rather not." if "named entities" in prompt else good(prompt))
    found = check_llm(llm, chunks("d", 5), methods=["HippoRAG", "MRAG"])
    steps = {step.step: step for step in found.steps}
    assert (steps["entities"].verdict, steps["entities"].usage.failed, steps["aspects"].verdict) == ("no", 3, "yes")
    assert "no readable JSON" in steps["entities"].reason
    assert steps["entities"].example == "I would rather not."
    assert "HippoRAG  entities  no" in str(found)


def test_an_error_that_every_step_would_meet_ends_the_check() -> None:
    with LLMServer(lambda asked: Reply("invalid api key", status=401)) as server, pytest.raises(LanguageModelError):
        check_llm(client(server))
    Settings.llm = None
    with pytest.raises(ConfigurationError, match="needs a language model"):
        check_llm()


def test_the_command_asks_the_server_that_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def script(asked: Asked) -> Any:
        return good(asked.prompt)

    with LLMServer(script) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        assert main(["--model", "small", "--methods", "MRAG"]) == 0
        assert "MRAG" in capsys.readouterr().out
        assert main(["--model", "small", "--methods", "WRAG"]) == 1
        assert "Unknown or not installed: WRAG" in capsys.readouterr().err


def test_a_method_that_cannot_be_built_at_all_says_why() -> None:
    with LLMServer(lambda asked: good(asked.prompt)) as server:
        found = check_llm(client(server, context_window=50))
        assert server.asked == []
    assert {step.method for step in found.steps} | set(found.not_tried) == {method.name for method in METHODS}
    assert "HippoRAG was not tried: " in str(found)
    assert "the context window of 'm' has only 50" in found.not_tried["HippoRAG"]
