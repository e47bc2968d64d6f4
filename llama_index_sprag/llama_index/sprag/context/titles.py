"""The title of a document, only if somebody wrote it as one: in metadata, a heading, or the name of the file."""

import re
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath, PureWindowsPath
from urllib.parse import unquote

from llama_index.sprag.context.headings import Heading

__all__ = ["document_title", "file_name_of", "given_title", "is_source_code", "title_of_file_name"]

_KEYS = ("title", "document_title", "Title", "subject", "Subject")
_FILE_KEYS = ("file_name", "filename", "file_path", "source", "url")
# Titles that programs write if nobody gave one.
_BY_PROGRAM = re.compile(r"^microsoft (?:word|excel|powerpoint) - ", re.IGNORECASE)
_EMPTY = re.compile(
    r"(?:untitled|unknown|none|null|title|document|doc|page|file|scan|img|image|index|readme|download|temp|tmp|output|"
    r"default|main|presentation|powerpoint presentation|slide|new document)?[\s\d().]*",
    re.IGNORECASE,
)
_IDENTIFIER = re.compile(r"[0-9a-f]{8,}|[0-9a-f]{8}(?: [0-9a-f]{4}){3} [0-9a-f]{12}|tmp\w{6,}", re.IGNORECASE)
# Files in which a number sign begins a comment.
_CODE = re.compile(
    r"\.(?:py|pyi|pyx|sh|bash|zsh|fish|rb|pl|pm|r|jl|ex|exs|nim|ps1|tcl|awk|cmake|mk|tf|ya?ml|toml|ini|cfg|conf|env|"
    r"properties)$|(?:^|[/\\])(?:Makefile|Dockerfile)$",
    re.IGNORECASE,
)
_EXTENSION = re.compile(r"\.[A-Za-z][A-Za-z0-9]{0,4}$")
_END_OF_PATH, _JOINT = re.compile("[?#]"), re.compile(r"[_\-+.]+")
_NEAR_TOP = 2000  # characters: below menus and front matter
_LONGEST = 200  # characters: a longer one is a paragraph that was put into the wrong field


def document_title(metadata: Mapping[str, object], headings: Sequence[Heading] = ()) -> str:
    """The title of a document, `""` if it has none.

    1. A title in the metadata, unless it is one that programs write if nobody gave one ("untitled", "Document1").
    2. The first heading, if it is near the top and no other has its level or a higher one: several such headings are
       the titles of parts.
    3. The name of the file in the metadata, if it says something: not an identifier or "scan0001".

    The first line of a text is not used as a title: in PDF files it is often a header, an address or a stamp.

    Parameters
    ----------
    headings : of the text, by offset

    >>> document_title({"title": "untitled", "file_name": "annual_report-2018.pdf"})
    'annual report 2018'
    """
    if title := given_title(metadata):
        return title
    if headings and headings[0].offset < _NEAR_TOP and not _EMPTY.fullmatch(headings[0].title):
        first, *others = headings
        if all(heading.level > first.level for heading in others):
            return first.title
    for key in _FILE_KEYS:
        given = metadata.get(key)
        if isinstance(given, str) and (title := title_of_file_name(given)):
            return title
    return ""


def file_name_of(metadata: Mapping[str, object]) -> str:
    """The name of the file, without folders, or else the title in the metadata; `""` if there is neither.

    >>> file_name_of({"file_path": "/data/3M_2018_10K.pdf"}), file_name_of({"title": "Tea"})
    ('3M_2018_10K.pdf', 'Tea')
    """
    names = (given for key in _FILE_KEYS if isinstance(given := metadata.get(key), str) and given)
    name = next(names, "")
    return PureWindowsPath(PurePosixPath(name).name).name or given_title(metadata)


def is_source_code(metadata: Mapping[str, object]) -> bool:
    """Whether the name of the file says that lines with a number sign are comments, not headings.

    >>> is_source_code({"file_name": "tool.py"}), is_source_code({"file_name": "README.md"})
    (True, False)
    """
    return any(isinstance(name := metadata.get(key), str) and bool(_CODE.search(name)) for key in _FILE_KEYS)


def given_title(metadata: Mapping[str, object]) -> str:
    """A title in the metadata; `""` if there is none, or one that programs write if nobody gave one."""
    for key in _KEYS:
        given = metadata.get(key)
        if isinstance(given, str) and (title := _written_title(given)):
            return title
    return ""


def title_of_file_name(name: str) -> str:
    """A file's name as words, without folders and extension; `""` if it says nothing.

    >>> title_of_file_name("C:\\\\reports\\\\3M_2018_10K.pdf"), title_of_file_name("https://a.org/Tea%20cups.html?x=1")
    ('3M 2018 10K', 'Tea cups')
    >>> title_of_file_name("9f86d081884c7d65.txt"), title_of_file_name("scan0001.pdf")
    ('', '')
    """
    path = unquote(_END_OF_PATH.split(name)[0]) if "://" in name else name
    stem = _EXTENSION.sub("", PureWindowsPath(PurePosixPath(path).name).name)
    title = " ".join(_JOINT.sub(" ", stem).split())
    letters = sum(character.isalpha() for character in title)
    return "" if letters < 2 or _EMPTY.fullmatch(title) or _IDENTIFIER.fullmatch(title) else title


def _written_title(title: str) -> str:
    line = " ".join(title.split())
    if _BY_PROGRAM.match(line) or (_EXTENSION.search(line) and " " not in line):
        return title_of_file_name(_BY_PROGRAM.sub("", line))
    has_letters = any(character.isalpha() for character in line)
    return line if has_letters and len(line) <= _LONGEST and not _EMPTY.fullmatch(line) else ""
