"""Lines that a document repeats from page to page: headers, footers, legal lines.

A line repeats if two chunks of the document have it at different positions. It needs three if it differs in its numbers
("Page 3 of 12") or begins with a lower-case letter. A line that begins so and ends a sentence does not count, since
wrapped lines may be equal by accident. Where positions are known, text shared by overlapping chunks is at one position.
The only line of a chunk is its text and does not count.
"""

import re
from collections import defaultdict
from collections.abc import Sequence, Set

from llama_index.ragkit.text.mentions import normalise

__all__ = ["repeated_lines", "without_lines"]

_LINE = re.compile(r"[^\r\n\x0b\x0c\x85\u2028\u2029]+")
_NUMBER = re.compile(r"\d+")
_LONGEST = 200  # characters of a header or footer; a longer line is a paragraph
_TWICE, _OFTEN = 2, 3  # chunks with a line


def repeated_lines(chunks: Sequence[tuple[str, tuple[str, int] | None]]) -> frozenset[str]:
    """The keys of the lines that repeat over the chunks of a document, regardless of the order of the chunks.

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
    if not repeated:
        return text
    kept = []
    end = 0
    for begin, line in _lines(text):
        if any(key in repeated for key in _keys(line)):
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
