"""Exact match and F1 of answers, in many scripts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llama_index.ragkit.errors import ConfigurationError
from llama_index.ragkit.evaluation import answer_f1, answer_tokens, exact_match


@pytest.mark.parametrize(
    ("prediction", "answer"),
    [
        ("The Eiffel Tower.", "eiffel tower"),
        ("  an   Apple\n", "apple"),
        ("STRASSE", "straße"),
        ("Ｔｏｋｙｏ　２０２０", "tokyo 2020"),  # full-width letters and space
        ("Cafe\u0301", "Café"),  # combining and composed accent
        ("“Hello” — world…", "hello world"),
        ("北京。", "北京"),
        ("¿Qué?", "qué"),
        ("Dec. 10, 1817", "dec 10 1817"),
        ("zero\u200bwidth", "zerowidth"),
    ],
)
def test_case_punctuation_articles_and_forms_do_not_matter(prediction, answer):
    assert exact_match(prediction, [answer]) == 1.0
    assert answer_f1(prediction, answer) == 1.0


@pytest.mark.parametrize(
    ("prediction", "answer"),
    [("+", "-"), ("The", "A"), ("", "nothing"), ("word", ""), ("ab c", "a bc"), ("हिंदी", "हद")],
)
def test_different_answers_stay_different(prediction, answer):
    assert exact_match(prediction, answer) == 0.0


def test_answers_of_symbols_or_articles_alone_equal_themselves():
    for answer in ("+", "The", "♥", "-"):
        assert exact_match(answer, answer) == answer_f1(answer, answer) == 1.0
    assert exact_match("", "") == answer_f1(" ", "") == 1.0


def test_f1_by_hand():
    # tokens: [big, red, dog, dog] and [red, dog]: 2 in common, precision 1/2, recall 1
    assert answer_f1("a big red dog dog", "the red dog") == pytest.approx(2 * 0.5 * 1 / 1.5)
    assert answer_f1("cat", "dog") == 0.0
    assert answer_f1("", "dog") == 0.0


def test_scripts_without_spaces_count_characters():
    assert answer_tokens("東京タワー") == ["東", "京", "タ", "ワ", "ー"]
    assert answer_f1("北京市", "北京") == pytest.approx(2 * 2 / 5)
    assert answer_tokens("ปีนี้") == ["ป" + "ี", "น" + "ี" + "้"]  # vowel and tone marks stay with their consonant
    assert answer_tokens("iPhone手机15") == ["iphone", "手", "机", "15"]


def test_scripts_with_spaces_count_words_with_their_marks():
    assert answer_tokens("हिंदी भाषा।") == ["हिंदी", "भाषा"]
    assert answer_tokens("서울 특별시") == ["서울", "특별시"]


def test_the_best_of_several_answers_counts():
    assert answer_f1("the red dog", ["cat", "red dog", "dog"]) == 1.0
    assert exact_match("dog", ["cat", "the dog"]) == 1.0


def test_no_right_answer_is_an_error():
    for score in (exact_match, answer_f1):
        with pytest.raises(ConfigurationError, match="empty"):
            score("x", [])


@given(st.text(), st.text())
def test_f1_is_symmetric_bounded_and_reflexive(a, b):
    assert 0 <= answer_f1(a, b) == answer_f1(b, a) <= 1
    assert answer_f1(a, a) == exact_match(a, a) == 1.0
    assert exact_match(a, b) <= answer_f1(a, b)
