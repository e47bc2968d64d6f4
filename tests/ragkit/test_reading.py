"""Folders of files, read as people see them."""

import logging
import os
import sys
from collections.abc import Callable
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest
from docx import Document as WordDocument
from llama_index.core.node_parser import SentenceSplitter
from pptx import Presentation

from llama_index.ragkit import reading
from llama_index.ragkit.errors import ConfigurationError
from llama_index.ragkit.reading import read_folder

PAGE = """<!doctype html><html><head><title>Opening hours</title><style>p {color: red}</style></head>
<body><nav><a href="/">Home</a></nav><script>track("you")</script>
<h1>The museum</h1><p>Open <b>every</b>
day.<br>Closed on Sunday.</p><ul><li>Adults: 5 euros</li><li>Children: free</li></ul>
<table><tr><th>Day</th><th>Hours</th></tr><tr><td>Monday</td><td>9 to 5</td></tr></table>
<article><footer>Since 1902.</footer></article>
<footer>Cookies</footer></body></html>"""
SEEN = (
    "Opening hours\n\nThe museum\n\nOpen every day.\n\nClosed on Sunday.\n\nAdults: 5 euros\n\nChildren: free\n\n"
    "Day | Hours\n\nMonday | 9 to 5\n\nSince 1902."
)


def mail(path: Path, *, html: bool) -> None:
    message = EmailMessage()
    message["Subject"] = "Der Leuchtturm für Jörg"
    message["From"], message["To"], message["X-Spam"] = "ada@example.org", "jorg@example.org", "no"
    message.set_content("The lamp is lit.") if not html else message.set_content("<p>The lamp<p>is lit.", "html")
    path.write_bytes(bytes(message))


def word(path: Path) -> None:
    document = WordDocument()
    document.add_heading("The lamp")
    document.add_paragraph("It burned oil.")
    table = document.add_table(1, 2)
    table.cell(0, 0).text, table.cell(0, 1).text = "Height", "30 m"
    document.add_paragraph("Later paraffin.")
    document.save(str(path))


def slides(path: Path) -> None:
    presentation: Any = Presentation()
    slide = presentation.slides.add_slide(presentation.slide_layouts[1])
    slide.shapes.title.text, slide.placeholders[1].text = "The lamp", "It burned oil."
    slide.notes_slide.notes_text_frame.text = "Pause here."
    presentation.save(str(path))


PELL = "name: Pell\nyear: 1901"
FILES: list[tuple[str, Callable[[Path], object], str]] = [
    ("page.html", lambda path: path.write_text(PAGE), SEEN),
    ("page.htm", lambda path: path.write_bytes("<p>Größe".encode("utf-16")), "Größe"),
    (
        "plain.eml",
        lambda path: mail(path, html=False),
        "Subject: Der Leuchtturm für Jörg\nFrom: ada@example.org\nTo: jorg@example.org\n\nThe lamp is lit.",
    ),
    (
        "html.eml",
        lambda path: mail(path, html=True),
        "Subject: Der Leuchtturm für Jörg\nFrom: ada@example.org\nTo: jorg@example.org\n\nThe lamp\n\nis lit.",
    ),
    (
        "a.csv",
        lambda p: p.write_text("name,year\nPell,1901\nHolt,\n"),
        PELL + "\n\n\nname: Holt",
    ),
    (
        "b.csv",
        lambda path: path.write_text("name;year\nPell;1901\nHolt;1902\n"),
        "name: Pell\nyear: 1901\n\n\nname: Holt\nyear: 1902",
    ),
    ("c.tsv", lambda path: path.write_text("name\tyear\nPell\t1901\n"), PELL),
    ("d.csv", lambda path: path.write_text("Only one line\n"), "Only one line"),
    ("a.docx", word, "The lamp\n\nIt burned oil.\n\nHeight | 30 m\n\nLater paraffin."),
    ("a.pptx", slides, "The lamp\nIt burned oil.\nPause here."),
    ("a.txt", lambda path: path.write_text("The lamp burned oil."), "The lamp burned oil."),
    ("a.md", lambda path: path.write_text("# Lamps\n\n## Oil\n\nIt burned."), "# Lamps\n\n## Oil\n\nIt burned."),
]


@pytest.mark.parametrize(("name", "write", "seen"), FILES, ids=lambda value: value if isinstance(value, str) else "")
def test_a_file_is_read_as_people_see_it(name: str, write: Callable[[Path], object], seen: str, tmp_path: Path):
    (tmp_path / "below").mkdir()
    write(tmp_path / "below" / name)
    (document,), skipped = read_folder(tmp_path)
    assert document.text == seen
    assert document.id_.startswith(str(tmp_path / "below" / name))
    assert document.metadata["file_name"] == name
    assert not skipped


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252", "latin-1"])
@pytest.mark.parametrize("name", ["a.txt", "a.md", "a.csv", "README"])
def test_no_character_of_a_text_is_lost(name: str, encoding: str, tmp_path: Path):
    only_here = "\x81" if encoding == "latin-1" else "\u2019"
    text = f"La fus\xe9e \xe9tait pr\xeate {only_here}"
    (tmp_path / name).write_bytes(text.encode(encoding))
    (document,), skipped = read_folder(tmp_path)
    assert document.text == text
    assert not skipped


def test_attached_texts_are_read_with_a_mail_and_others_named(tmp_path: Path):
    message = EmailMessage()
    message["Subject"] = "Crews"
    message.set_content("See below.")
    message.add_attachment("The lamp is lit.", filename="log.txt")
    message.add_attachment("<p>The <b>bell</b>", "html", filename="bell.html")
    message.add_attachment("name,year\nPell,1901\n", "csv", filename="crew.csv")
    message.add_attachment("Größe".encode("cp1252"), "text", "plain", filename="size.txt")
    message.add_attachment(b"%PDF", "application", "pdf", filename="report.pdf")
    (tmp_path / "a.eml").write_bytes(bytes(message))
    (document,), skipped = read_folder(tmp_path)
    assert document.text == (
        "Subject: Crews\n\nSee below.\n\nlog.txt\n\nThe lamp is lit.\n\nbell.html\n\nThe bell\n\n"
        f"crew.csv\n\n{PELL}\n\nsize.txt\n\nGröße"
    )
    assert skipped == {str(tmp_path / "a.eml#report.pdf"): "Attachments of type application/pdf are not read."}


def test_one_damaged_byte_of_a_text_costs_one_character(tmp_path: Path):
    (tmp_path / "a.txt").write_bytes("Größe und Übermaß".encode() + b"\xff")
    assert read_folder(tmp_path).documents[0].text == "Größe und Übermaß\N{REPLACEMENT CHARACTER}"


def test_a_file_that_is_no_text_is_skipped(tmp_path: Path):
    (tmp_path / "a.txt").write_text("The lamp burned oil.")
    (tmp_path / "a.zip").write_bytes(b"PK\0\0\xe9")
    documents, skipped = read_folder(tmp_path)
    assert [document.text for document in documents] == ["The lamp burned oil."]
    assert skipped == {str(tmp_path / "a.zip"): "ValueError: It is not text: it holds zero bytes."}


@pytest.mark.parametrize("size", [120, 170, 250])
def test_no_row_of_a_table_that_fits_a_chunk_is_cut(size: int, tmp_path: Path):
    head = "mission,commander,cm_pilot,lunar_module,landed\n"
    row = "Alan B. Shepard Jr.,Stuart A. Roosa,Antares. It is on the Moon.,5 Feb. 1971"
    (tmp_path / "crews.csv").write_text(head + "".join(f"Apollo {i},{row}\n" for i in range(20)))
    documents, _ = read_folder(tmp_path)
    splitter = SentenceSplitter(chunk_size=size, chunk_overlap=0)
    chunks = [node.get_content() for node in splitter.get_nodes_from_documents(documents)]
    assert len(chunks) > 2
    for chunk in chunks:
        assert chunk.startswith("mission: Apollo")
        assert chunk.endswith("landed: 5 Feb. 1971")


def test_a_file_that_cannot_be_read_is_skipped_and_named(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    (tmp_path / "good.txt").write_text("The lamp burned oil.")
    (tmp_path / "empty.txt").write_text(" \n")
    for name in ("a.docx", "a.pptx", "a.pdf"):
        (tmp_path / name).write_bytes(b"broken")
    documents, skipped = read_folder(tmp_path)
    assert [document.text for document in documents] == ["The lamp burned oil."]
    assert {Path(file).name for file in skipped} == {"empty.txt", "a.docx", "a.pptx", "a.pdf"}
    assert all(skipped.values())
    assert not caplog.records  # a warning would not name its file


def test_readers_that_configure_logging_leave_it_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "lamp.txt").write_text("The lamp is lit.", encoding="utf-8")

    def configures(*args: Any, **kwargs: Any) -> list[Any]:
        logging.getLogger().setLevel(logging.DEBUG)
        logging.getLogger().addHandler(logging.NullHandler())
        return load(*args, **kwargs)

    load = reading._load
    monkeypatch.setattr(reading, "_load", configures)
    root = logging.getLogger()
    before = root.level, list(root.handlers)
    read_folder(tmp_path)
    assert (root.level, root.handlers) == before


def test_a_missing_library_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    word_file = tmp_path / "a.docx"
    word(word_file)
    monkeypatch.setitem(sys.modules, "docx", None)
    (tmp_path / "a.txt").write_text("The lamp burned oil.")
    assert 'pip install "llama-index-ragkit[files]"' in read_folder(tmp_path).skipped[str(word_file)]


def test_without_the_readers_of_pdf_its_bytes_are_not_taken_for_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.setitem(sys.modules, "llama_index.readers.file", None)
    (tmp_path / "a.PDF").write_bytes(b"%PDF-1.4 stream")
    (tmp_path / "a.txt").write_text("The lamp burned oil.")
    documents, skipped = read_folder(tmp_path)
    assert [document.text for document in documents] == ["The lamp burned oil."]
    assert 'Reading .pdf needs llama_index.readers.file: pip install "llama-index-ragkit[files]"' in str(skipped)
    assert not caplog.records


def test_a_folder_without_a_readable_file_is_refused(tmp_path: Path):
    with pytest.raises(ConfigurationError, match="is not a folder"):
        read_folder(tmp_path / "none")
    with pytest.raises(ConfigurationError, match="has no files"):
        read_folder(tmp_path)
    (tmp_path / "a.docx").write_bytes(b"broken")
    with pytest.raises(ConfigurationError, match=r"Nothing in .*/a\.docx: "):
        read_folder(tmp_path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes have names here")
def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / "lamp.txt").write_text("It burned oil.")
    os.mkfifo(tmp_path / "pipe.txt")
    documents, skipped = read_folder(tmp_path)
    assert [document.text for document in documents] == ["It burned oil."]
    assert skipped == {f"{tmp_path / 'pipe.txt'}": "ValueError: It is not a regular file."}


@pytest.mark.skipif(sys.platform != "linux", reason="names are texts elsewhere")
def test_a_name_that_no_text_can_hold_is_skipped_and_can_be_printed(tmp_path: Path) -> None:
    (tmp_path / "lamp.txt").write_text("It burned oil.")
    (tmp_path / os.fsdecode(b"k\xf6nig.txt")).write_text("The king.")
    documents, skipped = read_folder(tmp_path)
    assert [document.text for document in documents] == ["It burned oil."]
    ((name, reason),) = skipped.items()
    assert name.encode() == f"{tmp_path / 'k'}\\udcf6nig.txt".encode()
    assert reason == "ValueError: Its name is not in UTF-8: rename it."
