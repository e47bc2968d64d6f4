"""Questions from the key phrases of a text's most informative sentences, without a language model. Pure functions.

A phrase is a run of words between stop words and punctuation (Rose et al., "Automatic keyword extraction from
individual documents", 2010: RAKE's candidates). Interjections, contractions, identifiers in code, file names, section
numbers and phrases of only numbers or dates are left out. The score of a sentence is the number of distinct words in
its phrases, with lower weight for words that a better sentence already contains. Each of the best sentences gives one
question: the list of its longest phrases. A sentence with a single word gives one only if no other sentence has more.

Stop words are those of stopwords-iso (57 languages). Text in scripts without spaces is not split into words: its
phrases are the clauses between punctuation.
"""

import re
from collections.abc import Collection

from stopwordsiso import stopwords

from llama_index.ragkit.text.characters import MARKS, UNSPACED
from llama_index.ragkit.text.function_words import is_aside, is_date, is_filler, written_language
from llama_index.ragkit.text.sentences import split_sentences

__all__ = ["key_phrases", "key_questions"]

# Words as written: "U.S.", "I/O", "20,000", "data-driven".
_PIECES = re.compile(
    r"(?:[^\W\d_]\.){2,}|\b[A-Z]{1,4}/[A-Z0-9]{1,3}\b|\d+(?:[.,]\d+)+(?!\w)"
    rf"|\w[\w{MARKS}]*(?:[-'’.]\w[\w{MARKS}]*)*|[^\w\s]"
)
# The number of an item or section at the beginning of a sentence, and the mark of a note.
_ITEM = re.compile(
    r"\A\s*(?:#[A-Z]+#:?|\(?(?:\d{1,3}|[a-z]|[ivx]{2,5})[.)]\s|\d{1,3}(?:\.\d{1,3})+\.?\s|\d{1,3}\s+(?=[A-Z]))"
)
_CODE = re.compile(r"[^\W_]*_\w*|[^\W\d_]\w*(?:\.[a-z_]\w*)+")
_IDENTIFIER = re.compile(r"(?=(?:\D*\d){3})(?=.*[^\W\d_])\w{8,}|\d{7,}|[\d-]{9,}")  # of a file; or a telephone number
_NUMERAL = re.compile(r"[ivx]{1,5}")
_SPEAKER = re.compile(r"[^:.!?]{1,40}:\s")
# "don't" and "gonna" as tokenizers split them.
_TAKEN_APART = re.compile(
    r"(?<=\w) (?=n['’]t\b|['’](?:m|s|re|ve|ll|d)\b)|(?<=\bgon) (?=na\b)|(?<=\bwan) (?=na\b)|(?<=\bgot) (?=ta\b)"
)
_WIDE = re.compile(f"[{UNSPACED}]")
_MOST_CHARACTERS, _MOST_WORDS = 160, 12
_COVERED_SHARE = 0.5  # weight of a word that a better sentence already contains


def key_phrases(sentence: str, language: str) -> list[str]:
    """The phrases of a sentence, in order, each once.

    >>> key_phrases("The Analytical Engine was drawn by Babbage, and used punched cards.", "en")
    ['Analytical Engine', 'drawn', 'Babbage', 'punched cards']
    >>> key_phrases("3.2 Yeah, self.lamp_oil was sold to Tern Rock on May 4, 1871.", "en")
    ['sold', 'Tern Rock']
    """
    stop = stopwords(language)
    phrases: list[str] = []
    run: list[str] = []
    for piece in [*_PIECES.findall(_ITEM.sub("", _TAKEN_APART.sub("", sentence))), "."]:
        if piece[0].isalnum() and not _is_left_out(piece, stop):
            run.append(piece)
        elif run:
            phrase = " ".join(run)
            phrases += [phrase] if _tells(phrase) else []
            run = []
    return list({phrase.casefold(): phrase for phrase in reversed(phrases)}.values())[::-1]


def _is_left_out(piece: str, stop: Collection[str]) -> bool:
    word = piece.casefold()
    is_abbreviated = piece.islower() and piece.replace(".", "") in stop  # "e.g."
    is_no_word = _CODE.fullmatch(piece) or _IDENTIFIER.fullmatch(piece)
    return word in stop or is_abbreviated or is_filler(word) or is_no_word is not None


def _tells(phrase: str) -> bool:
    names_nothing = is_aside(phrase) or is_date(phrase) or _NUMERAL.fullmatch(phrase)
    return any(map(str.isalpha, phrase)) and not names_nothing


def key_questions(text: str, most: int, language: str | None = None) -> list[str]:
    """Up to `most` questions that a text answers, in the order of the text.

    >>> key_questions("Ada Byron met Charles Babbage. They were in London.", 2)
    ['Ada Byron met Charles Babbage?']
    >>> key_questions("They were in London.", 2)
    ['London?']
    """
    language = language or written_language(text)
    sentences = split_sentences(text, language)
    phrases_of = {i: found for i, each in enumerate(sentences) if (found := key_phrases(each, language))}
    telling = {i for i, each in enumerate(sentences) if i in phrases_of and _says_enough(each, language)}
    rest = telling or set(phrases_of)
    words = {i: {word.casefold() for phrase in phrases_of[i] for word in phrase.split()} for i in rest}
    covered: set[str] = set()
    chosen: list[int] = []
    while len(chosen) < most:
        worth = {
            i: len(words[i] - covered) + _COVERED_SHARE * len(words[i] & covered) for i in rest if words[i] - covered
        }
        if not worth:
            break
        best = max(worth, key=lambda i: (worth[i], -i))
        chosen.append(best)
        covered |= words[best]
        rest.remove(best)
    return list(dict.fromkeys(_question(phrases_of[i]) for i in sorted(chosen)))


def _says_enough(sentence: str, language: str) -> bool:
    """Whether a sentence has more than one telling word besides the name of its speaker."""
    said = " ".join(key_phrases(_SPEAKER.sub("", sentence, count=1), language))
    return len(said.split()) > 1 or _WIDE.search(said) is not None


def _question(phrases: list[str]) -> str:
    """The longest phrases that fit, in order."""
    words, characters = _MOST_WORDS, _MOST_CHARACTERS
    kept = set()
    for i in sorted(range(len(phrases)), key=lambda i: -len(phrases[i].split())):
        size = len(phrases[i].split())
        if size <= words and len(phrases[i]) <= characters:
            words, characters = words - size, characters - len(phrases[i]) - len(", ")
            kept.add(i)
    return (", ".join(phrases[i] for i in sorted(kept)) or phrases[0][:_MOST_CHARACTERS]) + "?"
