"""Readers, answers from contexts of equal size, and pairwise judging, with scripted models."""

import asyncio
from typing import Any

import pytest
from llama_index.core import Settings
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from llama_index.ragkit.errors import ConfigurationError
from llama_index.ragkit.evaluation import (
    Evaluation,
    LabelledQuery,
    PairwiseJudge,
    Reader,
    aevaluate_answers,
    ajudge_answers,
    evaluate_answers,
    judge_answers,
)
from llama_index.ragkit.testing import ScriptedLLM

TEXTS = {"lamp": "The lamp burned whale oil.", "keeper": "Ada Hale kept the lamp.", "bells": "The bells ring in fog."}
QUERIES = [
    LabelledQuery("oil", "What burned?", ("lamp",), ("whale oil",), ("coal", "whale oil")),
    LabelledQuery("fog", "When do the bells ring?", ("bells", "keeper"), ("in fog",), ("in fog", "at night")),
]
JUST_TWO = 12  # tokens: two of the texts, and not the third


class Listed(BaseRetriever):
    """Finds all texts, in their order."""

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return [NodeWithScore(node=TextNode(id_=name, text=text), score=1.0) for name, text in TEXTS.items()]


def last(prompt: str) -> str:
    """The part of a prompt after its worked example."""
    return prompt.rsplit("Now the same", 1)[1]


def scripted(oil: str, fog: str) -> ScriptedLLM:
    return ScriptedLLM(lambda prompt: oil if "What burned?" in last(prompt) else fog)


def test_contexts_of_equal_tokens_are_scored_without_a_model():
    found = evaluate_answers(Listed(), QUERIES, token_budget=JUST_TWO)
    assert found.scores["contained"] == (1.0, 0.0)
    assert found.scores["answer recall"] == (1.0, 0.0)
    assert all(0 < tokens <= JUST_TWO for tokens in found.scores["tokens"])
    assert evaluate_answers(Listed(), QUERIES).scores["contained"] == (1.0, 1.0)
    assert found.interval("contained").mean == 0.5
    assert found.answers == {}


@pytest.mark.parametrize(
    ("style", "replies", "metric", "scores"),
    [
        ("plain", ("Whale oil.", "Answer: fog"), "EM", (1.0, 0.0)),
        ("plain", ("Whale oil.", "Answer: fog"), "F1", (1.0, pytest.approx(2 / 3))),
        ("plain", ("<think>Coal? Answer: coal</think>Whale oil", "x"), "EM", (1.0, 0.0)),
        ("chain_of_thought", ("The lamp did.\nAnswer: whale oil\n", "So the answer is: In fog."), "EM", (1.0, 1.0)),
        ("chain_of_thought", ("It burned.\nwhale oil", "Fog."), "EM", (1.0, 0.0)),
        ("multiple_choice", ("B", "Answer: A"), "accuracy", (1.0, 1.0)),
        ("multiple_choice", ("A", "I do not know"), "accuracy", (0.0, 0.0)),
        ("citations", ("Whale oil [1, 2].", "In fog [3][9]."), "citation precision", (0.5, 1.0)),
        ("citations", ("Whale oil [1, 2].", "In fog [3][9]."), "citation recall", (1.0, 0.5)),
        ("citations", ("Whale oil [1, 2].", "In fog [3][9]."), "F1", (1.0, 1.0)),
    ],
)
def test_each_style_is_read_and_scored(style: Any, replies: tuple[str, str], metric: str, scores: Any):
    found = evaluate_answers(Listed(), QUERIES, Reader(scripted(*replies), style=style))
    assert found.scores[metric] == scores


def test_a_reader_sees_the_question_and_its_context_and_nothing_else():
    llm = scripted("oil", "fog")
    evaluate_answers(Listed(), QUERIES, Reader(llm), token_budget=JUST_TWO)
    assert len(llm.prompts) == 2
    assert all(TEXTS["lamp"] in last(prompt) and TEXTS["bells"] not in last(prompt) for prompt in llm.prompts)
    llm.prompts.clear()
    closed = evaluate_answers(None, QUERIES, Reader(llm))
    assert closed.name == "no context"
    assert all("(no passages)" in last(prompt) and TEXTS["lamp"] not in last(prompt) for prompt in llm.prompts)
    assert closed.answers == {"oil": "oil", "fog": "fog"}


def test_replies_are_kept_in_a_cache(tmp_path):
    llm = scripted("whale oil", "fog")
    first = evaluate_answers(Listed(), QUERIES, Reader(llm, cache=tmp_path / "replies.db"))
    second = evaluate_answers(Listed(), QUERIES, Reader(llm, cache=tmp_path / "replies.db"))
    assert len(llm.prompts) == len(QUERIES)
    assert first == second
    evaluate_answers(Listed(), QUERIES, Reader(llm, style="chain_of_thought", cache=tmp_path / "replies.db"))
    assert len(llm.prompts) == 2 * len(QUERIES)


def test_a_question_that_fails_is_listed_and_has_no_score():
    def reply(prompt: str) -> str:
        if "What burned?" in last(prompt):
            raise RuntimeError("no answer")
        return "in fog"

    found = evaluate_answers(Listed(), QUERIES, Reader(ScriptedLLM(reply)), on_error="record")
    assert found.ids == ("fog",)
    assert "no answer" in found.failures["oil"]
    assert found.answers == {"fog": "in fog"}


def test_sync_and_async_give_the_same():
    reader = Reader(scripted("whale oil", "in fog"))
    assert asyncio.run(aevaluate_answers(Listed(), QUERIES, reader)) == evaluate_answers(Listed(), QUERIES, reader)
    judge = PairwiseJudge(ScriptedLLM("Winner: 1"))
    answers = Evaluation("a", (), {}, answers={"oil": "oil", "fog": "fog"})
    assert asyncio.run(ajudge_answers(judge, QUERIES, answers, answers)) == judge_answers(
        judge, QUERIES, answers, answers
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((Listed(), [LabelledQuery("q", "?", ("lamp",))]), "has no answers"),
        ((Listed(), [LabelledQuery("q", "?", (), ("a",))], Reader(ScriptedLLM(""), style="citations")), "has no gold"),
        ((Listed(), [LabelledQuery("q", "?", (), ("a",))], Reader(ScriptedLLM(""), style="multiple_choice")), "option"),
        ((None, QUERIES), "nothing to score"),
        ((Listed(), []), "no questions"),
    ],
)
def test_what_cannot_be_scored_is_refused_before_any_call(arguments: Any, message: str):
    with pytest.raises(ConfigurationError, match=message):
        evaluate_answers(*arguments)


def test_an_unknown_style_and_a_single_option_are_refused():
    with pytest.raises(ConfigurationError, match="style"):
        Reader(ScriptedLLM(""), style="verbose")  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="2 to 26 options, not 1"):
        Reader(ScriptedLLM("A"), style="multiple_choice").read("?", ["text"], ["one"])


def test_iterators_and_single_texts_are_read_as_lists():
    reader = Reader(scripted("whale oil", "in fog"))
    whole = evaluate_answers(Listed(), QUERIES, reader)
    assert evaluate_answers(Listed(), iter(QUERIES), reader) == whole  # type: ignore[arg-type]
    assert whole.scores["EM"] == (1.0, 1.0)
    query = LabelledQuery("oil", "What burned?", (), "whale oil", ("oil", "whale oil"))  # type: ignore[arg-type]
    for letter, accuracy in (("A", 0.0), ("B", 1.0)):
        found = evaluate_answers(Listed(), [query], Reader(ScriptedLLM(letter), style="multiple_choice"))
        assert found.scores["accuracy"] == (accuracy,)
    asked = ScriptedLLM("whale oil")
    Reader(asked).read("What burned?", TEXTS["lamp"])
    assert TEXTS["lamp"] in last(asked.prompts[0])


def test_what_is_no_model_and_no_cache_is_refused(monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(ConfigurationError, match=r"An LLM is an object of LlamaIndex.*not 'gpt-4o'"):
        Reader("gpt-4o").read("?", ["text"])  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="A cache is a path"):
        Reader(ScriptedLLM("A"), cache=5)  # type: ignore[arg-type]
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setattr(Settings, "_llm", None)
    with pytest.raises(ConfigurationError, match="needs a language model: pass llm="):
        Reader().read("?", ["text"])


ANSWERS = Evaluation("ours", (), {}, answers={"oil": "whale oil, it says", "fog": "in fog"})
OTHERS = Evaluation("theirs", (), {}, answers={"oil": "coal", "fog": "at night"})


def better(prompt: str) -> str:
    """Prefers the answer "whale oil" wherever it stands, and otherwise what is shown first."""
    if "whale oil" not in last(prompt):
        return "Both are weak.\nWinner: 1"
    return f"It names the oil.\nWinner: {1 if last(prompt).index('whale oil') < last(prompt).index('coal') else 2}"


def test_a_judge_is_asked_in_both_orders_so_that_a_place_wins_nothing():
    judge = PairwiseJudge(ScriptedLLM(better), criteria={"directness": "How direct is it?"})
    found = judge_answers(judge, QUERIES, ANSWERS, OTHERS)
    assert found.scores == {"directness": (1.0, 0.5), "directness, agreement": (1.0, 0.0)}
    assert judge_answers(judge, QUERIES, OTHERS, ANSWERS).scores["directness"] == (0.0, 0.5)
    assert found.name == "ours against theirs"


@pytest.mark.parametrize(
    ("reply", "score", "agrees"),
    [("Winner: tie", 0.5, True), ("tie", 0.5, True), ("Answer 1 is right.\n**Winner:** 2", 0.5, False)],
)
def test_verdicts_are_read(reply: str, score: float, agrees: bool):
    verdicts = PairwiseJudge(ScriptedLLM(reply)).compare("What?", "one", "two")
    assert set(verdicts) == {"comprehensiveness", "diversity", "empowerment", "directness"}
    assert {(verdict.score, verdict.agrees) for verdict in verdicts.values()} == {(score, agrees)}


def test_an_iterator_of_questions_is_judged():
    judge = PairwiseJudge(ScriptedLLM(better), criteria={"directness": "Which answers more directly?"})
    judged = judge_answers(judge, iter(QUERIES), ANSWERS, OTHERS)  # type: ignore[arg-type]
    assert judged == judge_answers(judge, QUERIES, ANSWERS, OTHERS)
    assert judged.ids == ("oil", "fog")


def test_a_system_without_an_answer_cannot_be_judged():
    theirs = Evaluation("theirs", (), {}, answers={"oil": "x"})
    with pytest.raises(ConfigurationError, match="'theirs' has no answer to 1 questions, such as \\['fog'\\]"):
        judge_answers(PairwiseJudge(ScriptedLLM("1")), QUERIES, ANSWERS, theirs)
