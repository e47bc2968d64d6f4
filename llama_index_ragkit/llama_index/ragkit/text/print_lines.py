"""The lines that a browser prints on each page of a PDF: date, title, address, page number.

The line with the address and the number identifies them ("https://example.org/lamps 3/12"). The line next to it is
one of them if it begins with a date and a time or ends with an address. So is such a first or last line of the text.
The same line elsewhere, as in a chat log, is text.
"""

import re

__all__ = ["without_print_lines"]

_LINE = re.compile(r"[^\r\n\x0b\x0c\x85\u2028\u2029]+")
_TIME = r"\d{1,4}[./-]\d{1,2}[./-]\d{1,4},?\s\d{1,2}[:.]\d{2}(?:[:.]\d{2})?(?:\s?[AaPp]\.?[Mm]\.?)?"
_ADDRESS = r"(?:(?:https?|file|\ufb01le)://|about:)\S*"  # a PDF may hold "fi" as one character
_PAGE = r"\d{1,4}(?:/| of | von | de | sur | di )\d{1,4}"
_FOOTER = re.compile(rf"{_ADDRESS}\s+{_PAGE}|{_PAGE}\s+{_TIME}")
_BESIDE = re.compile(rf"{_TIME}(?:\s.{{1,200}})?|.{{1,200}}\s{_ADDRESS}")


def without_print_lines(text: str) -> str:
    """The text without the lines that a browser printed around it, unless it has no others.

    >>> page = "The lamp burned oil.\\n3/14/26, 9:41 PM Lamps - Coast\\nhttps://coast.example/lamps 1/3"
    >>> without_print_lines(page)
    'The lamp burned oil.\\n'
    >>> without_print_lines("3/14/26, 9:41 PM - Ada: The lamp is lit.")
    '3/14/26, 9:41 PM - Ada: The lamp is lit.'
    """
    lines = [match for match in _LINE.finditer(text) if not match.group().isspace()]
    footers = {i for i, line in enumerate(lines) if _FOOTER.fullmatch(line.group().strip())}
    if not footers:
        return text
    near = {i for footer in footers for i in (footer - 1, footer + 1) if 0 <= i < len(lines)}
    near |= {0, len(lines) - 1}  # the header, where the page begins or ends the text
    dropped = footers | {i for i in near if _BESIDE.fullmatch(lines[i].group().strip())}
    if len(dropped) == len(lines):
        return text
    kept, end = [], 0
    for i in sorted(dropped):
        kept.append(text[end : lines[i].start()])
        end = lines[i].end()
        end += text[end : end + 1] == "\n"
    return "".join([*kept, text[end:]])
