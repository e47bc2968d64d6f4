"""Texts of segments: cut from the source; without it neither glued nor doubled."""

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.postprocessor import PrevNextNodePostprocessor
from llama_index.core.schema import BaseNode, Document, IndexNode, MetadataMode, TextNode
from llama_index.core.storage.docstore import SimpleDocumentStore

from llama_index.ragkit.steps import Steps, immediate, run_steps
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


def fetching(nodes: Mapping[str, BaseNode]) -> Callable[[Sequence[str]], Steps[Mapping[str, BaseNode]]]:
    @immediate
    def fetch(ids: Sequence[str]) -> Mapping[str, BaseNode]:
        return {i: nodes[i] for i in ids if i in nodes}

    return fetch


def test_a_segment_with_an_index_node_gives_its_chunks_one_by_one() -> None:
    nodes: dict[str, BaseNode] = {
        "a": TextNode(text="The keepers of the light.", id_="a"),
        "b": IndexNode(text="A table of keepers.", id_="b", index_id="t", obj=TextNode(text="| Ada Hale |")),
    }
    segment = FoundSegment("d", 0, ["a", "b"], [0.5, 0.5], 1.0, 0.75, 0, [0, 1])
    found = run_steps(segment_results([segment], fetching(nodes)))
    assert [(result.node, result.score) for _, result in found] == [(node, 0.75) for node in nodes.values()]


def test_a_segment_is_shown_as_its_chunks_are_and_core_finds_what_is_beside_it() -> None:
    document = Document(
        text=" ".join(f"Keeper {i} lit the lamp." for i in range(4)),
        id_="d",
        metadata={"file": "a.txt", "page": "2"},
        metadata_template="<{key}: {value}>",
        metadata_separator=" ",
        text_template="{metadata_str} | {content}",
    )
    splitter = SentenceSplitter(chunk_size=20, chunk_overlap=0)
    store = SimpleDocumentStore()
    store.add_documents(chunks := splitter.get_nodes_from_documents([document]))
    middle = FoundSegment("d", 1, [node.node_id for node in chunks[1:3]], [0.5, 0.5], 1.0, 0.75, 0, [0, 1])
    ((_, segment),) = run_steps(segment_results([middle], fetching(store.docs)))
    assert segment.node.get_content(MetadataMode.LLM).startswith("<file: a.txt> <page: 2> | Keeper 1 lit the lamp.")
    beside = PrevNextNodePostprocessor(docstore=store, mode="both").postprocess_nodes([segment])
    assert [found.node.node_id for found in beside] == [chunks[0].node_id, segment.node.node_id, chunks[3].node_id]
