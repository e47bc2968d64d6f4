"""Questions from the key phrases of a text's most informative sentences, without a language model. Pure functions.

A phrase is a run of words between stop words and punctuation (Rose et al., "Automatic keyword extraction from
individual documents", 2010: RAKE's candidates). The score of a sentence is the number of distinct words in its phrases,
with lower weight for words that a better sentence already contains; each of the best sentences gives a question, which
is the list of its phrases. Unlike in RAKE, phrases are not scored individually: used as questions, the phrases of a
sentence together retrieve their text better (docs, "What was measured").

Stop words are those of stopwords-iso (57 languages). Text in scripts without spaces is not split into words: its
phrases are the clauses between punctuation.
"""

import re
from itertools import accumulate, takewhile

from stopwordsiso import stopwords

from llama_index.ragkit.text.asides import is_aside
from llama_index.ragkit.text.function_words import written_language
from llama_index.ragkit.text.scripts import MARKS
from llama_index.ragkit.text.sentences import split_sentences

__all__ = ["key_phrases", "key_questions"]

# Words as they are written: "U.S.", "I/O", "20,000", "data-driven".
_PIECES = re.compile(
    r"(?:[^\W\d_]\.){2,}|\b[A-Z]{1,4}/[A-Z0-9]{1,3}\b|\d+(?:[.,]\d+)+(?!\w)"
    rf"|\w[\w{MARKS}]*(?:[-'’.]\w[\w{MARKS}]*)*|[^\w\s]"
)
_MARK = re.compile(r"\d{1,2}")  # alone, the number of a list item or of a note
_MOST_CHARACTERS = 400
_COVERED_SHARE = 0.5  # weight of a word that a better sentence already contains


def key_phrases(sentence: str, language: str) -> list[str]:
    """The phrases of a sentence, in order, each once; not the numbers of list items.

    >>> key_phrases("The Analytical Engine was drawn by Babbage, and used punched cards.", "en")
    ['Analytical Engine', 'drawn', 'Babbage', 'punched cards']
    """
    stop = stopwords(language)
    phrases: list[str] = []
    run: list[str] = []
    for piece in [*_PIECES.findall(sentence), "."]:
        is_abbreviated = piece.islower() and piece.replace(".", "") in stop  # "e.g."
        if piece[0].isalnum() and piece.casefold() not in stop and not is_abbreviated:
            run.append(piece)
        elif run:
            phrase = " ".join(run)
            phrases += [] if _MARK.fullmatch(phrase) or is_aside(phrase) else [phrase]
            run = []
    return list({phrase.casefold(): phrase for phrase in reversed(phrases)}.values())[::-1]


def key_questions(text: str, most: int, language: str | None = None) -> list[str]:
    """Up to `most` questions that a text answers, in the order of the text; none of numbers alone.

    Examples
    --------
    >>> key_questions("Ada Byron met Charles Babbage. They were in London.", 2)
    ['Ada Byron met Charles Babbage?', 'London?']
    """
    language = language or written_language(text)
    sentences = (key_phrases(sentence, language) for sentence in split_sentences(text, language))
    phrases_of = {i: phrases for i, phrases in enumerate(sentences) if any(map(str.isalpha, "".join(phrases)))}
    rest = set(phrases_of)
    words = {i: {word.casefold() for phrase in phrases for word in phrase.split()} for i, phrases in phrases_of.items()}
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
    return [_question(phrases_of[i]) for i in sorted(chosen)]


def _question(phrases: list[str]) -> str:
    """The phrases on one line, as many as fit."""
    ends = accumulate(len(phrase) + len(", ") for phrase in phrases)
    fitting = sum(1 for _ in takewhile(lambda end: end - len(", ") <= _MOST_CHARACTERS, ends))
    return ", ".join(phrases[: max(fitting, 1)])[:_MOST_CHARACTERS] + "?"
