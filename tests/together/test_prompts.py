"""The default prompts: worked examples as turns, no sentence to be parroted, and wordings that caches go on knowing."""

from collections.abc import Iterator
from typing import Any

import pytest
from llama_index.core.base.llms.types import MessageRole
from llama_index.core.prompts import BasePromptTemplate, ChatPromptTemplate
from llama_index.core.schema import TextNode
from tests.together.plugins import ONCE

from llama_index.gemrag import UtilityQuestionExtractor
from llama_index.ragkit import LLMSummarizer, RetryPolicy
from llama_index.ragkit.errors import ExtractionError
from llama_index.ragkit.llm.prompts import SUMMARY_PROMPT, PromptHolder, first_wording, prompt_version
from llama_index.ragkit.steps import run_steps
from llama_index.ragkit.testing import ScriptedLLM

# What is written for benchmarks, and what has a schema of the user's.
WITHOUT_EXAMPLE = {"story", "topics", "article", "extract of StructuredExtractor"}


def holders(base: type = PromptHolder) -> Iterator[type]:
    for kind in base.__subclasses__():
        yield kind
        yield from holders(kind)


def prompts() -> dict[str, BasePromptTemplate]:
    found: dict[str, Any] = {}
    for kind in sorted(holders(), key=lambda kind: kind.__name__):
        given = vars(kind).get("default_prompts")
        if isinstance(given, dict) and kind.__module__.startswith("llama_index."):
            found.update({f"{name} of {kind.__name__}": prompt for name, prompt in given.items()})
    return found


PROMPTS = prompts()
# Versions of the first wordings, which fingerprints of indexes and keys of caches contain.
FIRST = {
    "questions of UtilityQuestionExtractor": "8ee8ecd63414",
    "summary of LLMSummarizer": "bbfb61e12d94",
    "mind_map of MindMapExtractor": "b3683b137a6d",
    "entities of OpenIEExtractor": "82dba87e3566",
    "triples of OpenIEExtractor": "0388bdc48764",
    "extract of EntityExtractor": "fb2f7883be1b",
    "glean of EntityExtractor": "ae77edf95c0c",
    "claims of EntityExtractor": "aefddab8e7bd",
    "report of ReportWriter": "59bda4c02d4d",
    "resolve of LLMResolver": "1194446bd19d",
    "document of AutoContext": "68768913a65b",
    "sections of AutoContext": "738e5b5bb7e3",
}


@pytest.mark.parametrize("name", PROMPTS)
def test_every_step_has_a_worked_example_as_turns(name: str) -> None:
    prompt = PROMPTS[name]
    if name in WITHOUT_EXAMPLE or name.split(" of ")[0] in WITHOUT_EXAMPLE:
        assert not isinstance(prompt, ChatPromptTemplate)
        return
    assert isinstance(prompt, ChatPromptTemplate)
    roles = [message.role for message in prompt.message_templates]
    assert roles == [MessageRole.USER, MessageRole.ASSISTANT, MessageRole.USER]
    assert "data" not in prompt.get_template()
    variables = set(first_wording(prompt).template_vars)
    assert set(prompt.template_vars) == variables


@pytest.mark.parametrize(("name", "version"), FIRST.items())
def test_a_reworded_prompt_is_known_by_its_first_wording(name: str, version: str) -> None:
    assert prompt_version(PROMPTS[name]) == version


def test_a_reply_that_was_cached_under_the_first_wording_is_read_and_the_index_takes_the_extractor(
    tmp_path: Any,
) -> None:
    node = TextNode(id_="n", text="Ada Byron met Charles Babbage in London.")
    reply = '{"questions": ["Whom did Ada Byron meet?"]}'
    first = {"questions": first_wording(PROMPTS["questions of UtilityQuestionExtractor"])}
    llm = ScriptedLLM(reply)
    extractors = [
        UtilityQuestionExtractor(llm=llm, retry=ONCE, cache=tmp_path / "cache.db", **kwargs)
        for kwargs in ({"prompts": first}, {})
    ]
    for extractor in extractors:
        (found,) = run_steps(extractor.extract([node]))
        assert found.record == {"questions": ["Whom did Ada Byron meet?"]}
    assert len(llm.prompts) == 1
    assert extractors[0].fingerprint == extractors[1].fingerprint
    assert SUMMARY_PROMPT.get_template() != first_wording(SUMMARY_PROMPT).get_template()


def test_the_worked_example_of_a_prompt_for_prose_is_no_answer() -> None:
    example = SUMMARY_PROMPT.message_templates[1].content
    for reply, kept in ((example, None), (f"{example} Ada wrote.", "Ada wrote.")):
        steps = LLMSummarizer(ScriptedLLM(reply), retry=ONCE).summarize(["Ada wrote letters."], max_tokens=50)
        if kept is None:
            with pytest.raises(ExtractionError, match="is the example of the prompt"):
                run_steps(steps)
        else:
            assert run_steps(steps)[0] == kept


def test_a_question_about_the_worked_example_is_no_question_about_the_text() -> None:
    reply = '{"questions": ["Whom did Otto Lindqvist meet in London?", "Whom did Ada Byron meet?"]}'
    _, records = questions(lambda prompt: reply)
    assert records == [{"questions": ["Whom did Ada Byron meet?"]}] * 2


TEXTS = ("Ada Byron met Charles Babbage in London.", "Ada Byron wrote letters in London.")


def questions(script: Any, **kwargs: Any) -> tuple[ScriptedLLM, list[Any]]:
    llm = ScriptedLLM(script)
    extractor = UtilityQuestionExtractor(
        llm=llm, retry=RetryPolicy(max_attempts=2, min_wait=0), num_workers=1, **kwargs
    )
    found = run_steps(extractor.extract([TextNode(id_=text, text=text) for text in TEXTS]))
    return llm, [extraction.record for extraction in found]


def lines(prompt: str) -> str:
    return "1. Where was Ada Byron?\n2. Was she in London?" if "numbered lines" in prompt else "What is JSON?"


@pytest.mark.parametrize(("mode", "asked_in_lines"), [("auto", [False, True, True]), ("lines", [True, True])])
def test_a_model_that_writes_no_json_is_asked_for_lines_from_its_first_node_on(
    mode: str, asked_in_lines: list[bool]
) -> None:
    llm, records = questions(lines, mode=mode)
    assert ["numbered lines" in prompt for prompt in llm.prompts] == asked_in_lines
    assert records == [{"questions": ["Where was Ada Byron?", "Was she in London?"]}] * 2


def test_a_model_whose_json_was_read_is_asked_for_json_again() -> None:
    replies = iter(['{"questions": ["Where was Ada Byron?"]}', "What?", '{"questions": ["Who wrote?"]}'])
    llm, records = questions(lambda prompt: next(replies))
    assert not any("numbered lines" in prompt for prompt in llm.prompts)
    assert all(records)


def test_mode_text_never_asks_for_lines() -> None:
    llm, records = questions(lines, mode="text")
    assert len(llm.prompts) == 4
    assert not any(records)
