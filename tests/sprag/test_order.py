"""Which chunks make a document, in which order; and the sections that a model finds in it."""

import random

from llama_index.sprag.documents import ChunkPlace, document_key, in_order
from llama_index.sprag.extraction.auto_context import next_window, section_of_each


def place(node_id, ref="d", page="", offset=0, content="h"):
    return ChunkPlace(node_id, ref, page, f"{content}|{ref}|{offset:012d}|{node_id}")


def test_pages_are_in_the_order_of_their_numbers_and_chunks_in_that_of_their_offsets():
    places = [place(f"{page}-{offset}", f"f_{page}", str(page), offset) for page in range(1, 12) for offset in (0, 90)]
    wanted = [each.id for each in places]
    random.Random(0).shuffle(places)
    ids, goes_on = in_order(places)
    assert ids == wanted
    assert goes_on == [False] + [True] * 21


def test_chunks_without_offsets_do_not_go_on_from_each_other():
    ids, goes_on = in_order([place("b", content="y"), place("a", content="z"), place("c", content="x")])
    assert ids == ["c", "b", "a"]
    assert goes_on == [False, False, False]


def test_what_a_document_is():
    pages = [{"file_path": "a.pdf", "page_label": str(i)} for i in (1, 2)]
    assert len({document_key(f"n{i}", f"d{i}", page, None) for i, page in enumerate(pages)}) == 1
    assert document_key("n", "d", {**pages[0], "tenant": "b"}, None) != document_key("n", "d", pages[0], None)
    assert document_key("n", "d", {}, None) == document_key("m", "d", {}, None)
    assert document_key("n", None, {}, None) != document_key("m", None, {}, None)
    assert document_key("n", "d", {"case": 1}, "case") == document_key("m", "e", {"case": "1"}, "case")
    assert document_key("n", "d", {}, "case") == document_key("n", "d", {}, None)


def test_sections_of_a_model_are_made_a_partition():
    titles, summaries = section_of_each([(3, "B", "b"), (0, "A", "a"), (9, "C", "c"), (-1, "Z", "")], 5)
    assert titles == [["A"], ["A"], ["A"], ["B"], ["B"]]
    assert summaries == ["a", "a", "a", "b", "b"]


def test_windows_hold_what_fits_and_at_least_one_part():
    assert [next_window([5, 5, 20, 1], start, 10) for start in range(4)] == [2, 2, 3, 4]
