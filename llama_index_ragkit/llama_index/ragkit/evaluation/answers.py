"""Answer metrics: exact match and token F1, in any script.

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
from collections.abc import Iterable

from llama_index.ragkit.errors import ConfigurationError
from llama_index.ragkit.text.composition import nfkc
from llama_index.ragkit.text.scripts import UNSPACED

__all__ = ["answer_f1", "answer_list", "answer_tokens", "exact_match"]

_ARTICLES = frozenset({"a", "an", "the"})
_TOKEN = re.compile(rf"[{UNSPACED}]|[^{UNSPACED}\s]+")


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
