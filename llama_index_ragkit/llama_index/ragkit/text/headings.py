"""The heading at the beginning of a text, recognised by its form and by what follows it.

A first line is a heading if it is marked as one (Markdown), or if the text at once repeats its words ("Wrong Turn 2:
Dead End", then "Wrong Turn 2: Dead End is a film"). Any other first line must satisfy all of these:

* *Form.* It is short, begins with a capital, a digit or a letter without case, ends in no punctuation except a question
  or exclamation mark, and is not a list item, a table row, a speaker or several sentences; its last word is not a
  function word, and its brackets are balanced.
* *What follows* begins like a sentence and is longer than the heading, or ends a sentence.
* *The line break* between them is deliberate. A blank line always is. A single line break is deliberate if the lines of
  the text are whole paragraphs, or if the first sentence below contains the words of the heading. In a text that may be
  wrapped, it is deliberate if the line had room for the next word and is set apart: in capitals, with brackets or a
  question mark at its end, or with every word capitalised. There, and in a chunk, two capitalised words are not enough,
  since they may be a broken name: the first line of a chunk may be the end of a longer one.
"""

import re
from collections.abc import Sequence

from llama_index.ragkit.text.characters import LETTER, UNSPACED, normalise
from llama_index.ragkit.text.function_words import function_words, written_language
from llama_index.ragkit.text.sentences import LINE_END, sentence_spans
from llama_index.ragkit.text.unwrapping import LIST_ITEM, is_table_row

__all__ = ["split_heading"]

_LONGEST, _MOST_WORDS = 80, 12  # characters and words of a heading
_MOST_PLAIN_WORDS = 7  # of one whose words are not all capitalised
_PARAGRAPH = 120  # characters; a longer line was not wrapped
_READ = 2_000  # characters read of the text that follows

_MARKDOWN = re.compile(r" {0,3}#{1,6}[ \t]+(\S.*)")
_UNDERLINE = re.compile(r" {0,3}(?:={3,}|-{3,})[ \t]*")
_EMPHASIS = re.compile(r"[*_`]+")
_OPEN_END = re.compile(r"[.,;:。，；：、…/&–—-][\"'”’»)\]]*$|[(\[{（【]$")
_QUALIFIER = re.compile(r"(?<=[\w\"'”’»?!])\s*[(\[（【][^()\[\]（）【】]+[)\]）】]$")
_ABBREVIATED = re.compile(r"(?:^|[\s.])(?:[^\W\d_]|Jr|Sr|Inc|Co|Corp|Ltd|Bros|St|No|Vol|Nr)\.$")
_WORD = re.compile(f"(?:{LETTER}|\\d)+(?:['’.-](?:{LETTER}|\\d)+)*")
_OPENING = re.compile(r"[\"'`“„«「『《(\[（¿¡.… ]*(.)")
_NUMERAL = re.compile(r"[(\[]?(?:[\divxlcIVXLC]+|[a-zA-Z])[)\].]?")
# "Ada: ...", "Subject: ..."
_SPEAKER = re.compile(r"\s*(?:\[?\d{1,2}:\d{2}\S*\s+)?#?(?=[^\W\d_])[^:.!?]{1,31}:(?:\s|$)")
_WIDE = re.compile(f"[{UNSPACED}]")
_LETTERS = re.compile(r"[\W\d_]*[^\W\d_]+(?:[ ,]+[^\W\d_]+){2}")
_SYMBOL = re.compile("[\u2190-\u2bff]")  # arrows, boxes, check marks
_BRACKETS = ("()", "[]", "（）", "“”", "«»", "《》", "「」")


def split_heading(text: str, is_chunk: bool = False) -> tuple[str, str]:
    """The heading at the beginning of a text, without markup, and the rest; "" and the whole text if there is none.

    A chunk (`is_chunk`) begins in the middle of a document, possibly in the middle of a line.

    >>> split_heading("# The *lamp*\\nIt burned oil.")
    ('The lamp', 'It burned oil.')
    >>> split_heading("Otto Lindqvist founded the\\nBergslund Glassworks.")[0]
    ''
    """
    first, _, rest = text.strip().partition("\n")
    marked = _MARKDOWN.fullmatch(first.rstrip())
    if marked and marked[1].rstrip("# \t"):
        return _plain(marked[1].rstrip("# \t")), rest
    if len(first) > 2 * _LONGEST:
        return "", text
    heading = _plain(first)
    under, _, below = rest.partition("\n")
    if _UNDERLINE.fullmatch(under) and below.strip() and _has_form(heading):
        return heading, below
    below = rest[:_READ]
    if _begins_again(heading, below) or (_has_form(heading) and _precedes(heading, below, is_chunk)):
        return heading, rest
    return "", text


def _plain(line: str) -> str:
    return " ".join(_EMPHASIS.sub("", line).split())


def _has_form(line: str) -> bool:
    """Whether a line has the form of a heading."""
    words = _WORD.findall(line)
    letters, digits = sum(map(str.isalpha, line)), sum(map(str.isdigit, line))
    if not words or len(words) > _MOST_WORDS or len(line) > _LONGEST or letters < max(1, digits):
        return False
    if _OPEN_END.search(line) and not _ABBREVIATED.search(line):
        return False
    if LIST_ITEM.match(line) or is_table_row(line) or _NUMERAL.fullmatch(line) or _SYMBOL.search(line):
        return False
    if words[-1] in function_words(written_language(line)):  # capitalised, it belongs to a name
        return False
    if any(line.count(pair[0]) != line.count(pair[1]) for pair in _BRACKETS):
        return False
    begins = _OPENING.match(line)
    if begins is None or begins[1].islower():
        return False
    return _is_title_case(line) or len(sentence_spans(line)) == 1


def _precedes(heading: str, rest: str, is_chunk: bool) -> bool:
    """Whether a line of that form is the heading of what follows."""
    lines = [line for line in rest.split("\n") if line.strip()]
    if not lines or (_SPEAKER.match(heading) and _SPEAKER.match(lines[0])):
        return False
    opening = _OPENING.match(lines[0].lstrip())
    if opening is None or opening[1].islower() or not (opening[1].isalnum() or LIST_ITEM.match(lines[0])):
        return False
    is_qualified = _QUALIFIER.search(heading) is not None
    has_long_line = any(len(line.strip()) > len(heading) for line in lines[:3])
    if not (is_qualified or has_long_line or any(LINE_END.search(line.rstrip()) for line in lines)):
        return False
    if _is_in_first_sentence(heading, rest):
        return True
    width = max(map(len, lines))
    is_title_case, words = _is_title_case(heading), _WORD.findall(heading)
    if not is_title_case and len(words) > _MOST_PLAIN_WORDS:
        return False
    is_apart = not rest.split("\n", 1)[0].strip()  # by a blank line
    if is_apart or (_is_upper(heading) and not _is_upper(lines[0])):
        return not lines[0].strip().isdigit()
    if width > _PARAGRAPH:
        return not is_chunk or (is_title_case and len(_content(words, heading)) > 1)
    if is_qualified or heading.endswith(("?", "!")):
        return is_title_case or _WIDE.search(heading) is not None
    return _is_apart_in_wrapped_text(heading, words, lines, rest, is_chunk)


def _is_apart_in_wrapped_text(
    heading: str, words: Sequence[str], lines: Sequence[str], rest: str, is_chunk: bool
) -> bool:
    """Whether a line that no blank line follows is a heading, in lines that may be wrapped."""
    following = _WORD.search(lines[0])
    if following is None or len(heading) + 1 + len(following.group()) > max(map(len, lines)):
        return False  # the line was full
    if _WIDE.search(heading):
        return not is_chunk
    if not _is_title_case(heading) or words[0].casefold() in function_words(written_language(heading)) - {"the", "a"}:
        return False
    across = normalise(f"{words[-1]} {following.group()}")
    if f" {across} " in f" {normalise(rest)} ":
        return False  # a name that is broken here stands in one piece below
    is_wrapped = any(line.lstrip()[:1].islower() for line in lines[1:])
    return len(_content(words, heading)) > (2 if is_chunk or is_wrapped else 0)


def _content(words: Sequence[str], heading: str) -> list[str]:
    """The words that are neither numbers nor function words."""
    small = function_words(written_language(heading))
    return [word for word in words if not word.isdigit() and word.casefold() not in small]


def _begins_again(heading: str, rest: str) -> bool:
    """Whether the text begins with the words of the heading; brackets at the heading's end do not count."""
    name = normalise(_QUALIFIER.sub("", heading))
    if len(name) < 2 or len(heading) > 1.5 * _LONGEST:
        return False
    if not any(map(str.isalpha, name)) and not _LETTERS.match(rest):  # the rows of a table, unless prose follows
        return False
    return f"{normalise(rest[: 2 * _LONGEST])} ".startswith(name if _WIDE.search(name) else f"{name} ")


def _is_in_first_sentence(heading: str, rest: str) -> bool:
    """Whether the first sentence contains the heading, if the heading has more than one word."""
    name, spans = normalise(_QUALIFIER.sub("", heading)), sentence_spans(rest)
    first = normalise(rest[slice(*spans[0])]) if spans else ""
    return " " in name and f" {name} " in f" {first} "


def _is_title_case(line: str) -> bool:
    """Whether every word of four letters or more, the first and the last are capitalised, except in brackets at the
    end.
    """
    words = [word for word in _WORD.findall(_QUALIFIER.sub("", line)) if not word[0].isdigit()]
    significant = [word for k, word in enumerate(words) if len(word) > 3 or k in (0, len(words) - 1)]
    return bool(significant) and all(word[0].isupper() or word[0].istitle() for word in significant)


def _is_upper(line: str) -> bool:
    letters = [character for character in line if character.isalpha()]
    return len(letters) > 3 and all(character.isupper() for character in letters)
