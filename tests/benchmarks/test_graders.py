"""The metrics of texts that the papers' tables grade answers with."""

import math
from types import SimpleNamespace
from typing import Any

import pytest
from benchmarks.papers import graders
from benchmarks.papers.experiment import Answered

from llama_index.ragkit.evaluation import LabelledQuery

pytest.importorskip("nltk")


class Synonyms:
    """A WordNet in which two words have the same meaning."""

    def synsets(self, word: str) -> list[SimpleNamespace]:
        words = ("begin", "start") if word in ("begin", "start") else (word,)
        lemmas = [SimpleNamespace(name=lambda each=each: each) for each in words]
        return [SimpleNamespace(lemmas=lambda: lemmas)]


@pytest.fixture
def wordnet(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(graders, "_wordnet", Synonyms)


@pytest.mark.usefixtures("wordnet")
@pytest.mark.parametrize(
    ("text", "matches", "words", "chunks"),
    [
        ("The ships left Tarn.", 4, 4, 1),
        ("the ship left Tarn", 4, 4, 1),  # of one stem
        ("Tarn the ships left", 4, 4, 2),
        ("the ships left", 3, 3, 1),
        ("nothing of it", 0, 3, 0),
    ],
)
def test_meteor_weighs_recall_and_divides_by_chunks(text: str, matches: int, words: int, chunks: int):
    precision, recall = matches / words, matches / 4
    mean = precision * recall / (0.9 * precision + 0.1 * recall) if matches else 0.0
    expected = mean * (1 - 0.5 * (chunks / matches) ** 3) if matches else 0.0
    assert graders.meteor("The ships left Tarn.", text) == pytest.approx(expected)


@pytest.mark.usefixtures("wordnet")
def test_meteor_counts_synonyms():
    same, other, equal = (
        graders.meteor("The storms begin.", f"The storms {verb}.") for verb in ("start", "end", "begin")
    )
    assert other < same == equal


def test_without_wordnet_there_is_no_meteor(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(graders, "_wordnet", lambda: None)
    assert math.isnan(graders.meteor("The ships left.", "The ships left."))


class Words:
    """The interface of BERTScore's scorer, which it reads texts and then references with; it refuses empty texts."""

    def score(self, texts: list[str], references: list[str]) -> tuple[Any, Any, list[float]]:
        assert all(texts)
        return (
            None,
            None,
            [len({*text.split()} & {*other.split()}) / 4 for text, other in zip(texts, references, strict=True)],
        )


def graded(monkeypatch: pytest.MonkeyPatch, model: str) -> list[float]:
    monkeypatch.setattr(graders, "_bert_scorer", lambda given: Words() if given == model else None)
    queries = [LabelledQuery(f"q{i}", "Who?", answers=("Ada Hale",)) for i in range(3)]
    lab: Any = SimpleNamespace(options=SimpleNamespace(bert_score=model))
    return list(graders.bert_score(Answered(lab, queries, {"q0": "Ada Hale", "q1": "", "q2": "Ada"}, None)))


def test_bert_score_is_that_of_each_answer_and_its_reference_and_0_for_no_answer(monkeypatch: pytest.MonkeyPatch):
    assert graded(monkeypatch, "zh") == [0.5, 0.0, 0.25]


def test_bert_score_is_left_out_where_no_model_was_named(monkeypatch: pytest.MonkeyPatch):
    assert all(map(math.isnan, graded(monkeypatch, "")))
