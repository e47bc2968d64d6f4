"""Answer metrics: exact match and token F1 in any script, whether a context holds an answer, and citations.

The procedure is that of SQuAD (Rajpurkar et al. 2016, section 6.1): lower case, no punctuation, no English
articles, words split at spaces; of several correct answers the best match counts. Beyond SQuAD:

- Unicode: compatibility forms and case are folded (NFKC, casefold), and punctuation, symbols and invisible
  format characters of every script are removed, not only those of ASCII.
- In scripts that put no space between words (Chinese, Japanese, Thai, Lao, Khmer, Burmese, Tibetan) every
  character is a token, with the marks that combine with it; otherwise a phrase could only be right or wrong as a whole.
- An answer that would become empty (such as "+" or "The") keeps its folded text, so that two different answers of that
  kind are not equal.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Sequence
from functools import lru_cache

from llama_index.ragkit.errors import ConfigurationError
from llama_index.ragkit.text.characters import UNSPACED, nfkc

__all__ = [
    "answer_containment",
    "answer_f1",
    "answer_list",
    "answer_recall",
    "answer_tokens",
    "can_be_contained",
    "citation_precision",
    "citation_recall",
    "cited_places",
    "exact_match",
    "without_citations",
]

_ARTICLES = frozenset({"a", "an", "the"})
_TOKEN = re.compile(rf"[{UNSPACED}]|[^{UNSPACED}\s]+")

_VERDICTS = ({"yes"}, {"no"})
_CITATION = re.compile(r"[\[【]\s*(\d+(?:\s*[,;、]\s*\d+)*)\s*[\]】]")
_NUMBER = re.compile(r"\d+")


def answer_tokens(text: str) -> list[str]:
    """The tokens of an answer, as the module docstring describes.

    >>> answer_tokens("The  U.S. Congress!")
    ['us', 'congress']
    >>> answer_tokens("東京 Tower")
    ['東', '京', 'tower']
    """
    folded = nfkc(nfkc(text).casefold())
    kept = "".join(c for c in folded if unicodedata.category(c)[0] not in "PS" and unicodedata.category(c) != "Cf")
    tokens = [token for token in _tokens(kept) if token not in _ARTICLES]
    return tokens or _tokens(folded)


def _tokens(text: str) -> list[str]:
    spans: list[list[int]] = []
    for match in _TOKEN.finditer(text):
        start, end = match.span()
        if spans and spans[-1][1] == start and unicodedata.category(text[start])[0] == "M":
            spans[-1][1] = end
        else:
            spans.append([start, end])
    return [text[start:end] for start, end in spans]


def exact_match(prediction: str, answers: str | Iterable[str]) -> float:
    """1.0 if the prediction has the same tokens in the same order as one of the correct answers, else 0.0."""
    predicted = answer_tokens(prediction)
    return float(any(predicted == answer_tokens(answer) for answer in answer_list(answers)))


def answer_f1(prediction: str, answers: str | Iterable[str]) -> float:
    """Harmonic mean of precision and recall over the tokens (with repetition), the best over the correct answers."""
    predicted = answer_tokens(prediction)
    return max(_f1(predicted, answer_tokens(answer)) for answer in answer_list(answers))


def _f1(predicted: list[str], right: list[str]) -> float:
    if not predicted or not right:
        return float(predicted == right)
    common = sum((Counter(predicted) & Counter(right)).values())
    return 2 * common / (len(predicted) + len(right))


def answer_list(answers: str | Iterable[str]) -> list[str]:
    """The correct answers; a single one may be given as a text. No answer at all is an error."""
    listed = [answers] if isinstance(answers, str) else list(answers)
    if not listed:
        raise ConfigurationError("There is no correct answer to compare with: answers is empty.")
    return listed


def answer_containment(context: str | Sequence[str], answers: str | Iterable[str]) -> float:
    """1.0 if the context contains the tokens of one of the correct answers, in order and without gaps, else 0.0.

    Both are normalised as for :func:`exact_match`, so that neither case nor punctuation matters. A reader that only
    copies from its context cannot have a greater share of exact matches than this.

    Parameters
    ----------
    context : a text, or its passages, one of which must hold the answer
    answers : one or several correct answers

    >>> answer_containment("She was born in Port Ellis, by the sea.", ["port ellis", "Ellis"])
    1.0
    """
    held = [_joined(_known_tokens(passage)) for passage in _passages(context)]
    wanted = [_joined(_known_tokens(answer)) for answer in answer_list(answers)]
    return float(any(answer in passage for passage in held for answer in wanted))


def answer_recall(context: str | Sequence[str], answers: str | Iterable[str]) -> float:
    """Share of the tokens of an answer that the context has (with repetition), the best over the correct answers.

    For answers that are sentences, since no context has all of their words in a row.
    """
    held = Counter(token for passage in _passages(context) for token in _known_tokens(passage))
    return max(_share(Counter(_known_tokens(answer)), held) for answer in answer_list(answers))


def can_be_contained(answers: Sequence[str]) -> bool:
    """Whether a context can show an answer: not if it is "yes" or "no", which occur in any text."""
    return not all(set(answer_tokens(answer)) in _VERDICTS for answer in answers)


@lru_cache(maxsize=10_000)  # the passages of one corpus occur in many contexts
def _known_tokens(text: str) -> tuple[str, ...]:
    return tuple(answer_tokens(text))


def _passages(context: str | Sequence[str]) -> Sequence[str]:
    return [context] if isinstance(context, str) else context


def _joined(tokens: Sequence[str]) -> str:
    """Tokens as one text. They contain no space, so one list contains another if and only if its text does."""
    return f" {' '.join(tokens)} "


def _share(wanted: Counter[str], held: Counter[str]) -> float:
    return sum((wanted & held).values()) / wanted.total() if wanted else 1.0


def cited_places(answer: str, count: int) -> tuple[int, ...]:
    """Places, from 0, of the passages that an answer cites as `[1]`, `[2, 3]`; each once, in the order of the answer.

    Numbers beyond `count`, the number of passages, cite nothing.

    >>> cited_places("Oil [2], then coal [1, 2][9].", 3)
    (1, 0)
    """
    numbers = (int(number) for group in _CITATION.findall(answer) for number in _NUMBER.findall(group))
    return tuple(dict.fromkeys(number - 1 for number in numbers if 1 <= number <= count))


def without_citations(answer: str) -> str:
    """The answer without its citations.

    >>> without_citations("Oil [2], then coal [1, 2].")
    'Oil, then coal.'
    """
    return "".join(part.rstrip() for part in _CITATION.sub("\0", answer).split("\0")).strip()


def citation_precision(cited: Collection[Hashable], gold: Collection[Hashable]) -> float:
    """Share of the cited passages that are gold; 0.0 if nothing is cited."""
    return len(set(cited) & _gold(gold)) / len(set(cited)) if cited else 0.0


def citation_recall(cited: Collection[Hashable], gold: Collection[Hashable]) -> float:
    """Share of the gold passages that are cited."""
    return len(set(cited) & _gold(gold)) / len(_gold(gold))


def _gold(gold: Collection[Hashable]) -> set[Hashable]:
    if not gold:
        raise ConfigurationError("gold is empty: citations can only be scored if it is known what to cite.")
    return set(gold)
