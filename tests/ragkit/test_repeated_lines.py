"""Lines that a document repeats."""

import random

from hypothesis import given
from hypothesis import strategies as st

from llama_index.ragkit.text.passages import PassageText, read_passage, repeated_lines, without_lines

PAGES = ["Sales rose.", "Costs fell.", "Debts were paid."]


def chunks(header="Annual Report", footer="Page {} of 3"):
    return [(f"{header}\n\n{page}\n{footer.format(i + 1)}", None) for i, page in enumerate(PAGES)]


def test_headers_and_numbered_footers_repeat():
    repeated = repeated_lines(chunks())
    assert repeated == {"annual report", "#page 0 of 0"}
    assert without_lines(chunks()[0][0], repeated).strip() == "Sales rose."
    assert repeated_lines(chunks()[:2]) == {"annual report"}
    assert repeated_lines(chunks()[:1]) == frozenset()


def test_the_order_of_chunks_does_not_matter():
    shuffled = chunks()
    random.Random(0).shuffle(shuffled)
    assert repeated_lines(shuffled) == repeated_lines(chunks())


def test_what_overlapping_chunks_share_does_not_repeat():
    assert repeated_lines([("One.\nTwo.", ("d", 0)), ("Two.\nThree.", ("d", 5))]) == frozenset()
    assert repeated_lines([("One.\nTwo.", ("d", 0)), ("Two.\nThree.", ("d", 50))]) == {"two"}


def test_pages_with_positions_of_their_own():
    assert repeated_lines([("Head\nTwo.", ("page 1", 0)), ("Head\nThree.", ("page 2", 0))]) == {"head"}


def test_numbers_alone_and_single_lines_do_not_repeat():
    assert repeated_lines([("7\na", None), ("7\nb", None), ("c", None), ("c", None)]) == frozenset()


def test_ends_of_sentences_do_not_repeat():
    assert repeated_lines([(f"They had {i}\nbenefits.\nMore", None) for i in "abcde"]) == {"more"}
    web = [(f"{i}\nwww.example.org", None) for i in "abc"]
    assert repeated_lines(web) == {"www example org"}
    assert repeated_lines(web[:2]) == frozenset()


def test_a_chunk_that_has_only_repeated_lines_is_kept():
    assert read_passage("Annual Report\nPage 1", repeated={"annual report", "#page 0"}).body != ""
    assert read_passage("Annual Report\nIt rose.", repeated={"annual report"}) == PassageText("", "It rose.")


def test_a_given_title_is_no_part_of_the_body():
    assert read_passage("The Lamp\nIt burned.", "the lamp") == PassageText("the lamp", "It burned.")
    assert read_passage("# *The lamp*\nIt burned.", "*The lamp*, 3 * 4") == PassageText(
        "The lamp, 3 * 4", "# *The lamp*\n\nIt burned."
    )
    assert read_passage("The lamp", "The lamp") == PassageText("The lamp", "The lamp")
    assert read_passage("# The Lamp\n\nIt burned.", headings=False) == PassageText("", "# The Lamp\n\nIt burned.")
    assert read_passage("# The Lamp\n\nIt burned.", "Oil") == PassageText("Oil", "# The Lamp\n\nIt burned.")


@given(st.lists(st.text("aA1\n \r", max_size=20), max_size=4))
def test_what_is_left_are_the_other_lines(texts):
    repeated = repeated_lines([(text, None) for text in texts])
    for text in texts:
        assert without_lines(text, frozenset()) == text
        assert set(without_lines(text, repeated)) <= set(text)
