"""How much of the evidence a context of a given length holds: the fair measures for segments.

A ranking of segments cannot be judged by places, since a segment may be one chunk or twenty. So the contexts that a
reader gets for the same number of tokens are compared.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Iterable, Sequence

from llama_index.ragkit.errors import ConfigurationError
from llama_index.ragkit.text.characters import UNSPACED, normalise
from llama_index.ragkit.validation import check_count

__all__ = ["evidence_coverage", "page_recall", "within_tokens", "word_coverage"]

_WORD = re.compile(f"[{UNSPACED}]|[^\\s{UNSPACED}]+")


def word_coverage(text: str, context: Iterable[str]) -> float:
    """Share of the words of a text that a context holds, each as often as the text has it, in [0, 1].

    Case and punctuation do not count; in scripts without spaces each character is a word. Order does not count either,
    since each reader of PDF files gives tables in another order.

    Raises
    ------
    ConfigurationError
        If the text has no words.

    >>> word_coverage("Net sales rose; net income fell.", ["Net income", "rose"])
    0.5
    """
    wanted = _words(text)
    if not wanted:
        raise ConfigurationError(f"A text without words cannot be covered: {text[:80]!r}.")
    held: Counter[str] = Counter()
    for part in context:
        held.update(_words(part))
    return (wanted & held).total() / wanted.total()


def evidence_coverage(evidence: Sequence[tuple[Hashable, str]], context: Iterable[tuple[Hashable, str]]) -> float:
    """Share of the words of all evidence that a context holds from the evidence's own places, in [0, 1].

    Without places, chance would matter: eight random pages of an annual report hold two thirds of the words of any
    other page.

    Parameters
    ----------
    evidence : place and text of each piece of evidence; a place is a page or a document
    context : place and text of each part of the context; text from other places counts nothing

    Raises
    ------
    ConfigurationError
        If the evidence has no words.

    >>> evidence_coverage([("p1", "Net sales rose")], [("p1", "net sales"), ("p2", "sales rose")])
    0.6666666666666666
    """
    wanted: dict[Hashable, Counter[str]] = defaultdict(Counter)
    for place, text in evidence:
        wanted[place] |= _words(text)  # pieces of evidence that overlap count once
    total = sum(words.total() for words in wanted.values())
    if not total:
        raise ConfigurationError("The evidence has no words: leave the question out.")
    held: dict[Hashable, Counter[str]] = defaultdict(Counter)
    for place, text in context:
        if place in wanted:
            held[place].update(_words(text))
    return sum((words & held[place]).total() for place, words in wanted.items()) / total


def page_recall(pages: Iterable[Hashable], gold: Collection[Hashable]) -> float:
    """Share of the gold pages from which the context has text, in [0, 1].

    Raises
    ------
    ConfigurationError
        If there are no gold pages.
    """
    if not gold:
        raise ConfigurationError("A question without gold pages cannot be scored: leave it out.")
    return len(set(gold) & set(pages)) / len(set(gold))


def within_tokens(lengths: Iterable[int], budget: int) -> list[int]:
    """Which items of a ranking form a context of at most `budget` tokens; items that do not fit are skipped.

    >>> within_tokens([60, 50, 30], 100)
    [0, 2]
    """
    left = check_count("budget", budget, 0)
    taken = []
    for place, length in enumerate(lengths):
        if length <= left:
            taken.append(place)
            left -= length
    return taken


def _words(text: str) -> Counter[str]:
    return Counter(_WORD.findall(normalise(text)))
