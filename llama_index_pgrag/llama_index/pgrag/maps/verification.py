"""Verification of statements against their text (Eq. 3: a semantic and a lexical score, each above a threshold).

The lexical score is the F-measure of ROUGE-L from `rouge-score`, over words, and over single characters in scripts
without spaces. The semantic score is the cosine of the embeddings of text and statements, as in the published code, or
BERTScore, as in the paper. The ROUGE-L threshold is 0.75 in the paper (appendix C) and 0.15 in the published code. If
statements are r times shorter than the text, they score at most 2 / (1 + r), which is 0.55 at the paper's own
compression ratio of 2.64.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from llama_index.ragkit.errors import ConfigurationError
from llama_index.ragkit.text.characters import UNSPACED

__all__ = ["Check", "Scorer", "bert_scores", "lexical_tokens", "rouge_l"]

_TOKEN = re.compile(f"[{UNSPACED}]|[^\\W_]+")
_MOST_TOKENS = 4_000


@dataclass(frozen=True)
class Check:
    """How well statements match their text."""

    rouge_l: float  # F-measure of ROUGE-L, in [0, 1]
    semantic: float | None  # cosine of the embeddings, or BERTScore, in [-1, 1]; None if it was not computed
    passed: bool  # whether both reach their thresholds

    @property
    def rank(self) -> tuple[bool, float]:
        """Sort key for the best of several attempts: passed, then the sum of the scores."""
        return self.passed, self.rouge_l + (self.semantic or 0.0)


class _Tokenizer:
    """A tokenizer for `rouge-score`, whose own tokenizer keeps only ASCII."""

    def tokenize(self, text: str) -> list[str]:
        return lexical_tokens(text)[:_MOST_TOKENS]


def lexical_tokens(text: str) -> list[str]:
    """Case-folded words, and single characters of scripts without spaces.

    >>> lexical_tokens("The Lamp, 灯塔.")
    ['the', 'lamp', '灯', '塔']
    """
    return _TOKEN.findall(text.casefold())


def rouge_l(reference: str, text: str) -> float:
    """F-measure of ROUGE-L (Lin 2004), in [0, 1]; 0 if either text has no word.

    Every word of one text is compared with every word of the other, so only the first 4,000 words of each count.
    """
    # Deferred: it imports NLTK, which imports scikit-learn and pandas if installed; this takes seconds.
    from rouge_score import rouge_scorer  # type: ignore[import-untyped]

    scorer = rouge_scorer.RougeScorer(["rougeL"], tokenizer=_Tokenizer())
    return float(scorer.score(reference, text)["rougeL"].fmeasure)


@runtime_checkable
class Scorer(Protocol):
    """The interface of `bert_score.BERTScorer`."""

    def score(self, cands: list[str], refs: list[str]) -> Sequence[Any]:
        """Precision, recall and F1, each with one value per pair."""


def bert_scores(references: Sequence[str], texts: Sequence[str], scorer: Scorer) -> list[float]:
    """F1 of BERTScore for each pair.

    Parameters
    ----------
    scorer : for example `bert_score.BERTScorer(model_type=..., num_layers=...)`, with a model of your choice
    """
    if len(references) != len(texts):
        raise ConfigurationError(f"There are {len(references)} references for {len(texts)} texts.")
    if not texts:
        return []
    return [float(value) for value in scorer.score(list(texts), list(references))[2]]
