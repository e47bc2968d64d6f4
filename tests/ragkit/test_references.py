"""Entries of a list of references, and statements beside them."""

import pytest

from llama_index.ragkit.text.prose import is_reference, without_addresses
from llama_index.ragkit.text.statements import is_statement, line_sentences, sentences_of_prose

ENTRIES = (
    "[12] A. M. Lee and B. Roe, “Oil lamps of the coast,” *J. Light*, vol. 45, pp. 255–282, 1950.",
    "Lee et al. [2019] A.Lee, B.Roe, and C.Day. Lamps: a survey of oils. In D.Korn and E.Marsh, editors, _Proceedings "
    "of the 57th Meeting of the Society_, pages 47–62, Florence, Italy, July 2019. doi: 10.18653/v1/P19-1470.",
    "Lee, A., Roe, B., & Day, C. (2002) Lamps: a method for the measurement of light. In Proceedings of the Meeting of "
    "the Society for Light, pp. 311-318.",
    "Lamp Works [2024] Lamp Works. Card of a lamp. 2024. URL https://lamp.example/card.md.",
    "_Journal of Light_, 215:119369, 2023.",
    "Online: Association for Light, Nov. 2020, pp. 5418–5426.",
)
PROSE = (
    "In 1871 J. Gordon Bennett asked H. M. Stanley to find him, and the Herald paid for the journey.",
    "Roger D. Hodge (born 1967 in Del Rio, Texas, U.S.) is Deputy Editor at The Lamp.",
    "Life Without Soul (1915) is a lost film, directed by Joseph W. Smiley and written by Jesse J. Goldburg.",
    "As Lee et al. [2019] show in the proceedings of the meeting, a lamp that burns oil is as dear as one of gas.",
    "The agreement of August 15, 2018, is among Lamp Works, Oil Bank, N.A., and Gas Bank, N.A., as agents.",
    "See https://lamp.example/rules for what a keeper of a lamp is paid since 1912.",
)


@pytest.mark.parametrize("text", ENTRIES)
def test_an_entry_is_one_line_and_no_statement(text: str) -> None:
    assert is_reference(text)
    assert not is_statement(text)
    assert line_sentences(f"It burned oil. It was dear.\n{text}") == ["It burned oil.", "It was dear.", text]


@pytest.mark.parametrize("text", PROSE)
def test_prose_that_cites_names_or_dates_is_no_entry(text: str) -> None:
    assert not is_reference(text)
    assert is_statement(text)


@pytest.mark.parametrize(
    "text",
    [
        "URL https://lamp.example/17696170/.",
        "doi: 10.18653/v1/2021.lamps-main.293.",
        "arXiv preprint arXiv:2305.18846.",
        "Huguet Cabot and R. Navigli.",
        "Construction of Agreement.",
        r"\mathcal{L}_{x} \leftarrow a_{i}/count\_a_{i}.",
        "end_ARG start_ARG italic_q end_ARG is.",
    ],
)
def test_addresses_names_headings_and_formulas_are_no_statements(text: str) -> None:
    assert not is_statement(text)


@pytest.mark.parametrize(
    "text",
    [
        "PAYMENT IS DUE ON MONDAY.",
        "Judo (柔道) is a sport.",
        "Das Haus brennt.",
        "Лампа горит.",
        "The function load_lamps returns a list.",
        "他在灯塔工作。",
    ],
)
def test_short_sentences_of_any_script_are_statements(text: str) -> None:
    assert is_statement(text)


def test_addresses_go_with_the_words_that_announce_them() -> None:
    assert without_addresses("It burns (doi: 10.1000/x.5) oil.") == "It burns ( oil."
    assert without_addresses("Ada wrote 10 lines: oil.") == "Ada wrote 10 lines: oil."


def test_a_sign_within_a_line_is_no_mark_of_a_quotation() -> None:
    text = "> Values of p > 0.05 were left out.\n\nUse a -> b here, Ann."
    assert sentences_of_prose(text) == ["Values of p > 0.05 were left out.", "Use a -> b here, Ann."]
