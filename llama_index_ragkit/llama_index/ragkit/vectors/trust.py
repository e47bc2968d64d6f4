"""How far the cosines and the words of a question can be trusted, and how far a walk over a graph from its names.

*Cosines and words.* How useful the words and the cosines are differs from corpus to corpus and from question to
question: words find the story and the clause, cosines the function. Predictors of query performance, computed over the
hundred best chunks by BM25, show this without labels:

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

*Walks.* A walk starts from the names in the question and from the passages nearest to it (:func:`passage_seeds`). The
score of a passage is its nearness plus the logarithm of its share of the walk, which counts as far as the walk can be
trusted (:func:`trust`, :func:`combine`).

A walk is trusted if it reaches the passage that is nearest to the question, if it is concentrated, and if it agrees
with nearness about the passages near the question. If the names of a question lead elsewhere than its other words, or
to every passage alike, as in a report with the same names on every page, nearness is the better guide. In a chain of
facts, the walk finds passages that contain no word of the question.
"""

import math

import numpy as np
from numpy.typing import NDArray

from llama_index.ragkit.errors import ConfigurationError
from llama_index.ragkit.text.lexical_index import NOT_KNOWN, FullScore
from llama_index.ragkit.vectors.kernels import largest

__all__ = [
    "FLOOR",
    "NEAREST_POWER",
    "PASSAGE_SEEDS",
    "combine",
    "cosine_trust",
    "gain",
    "lead",
    "lexical_share",
    "passage_seeds",
    "rarity",
    "trust",
    "word_evidence",
]

Doubles = NDArray[np.float64]

LEAST = 0.4
_FIRST = 3  # best chunks by words, which are compared with the others
_SEEN = 100  # best chunks by words, or by nearness
_STANDS_OUT = 10  # the chunk by words that the best one is compared with
_OF_QUESTION = (0.1, 0.3)  # of the full score: nothing, enough
_AHEAD = (0.2, 0.5)  # of the tenth best: not at all, far enough
_FEWEST = 20  # chunks or passages from which anything is measured; fewer show nothing
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


NEAREST_POWER = 0.45  # of the share of the nearest passage, wherever it stands
FLOOR = 1e-4  # minimum share of the walk, relative to the best passage, for passages that the walk does not reach
PASSAGE_SEEDS = 100  # passages that a walk starts from
_SEED_POWER = 4
_CONCENTRATION = 6  # passages of the walk whose shares tell how concentrated it is
_DIFFUSE = 3.5
_MANY = 0.1  # of the square root of the number of passages
_FEW = 2.0  # passages
_NO_AGREEMENT, _AGREEMENT = 0.4, 0.6  # correlations
_EQUAL = 1e-9  # nearness within the error of rounding


def passage_seeds(
    cosines: np.ndarray, count: int = PASSAGE_SEEDS, power: float = _SEED_POWER
) -> tuple[np.ndarray, np.ndarray]:
    """The passages that a walk starts from: the `count` nearest, by ``((cos - lowest) / (highest - lowest)) ** power``.

    Parameters
    ----------
    cosines : (p,) of the question and each passage

    Returns
    -------
    rows, weights : (k,) int64 ascending and float64 with sum 1; empty where there are no passages

    Raises
    ------
    ConfigurationError
        If `count` is below 1 or `power` is not positive.

    >>> passage_seeds(np.array([0.1, 0.5, 0.9]), power=1)
    (array([1, 2]), array([0.33333333, 0.66666667]))
    """
    if count < 1 or not power > 0:
        raise ConfigurationError(f"count must be at least 1 and power positive, not {count} and {power}.")
    if not len(cosines):
        return np.empty(0, dtype=np.int64), np.empty(0)
    floor = cosines[largest(cosines, min(count, len(cosines)))].min()
    rows = np.flatnonzero(
        cosines >= floor
    )  # including all that are equal to the last one, so that their order does not matter
    spread = cosines[rows].max() - floor
    weights = ((cosines[rows] - floor) / spread) ** power if spread > 0 else np.ones(len(rows))
    rows, weights = rows[weights > 0], weights[weights > 0]
    return rows, weights / weights.sum()


def trust(
    nearness: np.ndarray,
    walked: np.ndarray,
    power: float = NEAREST_POWER,
    candidates: np.ndarray | None = None,
) -> float:
    """How far to trust a walk for a question, in [0, 1]: ``exp(-3.5 m) * s ** power * a``.

    m is the mean share of the passages that the walk ranks second to sixth. Near 1, the walk does not tell passages
    apart. s is the share of the passage that is nearest to the question. At 0, walk and nearness are unrelated. a is 0
    if nearness and the logarithm of the share have a correlation of at most 0.4 over the hundred nearest passages, 1
    from 0.6 on, and linear between. It is 1 for fewer than 20 passages, or if nearness or share is constant.

    Parameters
    ----------
    nearness : (p,) of the question and each passage that may be shown
    walked : (p,) each passage's score in the walk as a share of the best, in [0, 1]
    power : how much s counts, at least 0
    candidates : (p,), from which the hundred nearest passages are chosen, see
        :attr:`~llama_index.ragkit.vectors.question_scores.Nearness.candidates`; None for all

    >>> trust(np.array([2.0, 0.0, -1.0]), np.array([1.0, 0.0, 0.0]))
    1.0
    >>> trust(np.array([2.0, 0.0, -1.0]), np.array([0.0, 1.0, 0.1]))
    0.0
    """
    if not walked.size or not walked.any():
        return 0.0
    best = np.sort(walked[largest(walked, min(_CONCENTRATION, walked.size))])[::-1]
    others = float(best[1:].mean()) if walked.size > 1 else 0.0
    nearest = walked[nearness >= nearness.max() - _EQUAL]
    reached = float(nearest.max())
    if not reached:
        return 0.0
    compared = slice(None) if candidates is None else candidates
    agreement = _agreement(nearness[compared], walked[compared])
    return math.exp(-_DIFFUSE * others) * math.pow(reached, power) * agreement


def lead(nearness: np.ndarray) -> float:
    """How far the nearest passage is ahead of the sixth (or the last, if fewer) in standard deviations; at least 0.

    Parameters
    ----------
    nearness : (p,) of the question and each passage that may be shown

    >>> lead(np.array([2.0, 5.0, 1.0, 1.5, 1.0, 1.0, 0.0]))
    4.0
    """
    if not nearness.size:
        return 0.0
    best = nearness[largest(nearness, min(_CONCENTRATION, nearness.size))]
    return float(best.max() - best.min())


def rarity(frequency: float, count: float) -> float:
    """How specific a name is, by the number of passages with its words: ``1 / (1 + ((f - 1) / s) ** 2)``.

    s is a tenth of the square root of `count`, at least 2: in more passages, more may be about one thing. A name that
    is a common word, or a first name in a chat, has its words in many passages.

    Parameters
    ----------
    frequency : f, the number of passages with its words; less than 1 counts as 1
    count : the number of all passages; 0 if unknown, which gives 1

    >>> rarity(1, 400), rarity(3, 400)
    (1.0, 0.5)
    """
    if count <= 0:
        return 1.0
    return 1.0 / (1.0 + (max(0.0, frequency - 1.0) / max(_FEW, _MANY * math.sqrt(count))) ** 2)


def _agreement(nearness: np.ndarray, walked: np.ndarray) -> float:
    """How far a walk agrees with nearness about the hundred nearest passages and those that tie with the last."""
    if len(nearness) < _FEWEST:
        return 1.0
    rows = nearness >= nearness[largest(nearness, min(_SEEN, len(nearness)))].min()
    near, shares = nearness[rows], _log_share(walked[rows])
    near, shares = near - near.mean(), shares - shares.mean()
    spread = math.sqrt(float(near @ near) * float(shares @ shares))
    if spread <= _EQUAL:  # nearness or share is the same for all
        return 1.0
    correlation = float(near @ shares) / spread
    return min(1.0, max(0.0, (correlation - _NO_AGREEMENT) / (_AGREEMENT - _NO_AGREEMENT)))


def combine(nearness: np.ndarray, walked: np.ndarray, weight: float) -> np.ndarray:
    """Scores of passages: ``nearness + weight * log((walked + FLOOR) / (1 + FLOOR))``.

    Parameters
    ----------
    nearness : (p,) standardised, see :func:`llama_index.ragkit.vectors.question_scores.hybrid_nearness`
    walked : (p,) each passage's score in the walk as a share of the best, in [0, 1]
    weight : 0 for nearness only; the higher, the more the walk counts

    Returns
    -------
    (p,) : at most the nearness; equal to it for the best passage of the walk

    Raises
    ------
    ConfigurationError
        If `weight` is negative or not finite.

    >>> combine(np.array([2.0, 1.0, 1.0]), np.array([0.0, 1.0, 0.01]), weight=0.5).round(3)
    array([-2.605,  1.   , -1.298])
    """
    if not 0 <= weight < np.inf:
        raise ConfigurationError(f"The weight of the walk must be finite and not negative, not {weight}.")
    scores: np.ndarray = nearness + weight * _log_share(walked) if weight else nearness
    return scores


def _log_share(walked: np.ndarray) -> np.ndarray:
    shares: np.ndarray = np.log((walked + FLOOR) / (1.0 + FLOOR))
    return shares


def gain(walked: np.ndarray, weight: float) -> np.ndarray:
    """The derivative of a :func:`combine` score with respect to the logarithm of the walk's share."""
    found: np.ndarray = weight * walked / (walked + FLOOR)
    return found
