"""The metrics of texts that the papers' tables grade answers with."""

import math
from types import SimpleNamespace

import pytest
from benchmarks.papers import graders

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
