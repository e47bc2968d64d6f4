"""Whether a context holds the answer: a bound on what a reader can find in it, without a language model."""

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache

from llama_index.ragkit.evaluation.answers import answer_list, answer_tokens

__all__ = ["answer_containment", "answer_recall", "can_be_contained"]

_VERDICTS = ({"yes"}, {"no"})


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
    held = [_joined(_tokens(passage)) for passage in _passages(context)]
    wanted = [_joined(_tokens(answer)) for answer in answer_list(answers)]
    return float(any(answer in passage for passage in held for answer in wanted))


def answer_recall(context: str | Sequence[str], answers: str | Iterable[str]) -> float:
    """Share of the tokens of an answer that the context has (with repetition), the best over the correct answers.

    For answers that are sentences, since no context has all of their words in a row.
    """
    held = Counter(token for passage in _passages(context) for token in _tokens(passage))
    return max(_share(Counter(_tokens(answer)), held) for answer in answer_list(answers))


def can_be_contained(answers: Sequence[str]) -> bool:
    """Whether a context can show an answer: not if it is "yes" or "no", which occur in any text."""
    return not all(set(answer_tokens(answer)) in _VERDICTS for answer in answers)


@lru_cache(maxsize=10_000)  # the passages of one corpus occur in many contexts
def _tokens(text: str) -> tuple[str, ...]:
    return tuple(answer_tokens(text))


def _passages(context: str | Sequence[str]) -> Sequence[str]:
    return [context] if isinstance(context, str) else context


def _joined(tokens: Sequence[str]) -> str:
    """Tokens as one text. They contain no space, so one list contains another if and only if its text does."""
    return f" {' '.join(tokens)} "


def _share(wanted: Counter[str], held: Counter[str]) -> float:
    return sum((wanted & held).values()) / wanted.total() if wanted else 1.0
