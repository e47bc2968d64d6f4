"""The table of scripts without spaces holds their letters and no others."""

import re
import sys
import unicodedata

import pytest

from llama_index.ragkit.text import characters

# How the Unicode names of the letters and marks in each class begin.
_HAN = ("CJK", "IDEOGRAPHIC", "KANGXI", "HANGZHOU")
_KANA = ("HIRAGANA", "KATAKANA", "COMBINING KATAKANA-HIRAGANA")
_SOUTHEAST_ASIAN = ("THAI", "LAO", "MYANMAR", "KHMER")
NAMES = {
    "HAN": _HAN,
    "HIRAGANA": _KANA,
    "KATAKANA": _KANA,
    "KANA": _KANA,
    "HANGUL": ("HANGUL",),
    "SOUTHEAST_ASIAN": _SOUTHEAST_ASIAN,
    "UNSPACED": (*_HAN, *_KANA, *_SOUTHEAST_ASIAN, "BOPOMOFO", "TIBETAN"),
}


def held(name):
    in_class = re.compile(f"[{getattr(characters, name)}]")
    every = map(chr, range(sys.maxunicode + 1))
    return {c for c in every if in_class.match(c) and unicodedata.category(c)[0] in "LM"}


@pytest.mark.parametrize("name", NAMES)
def test_a_class_holds_letters_of_its_scripts_only(name):
    others = {unicodedata.name(c) for c in held(name) if not unicodedata.name(c).startswith(NAMES[name])}
    assert others == set()


def test_every_letter_of_scripts_without_spaces_is_in_the_table():
    letters = held("UNSPACED")
    common = [c for c in map(chr, range(0x300, 0x10000)) if unicodedata.category(c)[0] == "L"]
    starts = ("CJK UNIFIED", "HIRAGANA LETTER", "KATAKANA LETTER", "BOPOMOFO LETTER", "TIBETAN LETTER")
    starts += ("THAI CHARACTER", "LAO LETTER", "KHMER LETTER")
    assert [c for c in common if unicodedata.name(c, "").startswith(starts) and c not in letters] == []
    assert re.fullmatch(f"[{characters.UNSPACED}]+", "々〇北ไလཀㄅゟㇿ𠀋")


def test_letters_of_scripts_with_spaces_are_not_in_the_table():
    assert not held("UNSPACED") & {*"aéßжאबგአ한ꦲ"}


def test_scripts_without_capitals_have_spaces_and_no_case():
    letters = held("CASELESS")
    assert all(c.lower() == c.upper() or unicodedata.name(c).startswith("GEORGIAN") for c in letters)
    assert not letters & held("UNSPACED")
    assert re.fullmatch(f"[{characters.CASELESS}]+", "אبगেგአ")


def test_marks_are_no_letters():
    assert {unicodedata.category(c)[0] for c in held("MARKS")} == {"M"}
    assert re.fullmatch(rf"(?:\w[{characters.MARKS}]*)+", "गंगा")
