"""Soft hyphens, colours of a terminal and overstruck characters are no part of words; hyphenated words are found."""

import pytest
from llama_index.core.schema import TextNode

from llama_index.ragkit import HybridRetriever
from llama_index.ragkit.testing.models import HashEmbedding
from llama_index.ragkit.text.characters import without_unprinted
from llama_index.ragkit.text.lexical_index import lexical_terms
from llama_index.ragkit.text.passages import read_passage


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("soft\u00adly\r\nand", "softly\nand"),
        ("the light\u00ad\r\nhouse\u00ad", "the lighthouse"),
        ("\x1b[1;32mNAME\x1b[0m\n     \x1b[1mman\x1b[22m - a manual\x1b[K", "NAME\n     man - a manual"),
        ("N\bNA\bAM\bME\bE and _\bl_\ba_\bm_\bp", "NAME and lamp"),
        ("\bfirst\n\bsecond", "\bfirst\n\bsecond"),  # nothing is printed over
        ("an array[1m] without escapes", "an array[1m] without escapes"),
    ],
)
def test_what_is_not_printed_is_no_part_of_a_text(text, left):
    assert without_unprinted(text) == left
    assert without_unprinted(left) == left


def test_a_passage_has_the_title_that_a_terminal_shows():
    assert read_passage("\x1b[1mThe Lamp\x1b[0m\n\nIt burned\nwhale\u00ad\noil.") == ("The Lamp", "It burned whaleoil.")


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("the light-\nhouse", {"the": 1, "light": 1, "house": 1, "lighthouse": 1}),
        ("Well‐ \r\n  Known", {"well": 1, "known": 1, "wellknown": 1}),
        ("well-known", {"well": 1, "known": 1}),
        ("1990-\n91", {"1990": 1, "91": 1}),
        ("light\u00ad\nhouse", {"lighthouse": 1}),
        ("x" * 300_000 + "\nlight-\nhouse", {"x" * 300_000: 1, "light": 1, "house": 1, "lighthouse": 1}),
        ("东京-\n京都", {"东": 1, "京": 2, "都": 1, "东京": 1, "京都": 1}),
    ],
    ids=["word", "blanks", "within a line", "numbers", "soft", "a long run", "without spaces"],
)
def test_a_word_with_a_hyphen_at_the_end_of_its_line_counts_whole_too(text, counts):
    assert dict(lexical_terms(text)) == counts


def test_a_hyphenated_word_is_found():
    texts = ["a bridge", "the light-\nhouse of\nTovel", "a boat"]
    nodes = [TextNode(id_=text, text=text) for text in texts]
    found = HybridRetriever(nodes, HashEmbedding(dim=8), lexical_weight=1).retrieve("Which lighthouse?")
    assert found[0].node.text == texts[1]
