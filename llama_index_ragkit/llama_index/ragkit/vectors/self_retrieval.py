"""How much better words find a corpus's own texts than cosines do: self-retrieval, which needs no labels.

A sentence is taken out of its text, and looks for the rest of it among all texts: once by cosine, once by BM25. This is
the inverse cloze task (Lee, Chang and Toutanova 2019, "Latent Retrieval for Weakly Supervised Open Domain Question
Answering", ACL, section 4), asked of a model as it is instead of training one. At most 1,000 texts count, and one of
eight gives a sentence. With the mean reciprocal ranks (MRR) of the m sentences,

    s = log(MRR of BM25 / MRR of cosine)
    a = sign(s) max(0, abs(s) - 2 e)

where e is the standard error of the logarithm: the standard deviation of 1/r_BM25 / MRR_BM25 - 1/r_cosine / MRR_cosine
over the sentences, divided by sqrt(m). So a is the end of a 95 % interval that is nearer to 0. It is between -.1 and 0
for a good model of sentences on prose, up to .2 for a static model, and about 1 for a model that does not know the
language.

Where words find few of the sentences, the task says nothing, and a is 0: those of chats and contracts have little to do
with the rest of their text (MRR of BM25 .12 to .17; of code and encyclopedias .5 to .75). A text that repeats the
sentence, as overlapping chunks do, is no rival.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from llama_index.ragkit.text.lexical_index import LexicalIndex, lexical_terms
from llama_index.ragkit.text.sentences import split_sentences

__all__ = ["FEWEST_SENTENCES", "TEXTS", "Cloze", "can_measure", "cloze", "word_advantage"]

TEXTS = 1000
"""The number of texts among which sentences look at most."""

FEWEST_SENTENCES = 20
"""The number of sentences from which anything follows."""

_TEXTS_EACH = 8  # texts a sentence, so that no more than a quarter more texts are embedded
_FEWEST_TERMS = 4  # of a sentence
_LEAST_FOUND = 1 / 3  # the MRR of BM25
_DECIMALS = 9  # of cosines; further ones are rounding errors


class Cloze(NamedTuple):
    """Sentences that were taken out of texts.

    Attributes
    ----------
    rows : shape (m,), the texts
    sentences : m
    rests : m, the texts without the sentence
    """

    rows: NDArray[np.intp]
    sentences: Sequence[str]
    rests: Sequence[str]

    @property
    def texts(self) -> list[str]:
        """What is embedded: the sentences, then the rests."""
        return [*self.sentences, *self.rests]


def can_measure(count: int, measured: int) -> bool:
    """Whether so many texts are enough to measure anew, after as many as `measured`; 0 if nothing is known."""
    return count >= max(FEWEST_SENTENCES * _TEXTS_EACH, 2 * measured) and measured < TEXTS


def cloze(bodies: Sequence[str], texts: Sequence[str]) -> Cloze:
    """Take the middle sentence out of each text of two or more, until there is one for eight texts.

    Parameters
    ----------
    bodies : what sentences are taken from, such as chunks without their titles
    texts : the same as they are embedded
    """
    found: list[tuple[int, str, str]] = []
    wanted = len(texts) // _TEXTS_EACH
    for row, (body, text) in enumerate(zip(bodies, texts, strict=True)):
        if len(found) == wanted:
            break
        sentences = split_sentences(body)
        middle = sentences[len(sentences) // 2] if len(sentences) > 1 else ""
        if lexical_terms(middle).total() >= _FEWEST_TERMS and middle in text:
            found.append((row, middle, text.replace(middle, " ", 1)))
    rows = np.array([row for row, _, _ in found], np.intp)
    return Cloze(rows, [sentence for _, sentence, _ in found], [rest for _, _, rest in found])


def word_advantage(
    texts: Sequence[str], vectors: NDArray[np.float32], asked: Cloze, of_asked: NDArray[np.float32]
) -> float:
    """The advantage a of BM25 over cosines; 0 if fewer than 20 sentences were asked.

    Parameters
    ----------
    texts : n texts
    vectors : shape (n, d), of the texts; their lengths do not matter
    asked : of :func:`cloze`
    of_asked : shape (2 m, d), of the m sentences, then of the m rests
    """
    if len(asked.rows) < FEWEST_SENTENCES:
        return 0.0
    sentences, rests = _unit(of_asked[: len(asked.rows)]), _unit(of_asked[len(asked.rows) :])
    compared, without = _unit(vectors), list(texts)
    compared[asked.rows] = rests
    for row, rest in zip(asked.rows.tolist(), asked.rests, strict=True):
        without[row] = rest
    lexical = LexicalIndex().changed((), {str(row): lexical_terms(text) for row, text in enumerate(without)})
    order = [np.array([int(name) for name in names], np.intp) for names in lexical.ids]
    by_cosine, by_words = [], []
    for row, sentence, vector in zip(asked.rows.tolist(), asked.sentences, sentences, strict=True):
        rivals = np.array([sentence not in text for text in without])
        words = np.zeros(len(without))
        for rows, scores in zip(order, lexical.scores(sentence), strict=True):
            words[rows] = scores
        by_cosine.append(_reciprocal_rank((compared @ vector).round(_DECIMALS), row, rivals))
        by_words.append(_reciprocal_rank(words, row, rivals))
    return _beyond_error(np.array(by_words), np.array(by_cosine))


def _unit(vectors: NDArray[np.float32]) -> NDArray[np.float64]:
    """The directions of vectors; zeros stay."""
    rows = vectors.astype(np.float64)
    found: NDArray[np.float64] = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
    return found


def _reciprocal_rank(scores: NDArray[np.float64], row: int, rivals: NDArray[np.bool_]) -> float:
    """Of a row among its rivals; ties count half, so that a model that tells no texts apart finds nothing."""
    better = int(np.count_nonzero(rivals & (scores > scores[row])))
    tied = int(np.count_nonzero(rivals & (scores == scores[row]))) - int(rivals[row])
    return 1 / (1 + better + tied / 2)


def _beyond_error(words: NDArray[np.float64], cosines: NDArray[np.float64]) -> float:
    """The logarithm of mean(words) / mean(cosines), nearer to 0 by two standard errors; 0 if words find too few.

    >>> _beyond_error(np.ones(100), np.full(100, 0.5)), _beyond_error(np.array([1, 0.5]), np.array([0.5, 1]))
    (0.6931471805599453, 0.0)
    """
    if words.mean() < _LEAST_FOUND:
        return 0.0
    error = float((words / words.mean() - cosines / cosines.mean()).std()) / math.sqrt(len(words))
    advantage = math.log(float(words.mean() / cosines.mean()))
    return math.copysign(max(0.0, abs(advantage) - 2 * error), advantage) or 0.0
