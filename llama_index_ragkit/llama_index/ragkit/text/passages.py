"""A passage: its title, and its text without hard line breaks, repeated lines, headers of mails and printed pages."""

import re
from collections import defaultdict
from collections.abc import Sequence, Set
from typing import NamedTuple

from llama_index.ragkit.text.characters import normalise, without_unprinted
from llama_index.ragkit.text.headings import split_heading
from llama_index.ragkit.text.unwrapping import unwrap

__all__ = [
    "PassageText",
    "read_passage",
    "repeated_lines",
    "without_lines",
    "without_mail_headers",
    "without_print_lines",
]

_EMPHASIS = re.compile(r"(\*{1,3})(\S(?:.{0,200}?\S)?)\1")
_LINE = re.compile(r"[^\r\n\x0b\x0c\x85\u2028\u2029]+")

# Of headers of mails.
_SUBJECTS = "Subject|Betreff|Objet|Asunto|Oggetto|Assunto|Onderwerp|Ämne|Emne|Тема|主题|主旨|件名"
_FIELDS = (
    "From|To|Cc|Bcc|Date|Sent|Reply-To|Sender|Message-ID|In-Reply-To|References|Return-Path|Delivered-To|Received|"
    "MIME-Version|Content-[A-Za-z-]+|Importance|Attachments?|X-[A-Za-z-]+|"
    "Von|An|Datum|Gesendet|Kopie|Antwort an|De|À|A|Envoyé|Date d’envoi|Para|Fecha|Enviado|Da|Data|Inviato|Van|Aan|"
    "Verzonden|Från|Till|Skickat|Fra|Til|Sendt|От|Кому|Дата|Отправлено|发件人|收件人|抄送|日期|发送时间|差出人|宛先|日時"
)
_SUBJECT = re.compile(rf"(?:{_SUBJECTS})[ \t]*[:：][ \t]*(.*)", re.IGNORECASE)
_FIELD = re.compile(rf"(?:{_FIELDS}|{_SUBJECTS})[ \t]*[:：][ \t]*.*", re.IGNORECASE)
_FOLDED = re.compile(r"[ \t]+\S.*")
_QUOTED = re.compile(r"\A(?:>[ \t]?)+")
_RULE = re.compile(r"[^\w\n]*-{2,}.*|[-_=*]{3,}")  # "-----Original Message-----"
_MAILBOX = re.compile(r"(?<![^\s@<>])[^\s@<>]+@[^\s@<>]+\.[^\s@<>]+")
_ANSWERED = re.compile(r"(?:(?:Re|Fwd?|AW|WG|Antw|TR|RV|SV|VS|回复|转发)\s*[:：]\s*)+", re.IGNORECASE)
_LEAST = 2  # lines of a header

# Of pages that a browser prints.
_TIME = r"\d{1,4}[./-]\d{1,2}[./-]\d{1,4},?\s\d{1,2}[:.]\d{2}(?:[:.]\d{2})?(?:\s?[AaPp]\.?[Mm]\.?)?"
_ADDRESS = r"(?:(?:https?|file|\ufb01le)://|about:)\S*"  # a PDF may hold "fi" as one character
_PAGE = r"\d{1,4}(?:/| of | von | de | sur | di )\d{1,4}"
_FOOTER = re.compile(rf"{_ADDRESS}\s+{_PAGE}|{_PAGE}\s+{_TIME}")
_BESIDE = re.compile(rf"{_TIME}(?:\s.{{1,200}})?|.{{1,200}}\s{_ADDRESS}")

# Of lines that repeat.
_NUMBER = re.compile(r"\d+")
_LONGEST = 200  # characters of a header or footer; a longer line is a paragraph
_TWICE, _OFTEN = 2, 3  # chunks with a line


def without_mail_headers(text: str) -> str:
    """The text with each mail header replaced by the mail's subject, as a paragraph.

    A header is a run of lines "Name: value", with names from RFC 5322, section 3.6, or names that mail programs put
    before a quoted mail, in some languages. It begins a text or follows an empty line or a rule, and has the address of
    a mailbox or a subject. So "From: Rome", "To: Ostia" in a timetable are text.

    >>> without_mail_headers("From: Ann <ann@coast.example>\\nSubject: Re: The lamp\\n\\nIt burned oil.")
    'The lamp\\n\\nIt burned oil.'
    >>> without_mail_headers("From: Rome\\nTo: Ostia")
    'From: Rome\\nTo: Ostia'
    """
    if ":" not in text and "：" not in text:
        return text
    lines = text.split("\n")
    kept: list[str] = []
    i, tried, may_begin = 0, 0, True
    while i < len(lines):
        is_header = False
        if may_begin and i >= tried:  # if a run is not a header, no part of it is
            tried, is_header = _run_of_fields(lines, i)
        if is_header:
            subjects = [match for line in lines[i:tried] if (match := _SUBJECT.fullmatch(_plain(line)))]
            kept += [_ANSWERED.sub("", match[1], count=1) for match in subjects]
            i, may_begin = tried, False
            continue
        plain = _plain(lines[i])
        may_begin = not plain or _RULE.fullmatch(plain) is not None
        kept.append(lines[i])
        i += 1
    return "\n".join(kept)


def _plain(line: str) -> str:
    """A line without the marks of a quotation."""
    return _QUOTED.sub("", line, count=1).rstrip()


def _run_of_fields(lines: list[str], start: int) -> tuple[int, bool]:
    """Where the run of fields that begins at a line ends, and whether it is a header."""
    end, fields = start, 0
    while end < len(lines):
        plain = _plain(lines[end])
        if _FIELD.fullmatch(plain):
            fields += 1
        elif not (fields and _FOLDED.fullmatch(plain)):
            break
        end += 1
    header = [_plain(line) for line in lines[start:end]]
    is_mail = any(_SUBJECT.fullmatch(line) or _MAILBOX.search(line) for line in header)
    return end, fields >= _LEAST and is_mail and end < len(lines)


def without_print_lines(text: str) -> str:
    """The text without the lines that a browser printed around it on each page of a PDF, unless it has no others.

    The line with the address and the number identifies them ("https://example.org/lamps 3/12"). The line next to it is
    one of them if it begins with a date and a time or ends with an address. So is such a first or last line of the
    text. The same line elsewhere, as in a chat log, is text.

    >>> page = "The lamp burned oil.\\n3/14/26, 9:41 PM Lamps - Coast\\nhttps://coast.example/lamps 1/3"
    >>> without_print_lines(page)
    'The lamp burned oil.\\n'
    >>> without_print_lines("3/14/26, 9:41 PM - Ada: The lamp is lit.")
    '3/14/26, 9:41 PM - Ada: The lamp is lit.'
    """
    lines = _lines(text)
    footers = {i for i, (_, line) in enumerate(lines) if _FOOTER.fullmatch(line.strip())}
    if not footers:
        return text
    near = {i for footer in footers for i in (footer - 1, footer + 1) if 0 <= i < len(lines)}
    near |= {0, len(lines) - 1}  # the header, where the page begins or ends the text
    dropped = footers | {i for i in near if _BESIDE.fullmatch(lines[i][1].strip())}
    return text if len(dropped) == len(lines) else _without(text, [lines[i] for i in sorted(dropped)])


def repeated_lines(chunks: Sequence[tuple[str, tuple[str, int] | None]]) -> frozenset[str]:
    """The keys of the lines that repeat over the chunks of a document, such as headers, footers and legal lines.

    A line repeats if two chunks of the document have it at different positions, whatever their order. It needs three if
    it differs in its numbers ("Page 3 of 12") or begins with a lower-case letter. A line that begins so and ends a
    sentence does not count, since wrapped lines may be equal by accident. Where positions are known, text shared by
    overlapping chunks is at one position. The only line of a chunk is its text and does not count.

    Parameters
    ----------
    chunks : text of each chunk, and its position, (part of the document, offset in characters); None if unknown

    >>> changes = ["rose", "fell", "ended"]
    >>> pages = [(f"Annual report {year}\\nSales {change}.", None) for year, change in enumerate(changes)]
    >>> sorted(repeated_lines(pages)), sorted(repeated_lines(pages[:2]))
    (['#annual report 0'], [])
    """
    positions: defaultdict[str, set[tuple[str, int]]] = defaultdict(set)
    holders: defaultdict[str, set[int]] = defaultdict(set)
    continued: set[str] = set()
    for number, (text, start) in enumerate(chunks):
        for begin, line in _lines(text):
            for key in _keys(line):
                if line.lstrip()[0].islower():
                    continued.add(key)
                positions[key].add(("", number) if start is None else (start[0], start[1] + begin))
                holders[key].add(number)
    return frozenset(
        key
        for key, found in positions.items()
        if min(len(found), len(holders[key])) >= (_OFTEN if key.startswith("#") or key in continued else _TWICE)
    )


def without_lines(text: str, repeated: Set[str]) -> str:
    """The text without the lines whose key is in `repeated`.

    >>> without_lines("Annual report 3\\nSales rose.", {"#annual report 0"})
    'Sales rose.'
    """
    lines = _lines(text) if repeated else []
    return _without(text, [(begin, line) for begin, line in lines if not repeated.isdisjoint(_keys(line))])


def _without(text: str, lines: Sequence[tuple[int, str]]) -> str:
    """The text without some lines, given with their positions, and the line breaks after them."""
    kept, end = [], 0
    for begin, line in lines:
        kept.append(text[end:begin])
        end = begin + len(line)
        end += text[end : end + 1] == "\n"
    return "".join([*kept, text[end:]])


def _lines(text: str) -> list[tuple[int, str]]:
    """The lines of a text with their positions; none if there is only one."""
    found = [(match.start(), match.group()) for match in _LINE.finditer(text) if not match.group().isspace()]
    return found if len(found) > 1 else []


def _keys(line: str) -> tuple[str, ...]:
    """The normalised line, and the same with its numbers masked; none for a line that cannot be a header."""
    ends_sentence = line.lstrip()[0].islower() and line.rstrip().endswith((".", "!", "?"))
    key = normalise(line) if len(line) <= _LONGEST and not ends_sentence else ""
    if not any(character.isalpha() for character in key):
        return ()
    return (key, f"#{_NUMBER.sub('0', key)}") if _NUMBER.search(key) else (key,)


class PassageText(NamedTuple):
    """A title, "" if there is none, and the text below it, one paragraph per line."""

    title: str
    body: str


def read_passage(
    text: str, title: str = "", *, headings: bool = True, repeated: Set[str] = frozenset(), is_chunk: bool = False
) -> PassageText:
    """The title of a text, given or read from its heading, and its body without hard line breaks.

    Parameters
    ----------
    title : the title, if known; marks of emphasis are left out. A first line with the same words is not part of the
        body
    headings : whether a heading becomes the title if none is given; otherwise it stays in the body
    repeated : keys of lines to remove, unless the text has no others; see :func:`repeated_lines`
    is_chunk : whether the text begins in the middle of a document, possibly in the middle of a line

    >>> read_passage("The Lamp\\n\\nIt burned\\noil.")
    PassageText(title='The Lamp', body='It burned oil.')
    """
    text = without_mail_headers(without_print_lines(without_unprinted(text)))
    body = without_lines(text, repeated).strip() or text.strip()
    title = _EMPHASIS.sub(r"\2", " ".join(title.split()))
    heading, rest = split_heading(body, is_chunk)
    if title:
        first, _, below = body.partition("\n")
        if heading and normalise(heading) == normalise(title):
            body = rest
        elif below.strip() and normalise(first) == normalise(title):
            body = below
    elif headings and heading:
        title, body = heading, rest
    return PassageText(title, unwrap(body.strip()))
