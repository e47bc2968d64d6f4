"""Entries of a list of references: authors, a title, where and when it appeared.

An entry is no sentence, and cut at its full stops it falls into pieces that say nothing ("In K. Inui, editors,").
"""

import re

from llama_index.ragkit.text.characters import LETTER
from llama_index.ragkit.text.function_words import FUNCTION_WORDS

__all__ = ["is_reference", "without_addresses"]

_WORD = re.compile(f"{LETTER}{{2,}}")
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
_IDENTIFIER = re.compile(
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
    words = _WORD.findall(text)
    return sum(word.lower() in FUNCTION_WORDS for word in words) <= max(1, _FUNCTION_WORDS_A_SIGN * signs * len(words))


def without_addresses(text: str) -> str:
    """A text without addresses, DOIs and numbers of preprints, and the words that announce them.

    >>> without_addresses("It burns. URL https://lamp.example/a?b doi: 10.1000/x.5")
    'It burns.  '
    """
    return _IDENTIFIER.sub("", text) if ":" in text or "/" in text else text
