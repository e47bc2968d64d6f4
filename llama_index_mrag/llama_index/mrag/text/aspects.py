"""Splitting of a question into its aspects: its sentences, and the clauses of those that have several.

The single vector of a long question averages all of its subjects. Its sentences and clauses have few subjects each, so
each finds the documents on these. Both are used: a sentence may still have several subjects, and a short clause may
mean little out of context. A sentence that is only an enumeration ("cats and dogs and ships") has the aspects that it
enumerates. What a question names before a semicolon or colon ("Consider the policy of X; do they ...?") says where
to look for the answer. It is not an aspect, since everything there is equally near to it.

Not in the paper, which embeds the question as a whole.
"""

import re
from collections.abc import Sequence

from llama_index.ragkit.text.characters import HANGUL, MARKS, UNSPACED, without_unprinted
from llama_index.ragkit.text.function_words import function_words, written_language
from llama_index.ragkit.text.sentences import split_sentences

__all__ = ["cut_aspects", "cut_clauses", "cut_items", "undivided"]

_MOST_ASPECTS = 256
_LEAST_WORDS = 4  # a shorter clause is joined to its neighbour
# After a comma, semicolon, colon or closing bracket, and before an opening one, also of wide scripts; dashes. A comma
# inside a number or a date ("May 26, 2023") does not split, nor does a mark before a comma, a point or another closing
# mark.
_CUTS = re.compile(
    r"(?<=[;)\]”»—–、，；：）])(?!\s*[.,:;?!…)\]”»、，；：。！？）])\s*"
    r"|(?<=[,:])(?!(?<=\d,)\s+\d{4}\b)\s+|(?<!\s)\s+(?=[(\[“«—–])|(?=[（])"
)
# In scripts without spaces a word is about two characters; so, with Hangul, is one of Korean.
_WIDE = re.compile(f"[{UNSPACED}{HANGUL}]")
_WORD = re.compile(rf"[\w{MARKS}]+(?:['’]\w+)*")
_BRACKET = re.compile(r"[(\[（]")
_PUNCTUATION = " \t\n.?!:;…。？！؟"
_LEAST_ITEMS, _MOST_ITEM_WORDS = 3, 3  # of an enumeration
_ARTICLE_TEXT = "the a an der die das le la les el los las il lo gli i o os as de het"
_ARTICLES = frozenset(_ARTICLE_TEXT.split())
_AND_TEXT = "and or und oder et ou y e o u en och eller og i lub и или або та ve veya और या و أو"
_AND = "|".join(_AND_TEXT.split())
_ITEM_BREAK = re.compile(rf"(?:(?<!\s)\s+)?[,،、，;]\s*(?:(?:{_AND})\s+)?|(?<!\s)\s+(?:{_AND})\s+|[和与與及或]")
_LAST_BREAK = re.compile(rf"(?:\s(?:{_AND})\s+|[和与與及或、])")


def cut_clauses(sentence: str) -> list[str]:
    """The clauses of a sentence in order; the sentence itself if it has only one.

    >>> cut_clauses("We ate black bread, cake, and slow airs on a fiddle, then admired the ceiling.")
    ['We ate black bread,', 'cake, and slow airs on a fiddle,', 'then admired the ceiling.']
    """
    clauses: list[list[str]] = []
    short: list[str] = []
    words = 0.0  # of these
    for piece in filter(None, map(str.strip, _CUTS.split(sentence))):
        count = _words(piece)
        if clauses and not short and _BRACKET.match(piece) and count < _LEAST_WORDS:
            clauses[-1].append(piece)  # "the Every Student Succeeds Act (ESSA)"
            continue
        short.append(piece)
        words += count
        if words >= _LEAST_WORDS:
            clauses.append(short)
            short, words = [], 0.0
    if short and clauses:
        clauses[-1] += short
    elif short:
        clauses.append(short)
    return [" ".join(pieces) for pieces in clauses]


def cut_items(sentence: str) -> list[str]:
    """The items of a sentence that is only an enumeration of three or more, of up to three words each; else none.

    >>> cut_items("Cats and dogs and ships and swords?"), cut_items("Cats, who sleep, eat fish.")
    (['Cats', 'dogs', 'ships', 'swords'], [])
    """
    items = [item for item in _ITEM_BREAK.split(sentence.strip(_PUNCTUATION)) if item.strip()]
    small = function_words(written_language(sentence)) - _ARTICLES
    is_list = len(items) >= _LEAST_ITEMS and all(0 < _words(item) <= _MOST_ITEM_WORDS for item in items)
    if is_list and _LAST_BREAK.search(sentence) and not any(item.split()[0].casefold() in small for item in items):
        return items
    return []


def cut_aspects(question: str) -> list[str]:
    """The sentences of a question, and the clauses or enumerated items of those with several, each once, in order.

    The only aspect of a question of one clause is the question. Pieces without a letter or digit are omitted, unless
    there are no others. If there are more than 256 pieces, neighbouring sentences are joined and clauses omitted.

    >>> for aspect in cut_aspects("Who kept the light? And who, after the storm of 1852, rang the old bell?"):
    ...     print(aspect)
    Who kept the light?
    And who, after the storm of 1852, rang the old bell?
    And who, after the storm of 1852,
    rang the old bell?
    """
    sentences = [each for each in split_sentences(without_unprinted(question)) if _WORD.search(each)]
    if not sentences:
        return [question]
    pieces: list[str] = []
    for sentence in sentences:
        pieces += [sentence, *_parts(sentence)]
    pieces = list(dict.fromkeys(pieces))
    return pieces if len(pieces) <= _MOST_ASPECTS else _joined(list(dict.fromkeys(sentences)), _MOST_ASPECTS)


def undivided(aspects: Sequence[str]) -> list[str]:
    """The aspects without those whose parts are aspects too.

    >>> undivided(cut_aspects("Who kept the light? And who, after the storm of 1852, rang the old bell?"))
    ['Who kept the light?', 'And who, after the storm of 1852,', 'rang the old bell?']
    """
    known = set(aspects)
    return [aspect for aspect in aspects if not (parts := _parts(aspect)) or not known.issuperset(parts)]


def _parts(sentence: str) -> list[str]:
    """The clauses or enumerated items of a sentence that has several, else none."""
    clauses = cut_items(sentence) or _asked(cut_clauses(sentence))
    return [clause for clause in clauses if _WORD.search(clause)] if len(clauses) > 1 else []


def _asked(clauses: Sequence[str]) -> Sequence[str]:
    """The clauses of a question without the first ones if these only say what it is about.

    Such clauses end with a semicolon or colon and begin with a content word, like a command or a name; the question
    after them begins with a function word.
    """
    small = function_words(written_language(" ".join(clauses)))
    scope = next((i for i, clause in enumerate(clauses) if clause[-1:] in ";:" and clauses[i + 1 :]), None)
    if scope is None or not clauses[-1].endswith("?"):
        return clauses
    first, asked = (_WORD.search(clauses[i].casefold()) for i in (0, scope + 1))
    if first is None or asked is None or first.group() in small or asked.group() not in small:
        return clauses
    return clauses[scope + 1 :]


def _joined(sentences: Sequence[str], most: int) -> list[str]:
    size = -(-len(sentences) // most)
    return [" ".join(sentences[start : start + size]) for start in range(0, len(sentences), size)]


def _words(text: str) -> float:
    wide = len(_WIDE.findall(text))
    return len(_WORD.findall(_WIDE.sub(" ", text))) + wide / 2
