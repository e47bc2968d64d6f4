"""Key phrases of a text in any script, without a model: names and repeated phrases.

Candidates are runs of up to four words, or of up to eight characters in scripts without spaces, that do not begin or
end with a function word: a word of at most three lower-case letters, a function word of the language of the text, or a
word of a short English list. A run counts if it occurs twice, or is capitalised like a name. Of nested runs that occur
equally often, the longest is kept. Interjections, words of code and abbreviated titles ("Mrs") are not phrases. The
weight is the number of occurrences times the logarithm of the length.

This is implemented here because the maintained libraries have a copyleft licence, download word lists, or do not
support Chinese.
"""

import re
from collections import Counter
from collections.abc import Set
from math import log

from llama_index.ragkit.text.characters import MARKS, UNSPACED
from llama_index.ragkit.text.function_words import function_words, is_filler, written_language
from llama_index.ragkit.text.names import ABBREVIATED

__all__ = ["key_phrases"]

# Function characters of Chinese and Japanese; a phrase does not extend across them.
_JOINING = "的了在是和与及对为将从被把也都就而或其这那有等于以并中上下不个一二三年月日时の、はがをにでともへや"
_JOINT = re.compile(f"[{_JOINING}]")
_WIDE_RUN = re.compile(f"[{UNSPACED}]+")
_LETTERS = f"(?:[^\\W{UNSPACED}]|[{MARKS}])+"
_WORD = f"{_LETTERS}(?:['’.-]{_LETTERS})*"
_SEGMENT = re.compile(f"{_WORD}(?: {_WORD})*")
_MOST_WORDS, _MOST_CHARACTERS, _LONGEST = 4, 8, 20_000
_MOST_CANDIDATES = 300  # to compare pairwise, which is the only quadratic step
_ENGLISH = """
a about above according after again against all along also although among an and another any are around as at be
because been before being below between both but by came can come could did do does doing done down during each
either even ever every few first for from further gave get give given goes going gone had has have having he her
here hers herself him himself his how however i if in into is it its itself just keep kept known last later
least less like made make many may me might more most much must my never next no nor not now of off often on
once one only onto or other others our ours out over own quite rather said same saw second see seen several
shall she should since so some soon still such take taken than that the their theirs them then there these they
this those though three through thus to together told too took toward two under until up upon us used using very
was we well went were what when where whether which while who whole whom whose why will with within without
would yet you your yours
"""
_FUNCTION_WORDS = frozenset(_ENGLISH.split())
_TITLES = frozenset(map(str.casefold, ABBREVIATED))


def key_phrases(text: str, count: int) -> list[str]:
    """The `count` phrases with the greatest weight, best first, spelled as in their first occurrence.

    Parameters
    ----------
    text : only its first 20,000 characters are used
    count : largest number of phrases; a text may have fewer, or none

    >>> key_phrases("Ada Byron met Babbage. Later Ada Byron wrote of the Analytical Engine.", 2)
    ['Ada Byron', 'Analytical Engine']
    """
    seen: Counter[str] = Counter()
    written: dict[str, str] = {}
    named: set[str] = set()
    text = text[:_LONGEST]
    small = _FUNCTION_WORDS | function_words(written_language(text))
    for segment in _SEGMENT.finditer(text):
        words = segment.group().split(" ")
        begins = _begins_sentence(text, segment.start())
        for i in range(len(words)):
            for j in range(i + 1, min(i + _MOST_WORDS, len(words)) + 1):
                run = words[i:j]
                if not (_has_content(run[0], small) and _has_content(run[-1], small)):
                    continue
                key = " ".join(run).casefold()
                seen[key] += 1
                written.setdefault(key, " ".join(run))
                if all(word[0].isupper() for word in run) and not (begins and i == 0 and len(run) == 1):
                    named.add(key)
    for match in _WIDE_RUN.finditer(text):
        for run_ in _JOINT.split(match.group()):
            for i in range(len(run_)):
                for j in range(i + 2, min(i + _MOST_CHARACTERS, len(run_)) + 1):
                    seen[run_[i:j]] += 1
                    written.setdefault(run_[i:j], run_[i:j])
    place = {key: i for i, key in enumerate(written)}

    def rank(key: str) -> tuple[float, int]:
        return -seen[key] * log(1 + _length(key)), place[key]

    said = (key for key, times in seen.items() if times > 1 or key in named)
    candidates = sorted((key for key in said if _is_about_something(key)), key=rank)
    whole: list[str] = []
    for key in sorted(candidates[:_MOST_CANDIDATES], key=lambda key: (-len(key), key)):
        if not any(key in longer and seen[longer] >= seen[key] for longer in whole):
            whole.append(key)
    whole.sort(key=rank)
    chosen: list[str] = []
    for key in whole:  # skip parts of phrases that are already chosen
        if not any(key in other or other in key for other in chosen):
            chosen.append(key)
        if len(chosen) == count:
            break
    return [written[key] for key in chosen]


def _has_content(word: str, small: Set[str]) -> bool:
    """Whether a word can begin or end a phrase."""
    return word.casefold() not in small and (len(word) > 3 or word[0].isupper() or word[0].isdigit())


def _is_about_something(key: str) -> bool:
    return any(map(str.isalpha, key)) and not all(is_filler(word) or word in _TITLES for word in key.split())


def _begins_sentence(text: str, start: int) -> bool:
    before = text[:start].rstrip()[-1:]
    return before == "" or before in '.!?…"”:\n'


def _length(phrase: str) -> int:
    """The number of letters; letters of wide scripts count double."""
    return sum(2 if _WIDE_RUN.match(character) else 1 for character in phrase)
