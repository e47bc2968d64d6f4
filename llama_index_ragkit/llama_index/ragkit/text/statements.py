"""The statements of a text: the sentences that make sense by themselves."""

import re
from collections.abc import Iterator
from itertools import groupby

from llama_index.ragkit.text.characters import LETTER, UNSPACED, normalise
from llama_index.ragkit.text.function_words import FUNCTION_WORDS, is_aside
from llama_index.ragkit.text.passages import read_passage
from llama_index.ragkit.text.prose import is_reference, prose, without_addresses
from llama_index.ragkit.text.sentences import LINE_END, SENTENCE_END, split_sentences
from llama_index.ragkit.text.unwrapping import LIST_ITEM

__all__ = ["is_statement", "line_sentences", "sentences_of_prose", "without_marker"]

_WORD = re.compile(f"{LETTER}+(?:['’.-]{LETTER}+)*")
_WIDE = re.compile(f"[{UNSPACED}]")
_HEADING = re.compile(r" {0,3}#{1,6}[ \t]+(.*)")
_CLOSING_SIGNS = "# \t"
_SPEAKER = re.compile(r"[^:!?]{1,40}:\s")  # "Mrs. Hale: "
_QUOTATION = re.compile(r"\A(?:>[ \t]?)+")
_LEAST_WORDS, _LEAST_CHARACTERS = 4, 6
_JOINING_TEXT = """
a al an and at by de der des du ed editor editors eds et for from in la le of on or the to und van von y
"""
_JOINING = frozenset(_JOINING_TEXT.split())
_SIGN_OF_FORMULA = re.compile(r"[_{}\\^\U0001d400-\U0001d7ff]")
_FORMULA = re.compile(r"[^\W_]_[^\W_]|[{}\\^\U0001d400-\U0001d7ff]")


def is_statement(text: str) -> bool:
    """Whether a text makes sense by itself: it ends a sentence, or has four words and is neither a name nor a heading.

    A sentence of only interjections and function words, with or without a speaker's name before it, says nothing; nor
    does one of only names and what joins them, an entry of a list of references, or a formula.

    >>> is_statement("The lamp burned oil."), is_statement("Sales of Oil and Lamps in 1912"), is_statement("Page 3")
    (True, False, False)
    >>> is_statement("Mrs. Hale: Oh, really?"), is_statement("Mrs. Hale: It burns!")
    (False, True)
    >>> is_statement("In K. Inui and X. Wan, editors."), is_statement("arXiv preprint arXiv:2305.18846.")
    (False, False)
    """
    if not text.isascii() and len(_WIDE.findall(text)) >= _LEAST_CHARACTERS:
        return True
    if is_reference(text) or _is_formula(text):
        return False
    plain = without_addresses(text)
    words = _WORD.findall(plain)
    if SENTENCE_END.search(text) and (plain == text or len(words) >= _LEAST_WORDS):
        said = _SPEAKER.sub("", text, count=1) if ":" in text else text
        if _is_title(words):
            return False
        return len(words) > 1 and not all(is_aside(word[0]) for word in _WORD.finditer(said))
    small = (word for word in words if len(word) > 2 and not word[0].isupper())
    return len(words) >= _LEAST_WORDS and any(word not in FUNCTION_WORDS for word in small)


def _is_formula(text: str) -> bool:
    """Whether most of a text is formulas, in TeX or as they are read from a PDF."""
    pieces = text.split() if _SIGN_OF_FORMULA.search(text) else []
    return 2 * sum(_FORMULA.search(piece) is not None for piece in pieces) > len(pieces)


def _is_title(words: list[str]) -> bool:
    """Whether all words but those that join have capitals, as in a name or heading; a text in capitals is none."""
    has_capitals = all(word[0].isupper() or word in _JOINING for word in words)
    return has_capitals and 2 * sum(word.isupper() for word in words) <= len(words)


def without_marker(line: str) -> str:
    """A line without the mark of a heading, a quotation or a list item.

    >>> without_marker("> - The lamp burned."), without_marker("2. It was dear."), without_marker("## Lamps")
    ('The lamp burned.', 'It was dear.', 'Lamps')
    """
    marked = _HEADING.fullmatch(line)
    if marked:
        return marked[1].rstrip(_CLOSING_SIGNS)
    plain = _QUOTATION.sub("", line.strip(), count=1)
    item = LIST_ITEM.match(plain)
    return plain[item.end() :] if item else plain


def line_sentences(text: str, language: str | None = None) -> list[str]:
    """The sentences of a text, each on one line; an entry of a list of references stays whole.

    >>> line_sentences("They burned\\noil. It was dear.\\n[3] A. Lee and B. Roe. Lamps. J. Light 3(2):14, 1912.")
    ['They burned oil.', 'It was dear.', '[3] A. Lee and B. Roe. Lamps. J. Light 3(2):14, 1912.']
    """
    found: list[str] = []
    for whole, group in groupby(text.split("\n"), is_reference):
        lines = list(group)
        found += lines if whole else split_sentences("\n".join(lines), language)
    return [" ".join(sentence.split()) for sentence in found if any(map(str.isalnum, sentence))]


def sentences_of_prose(text: str, language: str | None = None) -> list[str]:
    """The sentences of a text, each on one line, without Markdown marks, lines of code and numbers of tables.

    A heading stands before the first sentence below it, unless that begins with the same words. `language` is that of
    :func:`~llama_index.ragkit.text.sentences.split_sentences`.

    >>> sentences_of_prose("## Lamps\\n\\n- They *burned*\\n  oil. It was dear.\\n> Who paid?")
    ['Lamps: They burned oil.', 'It was dear.', 'Who paid?']
    """
    return list(_sentences(text, language))


def _sentences(text: str, language: str | None) -> Iterator[str]:
    heading, body = read_passage(text)
    for line in prose(body, keep_code=True).split("\n"):
        marked = _HEADING.fullmatch(line)
        if marked:
            heading = marked[1].rstrip(_CLOSING_SIGNS)
            continue
        for sentence in line_sentences(without_marker(line), language):
            yield _headed(heading, sentence)
            heading = ""


def _headed(heading: str, sentence: str) -> str:
    if not heading or normalise(sentence).startswith(normalise(heading)):
        return sentence
    joint = " " if LINE_END.search(heading) else "：" if _WIDE.match(heading[-1]) else ": "
    return heading + joint + sentence
