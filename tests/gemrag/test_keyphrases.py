"""Questions without a language model."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llama_index.gemrag.extraction.keyphrases import key_phrases, key_questions


def test_phrases_lie_between_stop_words_and_marks():
    sentence = "The Analytical Engine was drawn by Babbage, and used punched cards."
    assert key_phrases(sentence, "en") == ["Analytical Engine", "drawn", "Babbage", "punched cards"]


def test_words_with_points_slashes_and_commas_are_whole_and_numbers_of_items_are_none():
    sentence = "(1) The U.S. Army, e.g. on Adobe I/O, cost 20,000 crowns in 3 of 1852."
    assert key_phrases(sentence, "en") == ["U.S. Army", "Adobe I/O", "cost 20,000 crowns"]


def test_the_sentences_that_say_most_are_asked_after_in_their_order():
    text = "It was so. Ada Byron wrote notes on the Analytical Engine. They met. The Jacquard loom wove silk in Lyon."
    assert key_questions(text, 2) == ["Ada Byron wrote notes, Analytical Engine?", "Jacquard loom wove silk, Lyon?"]


def test_what_was_said_counts_half_a_second_time():
    text = "The Jacquard loom wove silk in Lyon. The Jacquard loom wove silk in Lyon today. Bread rises overnight."
    assert key_questions(text, 2)[-1] == "Bread rises overnight?"


def test_every_script_has_questions():
    assert key_questions("北京的故宫是皇家宫殿，位于北京。今天是博物馆。", 5) == [
        "北京的故宫是皇家宫殿, 位于北京?",
        "今天是博物馆?",
    ]
    assert key_questions("Ἡ Ἀθήνα εἶναι πόλις μεγάλη.", 3)
    assert key_questions("Der Turm steht in der Stadt.", 3, "de") == ["Turm, Stadt?"]


def test_numbers_alone_are_no_question():
    assert key_questions("Sales rose.\n\n12,641\n\n2022\n\n4.7% 208\n\nOral care fell to 164.", 9) == [
        "Sales rose?",
        "Oral care fell?",
    ]
    assert key_questions("12,641. 2022!", 9) == []


@settings(max_examples=80)
@given(st.text(max_size=300), st.integers(0, 4))
def test_any_text_gives_at_most_so_many_distinct_questions(text, most):
    questions = key_questions(text, most)
    assert len(questions) <= most
    assert len(set(questions)) == len(questions)
    assert all(any(c.isalpha() for c in q) and len(q) <= 161 for q in questions)


def test_nothing_to_say_and_too_much_to_say():
    assert key_questions("", 5) == key_questions("the of and", 5) == key_questions("...", 5) == []
    assert len(key_questions("a" * 20000, 5)[0]) == 161


def test_what_is_only_said_asks_for_nothing():
    assert key_questions("Oh, I'm sorry. Yeah! Ada lit the lamp.", 5) == ["Ada lit, lamp?"]
    assert key_questions("return None", 5) == key_questions("Um, really?", 5) == []


@pytest.mark.parametrize(
    ("text", "questions"),
    [
        ("5.2 OBLIGATION AFTER TERMINATION. See 3.3.1 (iv).", ["OBLIGATION, TERMINATION?"]),
        ("817516 0001014909 4sept2005\n\nThe waiver was signed.", ["waiver, signed?"]),
        ("Revised on May 4, 1871 by the keeper of Tern Rock.", ["Revised, keeper, Tern Rock?"]),
        ("Ross Geller: No . We 're gon na clean the lamp .\nRoss Geller: I do n't .", ["clean, lamp?"]),
        ("Reset self.lamp_state of the lamp. Calls np.zeros for the oil tank.", ["Reset, lamp?", "Calls, oil tank?"]),
        ("Miscellaneous. The lamp burned oil.", ["lamp burned oil?"]),
    ],
)
def test_what_names_nothing_is_left_out(text, questions):
    assert key_questions(text, 5) == questions


def test_a_question_lists_the_longest_phrases_of_a_sentence():
    things = ("bell", "boat", "chart", "coal", "door", "glass", "iron lamp", "ladder", "oar", "rope", "sail", "tar")
    (question,) = key_questions(f"They sold the {', the '.join(things)}, and the old lighthouse of Tern Rock.", 5)
    assert len(question.split()) == 12
    assert all(phrase in question for phrase in ("iron lamp", "Tern Rock"))


def test_stop_words_are_of_the_language_of_the_words():
    assert key_questions("Warschau war während seiner Existenz eine Stadt.", 5) == ["Warschau, Existenz, Stadt?"]
