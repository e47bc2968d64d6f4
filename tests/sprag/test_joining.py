"""Texts of segments: cut from the source; without it neither glued nor doubled."""

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llama_index.core.schema import BaseNode, IndexNode, TextNode

from llama_index.ragkit.steps import immediate, run_steps
from llama_index.sprag.segment_nodes import segment_results
from llama_index.sprag.segment_search import FoundSegment
from llama_index.sprag.segments.joining import Piece, joined_text

SOURCE = "First line.\n\nSecond  line;\tgoes on.   Third."


def piece(start, end, source="d", text=None):
    return Piece(SOURCE[start:end] if text is None else text, source, start, end)


def test_a_segment_is_a_slice_of_its_source_with_the_white_space_that_the_splitter_stripped():
    assert joined_text([piece(0, 11), piece(13, 36), piece(38, 44)], {"d": SOURCE}) == SOURCE


def test_what_lies_between_chunks_and_is_no_white_space_was_left_out_on_purpose():
    assert joined_text([piece(0, 11), piece(38, 44)], {"d": SOURCE}) == "First line.\n\nThird."


def test_overlapping_chunks_stand_once():
    overlapping = [piece(0, 20), piece(13, 36), piece(13, 30)]
    assert joined_text(overlapping, {"d": SOURCE}) == SOURCE[:36]
    assert joined_text(overlapping) == SOURCE[:36]


def test_chunks_that_touch_are_joined_as_they_are_and_words_are_never_glued_across_a_gap():
    assert joined_text([piece(0, 5), piece(5, 11)]) == "First line."
    assert joined_text([piece(0, 11), piece(13, 19)]) == "First line.\n\nSecond"


def test_offsets_that_do_not_fit_the_source_are_not_trusted():
    altered = [piece(0, 11, text="1st line."), piece(13, 36)]
    assert joined_text(altered, {"d": SOURCE}) == "1st line.\n\n" + SOURCE[13:36]
    doubled = [piece(0, 20), piece(13, 36, text="Something else, with a header.")]
    assert joined_text(doubled) == SOURCE[:20] + "\n\nSomething else, with a header."


@pytest.mark.parametrize("source", ["e", None])
def test_other_sources_begin_a_paragraph(source):
    assert joined_text([piece(0, 11), piece(0, 5, source)], {"d": SOURCE, "e": SOURCE}) == "First line.\n\nFirst"


def test_without_offsets_each_chunk_is_a_paragraph_and_empty_ones_are_left_out():
    assert joined_text([Piece("One."), Piece(""), Piece("Two.")]) == "One.\n\nTwo."
    assert joined_text([]) == ""


def test_chunks_out_of_order_are_not_cut_from_the_source_in_one_piece():
    assert joined_text([piece(13, 19), piece(0, 5)], {"d": SOURCE}) == "Second\n\nFirst"


@settings(max_examples=200)
@given(
    st.lists(st.sampled_from(["word", "东京", "a\u0301", "x.", " ", "\n\n", "  "]), min_size=1, max_size=30),
    st.lists(st.integers(0, 60), max_size=6),
    st.integers(0, 5),
)
def test_whatever_the_cuts_no_word_is_lost_doubled_or_glued(tokens, cuts, overlap):
    text = "".join(tokens).strip()
    borders = sorted({0, len(text), *(min(cut, len(text)) for cut in cuts)})
    pieces = []
    for start, end in pairwise(borders):
        begin = max(0, start - overlap)
        stripped = text[begin:end].strip()
        offset = text.find(stripped, begin)
        pieces.append(Piece(stripped, "d", offset, offset + len(stripped)))
    assert joined_text(pieces, {"d": text}) == text
    assert re.sub(r"\s+", "", joined_text(pieces)) == re.sub(r"\s+", "", text)


def test_a_segment_with_an_index_node_gives_its_chunks_one_by_one() -> None:
    nodes: dict[str, BaseNode] = {
        "a": TextNode(text="The keepers of the light.", id_="a"),
        "b": IndexNode(text="A table of keepers.", id_="b", index_id="t", obj=TextNode(text="| Ada Hale |")),
    }

    @immediate
    def fetch(ids: Sequence[str]) -> Mapping[str, BaseNode]:
        return {i: nodes[i] for i in ids}

    segment = FoundSegment("d", 0, ["a", "b"], [0.5, 0.5], 1.0, 0.75, 0, [0, 1])
    found = run_steps(segment_results([segment], fetch))
    assert [(result.node, result.score) for _, result in found] == [(node, 0.75) for node in nodes.values()]
