"""Reading takes work in proportion to the length of a text, counted in calls and in characters that are normalised."""

import sys

import pytest

from llama_index.hipporag.text import noun_phrases
from llama_index.ragkit.text import passages
from llama_index.ragkit.text.names import names

LENGTH = 1_500  # characters of the shorter text


def work(monkeypatch: pytest.MonkeyPatch, text: str) -> tuple[int, int]:
    """Calls of functions, and characters normalised, to read a text."""
    calls = characters = 0

    def count(frame, event, argument) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    def normalise(phrase: str) -> str:
        nonlocal characters
        characters += len(phrase)
        return original(phrase)

    original = noun_phrases.normalise
    with monkeypatch.context() as patch:
        patch.setattr(noun_phrases, "normalise", normalise)
        sys.setprofile(count)
        try:
            noun_phrases.read_passage(passages.read_passage(text), lower_case=True)
        finally:
            sys.setprofile(None)
    return calls, characters


@pytest.mark.parametrize(
    "unit",
    [
        "Bob and ", "Bob ", "word ", "Bob. ", "Bob\n", "- bob\n", "# ", "(", "“Bob” ", "12 ",
        "0.5 ", "```\n", "f(x.y\n", "| Bob ", "`a.B` ", "[a](", "<!--", "*Bob* ", "a_b ",
        "北京", "北京 ", "的京", "東京は", "서울은 ", "كتاب قديم ", "दिल्ली की ", "ไทย", "กรุงเทพ ",
    ],
)  # fmt: skip
def test_twice_the_text_is_twice_the_work(monkeypatch, unit):
    once = work(monkeypatch, unit * (LENGTH // len(unit)))
    twice = work(monkeypatch, unit * (2 * LENGTH // len(unit)))
    assert all(more <= 2.2 * less + 100 for less, more in zip(once, twice, strict=True))


@pytest.mark.parametrize("character", ["#", " ", "\t", "x"])
def test_a_long_first_line_is_matched_once(character):
    """With backtracking, these would take hours."""
    line = "# x " + character * 1_000_000 + "y"
    assert passages.read_passage(f"{line}\n\nText.").body == "Text."


def test_a_name_has_no_more_than_twenty_words():
    found = names(f"It was {'Bob and ' * 100}Bob.")
    assert found
    assert max(len(name.text.split()) for name in found) <= 42  # small words between do not count
