"""Whether a context holds the answer, citations and chosen options: closed forms."""

import re
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llama_index.ragkit.errors import ConfigurationError
from llama_index.ragkit.evaluation import (
    answer_containment,
    answer_recall,
    answer_tokens,
    can_be_contained,
    chosen_option,
    citation_precision,
    citation_recall,
    cited_places,
)

words = st.lists(st.sampled_from(["lamp", "oil", "coal", "keeper", "rock", "tern"]), max_size=6)


def official(text: str) -> str:
    """The normalisation of the evaluation script that SQuAD, HotpotQA and MuSiQue share, written anew."""
    kept = "".join(character for character in text.lower() if character not in string.punctuation)
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", kept).split())


@given(st.text(st.sampled_from(string.printable)))
def test_tokens_of_ascii_answers_are_the_official_ones_unless_these_are_none(text: str):
    assert " ".join(answer_tokens(text)) == official(text) or not official(text)


@given(words, words, words)
def test_a_context_holds_the_runs_of_its_words(before: list[str], answer: list[str], after: list[str]):
    context = " ".join([*before, *answer, *after])
    held = answer_containment(context, " ".join(answer).upper())
    assert held == float(bool(answer) or not context)
    assert answer_recall(context, " ".join(answer)) == 1.0
    assert answer_containment([" ".join(before), " ".join(answer)], " ".join(answer)) >= held


@given(words, words)
def test_containment_is_that_of_a_naive_search(context: list[str], answer: list[str]):
    size = len(answer)
    naive = any(context[i : i + size] == answer for i in range(len(context))) if answer else not context
    assert answer_containment(" ".join(context), " ".join(answer)) == naive
    assert answer_recall(" ".join(context), " ".join(answer)) >= naive


@pytest.mark.parametrize(
    ("context", "answer", "held"),
    [
        ("The lamp burned whale oil.", "Whale-Oil", 0.0),  # the official normalisation joins what a hyphen joins
        ("The lamp burned whale oil.", "the whale oil", 1.0),
        ("lampoil", "lamp", 0.0),
        (["one whale", "oil lamp"], "whale oil", 0.0),  # no answer runs from one passage into the next
        ("他生于北京市。", "北京", 1.0),
        ("", "lamp", 0.0),
    ],
)
def test_containment_by_hand(context: str | list[str], answer: str, held: float):
    assert answer_containment(context, ["nothing of this", answer]) == held


def test_recall_counts_repeated_words_and_takes_the_best_answer():
    assert answer_recall("one lamp", ["lamp lamp oil"]) == pytest.approx(1 / 3)
    assert answer_recall(["one lamp", "oil"], ["lamp lamp oil", "oil or coal"]) == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("answers", "can"), [(["yes"], False), (["No."], False), (["no", "yes"], False), (["no one"], True), ([], False)]
)
def test_a_verdict_cannot_be_contained(answers: list[str], can: bool):
    assert can_be_contained(answers) is can


@given(st.sets(st.integers(0, 9)), st.sets(st.integers(0, 9), min_size=1))
def test_citations_by_sets(cited: set[int], gold: set[int]):
    assert citation_precision(cited, gold) == (len(cited & gold) / len(cited) if cited else 0)
    assert citation_recall([*cited, *cited], gold) == len(cited & gold) / len(gold)


@pytest.mark.parametrize("score", [citation_precision, citation_recall])
def test_citations_need_gold(score):
    with pytest.raises(ConfigurationError, match="gold is empty"):
        score([1], [])


@pytest.mark.parametrize(
    ("answer", "places"),
    [("[1][3] and [2, 1]; [4] [0]", (0, 2, 1)), ("in [ 2 ;3 ]", (1, 2)), ("北京【2】", (1,)), ("[year 1902] 1", ())],
)
def test_citations_are_read(answer: str, places: tuple[int, ...]):
    assert cited_places(answer, 3) == places


@pytest.mark.parametrize(
    ("answer", "place"),
    [
        ("B", 1),
        ("(b)", 1),
        ("B. whale oil", 1),
        ("C: coal", 2),
        ("**A**", 0),
        ("Whale oil", 1),
        ("It burned whale oil.", 1),
        ("oil", 0),  # equal to one, though it stands in another
        ("Z", None),
        ("oil or coal", None),
        ("Nothing", None),
        ("Come and see", None),
    ],
)
def test_options_are_chosen_by_letter_or_words(answer: str, place: int | None):
    assert chosen_option(answer, ["oil", "whale oil", "coal"] if place != 1 else ["wood", "whale oil", "coal"]) == place
