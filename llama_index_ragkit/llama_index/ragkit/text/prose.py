"""The prose of a text, without code, markup and numbers of tables; and references, which are no prose.

An entry of a list of references has authors, a title, where and when it appeared. It is no sentence, and cut at its
full stops it falls into pieces that say nothing ("In K. Inui, editors,").
"""

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import takewhile

from llama_index.ragkit.text.characters import LETTER
from llama_index.ragkit.text.function_words import FUNCTION_WORDS
from llama_index.ragkit.text.unwrapping import LINK_DEFINITION, NUMBER, code_lines, is_table_row

__all__ = ["is_reference", "prose", "prose_lines", "without_addresses"]

_LETTERS = re.compile(f"{LETTER}{{2,}}")
_PUBLISHED = r"(?:1[89]|20)\d\d[a-z]?"
_YEAR = re.compile(rf"\b{_PUBLISHED}\b")
_INITIAL = re.compile(r"\b(?!U\.S)(?<!U\.)[A-Z]\.")
_BEGINNING = re.compile(
    rf"\[\w{{1,12}}\+?\]\s|(?:[A-Z]\S+,?\s){{1,5}}(?:et al\.,?\s)?[\[(]{_PUBLISHED}[\])](?!\s(?:is|are|was|were)\b)"
)
_END = re.compile(rf",\s(?:\w+\.?\s)?{_PUBLISHED}\.?$")
_VENUE = re.compile(
    r"(?<![^\W_])(?:proceedings|proc\.|conference on|transactions|journal|preprint|arxiv|corr|findings of|workshop"
    r"|press|editors?|eds?\.|university|association|lecture notes|technical report|thesis)(?!\w)",
    re.IGNORECASE,
)
_PLACE = re.compile(
    rf"\b(?:pp?\.|pages?|vol\.|no\.)\s?\d|\b\d+\s?\(\d+\)[:,]\s?\w?\d|\b\d+:\d+(?:[-–]\d|,\s{_PUBLISHED})"
)
_ADDRESS = re.compile(r"\bdoi\b|\barxiv(?:[:/]\s?\d|\.org)|\babs/\d|\b\w+://|\bissn\b|\bisbn\b", re.IGNORECASE)
_IDENTIFIED = re.compile(
    r"(?:\b(?:URL|Available|doi):?\s+)?(?:\b\w+://\S*|\bdoi:\s?\S+|\b10\.\d{4,}/\S+|\barxiv:\S+|\babs/\d\S*)",
    re.IGNORECASE,
)
_LONGEST = 1_500  # characters
_FUNCTION_WORDS_A_SIGN = 0.15  # of all words at most, for each sign; prose has .4 and more, and few signs


def is_reference(text: str) -> bool:
    """Whether a line or sentence is an entry of a list of references, or a piece of one.

    An entry has a year, and at least two of these signs, one of the first three: volume or pages; an address or DOI; a
    mark at its beginning ("[12]", "Banko et al. [2007]"); initials of authors; a venue; the year at its end. Prose that
    cites has more function words.

    >>> is_reference("[5] Yan, S-Q., Gu, J-C. (2024) Corrective retrieval. arXiv preprint arXiv:2401.15884.")
    True
    >>> is_reference("In 1871 J. Gordon Bennett asked H. M. Stanley to find him, and the Herald paid.")
    False
    """
    text = text.strip()
    if len(text) > _LONGEST or not _YEAR.search(text):
        return False
    whence = (_PLACE.search(text) is not None, _ADDRESS.search(text) is not None, _BEGINNING.match(text) is not None)
    whose = (len(_INITIAL.findall(text)) > 1, _VENUE.search(text) is not None, _END.search(text) is not None)
    signs = sum(whence) + sum(whose)
    if not any(whence) or signs < 2:
        return False
    words = _LETTERS.findall(text)
    return sum(word.lower() in FUNCTION_WORDS for word in words) <= max(1, _FUNCTION_WORDS_A_SIGN * signs * len(words))


def without_addresses(text: str) -> str:
    """A text without addresses, DOIs and numbers of preprints, and the words that announce them.

    >>> without_addresses("It burns. URL https://lamp.example/a?b doi: 10.1000/x.5")
    'It burns.  '
    """
    return _IDENTIFIED.sub("", text) if ":" in text or "/" in text else text


_COLUMNS = re.compile(r"\t| {3,}|\.{4,}|(?: \.){3,}")
_WORD = re.compile(r"[^\W\d_]{2,}")
_INLINE_CODE = re.compile(r"(?<!`)(`{1,3})(?!`)(.{1,200}?)(?<!`)\1(?!`)")
_IDENTIFIER = re.compile(r"[^\W\d_]\w*(?:\.\w+)*")
_CAMEL_CASE = re.compile(r"[a-z0-9][A-Z]|[A-Z]{2}[a-z]")
_BLOCK_TAG = re.compile(r"</?(?:br|p|div|li|t[dhr]|h[1-6])(?=[\s/>])[^<>]{0,300}>", re.IGNORECASE)
_LINK = re.compile(r"!?\[([^\[\]]*)\]\([^()\s]*(?:\s\"[^\"]*\")?\)")
_HELD = "\x00"  # around the number of a piece of inline code, which stands for it while markup is removed
_HELD_PIECE = re.compile(f"{_HELD}(\\d+){_HELD}")
_REFERENCE = re.compile(r"(?<![\w\])])\[((?=[^\[\]]*?[^\W\d_]|[^\[\]]*?[,\x00])[^\[\]]*)\]\[[^\[\]]{0,200}\]")
_TAG = re.compile(r"<!--.{0,500}?-->|</?[A-Za-z][\w:-]{0,30}(?:\s[^<>]{0,300})?/?>")
# In shown text, "<file>" is a word of the author.
_INLINE_TAG = re.compile(
    r"<!--.{0,500}?-->|</?(?:a|abbr|b|cite|code|del|dfn|em|font|i|img|ins|kbd|mark|q|s|samp|small|span|strong|su[bp]|tt|u"
    r"|var)(?=[\s/>])[^<>]{0,300}>",
    re.IGNORECASE,
)
_SNAKE_CASE = re.compile(r"\b\w*(?:[a-z0-9]_[A-Za-z0-9]|[A-Z]{2}_[A-Z])[\w.=-]*")
_SIGNS = "`_*[<:"  # a line without any has no markup
_EMPHASIS = re.compile(r"(?<![\w*])(\*{1,3})([^\s*](?:[^*]{0,200}[^\s*])?)\1(?![\w*])")


def prose(text: str, *, keep_code: bool = False) -> str:
    """A text without lines of code, inline code that is not an identifier, addresses, markup, and numbers of tables.

    Each cell of a table is a paragraph, so that no phrase spans two cells; cells without a word are left out.

    Parameters
    ----------
    text : without hard line breaks; see :func:`~llama_index.ragkit.text.unwrapping.unwrap`
    keep_code : whether inline code, identifiers and addresses stay as they are written, for sentences that are shown
        rather than searched for names

    >>> prose("| set | R@5 |\\n|---|---|\\n| Lake Tovel | 0.770 | **0.870** |").split("\\n\\n")
    ['set', 'Lake Tovel']
    >>> text = "Call `light(oil=1)` of `OilLamp` at https://lamp.example.\\n\\n```\\nOilLamp.light()\\n```"
    >>> prose(text)
    'Call , of “OilLamp” at'
    >>> prose(text, keep_code=True)
    'Call light(oil=1) of OilLamp at https://lamp.example.'
    """
    return "\n".join(_pieces(text, _with_code if keep_code else _without_code)).strip()


def prose_lines(text: str) -> list[tuple[str, str]]:
    """The lines of :func:`prose`, each without its code and as it is shown.

    >>> prose_lines("Call `light(oil=1)` first.\\nIt burns.")
    [('Call , first.', 'Call light(oil=1) first.'), ('It burns.', 'It burns.')]
    """
    return list(zip(_pieces(text, _without_code), _pieces(text, _with_code), strict=True))


def _pieces(text: str, clean: Callable[[str], str]) -> Iterator[str]:
    """The cleaned lines of a text, and the cells of its tables with an empty line after each."""
    lines = text.split("\n")
    for line, is_code in zip(lines, code_lines(lines), strict=True):
        if is_code or LINK_DEFINITION.fullmatch(line):
            yield ""
        elif line.count("|") >= 2:
            yield from _cells(line.split("|"), clean)
        elif is_table_row(line):
            yield from _cells(_COLUMNS.split(line), clean)
        else:
            yield clean(line)


def _cells(cells: Iterable[str], clean: Callable[[str], str]) -> Iterator[str]:
    for cell in cells:
        plain = _without_numbers(_without_code(cell))
        if _WORD.search(plain) and sum(map(str.isalpha, plain)) > sum(map(str.isdigit, plain)):
            yield plain if clean is _without_code else _without_numbers(clean(cell))
            yield ""


def _without_numbers(cell: str) -> str:
    """A cell without the numbers of its row at either end; a single number may belong to a name."""
    words = cell.split()
    for _ in range(2):  # at the beginning, and then at the end
        numbers = len(list(takewhile(NUMBER.fullmatch, words)))
        words = words[numbers if numbers > 1 else 0 :][::-1]
    return " ".join(words)


def _without_code(line: str) -> str:
    if not any(sign in line for sign in _SIGNS):
        return line
    line = _without_markup(_INLINE_CODE.sub(_inline_code, line), _TAG)
    return _without_emphasis(_SNAKE_CASE.sub(",", without_addresses(line)))


def _with_code(line: str) -> str:
    if not any(sign in line for sign in _SIGNS):
        return line
    line = line.replace(_HELD, " ")
    pieces: list[str] = []

    def hold(match: re.Match[str]) -> str:
        pieces.append(match[2].strip())
        return f"{_HELD}{len(pieces) - 1}{_HELD}"

    line = _without_emphasis(_without_markup(_INLINE_CODE.sub(hold, line), _INLINE_TAG))
    return _HELD_PIECE.sub(lambda match: pieces[int(match[1])], line)


def _without_markup(line: str, tag: re.Pattern[str]) -> str:
    """A line without tags, and with the texts of its links in place of the links."""
    return tag.sub("", _BLOCK_TAG.sub("; ", _REFERENCE.sub(r"\1", _LINK.sub(r"\1", line))))


def _without_emphasis(line: str) -> str:
    return _EMPHASIS.sub(r"\2", line).rstrip()


def _inline_code(match: re.Match[str]) -> str:
    """An identifier, in quotation marks if its capitals make it a name; a comma for other code."""
    code = match[2].strip()
    found = _IDENTIFIER.match(code)
    if found and _CAMEL_CASE.search(found[0]):
        return f"“{found[0]}”"
    return found[0] if found and found[0] == code else ","
