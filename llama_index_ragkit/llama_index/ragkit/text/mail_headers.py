"""The header of a mail: sender, recipients, date and subject, one per line. Only the subject is text.

A header is a run of lines "Name: value", with names from RFC 5322, section 3.6, or names that mail programs put before
a quoted mail, in some languages. It begins a text or follows an empty line or a rule, and has the address of a mailbox
or a subject. So "From: Rome", "To: Ostia" in a timetable are text.
"""

import re

__all__ = ["without_mail_headers"]

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
_QUOTED = re.compile(r"(?:>[ \t]?)+")
_RULE = re.compile(r"[^\w\n]*-{2,}.*|[-_=*]{3,}")  # "-----Original Message-----"
_MAILBOX = re.compile(r"(?<![^\s@<>])[^\s@<>]+@[^\s@<>]+\.[^\s@<>]+")
_ANSWERED = re.compile(r"(?:(?:Re|Fwd?|AW|WG|Antw|TR|RV|SV|VS|回复|转发)\s*[:：]\s*)+", re.IGNORECASE)
_LEAST = 2  # lines of a header


def without_mail_headers(text: str) -> str:
    """The text with each mail header replaced by the mail's subject, as a paragraph.

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
