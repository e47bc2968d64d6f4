"""The rules of a document's context: running lines, openings, titles, sections, salient terms, and the header."""

import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llama_index.ragkit.text.salient_terms import CorpusTerms, salient_terms, term_counts
from llama_index.sprag.config import ContextConfig
from llama_index.sprag.context.headers import contextualised, header_text, published_header_text
from llama_index.sprag.context.headings import Heading, headings_of, html_headings, markdown_headings, section_paths
from llama_index.sprag.context.openings import (
    first_lines,
    page_openings,
    running_lines,
    shortened,
    without_ornaments,
    without_running_lines,
)
from llama_index.sprag.context.reading import read_document
from llama_index.sprag.context.titles import document_title, title_of_file_name

PAGES = [
    f"Harbour Authority   Annual Report {2000 + n % 2}\n\n{subject}\nIn this year much was done at the quay.\n"
    f"And more in the office.\nMore still.\nPage {n} of 5"
    for n, subject in enumerate(["Foreword", "Dredging", "Pilots", "Accounts", "Outlook"], 1)
]


# -- running lines ---------------------------------------------------------------------------------------


def test_lines_that_come_again_at_the_edges_of_pages_are_left_out_whatever_their_numbers():
    running = running_lines(PAGES)
    assert running == {
        "harbour authority annual report #",
        "page # of #",
        "in this year much was done at the quay.",
        "and more in the office.",
        "more still.",
    }
    running = running_lines(PAGES, edge=1)
    assert running == {"harbour authority annual report #", "page # of #"}
    kept = [line for line in without_running_lines(PAGES[1], running, edge=1) if line]
    assert kept == ["Dredging", "In this year much was done at the quay.", "And more in the office.", "More still."]


def test_a_line_in_the_middle_of_a_page_is_no_header_even_if_it_reads_like_one():
    page = "Head\nbody\nHead\nbody\nfoot"
    running = running_lines([page] * 3, edge=1)
    assert running == {"head", "foot"}
    assert without_running_lines(page, running, edge=1) == ["body", "Head", "body"]


def test_headers_of_left_and_right_pages_are_found_and_chapter_titles_are_kept():
    pages = [
        f"{'Left' if n % 2 else 'Right'}\nChapter {'abcdefghij'[n // 4]}\nText number {n} on its own.\n.\n.\n."
        for n in range(40)
    ]
    assert {"left", "right"} <= running_lines(pages)
    assert not any(line.startswith("chapter") for line in running_lines(pages))


@pytest.mark.parametrize("pages", [[], [""], ["", "\n \n"], ["one page"], ["same", "same"]])
def test_few_or_empty_pages_have_no_running_lines(pages):
    assert running_lines(pages) == frozenset()


# -- openings --------------------------------------------------------------------------------------------


def test_a_page_opens_below_its_header():
    pages = [page.replace("\n", "\n\n") for page in PAGES]
    running = running_lines(pages, edge=1)
    assert page_openings(pages, length=8, running=running) == ["Foreword", "Dredging", "Pilots", "Accounts", "Outlook"]
    assert page_openings(pages, length=16, running=running)[1] == "Dredging In this"


def test_the_first_lines_are_those_of_the_first_page_that_has_any():
    pages = ["ACME\n1", "ACME\n2", "ACME\nThe tide table\n3", "ACME\n4"]
    assert first_lines(pages, length=50) == "The tide table"
    assert first_lines([], length=50) == ""
    assert first_lines(["  \n"], length=50) == ""


def test_long_letterheads_are_left_out_where_prose_follows_on_the_page():
    cover = "HARBOUR AUTHORITY\nWest Quay, Port Town\nFor the year ended in May 1931\nPilots"
    assert first_lines([cover], length=40, letterhead=False) == "For the year ended in May 1931 Pilots"
    assert first_lines([cover], length=40) == "HARBOUR AUTHORITY West Quay, Port Town"
    assert first_lines([cover], length=90, letterhead=False).startswith("HARBOUR AUTHORITY West Quay, Port Town For")
    names = "HARBOUR AUTHORITY\nWest Quay, Port Town"
    assert first_lines([names, cover], length=17, letterhead=False) == "HARBOUR AUTHORITY"
    assert (
        first_lines(["港务局\n今年春天，港口进行了疏浚，码头已经修好。"], length=40, letterhead=False)[:3] == "港务局"
    )


def test_a_table_of_numbers_has_no_first_lines():
    assert first_lines(["pump 0, 41.8\nvalve 1, 4.1\nbelt 2, 38.2"], length=40) == ""
    assert first_lines(["Dues of 1931: 40 crowns"], length=40) == "Dues of 1931: 40 crowns"


def test_comments_of_source_code_are_no_headings():
    text = '"""A tool."""\n# Copyright Nordheim\nimport os\n'
    config = ContextConfig()
    assert read_document([text], {"file_name": "tool.py"}, config).title == "tool"
    assert read_document([text], {"file_name": "tool.md"}, config).title == "Copyright Nordheim"


def test_check_boxes_and_drawn_lines_are_left_out_and_numbers_stay():
    assert without_ornaments("☒ Yes ☐ No \uf0a8 ______ ======") == "Yes No"
    assert without_ornaments("Dues: $ 40.50 (+2 %) -- wages...") == "Dues: $ 40.50 (+2 %) -- wages"
    assert page_openings(["☒\n-----\n", "Dues"], length=10) == ["", "Dues"]


@given(st.text(), st.integers(1, 40))
def test_a_shortened_text_is_a_beginning_of_the_text_in_one_line(text, length):
    line = " ".join(text.split())
    short = shortened(text, length)
    assert len(short) <= length
    assert line.startswith(short)
    if len(line) > length and " " in line[: length + 1]:
        assert line[len(short)] == " "  # it ends with a whole word


# -- titles ----------------------------------------------------------------------------------------------


def test_a_title_comes_from_metadata_then_a_heading_then_the_file():
    text = "# Tides\n\nText.\n"
    headings = markdown_headings(text)
    metadata = {"title": "The Tide Table", "file_name": "tides-2018.md"}
    assert document_title(metadata, headings) == "The Tide Table"
    assert document_title({"file_name": "tides-2018.md"}, headings) == "Tides"
    assert document_title({"file_name": "tides-2018.md"}) == "tides 2018"
    assert document_title({}) == ""


def test_what_a_program_wrote_is_no_title():
    for title in ("untitled", "Document1", "Untitled (2)", " ", "1234", "PowerPoint Presentation", "x" * 300):
        assert document_title({"title": title, "file_name": "tides.pdf"}) == "tides"
    assert document_title({"title": "Microsoft Word - tide_table.docx"}) == "tide table"
    assert document_title({"title": 7, "file_name": None}) == ""


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("Some prose comes first.\n\n# Tides\n\n## Spring\n", "Tides"),
        ("# One part\n\ntext\n\n# Another\n", ""),
        ("## A part\n\ntext\n\n# Higher\n", ""),
        ("word " * 500 + "\n\n# References\n", ""),
        ("# Untitled\n", ""),
        ("plain text", ""),
    ],
)
def test_a_heading_is_the_title_if_it_is_the_highest_alone_and_near_the_top(text, title):
    assert document_title({}, markdown_headings(text)) == title


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("/data/reports/3M_2018_10K.pdf", "3M 2018 10K"),
        ("C:\\texts\\Gezeiten-Übersicht.v2.docx", "Gezeiten Übersicht v2"),
        ("潮汐表.txt", "潮汐表"),
        ("https://a.org/tide%20table.html?lang=en#top", "tide table"),
        ("README.md", ""),
        ("scan0001.pdf", ""),
        ("IMG_1234.jpg", ""),
        ("123e4567-e89b-12d3-a456-426614174000.json", ""),
        ("9f86d081884c7d659a2f.txt", ""),
        ("tmpab12cd34.txt", ""),
        ("", ""),
    ],
)
def test_file_names_as_titles(name, title):
    assert title_of_file_name(name) == title


# -- headings and sections -------------------------------------------------------------------------------


def test_markdown_headings_of_both_kinds_and_none_inside_code():
    text = (
        "Tides\n=====\n\n## Spring ##\ntext\n#hashtag\n\n```python\n# comment\n```\n\n    # indented code\n\n"
        "Neap\n----\n\na paragraph\nof two lines\n---\n\n| a | b |\n|---|---|\n\n- item\n---\n#\n### Deep\n"
    )
    found = [(heading.level, heading.title) for heading in markdown_headings(text)]
    assert found == [(1, "Tides"), (2, "Spring"), (2, "Neap"), (3, "Deep")]
    assert all(text[h.offset :].lstrip("# ").startswith(h.title) for h in markdown_headings(text))


def test_a_fence_ends_only_at_a_fence_of_its_kind_and_length():
    text = "````\n```\n# a\n~~~\n````\n# b\n~~~~\n# c\n"
    assert [heading.title for heading in markdown_headings(text)] == ["b"]


def test_html_headings_without_tags_comments_and_scripts():
    text = (
        "<!-- <h1>No</h1> --><h1 class='x'>Tide&nbsp;&amp; <b>table</b></h1><script>'<h2>no</h2>'</script><H3>Sub</H3>"
    )
    assert [(h.level, h.title) for h in html_headings(text)] == [(1, "Tide & table"), (3, "Sub")]
    assert headings_of(text) == html_headings(text)
    assert headings_of("# A\n") == markdown_headings("# A\n")
    assert headings_of("plain text") == []


def test_broken_html_hides_no_more_than_it_must():
    assert html_headings("<h1>never closed <h2>Sub</h2>") == [Heading(17, 2, "Sub")]
    assert html_headings("<h1>A</h2></h1>") == [Heading(0, 1, "A")]
    assert html_headings("<!-- <script> --><h1>A</h1> -->") == [Heading(17, 1, "A")]
    assert html_headings("<script>a < b; '<!--'</script><h1>A</h1>") == [Heading(30, 1, "A")]


def test_a_section_ends_at_the_next_heading_of_its_level_or_a_higher_one():
    headings = [Heading(10, 1, "A"), Heading(20, 3, "a"), Heading(30, 2, "b"), Heading(40, 1, "B")]
    assert section_paths(headings) == [("A",), ("A", "a"), ("A", "b"), ("B",)]
    assert section_paths([]) == []


@settings(max_examples=200)
@given(st.text(alphabet="#=-~` \nab<h1>/", max_size=60))
def test_no_text_breaks_the_reading_of_headings(text):
    headings = headings_of(text)
    assert [h.offset for h in headings] == sorted(h.offset for h in headings)
    assert all(h.title and 1 <= h.level <= 6 and 0 <= h.offset < len(text) for h in headings)


# -- salient terms ---------------------------------------------------------------------------------------


def corpus_of(*texts):
    counts = [term_counts(text) for text in texts]
    corpus = CorpusTerms()
    for document in counts:
        corpus.add(document)
    return counts, corpus


def test_terms_of_one_document_that_the_others_lack_come_first():
    counts, corpus = corpus_of(
        "Boeing aircraft report. " * 9 + "Boeing 2018. " * 5, "Nike shoes report. " * 9 + "Nike 2021. " * 5
    )
    assert salient_terms(counts[0], corpus, 3) == ["boeing", "aircraft", "2018"]
    assert salient_terms(counts[1], corpus, 2) == ["nike", "shoes"]
    assert "report" not in salient_terms(counts[0], corpus, 99)


def test_a_corpus_of_one_document_has_no_salient_terms():
    counts, corpus = corpus_of("tea " * 9)
    assert salient_terms(counts[0], corpus, 5) == []


def test_words_numbers_and_scripts_without_spaces():
    assert term_counts("The 10 THE 3M x 2018 1,577 naïve") == {"3m": 1, "2018": 1, "naïve": 1}
    assert term_counts("东京都") == {"东京": 1, "京都": 1}
    assert term_counts("") == {}


@settings(max_examples=50)
@given(
    st.lists(st.lists(st.sampled_from(["tea", "cup", "pot", "2018", "东京"]), max_size=12), max_size=6), st.randoms()
)
def test_counts_do_not_depend_on_the_order_of_documents_and_nothing_of_a_removed_one_remains(documents, order):
    counts = [term_counts(" ".join(words)) for words in documents]
    direct, detour = CorpusTerms(), CorpusTerms()
    for document in counts:
        direct.add(document)
    extra = Counter({"tea": 2, "passing": 3})
    detour.add(extra)
    shuffled = random.Random(order.random()).sample(counts, len(counts))
    for document in shuffled:
        detour.add(document)
    detour.remove(extra)
    assert vars(detour) == vars(direct)
    for document in counts:
        assert salient_terms(document, detour, 5) == salient_terms(document, direct, 5)


# -- the header ------------------------------------------------------------------------------------------


def test_a_header_has_a_line_for_what_there_is():
    header = header_text("Tides", "When the water comes.", ("tide", "neap"), ["Tides", "Neap tides", ""])
    assert header == "Tides\ntide, neap\nWhen the water comes.\nNeap tides"
    assert header_text("", "", (), ["A", "B"]) == "A > B"
    assert header_text("", "") == ""


def test_the_published_wording():
    document = "Tides", "This document is about: the sea."
    assert published_header_text(*document, ["Neap"], "This section is about: weak tides.") == (
        "Document context: the following excerpt is from a document titled 'Tides'. This document is about: the sea."
        "\n\n"
        "Section context: this excerpt is from the section titled 'Neap'. This section is about: weak tides."
    )


def test_the_chunk_itself_is_untouched():
    assert contextualised("Tides", " text\n") == "Tides\n\n text\n"
    assert contextualised("", " text\n") == " text\n"
