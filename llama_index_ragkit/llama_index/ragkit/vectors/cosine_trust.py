"""How far the cosines and the words of a question can be trusted, judged from both lists of scores.

How useful the words and the cosines are differs from corpus to corpus and from question to question: words find the
story and the clause, cosines the function. Predictors of query performance, computed over the hundred best chunks by
BM25, show this without labels:

    e = 1.8 + 1.4 share + 1.4 log(cv) - 0.6 z + 0.8 log(length) - 1.5 code + 3 a,  in [-3, 3]

- share, how much of the weight of the question's words the best chunk has: its BM25 score divided by that of a chunk of
  mean length that has each word of the question once. Few chunks have all words of a story or of a case, so the mean
  over the sentences of a question counts;
- cv, the standard deviation of the chunks' BM25 scores divided by their mean: the normalised query commitment of the
  lexical list (NQC; Shtok et al. 2012, "Predicting Query Performance by Query-Drift Estimation", ACM TOIS 30(2)). If
  all chunks have the words, such as the name of a site, the scores lie close together;
- z, how many standard deviations the best of the chunks' cosines lies above their mean: whether one stands out in the
  dense list (weighted information gain; Zhou and Croft 2007, "Query Performance Prediction in Web Search Environments",
  SIGIR). Chunks without the words do not count, since a model that does not know a language puts some chunks near every
  question;
- length, the mean number of words of a chunk in hundreds, at least 1 and at most 2: one vector says less about a long
  text, while BM25 finds the words anywhere in it;
- code, whether chunks are program code, from 0 for one word of programs in two chunks to 1 for three: questions in
  prose share few words with it (:mod:`llama_index.ragkit.text.lexical_blocks`). It counts less, by 1 - 3 a in [0, 1],
  if cosines find less of this code than words do;
- a, by how much words find the corpus's own sentences better than cosines do, measured when an index is built
  (:mod:`llama_index.ragkit.vectors.self_retrieval`): large for a model that is weak or does not know the language, less
  than 0 for one that knows the subject.

e is added to the log odds of the lexical weight. The result is a convex combination (Bruch et al. 2023, "An Analysis of
Fusion Functions for Hybrid Retrieval", ACM TOIS 42(1)) whose weight is chosen for each question, as an LLM does in
dynamic alpha tuning (Hsu and Tzeng 2025, arXiv 2503.23013). e depends neither on the scale of an embedding model's
cosines, since z is in standard deviations, nor on the size of the corpus. If fewer than 20 chunks have a word of the
question, only a counts.

An embedding model that does not know the language of a text gives cosines that say little, and their size does not show
it. But then chunks with most words of the question are no nearer to it than chunks with one of them. So the three best
chunks by BM25 are compared with the others of the hundred best:

    D = P(cosine of one of the three > that of one of the others) - P(it is less)
    trust = 1 - c (1 - min(1, 0.4 + max(0, D)))

D is Somers' D (Somers 1962, "A New Asymmetric Measure of Association for Ordinal Variables", American Sociological
Review 27(6)), 2 AUC - 1: 1 if all three are nearer than all others, 0 by chance. It depends only on the order of
cosines and scores, and so neither on the embedding model nor on the size of the corpus. The least trust is not 0, since
the wrong chunks may have the words of a single question; the trust is 1 if there are fewer than 20 others.

The words show nothing in two cases: no chunk has much of the question, for example because it describes a theme in its
own words; or many chunks have as much of it as the best one, for example because filings repeat the same headings.
c, in [0, 1], is the product of two parts:

- how much of the question the best chunk has: share, from 0 at 0.1 to 1 at 0.3;
- how far it stands out: one minus the tenth best score as a share of the best, from 0 at 0.2 to 1 at 0.5.
"""

import math

import numpy as np
from numpy.typing import NDArray

from llama_index.ragkit.text.lexical_index import NOT_KNOWN, FullScore
from llama_index.ragkit.vectors.largest import largest

__all__ = ["cosine_trust", "lexical_share", "word_evidence"]

Doubles = NDArray[np.float64]

LEAST = 0.4
_FIRST = 3  # best chunks by words, which are compared with the others
_SEEN = 100  # best chunks by words
_STANDS_OUT = 10  # the chunk by words that the best one is compared with
_OF_QUESTION = (0.1, 0.3)  # of the full score: nothing, enough
_AHEAD = (0.2, 0.5)  # of the tenth best: not at all, far enough
_FEWEST = 20  # chunks from which D and e are measured; fewer show nothing
_USUAL, _PER_SHARE, _PER_CV, _PER_DEVIATION = 1.8, 1.4, 1.4, 0.6  # fitted over eleven corpora, one half of each
_LEAST_CV = 0.05
_FOR_CODE, _PROGRAM = 1.5, (0.5, 1.5)  # words of programs a chunk: of prose, of code
_PER_ADVANTAGE = 3.0
_PER_LENGTH, _SHORT, _LONG = 0.8, 100.0, 200.0  # words of a chunk
_MOST_EVIDENCE = 3.0  # odds of 20 to 1


def cosine_trust(cosines: Doubles, lexical: Doubles, full_score: float = 0.0) -> float:
    """The trust in the cosines of a question, in [0.4, 1]; 1 if too few chunks have its words.

    All chunks that tie for the third place count as first. The last of the hundred and all that tie with it are left
    out. So the order of rows has no influence.

    Parameters
    ----------
    cosines, lexical : shape (n,), any dense scores and the BM25 scores of the chunks that count
    full_score : see :class:`~llama_index.ragkit.text.lexical_index.FullScore`; 0 if unknown

    >>> lexical = np.arange(50.0) ** 4
    >>> cosine_trust(lexical, lexical), cosine_trust(-lexical, lexical)
    (1.0, 0.4)
    """
    with_words = np.flatnonzero(lexical > 0)
    scores = lexical[with_words]
    if len(scores) < _FIRST + _FEWEST:
        return 1.0
    third = scores[largest(scores, _FIRST)].min()
    # The hundredth is left out even if there are no more: an index that is served from stores cannot tell.
    last = scores[largest(scores, _SEEN)].min() if len(scores) >= _SEEN else 0.0
    others = np.sort(cosines[with_words[(scores > last) & (scores < third)]])
    if len(others) < _FEWEST:
        return 1.0
    first = cosines[with_words[scores >= third]]
    below, not_above = np.searchsorted(others, first, "left"), np.searchsorted(others, first, "right")
    somers_d = float((below + not_above).mean()) / len(others) - 1
    best, tenth = float(scores.max()), float(scores[largest(scores, _STANDS_OUT)].min())
    shown = _part(best / full_score if full_score else 1.0, *_OF_QUESTION) * _part(1 - tenth / best, *_AHEAD)
    return 1 - shown * (1 - min(1.0, LEAST + max(0.0, somers_d)))


def _part(share: float, nothing: float, enough: float) -> float:
    return min(1.0, max(0.0, (share - nothing) / (enough - nothing)))


def word_evidence(cosines: Doubles, lexical: Doubles, full_score: FullScore) -> float:
    """The evidence e for words over cosines, in [-3, 3], which is added to the log odds of their weight.

    Parameters
    ----------
    cosines, lexical : see :func:`cosine_trust`
    full_score : without a score there is no evidence; a length or an advantage that is not known adds nothing

    >>> lexical, cosines = np.arange(50.0), np.append(np.zeros(49), 1.0)
    >>> word_evidence(cosines, lexical, FullScore(49.0)) < 0 < word_evidence(lexical, lexical, FullScore(30.0))
    True
    """
    last = float(lexical[largest(lexical, _SEEN)].min()) if len(lexical) >= _SEEN else 0.0
    seen = lexical > last
    of_model = _PER_ADVANTAGE * full_score.advantage
    if np.count_nonzero(seen) < _FEWEST or not full_score.score:
        return min(_MOST_EVIDENCE, max(-_MOST_EVIDENCE, of_model))
    words, near = lexical[seen], cosines[seen]
    spread = float(near.std())
    z = float(near.max() - near.mean()) / spread if spread > 1e-9 else 0.0
    cv = max(_LEAST_CV, float(words.std() / words.mean()))
    shared = float(words.max()) / full_score.score
    of_length = _PER_LENGTH * math.log(min(_LONG, max(_SHORT, full_score.length)) / _SHORT)
    of_code = _FOR_CODE * _part(full_score.program, *_PROGRAM) * min(1.0, max(0.0, 1 - of_model))
    of_question = _PER_SHARE * shared + _PER_CV * math.log(cv) - _PER_DEVIATION * z
    return min(_MOST_EVIDENCE, max(-_MOST_EVIDENCE, _USUAL + of_question + of_length - of_code + of_model))


def lexical_share(
    cosines: Doubles, lexical: Doubles, lexical_weight: float, full_score: FullScore = NOT_KNOWN
) -> float:
    """The weight of BM25 for a question: w with the odds ``w / (1 - w) * exp(e) / trust``.

    Evidence for cosines (e below 0) counts as far as they are trusted: fully at 1, not at all at the least trust.

    Parameters
    ----------
    cosines, lexical, full_score : see :func:`word_evidence`
    lexical_weight : w, in [0, 1]; 0 and 1 are returned unchanged
    """
    if not lexical_weight:
        return 0.0
    trust, evidence = cosine_trust(cosines, lexical, full_score.score), word_evidence(cosines, lexical, full_score)
    if evidence < 0:
        evidence *= (trust - LEAST) / (1 - LEAST)
    return lexical_weight / (lexical_weight + (1 - lexical_weight) * trust / math.exp(evidence))
