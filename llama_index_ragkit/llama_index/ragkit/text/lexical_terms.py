"""The terms by which texts are searched: words, and in scripts without spaces characters and pairs of them."""

import re
from collections import Counter

from llama_index.ragkit.text.characters import UNSPACED, normalise, without_unprinted
from llama_index.ragkit.text.function_words import FUNCTION_WORDS, function_words, written_language

__all__ = ["lexical_terms", "question_terms"]

_RUN = re.compile(f"[{UNSPACED}]+|[^\\s{UNSPACED}]+")
_UNSPACED = re.compile(f"[{UNSPACED}]")
_HYPHEN_AT_END = re.compile(r"[-‐][ \t\r]*\n")
_LETTER = f"[^\\W\\d_{UNSPACED}]"
# Tried only at the starts of words: at every letter of a long run it would take quadratic time.
_HYPHENATED = re.compile(f"(?<!{_LETTER})({_LETTER}{{2,}}){_HYPHEN_AT_END.pattern}[ \\t]*({_LETTER}{{2,}})")


def lexical_terms(text: str) -> Counter[str]:
    """How often a text has each term. Terms are words without case and punctuation, not stemmed; in scripts without
    spaces, characters and pairs of neighbouring ones.

    A word that is hyphenated at the end of a line counts both whole and in parts, since the hyphen may be its own.

    >>> sorted(lexical_terms("Net income: 3M's net. 东京都").items())
    [('3m', 1), ('income', 1), ('net', 2), ('s', 1), ('东', 1), ('东京', 1), ('京', 1), ('京都', 1), ('都', 1)]
    """
    text = without_unprinted(text)
    counts: Counter[str] = Counter()
    if _HYPHEN_AT_END.search(text):
        counts.update(normalise(first + last) for first, last in _HYPHENATED.findall(text))
    text = normalise(text)
    if text.isascii() or not _UNSPACED.search(text):
        counts.update(text.split())
        return counts
    for run in _RUN.findall(text):
        if _UNSPACED.match(run):
            counts.update(run)
            counts.update(run[i : i + 2] for i in range(len(run) - 1))
        else:
            counts[run] += 1
    return counts


def question_terms(question: str) -> tuple[Counter[str], str]:
    """The terms of a question, and the language in which to stem them.

    Function words of that language are left out, unless the question consists of them.

    >>> question_terms("Who wrote the Odyssey?")
    (Counter({'wrote': 1, 'odyssey': 1}), 'en')
    """
    language = written_language(question)
    terms = lexical_terms(question)
    small = function_words(language)
    telling = {term: times for term, times in terms.items() if term not in small and term not in FUNCTION_WORDS}
    return Counter(telling) or terms, language
