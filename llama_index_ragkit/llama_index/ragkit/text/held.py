"""Whether a text holds a name, or prose about it, that a language model says is in it.

A word is held whatever its ending, since endings change with case and number: "Москва" by "в Москве", "서울" by
"서울은", "glassworks" by "glassworkers". In scripts without spaces, pairs of characters are looked for instead.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Generic, TypeVar

from llama_index.ragkit.errors import ParseError
from llama_index.ragkit.text.characters import CASELESS, HANGUL, UNSPACED, normalise
from llama_index.ragkit.text.function_words import FUNCTION_WORDS
from llama_index.ragkit.text.sentences import sentence_spans
from llama_index.ragkit.text.stems import stems

__all__ = ["LEAST_IN_TEXT", "Held", "TextWords", "held", "held_prose", "is_name", "is_self_talk"]

T = TypeVar("T")

_UNSPACED = re.compile(f"[{UNSPACED}]")
_ANYWHERE = re.compile(f"[{CASELESS}]")  # in these scripts articles and prepositions are written before a word
_HANGUL = re.compile(f"[{HANGUL}]")
_GENITIVE = "s"
_WHOLE = 3  # words of up to this many letters must stand in the text unchanged
_SHORT = 5  # words of up to this many letters may differ only in a common ending
_ENDING = re.compile(r"(?<=\w{3})(?:e?s|ed|[aeiouyаеиоуыэюяьй])$")
_MOST_WORDS, _CLAUSE_WORDS = 10, 6  # of a name, and from which on a name with a finite verb is a clause
_FINITE = frozenset(
    ["is", "are", "was", "were", "has", "have", "had", "been", "be", "will", "would", "can", "could", "did", "does"]
)
_LONGEST_TAIL = 40  # letters by which a part of a word is found

LEAST_IN_TEXT = 0.2  # of the words of a summary or report; `python -m benchmarks.held_summaries` measures it

# Beginnings of sentences in which a model speaks of itself or to its user, in the languages that models chat in.
_SELF_TALK = re.compile(
    r"\W*(?:(?:unfortunately|however|but|sure|yes|no|oh|well|hm+)[,!.]*\s+)?(?:"
    r"as an? (?:ai|artificial intelligence|(?:large )?language model|assistant)|"
    r"(?:i['’]m|i am) (?:very |so |really )?(?:sorry|afraid|unable|not able|not sure|just an?|an ai|here to)|"
    r"i (?:apologi[sz]e|cannot|can['’]t|can not|can (?:help|do)|won['’]t|will not|could not|couldn['’]t|"
    r"would rather not|do not|don['’]t|have no|need more|would need)|"
    r"i(?:['’]d| would) (?:be (?:happy|glad)|love|need)|(?:i['’]m|i am) happy|"
    r"(?:sorry|my apologies)[,.!]|please (?:provide|share|give|send|let me|note|tell)|"
    r"(?:the )?(?:passages?|texts?|documents?) (?:is|are|was|were) (?:not (?:provided|given)|missing|empty)|"
    r"you (?:have not|haven['’]t|did not|didn['’]t) (?:provide|give)|there is nothing to summari[sz]e|"
    r"als (?:ki|künstliche intelligenz|sprachmodell)|es tut mir leid|tut mir leid|leider kann ich|"
    r"en tant qu['’](?:ia|intelligence artificielle)|(?:je suis )?désolée?|je ne peux pas|"
    r"como (?:una? )?(?:ia|inteligencia artificial|modelo de lenguaje)|lo siento|no puedo|"
    r"mi dispiace|non posso|sinto muito|desculpe|não posso|к сожалению,? я|извините|как (?:ии|языковая модель)|"
    r"(?:很)?抱歉|对不起|作为(?:一个|一名)?(?:人工智能|ai|语言模型)|我无法|我不能|申し訳|すみません|죄송)",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Held(Generic[T]):
    """What a text holds of the items extracted from it, and how many items were dropped."""

    kept: list[T]
    dropped: int


def held(
    items: Sequence[T],
    share: Callable[[T], float],
    least: float,
    what: str,
    is_sound: Callable[[T], bool] = lambda item: True,
) -> Held[T]:
    """The items of which the text holds at least the share `least`; all sound ones if `least` is 0.

    Parameters
    ----------
    share : returns the share of an item that the text holds, in [0, 1]
    what : the items, in the plural, for messages
    is_sound : whether an item has the form of such an item

    Raises
    ------
    ParseError
        If there are items and none of them is kept.
    """
    sound = [item for item in items if is_sound(item)]
    kept = [item for item in sound if not least or share(item) >= least]
    if items and not sound:
        raise ParseError(f"The reply has no valid {what}; the first is {str(items[0])[:80]!r}.")
    if items and not kept:
        error = ParseError(f"None of the {what} in the reply is in the text; the first is {str(items[0])[:80]!r}.")
        error.hint = f"None of the {what} is in the text."
        raise error
    return Held(kept, len(items) - len(kept))


def is_name(text: str) -> bool:
    """Whether a text can be a name: at most ten words, and no clause.

    >>> is_name("The Lion, the Witch and the Wardrobe"), is_name("A light has been shown from Marl Head since 1768")
    (True, False)
    """
    words = text.split()
    return len(words) <= _MOST_WORDS and (len(words) < _CLAUSE_WORDS or _FINITE.isdisjoint(words))


class TextWords:
    """The words of a text, to ask whether it holds a name.

    >>> words = TextWords("In 1903 Marie Curie went to Stockholm. 鲁迅出生于绍兴。")
    >>> words.share("Marie Skłodowska Curie"), words.share("鲁迅"), words.share("Otto Lindqvist")
    (0.6666666666666666, 1.0, 0.0)
    """

    def __init__(self, text: str) -> None:
        self._text = normalise(text)

    def share(self, name: str) -> float:
        """The share of a name's words, without function words, that the text has, in [0, 1]; 0 if it has no words."""
        words = _words(name)
        return sum(map(self._held, words)) / len(words) if words else 0.0

    def lacking(self, name: str) -> list[str]:
        """The words of a name, without function words, that the text lacks or has only in part.

        >>> TextWords("The lamp burned oil.").lacking("Ada lit the lamp")
        ['ada', 'lit']
        """
        return [word for word in _words(name) if self._held(word) < 1]

    def has_all(self, name: str) -> bool:
        """Whether the text has every meaningful word of the name."""
        words = _words(name)
        return bool(words) and all(self._held(word) == 1 for word in words)

    def has_phrase(self, phrase: str) -> bool:
        """Whether the text has a phrase word for word."""
        return f" {normalise(phrase)} " in f" {self._text} "

    def _held(self, word: str) -> float:
        """1 for a word of the text, else 0; in scripts without spaces the share of its pairs of characters."""
        if _UNSPACED.search(word):
            pairs = {word[i : i + 2] for i in range(len(word) - 1)} or {word}
            return len(pairs & self._pairs) / len(pairs)
        if _HANGUL.search(word):
            return float(_begins(self._words, stems([word], "ko")[0]))
        # Two thirds of a word: endings change with case and number, and in English with the plural.
        begin = word if len(word) <= _WHOLE else word[: max(_WHOLE, -(-2 * len(word) // 3))]
        if _ANYWHERE.search(word):
            return float(_begins(self._tails, begin[:_LONGEST_TAIL]))
        if _WHOLE < len(word) <= _SHORT:  # "boar" is not in a text with "boat"
            begin = _ENDING.sub("", word)
        is_whole = len(word) <= _WHOLE and word.isascii()
        return float(begin in self._distinct if is_whole else _begins(self._words, begin))

    @cached_property
    def _distinct(self) -> frozenset[str]:
        return frozenset(self._text.split())

    @cached_property
    def _words(self) -> list[str]:
        return sorted(self._distinct)

    @cached_property
    def _tails(self) -> list[str]:
        """The ends of all words, from each of their letters on, in ascending order."""
        return sorted({word[i : i + _LONGEST_TAIL] for word in self._distinct for i in range(len(word))})

    @cached_property
    def _pairs(self) -> frozenset[str]:
        """Pairs of neighbouring characters, and single ones."""
        return frozenset(map("".join, pairwise(self._text))) | frozenset(self._text)


def _begins(words: Sequence[str], beginning: str) -> bool:
    """Whether one of the words, which are in ascending order, begins with `beginning`."""
    place = bisect_left(words, beginning)
    return place < len(words) and words[place].startswith(beginning)


def _words(name: str) -> list[str]:
    words = [word for word in normalise(name).split() if word != _GENITIVE]
    return [word for word in words if word not in FUNCTION_WORDS] or words


def held_prose(text: str, words: TextWords, task: TextWords, least: float) -> str:
    """A model's text without sentences about itself and its task, if the texts hold enough of the rest.

    Small models refuse, apologise, and talk about their task, in fluent sentences. A sentence in which the model speaks
    of itself is removed, unless the texts contain its beginning. So is a sentence whose words are all in the task or
    its worked example, if the texts lack some of them.

    Parameters
    ----------
    words : of the texts that the reply is about
    task : the words of the prompt without the texts; they do not show what the reply is about
    least : least share of the reply's words that the texts must hold, in [0, 1]; 0 for no check at all

    Raises
    ------
    ParseError
        If no sentence is left, or the texts hold too few of its words.

    >>> about, task = TextWords("A lamp that burns oil."), TextWords("Summarise the passages.")
    >>> held_prose("Here are the passages. I'm sorry, I cannot say. The lamp burned oil.", about, task, 0.2)
    'The lamp burned oil.'
    """
    if not least:
        return text
    starts = [start for start, _ in sentence_spans(text)]
    sentences = [text[start:end] for start, end in pairwise([*starts, len(text)])]
    kept = [sentence for sentence in sentences if not _is_talk(sentence, words, task)]
    said = text if len(kept) == len(sentences) else "".join(kept).strip()
    if words.share(" ".join(task.lacking(said))) < least and not (said and words.has_all(said)):
        error = ParseError(f"The reply is not about the texts: {text[:80]!r}")
        error.hint = "The answer is not about the texts."
        raise error
    return said


def is_self_talk(sentence: str) -> bool:
    """Whether a model begins to speak of itself or to its user.

    >>> is_self_talk("I'm sorry, but I can't help with that."), is_self_talk("The lamp burned oil.")
    (True, False)
    """
    return _SELF_TALK.match(sentence) is not None


def _is_talk(sentence: str, words: TextWords, task: TextWords) -> bool:
    found = _SELF_TALK.match(sentence)
    if found is not None and not words.has_phrase(found[0]):
        return True
    return not task.lacking(sentence) and bool(words.lacking(sentence))
