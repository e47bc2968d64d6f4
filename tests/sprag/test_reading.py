"""A whole document read by rules, and the header that each of its chunks gets."""

from tests.sprag.test_context import PAGES

from llama_index.sprag.config import ContextConfig
from llama_index.sprag.context.headers import header_text
from llama_index.sprag.context.reading import read_document

CONFIG = ContextConfig(first_lines=20, page_opening=8)


def test_a_report_of_pages():
    pages = [
        page.replace("In this year", f"In chapter {'abcde'[n]}, pilots") + "\n" * 9 for n, page in enumerate(PAGES)
    ]
    pages = [page.replace("And more in the office.\nMore still.", "x\ny\nz\nu\nv") for page in pages]
    read = read_document(pages, {"file_name": "harbour_report.pdf"}, CONFIG)
    assert read.title == "harbour report"
    assert read.opening == "Foreword In chapter"
    assert [read.section(page, 40) for page in range(5)] == [
        ("Foreword",),
        ("Dredging",),
        ("Pilots",),
        ("Accounts",),
        ("Outlook",),
    ]
    assert header_text(read.title, read.opening, (), read.section(1, 0)).endswith("\nForeword In chapter\nDredging")
    assert header_text(read.title, read.opening, (), read.section(0, 0)).endswith(
        "\nForeword In chapter"
    )  # how the page begins is said


def test_sections_of_marked_up_pages_go_on_over_the_page():
    pages = ["# Tides\n\n## Spring\n\ntext", "more text\n\n## Neap\n\ntext", "the end"]
    read = read_document(pages, {}, CONFIG)
    assert read.title == "Tides"
    assert read.section(0, 0) == ("Tides",)
    assert read.section(0, 20) == ("Tides", "Spring")
    assert read.section(1, 0) == ("Tides", "Spring")
    assert read.section(1, 15) == read.section(2, 3) == ("Tides", "Neap")


def test_a_number_sign_here_and_there_does_not_make_a_long_plain_document_markdown():
    pages = [f"On {letter}\nplain text about {letter}\n" for letter in "abcdefghijklmnopqrstuvwxyz"]
    pages[3] += "# denotes a variance of 100 percent\n"
    read = read_document(pages, {}, ContextConfig(page_opening=4))
    assert not read.section_starts
    assert read.section(2, 0) == ("On c",)


def test_a_plain_document_without_pages_has_no_sections():
    read = read_document(["Some plain text without anything else."], {}, CONFIG)
    assert (read.title, read.opening, read.section(0, 5)) == ("", "Some plain text", ())


def test_what_is_switched_off_is_not_there():
    off = ContextConfig(first_lines=0, page_opening=0)
    read = read_document(PAGES, {"title": "Harbour"}, off)
    assert header_text(read.title, read.opening, (), read.section(2, 0)) == "Harbour"


def test_an_empty_document():
    for pages in ([], [""], ["", ""]):
        read = read_document(pages, {}, CONFIG)
        assert (read.title, read.opening) == ("", "")
        assert all(read.section(page, 0) == () for page in range(len(pages)))
