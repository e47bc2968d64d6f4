"""What a model says: echoes and examples are no answers, announcements no content, and structure is asked for."""

from functools import partial
from typing import Any

import pytest
from llama_index.core.prompts import ChatPromptTemplate, PromptTemplate
from tests.llm_server import Asked, LLMServer, Reply
from tests.ragkit.llm_cases import PROMPT, QUICK, Facts, like, script

from llama_index.ragkit.errors import ExtractionError, LanguageModelError, ParseError
from llama_index.ragkit.llm.announcements import plain_answer, plain_lines, without_announcement
from llama_index.ragkit.llm.completion import Rejected, complete
from llama_index.ragkit.llm.echoes import without_echo
from llama_index.ragkit.llm.json.output import parse_model
from llama_index.ragkit.llm.json.shapes import read_reply, texts_of, triples_of
from llama_index.ragkit.llm.prompts import fence, with_example
from llama_index.ragkit.text.function_words import in_another_language
from llama_index.ragkit.text.held import TextWords, held

parse_facts = partial(parse_model, model=Facts)

# -- echoes and examples --------------------------------------------------------------------------------

TASK = "List the names in the text between the tags as they are written there."
EXAMPLE = '{"names": ["Otto Lindqvist", "Lake Tovel"]}'
IN_TURNS = with_example(TASK, "<text>\nOtto Lindqvist at Lake Tovel.\n</text>", EXAMPLE, "{text}\n\nJSON:")
IN_ONE = PromptTemplate(f"{TASK}\nExample: {EXAMPLE}\n\n{{text}}\n\nJSON:")


def answered(prompt: Any, reply: str, text: str = "Marie Curie") -> str:
    return without_echo(reply, prompt, prompt.format(text=text), text)


@pytest.mark.parametrize("prompt", [IN_TURNS, IN_ONE], ids=["turns", "one"])
def test_an_echo_and_an_example_are_no_answers(prompt: Any) -> None:
    with pytest.raises(ParseError, match="repeats the prompt"):
        answered(prompt, prompt.format(text="Marie Curie"))
    with pytest.raises(ParseError, match="repeats the prompt"):
        answered(prompt, prompt.format(text="Marie Curie")[:40])
    with pytest.raises(ParseError, match="is the example"):
        answered(prompt, f"```json\n{EXAMPLE}\n```")
    right = '{"names": ["Marie Curie"]}'
    assert answered(prompt, right) == right
    assert EXAMPLE not in answered(prompt, f"For the example {EXAMPLE}, for the text {right}")
    assert right in answered(prompt, f"For the example {EXAMPLE}, for the text {right}")


@pytest.mark.parametrize(
    ("reply", "left"),
    [
        ('{"names": ["Marie Curie", "Lake Tovel"]}', '{"names": ["Marie Curie", ""]}'),
        ('{"name": "Marie Curie", "of": "She met \\"Otto Lindqvist\\"."}', '{"name": "Marie Curie", "of": ""}'),
        ('{"Lake Tovel": "Marie Curie"}', '{"Lake Tovel": "Marie Curie"}'),
        ("1. Who was Marie Curie?\n2. Who founded Lake Tovel?\n", "1. Who was Marie Curie?\n\n"),
        ("Marie Curie, not Otto Lindqvist.", "Marie Curie, not Otto Lindqvist."),
    ],
)
def test_a_text_that_names_what_only_the_example_names_is_emptied(reply: str, left: str) -> None:
    assert answered(IN_TURNS, reply) == left
    assert answered(IN_TURNS, reply, "Marie Curie met Otto Lindqvist at lake tovel.") == reply


def test_an_example_that_the_text_holds_is_an_answer() -> None:
    assert answered(IN_TURNS, EXAMPLE, "Otto Lindqvist swam in Lake Tovel.") == EXAMPLE


def test_a_users_own_plain_prompt_goes_on_working(drive: Any) -> None:
    own = PromptTemplate('Facts of {text}, such as {"a": []}:')
    with LLMServer(lambda asked: '{"a": ["x"]}') as server:
        assert drive(complete(like(server), own, parse=parse_facts, output_cls=Facts, text="t")) == Facts(a=["x"])
        assert server.asked[0].prompt == 'Facts of t, such as {"a": []}:'


def test_examples_reach_a_chat_model_as_turns(drive: Any) -> None:
    with LLMServer(lambda asked: "{}") as server:
        drive(complete(like(server), IN_TURNS, parse=str, text=fence(["t"], "text")))
        roles = [message["role"] for message in server.asked[0].body["messages"]]
        assert roles == ["user", "assistant", "user"]


# -- an answer that cannot be used is asked for again at once ---------------------------------------------


@pytest.mark.parametrize("chat", [True, False])
def test_the_model_is_told_at_once_what_is_wrong_without_its_reply_and_asked_at_a_higher_temperature(
    chat: bool, drive: Any
) -> None:
    patient = QUICK.__class__(max_attempts=2, min_wait=30.0)  # which a reply that cannot be read does not wait for
    with LLMServer(script("I would rather not.", '{"a": ["x"]}')) as server:
        llm = like(server, is_chat_model=chat)
        assert drive(complete(llm, PROMPT, parse=parse_facts, retry=patient, text="{t}")) == Facts(a=["x"])
        first, second = (asked.prompt for asked in server.asked)
        assert (
            second.strip()
            == f"{first}\n\nAn earlier answer could not be used: The reply contains no readable JSON value."
        )
        assert server.asked[0].body["temperature"] < server.asked[1].body["temperature"] == 0.5


def test_an_answer_of_an_earlier_call_can_be_rejected(drive: Any) -> None:
    rejected = Rejected("The old answer.", "It is too short.")
    with LLMServer(lambda asked: "new") as server:
        assert drive(complete(like(server), PROMPT, parse=str, rejected=rejected, text="t")) == "new"
        assert "The old answer." not in server.asked[0].prompt
        assert "An earlier answer could not be used: It is too short." in server.asked[0].prompt


@pytest.mark.parametrize(("status", "kind"), [(401, True), (403, True), (404, True), (400, False), (422, False)])
def test_errors_of_every_call_are_told_from_those_of_one(status: int, kind: bool, drive: Any) -> None:
    with LLMServer(lambda asked: Reply("no", status=status)) as server, pytest.raises(ExtractionError) as caught:
        drive(complete(like(server), PROMPT, parse=str, retry=QUICK, name="facts", text="t"))
    assert isinstance(caught.value, LanguageModelError) == kind
    assert caught.value.step == "facts"
    assert "'facts'" in str(caught.value)


# -- functions and schemas, where the model has them ------------------------------------------------------


def structured(asked: Asked) -> Reply:
    return Reply('{"a": ["text"]}', tool_arguments='{"a": ["function"]}' if asked.body.get("tools") else None)


def test_functions_are_used_where_the_model_says_that_it_has_them(drive: Any) -> None:
    with LLMServer(structured) as server:
        ask = partial(complete, prompt=PROMPT, parse=parse_facts, output_cls=Facts, text="t")
        assert drive(ask(like(server, is_function_calling_model=True))).a == ["function"]
        assert drive(ask(like(server))).a == ["text"]
        assert drive(ask(like(server, is_function_calling_model=True), mode="text")).a == ["text"]


def test_a_server_that_refuses_functions_is_asked_in_text_and_not_asked_again_for_them(drive: Any) -> None:
    def refuses(asked: Asked) -> Reply:
        return Reply("no tools here", status=400) if asked.body.get("tools") else Reply('{"a": ["text"]}')

    with LLMServer(refuses) as server:
        llm = like(server, is_function_calling_model=True)
        for _ in range(2):
            assert drive(complete(llm, PROMPT, parse=parse_facts, output_cls=Facts, text="t")).a == ["text"]
            assert sum("tools" in asked.body for asked in server.asked) == 1


def test_a_model_that_answers_in_text_instead_of_a_call_is_understood_and_a_bad_call_asked_for_in_text(
    drive: Any,
) -> None:
    with LLMServer(lambda asked: 'Sure: {"a": ["text"]}') as server:
        llm = like(server, is_function_calling_model=True)
        assert drive(complete(llm, PROMPT, parse=parse_facts, output_cls=Facts, text="t")).a == ["text"]
        assert len(server.asked) == 1
    with LLMServer(script(Reply(tool_arguments="{}"), '{"a": ["text"]}')) as server:
        llm = like(server, is_function_calling_model=True)
        assert drive(complete(llm, PROMPT, parse=parse_facts, retry=QUICK, output_cls=Facts, text="t")).a == ["text"]
        assert "tools" not in server.asked[1].body


# -- announcements ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ("Here is a summary of the passages:\n\nThe lamp burned oil.", "The lamp burned oil."),
        ("**Summary:** The lamp burned oil.", "The lamp burned oil."),
        ("Certainly!\n\nThe lamp burned oil.\n\nI hope this helps!", "The lamp burned oil."),
        ("Hier ist die Zusammenfassung:\nDie Lampe brannte.", "Die Lampe brannte."),
        ("好的，以下是摘要：\n灯塔的灯烧鲸油。", "灯塔的灯烧鲸油。"),
        ("Three things happened:\nThe lamp went out.", "Three things happened:\nThe lamp went out."),
        ("The keeper said: the lamp is out.", "The keeper said: the lamp is out."),
        ("Okra is a vegetable.", "Okra is a vegetable."),
    ],
)
def test_what_announces_is_no_content_and_content_stays(reply: str, answer: str) -> None:
    assert without_announcement(reply) == answer


def test_lines_are_read_without_announcements() -> None:
    assert plain_lines("Sure! Here are the statements:\n- The lamp burned oil.\n- Ada lit it.") == [
        "The lamp burned oil.",
        "Ada lit it.",
    ]


@pytest.mark.parametrize("reply", ["", "Here is a summary:", fence(["Tea."]), "ha " * 5_000, '{"a": "x", "b": "y"}'])
def test_what_is_no_prose_is_refused(reply: str) -> None:
    with pytest.raises(ParseError):
        plain_answer(reply)


# -- shapes -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "texts"),
    [
        (["a", 1, "a"], ["a", "1"]),
        ([{"name": "a"}, {"entity": "b", "type": "person"}], ["a", "b"]),
        ({"persons": ["a"], "places": [{"name": "b"}]}, ["a", "b"]),
        ({"1": "a", "2": "b"}, ["a", "b"]),
        ("1. a\n2. b", ["a", "b"]),
        ([], []),
    ],
)
def test_lists_of_texts_are_read_in_every_common_shape(value: Any, texts: list[str]) -> None:
    assert texts_of(value) == texts


@pytest.mark.parametrize("value", [[None], [[]], None, [{"a": None}], True])
def test_what_holds_no_text_is_an_error_and_not_empty(value: Any) -> None:
    with pytest.raises(ValueError, match="no text"):
        texts_of(value)


@pytest.mark.parametrize(
    "value",
    [
        [["a", "b", "c"]],
        [{"head": "a", "relation": "b", "tail": "c"}],
        {"1": {"subject": "a", "predicate": "b", "object": "c"}},
        ["(a, b, c)"],
        "a | b | c",
        ["a", "b", "c"],
    ],
)
def test_triples_are_read_in_every_common_shape(value: Any) -> None:
    assert triples_of(value) == [["a", "b", "c"]]


@pytest.mark.parametrize("value", [["a", "b"], [["a", "b"]], [{"subject": "a"}], "none"])
def test_what_holds_no_triple_is_an_error_and_not_empty(value: Any) -> None:
    with pytest.raises(ValueError, match="no triple"):
        triples_of(value)


def test_a_reply_that_refuses_is_no_list_of_texts() -> None:
    from llama_index.hipporag.extraction.openie_extractor import Entities

    assert read_reply("Entities:\n1. Marie Curie (person)\n2. Paris - a city", Entities).named_entities == [
        "Marie Curie",
        "Paris",
    ]
    for reply in ("I cannot do that.", '{"error": "no"}', "{}", '{"named_entities": null}'):
        with pytest.raises(ParseError):
            read_reply(reply, Entities)


# -- held against the text ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("Marie Curie", "Curie went to Stockholm."),
        ("Москва", "Он жил в Москве."),
        ("Рим", "Он был в Риме."),
        ("鲁迅", "鲁迅出生于绍兴。"),
        ("서울", "서울은 한국의 수도이다."),
        ("ירושלים", "הוא נולד בירושלים."),
        ("القاهرة", "ولد في بالقاهرة عام"),
    ],
)
def test_names_are_held_in_every_script_and_inflected(name: str, text: str) -> None:
    assert TextWords(text).share(name) >= 0.5
    assert TextWords("Otto Lindqvist founded a glassworks. 玻璃厂").share(name) == 0


def test_what_is_not_held_is_dropped_and_counted_and_nothing_left_is_a_failure() -> None:
    words = TextWords("Marie Curie went to Stockholm.")
    found = held(["Marie Curie", "Otto Lindqvist"], words.share, 0.5, "entities")
    assert (found.kept, found.dropped) == (["Marie Curie"], 1)
    assert held(["Otto Lindqvist"], words.share, 0, "entities").kept == ["Otto Lindqvist"]
    with pytest.raises(
        ParseError, match="None of the entities in the reply is in the text; the first is 'Otto Lindqvist'"
    ):
        held(["Otto Lindqvist"], words.share, 0.5, "entities")


ENGLISH = "The lamp was lit by the keeper at dusk, and it burned all night."
GERMAN = "Die Lampe wurde von dem Wärter am Abend angezündet, und sie brannte."


@pytest.mark.parametrize(
    ("reply", "text", "differs"),
    [
        (GERMAN, ENGLISH, True),
        ("The keeper lit it, and the ship was saved by the light of the lamp.", ENGLISH, False),
        ("灯塔的灯", ENGLISH, True),
        ("Otto Lindqvist, Bergslund", GERMAN, False),
        ("東京タワーは高い。", "东京塔很高。", False),
    ],
)
def test_a_language_is_told_only_where_it_is_clear(reply: str, text: str, differs: bool) -> None:
    assert in_another_language(reply, text) == differs


def test_a_reply_in_another_language_is_refused_unless_told_otherwise(drive: Any) -> None:
    with LLMServer(lambda asked: "灯塔的灯烧鲸油。") as server:
        ask = partial(complete, like(server), PROMPT, parse=str, retry=QUICK, text="t")
        with pytest.raises(ExtractionError, match="another language"):
            drive(ask(like="The lamp burned whale oil."))
        assert drive(ask()) == "灯塔的灯烧鲸油。"


def test_chat_prompts_are_chat_prompts() -> None:
    assert isinstance(IN_TURNS, ChatPromptTemplate)
    assert IN_TURNS.template_vars == ["text"]
