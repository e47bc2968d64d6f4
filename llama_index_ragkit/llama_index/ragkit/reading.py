"""Reading a folder of files as people see them: the text of a page or a message, not its markup."""

import codecs
import csv
import email
import email.policy
import logging
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from email.message import EmailMessage, MIMEPart
from pathlib import Path
from typing import Any, NamedTuple

from llama_index.core import SimpleDirectoryReader
from llama_index.core.node_parser.text.sentence import DEFAULT_PARAGRAPH_SEP
from llama_index.core.readers.base import BaseReader
from llama_index.core.schema import Document

from llama_index.ragkit.errors import ConfigurationError
from llama_index.ragkit.extras import need

__all__ = ["FolderContents", "read_folder"]

_EXTRA = "llama-index-ragkit[files]"
_HIDDEN = ("script", "style", "template", "noscript", "nav", "head")
_BLOCKS = ("address", "article", "blockquote", "dd", "div", "dt", "figcaption", "footer", "h1", "h2", "h3", "h4", "h5",
           "h6", "header", "li", "main", "p", "pre", "section", "table", "tr")  # fmt: skip
_NOT_TEXT = (".epub", ".gif", ".hwp", ".ipynb", ".jpeg", ".jpg", ".mbox", ".mp3", ".mp4", ".pdf", ".png", ".ppt",
             ".pptm", ".webp", ".xls", ".xlsx")  # fmt: skip
_SPACE = re.compile(r"\s+")
_HEADERS = ("Subject", "From", "To", "Date")


class FolderContents(NamedTuple):
    """What :func:`read_folder` has read.

    Attributes
    ----------
    documents : one a file, or several where its reader gives one a page; their ids are their paths
    skipped : path of a file that was not read -> why; for an attachment the path of its mail, "#" and its name
    """

    documents: list[Document]
    skipped: dict[str, str]


def read_folder(folder: str | Path) -> FolderContents:
    """Read all files of a folder and of its subfolders, without hidden ones.

    Web pages, mail, Word, PowerPoint and tables of comma-separated values are read as people see them, PDF and other
    formats by LlamaIndex's readers: with the extra "files" of this package (`pip install "llama-index-ragkit[files]"`).
    Other files are text, in UTF-8, Windows-1252, Latin-1, or UTF-16 with a byte order mark. A file that cannot be read,
    or has no text, is skipped and named.

    Raises
    ------
    ConfigurationError
        If it is not a folder, or nothing in it can be read.
    """
    if not Path(folder).is_dir():
        raise ConfigurationError(f"{str(folder)!r} is not a folder.")
    try:
        files = SimpleDirectoryReader(str(folder), recursive=True).input_files
    except ValueError:  # there are none
        files = []
    contents = FolderContents([], {})
    for file in map(Path, files):
        name = str(file).encode(errors="backslashreplace").decode()
        try:
            if name != str(file):
                raise ValueError("Its name is not in UTF-8: rename it.")
            if file.exists() and not file.is_file():
                raise ValueError("It is not a regular file.")
            with _quietly():
                found = [document for document in _load(file) if document.get_content().strip()]
        except Exception as error:  # whatever a library raises at a damaged file
            contents.skipped[name] = _reason(error)
            continue
        contents.documents.extend(found)
        if file.suffix.lower() == ".eml":
            contents.skipped.update(_unread(file))
        if not found:
            contents.skipped[name] = "It has no text."
    if not contents.documents:
        told = "; ".join(f"{file}: {reason}" for file, reason in list(contents.skipped.items())[:5])
        raise ConfigurationError(f"Nothing in {str(folder)!r} can be read. {told or 'It has no files.'}")
    return contents


def _load(file: Path) -> list[Document]:
    encoding = "utf-8" if file.suffix.lower() in _READERS else _encoding(file.read_bytes())
    return SimpleDirectoryReader(
        input_files=[str(file)],
        filename_as_id=True,
        file_extractor=dict(_READERS),
        encoding=encoding,
        errors="replace",
        raise_on_error=True,
    ).load_data()


def _encoding(text: bytes) -> str:
    """That of its byte order mark; else UTF-8 if most of its characters are valid, or else one of one byte each."""
    if text.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    if b"\0" in text:
        raise ValueError("It is not text: it holds zero bytes.")
    decoded = text.decode("utf-8-sig", errors="replace")
    damaged = decoded.count("\N{REPLACEMENT CHARACTER}")
    if 2 * damaged <= sum(not character.isascii() for character in decoded):
        return "utf-8-sig"
    with suppress(UnicodeDecodeError):
        text.decode("cp1252")
        return "cp1252"
    return "latin-1"


def _text(file: Path) -> str:
    return file.read_text(encoding=_encoding(file.read_bytes()), errors="replace")


@contextmanager
def _quietly() -> Iterator[None]:
    """Without warnings that name no file: LlamaIndex's that its readers are not installed, and those of pypdf.

    A file that is skipped says why. The root logger stays as it is: one of LlamaIndex's readers configures it.
    """
    logger = logging.getLogger(SimpleDirectoryReader.__module__)

    def others(record: logging.LogRecord) -> bool:
        return "llama-index-readers-file" not in record.getMessage()

    pypdf, root = logging.getLogger("pypdf"), logging.getLogger()
    level, of_root, handlers = pypdf.level, root.level, list(root.handlers)
    logger.addFilter(others)
    pypdf.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        pypdf.setLevel(level)
        root.setLevel(of_root)
        root.handlers[:] = handlers
        logger.removeFilter(others)


def _reason(error: Exception) -> str:
    cause: BaseException = error
    while cause.__cause__ is not None:
        cause = cause.__cause__
    text = str(cause).strip() or str(error).strip()
    return f"{type(cause).__name__}: {text.splitlines()[0][:200]}" if text else type(cause).__name__


class _Reader(BaseReader):
    """Reads a file by a function of its path."""

    def __init__(self, text_of: Callable[[Path], str]) -> None:
        self._text_of = text_of

    def load_data(self, file: Path, extra_info: dict[str, Any] | None = None, **kwargs: Any) -> list[Document]:
        return [Document(text=self._text_of(Path(file)), metadata=extra_info or {})]


class _NotText(BaseReader):
    """Reads a file by LlamaIndex's reader, without which LlamaIndex would take its bytes for text."""

    def load_data(self, file: Path, extra_info: dict[str, Any] | None = None, **kwargs: Any) -> list[Document]:
        suffix = Path(file).suffix.lower()
        need("llama_index.readers.file", f"Reading {suffix}", _EXTRA)
        reader: BaseReader = SimpleDirectoryReader.supported_suffix_fn()[suffix]()
        return reader.load_data(file, extra_info=extra_info, **kwargs)


def _html(file: Path) -> str:
    return _seen(file.read_bytes())


def _seen(page: str | bytes) -> str:
    """What is seen of a page, its title first, a block a line and cells of a row beside each other."""
    bs4: Any = need("bs4", "Reading HTML", _EXTRA)
    soup = bs4.BeautifulSoup(page, "html.parser")
    title = soup.title.get_text(" ", strip=True) if soup.title else ""
    for hidden in soup(_HIDDEN):
        hidden.decompose()
    for footer in soup("footer"):
        if footer.find_parent(("article", "blockquote", "section", "main")) is None:  # that of the site
            footer.decompose()
    for text in soup.find_all(string=True):
        if isinstance(text, bs4.element.PreformattedString):  # a comment, or the type of the document
            text.extract()
        elif text.find_parent("pre") is None:
            text.replace_with(_SPACE.sub(" ", text))
    for line in soup("br"):
        line.replace_with("\n")
    for block in soup(_BLOCKS):
        block.insert_before("\n")
        block.insert_after("\n")
    for cell in soup(("td", "th")):
        cell.insert_after("\t")
    lines = [" ".join(line.split()) for line in soup.get_text().replace("\t", " | ").split("\n")]
    shown = [line.strip(" |") for line in lines if line.strip(" |")]
    return "\n\n".join([title, *shown] if title and title not in shown[:1] else shown)


def _mail(file: Path) -> str:
    """The headers that people see, the body as text, and attached texts below their names."""
    message = _message(file)
    headers = [f"{name}: {message[name]}" for name in _HEADERS if message[name]]
    body = message.get_body(("plain", "html"))
    text = "" if body is None else _content(body)
    if body is not None and body.get_content_type() == "text/html":
        text = _seen(text)
    attached = [
        f"{part.get_filename('')}\n\n{_ATTACHED[part.get_content_type()](_content(part)).strip()}".strip()
        for part in _attachments(message)
        if part.get_content_type() in _ATTACHED
    ]
    return "\n\n".join(["\n".join(headers), text.strip(), *attached]).strip()


def _message(file: Path) -> EmailMessage:
    return email.message_from_bytes(file.read_bytes(), policy=email.policy.default)


def _attachments(message: EmailMessage) -> Iterator[EmailMessage]:
    for part in message.iter_attachments():
        if part.get_content_maintype() == "multipart":  # a signed mail has its own attachments in one
            yield from _attachments(part)
        else:
            yield part


def _content(part: MIMEPart) -> str:
    if part.get_content_charset():
        with suppress(LookupError):  # a name that is no encoding
            return str(part.get_content())
    data: Any = part.get_payload(decode=True)
    return str(data.decode(_encoding(data), errors="replace"))


def _unread(file: Path) -> dict[str, str]:
    """The attachments of a mail that are no text, as :attr:`FolderContents.skipped` has them."""
    return {
        f"{file}#{part.get_filename('attachment')}": f"Attachments of type {part.get_content_type()} are not read."
        for part in _attachments(_message(file))
        if part.get_content_type() not in _ATTACHED
    }


def _table(file: Path) -> str:
    return _rows(_text(file))


def _rows(text: str) -> str:
    """A row a paragraph, each value with the name of its column.

    Paragraphs are set apart as `SentenceSplitter` expects it, which then cuts no row that fits a chunk.
    """
    dialect: Any = csv.excel
    with suppress(csv.Error):  # a single column
        dialect = csv.Sniffer().sniff(text[:4096], ",;\t|")
    rows = [row for row in csv.reader(text.splitlines(keepends=True), dialect) if any(cell.strip() for cell in row)]
    if len(rows) < 2:
        return "\n".join(", ".join(row) for row in rows)
    names, *others = rows
    return DEFAULT_PARAGRAPH_SEP.join(
        "\n".join(f"{name}: {value}" for name, value in zip(names, row, strict=False) if value.strip())
        for row in others
    )


def _word(file: Path) -> str:
    """Paragraphs and tables in their order."""
    document: Any = need("docx", "Reading Word", _EXTRA).Document(str(file))

    def blocks() -> Iterator[str]:
        for block in document.iter_inner_content():
            if hasattr(block, "rows"):
                yield "\n".join(" | ".join(cell.text.strip() for cell in row.cells) for row in block.rows)
            else:
                yield block.text.strip()

    return "\n\n".join(block for block in blocks() if block.strip())


def _slides(file: Path) -> str:
    """The texts of each slide, and its notes."""
    slides: Any = need("pptx", "Reading PowerPoint", _EXTRA).Presentation(str(file)).slides

    def texts(slide: Any) -> Iterator[str]:
        for shape in slide.shapes:
            if shape.has_text_frame:
                yield shape.text_frame.text.strip()
            elif getattr(shape, "has_table", False):
                yield "\n".join(" | ".join(cell.text.strip() for cell in row.cells) for row in shape.table.rows)
        if slide.has_notes_slide and slide.notes_slide.notes_text_frame is not None:
            yield slide.notes_slide.notes_text_frame.text.strip()

    return "\n\n".join("\n".join(text for text in texts(slide) if text) for slide in slides)


_ATTACHED: dict[str, Callable[[str], str]] = {"text/plain": str, "text/html": _seen, "text/csv": _rows}

_READERS: dict[str, BaseReader] = {
    **dict.fromkeys(_NOT_TEXT, _NotText()),
    **dict.fromkeys((".md", ".markdown"), _Reader(_text)),  # its sections alone would not say what they are about
    **dict.fromkeys((".html", ".htm", ".xhtml"), _Reader(_html)),
    ".eml": _Reader(_mail),
    **dict.fromkeys((".csv", ".tsv"), _Reader(_table)),
    ".docx": _Reader(_word),
    ".pptx": _Reader(_slides),
}
