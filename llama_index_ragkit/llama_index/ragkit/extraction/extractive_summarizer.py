"""`ExtractiveSummarizer`: summaries of representative sentences, without an LLM."""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import fsum, sqrt
from typing import Any, ClassVar

from llama_index.ragkit.extraction.sentence_selection import check_selection, select_sentences, word_vectors
from llama_index.ragkit.extraction.summarizers import Summarizer
from llama_index.ragkit.steps import Steps, offload
from llama_index.ragkit.text.sentences import sentence_spans
from llama_index.ragkit.text.statements import is_statement, sentences_of_prose
from llama_index.ragkit.text.tokens import count_tokens
from llama_index.ragkit.validation import check_count

__all__ = ["ExtractiveSummarizer"]

_WORD, _CHARACTER = re.compile(r"\S+"), re.compile(r"\S")


class ExtractiveSummarizer(Summarizer):
    """Selects sentences that are central among all sentences and do not repeat each other.

    Sentences are selected by :func:`~llama_index.ragkit.extraction.sentence_selection.select_sentences`; its module
    gives the formula, its source and the deviations. Sentences are compared by their words, so that a summary embeds
    nothing.

    Sentences come from the prose of a text, with the heading above them. Code, Markdown marks, fragments that are not
    statements, and the header and footer of a browser are left out, unless there is nothing else. A sentence is
    weighted by its length in tokens, so that fragments count less than statements, divided by the square root of the
    length of its text, so that long texts do not dominate. Sentences that differ only in white space count as one. If
    there are more than 1,000, only the 1,000 most central are considered. The summary lists the selected sentences in
    the order of the texts. It is deterministic, and the order of the texts affects only the order of the sentences.

    Parameters
    ----------
    max_sentences : maximum number of sentences; None for as many as fit the token limit
    redundancy : in [0, 1], how strongly content that is already covered is discounted: 1 is facility location, 0 ranks
        by centrality alone
    language : ISO 639-1 code for the sentence rules; None to choose by the script of each text

    Raises
    ------
    ConfigurationError
        If a parameter is out of range.
    """

    needs_llm: ClassVar[bool] = False

    def __init__(self, max_sentences: int | None = None, redundancy: float = 1.0, language: str | None = None) -> None:
        check_selection(max_sentences, redundancy)
        self._max_sentences = max_sentences
        self._redundancy = float(redundancy)
        self._language = language

    @property
    def fingerprint(self) -> dict[str, str]:
        """The parameters that determine the summaries; later writes to an index must have the same."""
        return {
            "class": type(self).__name__,
            "version": "2",
            "max_sentences": str(self._max_sentences),
            "redundancy": repr(self._redundancy),
            "language": str(self._language),
        }

    def summarize(self, texts: Sequence[str], *, max_tokens: int, **others: Any) -> Steps[tuple[str, list[str]]]:
        """Summarise texts in at most `max_tokens` tokens (by the tokenizer of `Settings`).

        No model is called: the `others`, such as `embed_model` and `llm`, are not used.

        Returns
        -------
        summary : at least one sentence, cut at a word if not even one fits; "" if the texts are empty
        cache_keys : none
        """
        check_count("max_tokens", max_tokens, 1)
        return (yield from offload(self._summary, texts, max_tokens)), []

    def _summary(self, texts: Sequence[str], max_tokens: int) -> str:
        split = _split(texts, self._language)
        places: dict[str, tuple[int, int]] = {}  # position of the first occurrence
        for i, text in enumerate(split):
            for j, sentence in enumerate(text):
                places.setdefault(sentence, (i, j))
        sentences = sorted(places)  # so that sums over sentences do not depend on the order of the texts
        if not sentences:
            return ""
        costs = {sentence: max(1, count_tokens(" " + sentence)) for sentence in sentences}
        weights = _weights(split, costs)
        chosen = select_sentences(
            word_vectors(sentences, self._language),
            [costs[sentence] for sentence in sentences],
            max_tokens,
            weights=[weights[sentence] for sentence in sentences],
            redundancy=self._redundancy,
            max_sentences=self._max_sentences,
        )
        picked = [sentences[i] for i in chosen]
        while count_tokens(summary := _join(sorted(picked, key=places.__getitem__))) > max_tokens:
            if len(picked) == 1:
                return _cut(summary, max_tokens)
            picked.pop()  # token counts are not additive
        return summary


def _split(texts: Sequence[str], language: str | None) -> list[list[str]]:
    """The distinct statements in the prose of every text, in order, each on one line.

    If there are none, all sentences of the prose; else all sentences with a letter or digit; else all sentences.
    """
    prose = [sentences_of_prose(text, language) for text in texts]
    split = [[sentence for sentence in text if is_statement(sentence)] for text in prose]
    if not any(split):
        split = prose
    if not any(split):
        plain = [[" ".join(text[a:b].split()) for a, b in sentence_spans(text, language)] for text in texts]
        telling = [[sentence for sentence in text if any(map(str.isalnum, sentence))] for text in plain]
        split = telling if any(telling) else plain
    return [list(dict.fromkeys(text)) for text in split]


def _weights(split: Sequence[Sequence[str]], costs: Mapping[str, int]) -> dict[str, float]:
    """The weight of every sentence: ``tokens / sqrt(tokens of its text)``, summed over its texts."""
    shares: dict[str, list[float]] = {}
    for text in split:
        length = sum(costs[sentence] for sentence in text)
        for sentence in text:
            shares.setdefault(sentence, []).append(costs[sentence] / sqrt(length))
    return {sentence: fsum(parts) for sentence, parts in shares.items()}  # fsum: the same in any order


def _join(sentences: Sequence[str]) -> str:
    """One text; without a space between sentences of full-width scripts."""
    parts = list(sentences[:1])
    for before, after in pairwise(sentences):
        wide = all(unicodedata.east_asian_width(c) in "WF" for c in (before[-1], after[0]))
        parts.append(after if wide else " " + after)
    return "".join(parts)


def _cut(text: str, max_tokens: int) -> str:
    """The longest prefix that fits, of a text that does not: of whole words, else of characters."""
    for pattern in (_WORD, _CHARACTER):
        ends = [match.end() for match in pattern.finditer(text)]
        fitting = bisect_right(ends, max_tokens, key=lambda end: count_tokens(text[:end]))
        if fitting:
            return text[: ends[fitting - 1]]
    return text[:1]
