"""The words that set a document apart from the other documents of a corpus, by counts that grow with it."""

import math
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping

from llama_index.ragkit.text.characters import MARKS, UNSPACED
from llama_index.ragkit.text.function_words import FUNCTION_WORDS

__all__ = ["CorpusTerms", "group_names", "salient_terms", "telling_terms", "term_counts"]

# A year; or letters, marks and digits with a letter among them, so that "3M" is a word and "10" is not.
_YEAR = re.compile(r"(?:19|20)\d\d")
_WORD = re.compile(rf"(?:[^\W_{UNSPACED}]|[{MARKS}])+|[{UNSPACED}]+")
_UNSPACED = re.compile(f"[{UNSPACED}]")
# English words besides function words that say nothing about a group: pronouns, adverbs, titles, units, numbers, and
# common verbs.
_EMPTY_TEXT = """
me him us them mine ours yours theirs himself herself itself themselves mr mrs miss ms dr sir st rev
nor neither either own same other others any another whole else such
out off up down away back again very too only just even still yet ever never now quite rather well far much more less
being having said say says saying told asked went gone goes came come made make put got get took taken saw seen done
gave given found kept held left
oz lb lbs cwt ft yd cm mm km kg
three four five six seven eight nine ten dozen hundred thousand first last next second third fourth fifth every once
"""
_EMPTY = FUNCTION_WORDS.union(_EMPTY_TEXT.split())
_LEAST = 3  # times that a document must have a term; once or twice may be chance


def term_counts(text: str) -> Counter[str]:
    """How often a text has each term: words without case, years, and pairs of characters of scripts without spaces.

    >>> sorted(term_counts("The 3M Company in 2018: $ 10, 东京都").items())
    [('2018', 1), ('3m', 1), ('company', 1), ('东京', 1), ('京都', 1)]
    """
    return Counter(telling_terms(Counter(word.casefold() for word in _words(text))))


def _words(text: str) -> Iterator[str]:
    """Words as they are written, and pairs of characters of scripts without spaces."""
    for match in _WORD.finditer(text):
        word = match.group()
        if _UNSPACED.match(word):
            yield from (word[i : i + 2] for i in range(len(word) - 1))
        else:
            yield word


def telling_terms(counts: Mapping[str, int]) -> dict[str, int]:
    """The counted terms that may tell documents apart: no function words, single letters, or numbers other than years.

    >>> telling_terms({"the": 3, "x": 1, "10": 2, "2018": 1, "tea": 2})
    {'2018': 1, 'tea': 2}
    """
    return {
        word: count
        for word, count in counts.items()
        if len(word) > 1 and word not in FUNCTION_WORDS and (not word.isdigit() or _YEAR.fullmatch(word))
    }


class CorpusTerms:
    """How often all documents of a corpus together have each term; documents come and go.

    Parameters
    ----------
    counts : the initial counts of terms
    total : the initial number of terms in the whole corpus, if `counts` has only a part of them
    """

    def __init__(self, counts: Mapping[str, int] | None = None, total: int | None = None) -> None:
        self._counts: Counter[str] = Counter(counts)
        self._total = self._counts.total() if total is None else total

    @property
    def total(self) -> int:
        """Terms of the whole corpus."""
        return self._total

    def __getitem__(self, term: str) -> int:
        return self._counts[term]

    def add(self, document: Mapping[str, int]) -> None:
        """Count a document."""
        self._counts.update(document)
        self._total += sum(document.values())

    def remove(self, document: Mapping[str, int]) -> None:
        """Remove a document that was counted, so that nothing of it remains."""
        for term, count in document.items():
            self._counts[term] -= count
            if self._counts[term] <= 0:
                del self._counts[term]
        self._total -= sum(document.values())


def salient_terms(document: Mapping[str, int], corpus: CorpusTerms, limit: int) -> list[str]:
    """The terms that a document has more often than the rest of its corpus, by the log-likelihood ratio.

    A term has the count a in the document and b in the rest, and would have A and B if it were
    spread evenly: ``G2 = 2 (a log(a / A) + b log(b / B))`` (Dunning 1993, Computational Linguistics 19(1)). In a corpus
    of a single document no term is salient.

    Returns
    -------
    At most `limit` terms, most salient first; equal ones in the order of code points.
    """
    return _best(_salience(document, corpus))[:limit]


def _salience(document: Mapping[str, int], corpus: CorpusTerms) -> dict[str, float]:
    """The salient terms of a document, whose counts are part of the corpus, with half their G2."""
    size = sum(document.values())
    rest = corpus.total - size
    found: dict[str, float] = {}
    for term, count in document.items() if rest > 0 else ():
        elsewhere = corpus[term] - count
        here, there = (part * (count + elsewhere) / corpus.total for part in (size, rest))
        if count >= _LEAST and count > here:
            lacking = elsewhere * math.log(elsewhere / there) if elsewhere > 0 else 0.0
            found[term] = count * math.log(count / here) + lacking
    return found


def _best(scores: Mapping[str, float]) -> list[str]:
    """Terms, best first; equal ones in the order of code points."""
    return sorted(scores, key=lambda term: (-scores[term], term))


def group_names(groups: Mapping[str, Collection[str]], texts: Mapping[str, str], terms: int = 3) -> dict[str, str]:
    """Names for groups of texts: the most salient terms of each group against all texts, as the group writes them.

    A term weighs more the fewer groups have it. If groups have the same name nevertheless, the name of each begins with
    a word or number that the others lack, such as a year. A term that mostly stands beside one other word is named with
    it, as in "Ellis Grigg".

    Parameters
    ----------
    groups : the ids of the texts of each group; if a group's texts are all alike, or too few, it gets no name
    texts : all texts by id
    terms : maximum number of terms in a name
    """
    corpus = CorpusTerms()
    counts = {name: term_counts(text) for name, text in texts.items()}
    for found in counts.values():
        corpus.add(found)
    own: dict[str, Counter[str]] = {group: Counter() for group in groups}
    for group, members in groups.items():
        for name in members:
            own[group].update(counts.get(name, {}))
    having = Counter(term for found in own.values() for term in found)
    phrases = {}
    for group, members in groups.items():
        scores = {
            term: score * math.log(1 + len(groups) / having[term])
            for term, score in _salience(own[group], corpus).items()
            if term not in _EMPTY
        }
        written = _as_written(_best(scores)[: 3 * terms], [texts[name] for name in members if name in texts])
        phrases[group] = _apart(written)[:terms]
    alike: dict[tuple[str, ...], list[str]] = {}
    for group, written in phrases.items():
        alike.setdefault(tuple(written), []).append(group)
    for shared, same in alike.items():
        if shared and len(same) > 1:
            for group, first in _only_there({group: groups[group] for group in same}, texts).items():
                phrases[group] = [first, *shared][:terms]
    return {group: ", ".join(written) for group, written in phrases.items() if written}


def _only_there(groups: Mapping[str, Collection[str]], texts: Mapping[str, str]) -> dict[str, str]:
    """The commonest word or number of each group that no other group has, if there is one."""
    words: dict[str, Counter[str]] = {}
    for group, members in groups.items():
        found = (word for name in members for word in _words(texts.get(name, "")))
        words[group] = Counter(word for word in found if len(word) > 1 and word.casefold() not in _EMPTY)
    having = Counter(word for found in words.values() for word in found)
    only = {group: [word for word in found if having[word] == 1] for group, found in words.items()}
    return {group: max(found, key=words[group].__getitem__) for group, found in only.items() if found}


def _as_written(terms: Collection[str], texts: Collection[str]) -> list[str]:
    """Terms as texts spell them most often, so that names keep their capitals, with the word that mostly is beside."""
    spelled = {term: Counter({term: 0}) for term in terms}
    beside: dict[str, Counter[str]] = {term: Counter() for term in terms}
    for text in texts:
        words = list(_WORD.finditer(text))
        for i, word in enumerate(words):
            term = word.group().casefold()
            if term in spelled:
                spelled[term][word.group()] += 1
                pairs = (words[j : j + 2] for j in (i - 1, i) if 0 <= j < len(words) - 1)
                beside[term].update(text[a.start() : b.end()] for a, b in pairs if _is_phrase(text, a, b))
    written = []
    for term in terms:
        phrase, times = min(beside[term].items(), key=lambda item: (-item[1], item[0]), default=("", 0))
        often = 2 * times > spelled[term].total()
        written.append(phrase if often else min(spelled[term], key=lambda word: (-spelled[term][word], word)))
    return written


def _is_phrase(text: str, a: re.Match[str], b: re.Match[str]) -> bool:
    words = (a.group().casefold(), b.group().casefold())
    return text[a.end() : b.start()] == " " and len(telling_terms(dict.fromkeys(words, 1)).keys() - _EMPTY) == len(
        words
    )


def _apart(phrases: Collection[str]) -> list[str]:
    """The phrases that share no word with an earlier one."""
    kept: dict[str, set[str]] = {}
    for phrase in phrases:
        words = set(phrase.casefold().split())
        if all(words.isdisjoint(earlier) for earlier in kept.values()):
            kept[phrase] = words
    return list(kept)
