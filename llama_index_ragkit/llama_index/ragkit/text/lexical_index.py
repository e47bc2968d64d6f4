"""Lexical search: BM25 over texts that come and go; no text is read twice.

Robertson and Zaragoza (2009), The Probabilistic Relevance Framework: BM25 and Beyond. For a question with stems t, a
text with counts c(t) and length l, n texts of mean length m, of which n(t) have a word with the stem:

    score = sum over t of  idf(t) * c(t) (k1 + 1) / (c(t) + k1 (1 - b + b l / m)),
    idf(t) = log(1 + (n - n(t) + 0.5) / (n(t) + 0.5))

Postings are of words as written. A question is stemmed in its own language and finds all words with the same stem in
that language, so texts of several languages can share an index.

Postings lie in blocks. A write adds a block of its own texts. If a block holds removed texts, the write copies it
without them, so that no trace of them remains. Blocks of similar size are merged, up to a size at which two bytes hold
the row of a posting. So each posting is copied a logarithmic number of times.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from llama_index.ragkit.masks import FEW, RecentMasks
from llama_index.ragkit.nested_arrays import Arrays, nested, part_of
from llama_index.ragkit.text.characters import UNSPACED, normalise, without_unprinted
from llama_index.ragkit.text.function_words import FUNCTION_WORDS, function_words, written_language
from llama_index.ragkit.text.lexical_blocks import MOST_COUNTED, PostingBlock, block_of_counts, block_of_lists, merged
from llama_index.ragkit.text.sentences import split_sentences
from llama_index.ragkit.text.stems import stems

__all__ = [
    "BM25_B",
    "BM25_K1",
    "NOT_KNOWN",
    "AlignedWords",
    "FullScore",
    "LexicalIndex",
    "QuestionStems",
    "full_score",
    "length_norms",
    "lexical_terms",
    "question_stems",
    "question_terms",
    "scores_of_few",
    "stem_scores",
    "stem_weight",
]

_RUN = re.compile(f"[{UNSPACED}]+|[^\\s{UNSPACED}]+")
_UNSPACED = re.compile(f"[{UNSPACED}]")
_HYPHEN_AT_END = re.compile(r"[-‐][ \t\r]*\n")
_LETTER = f"[^\\W\\d_{UNSPACED}]"
# Tried only at the starts of words: at every letter of a long run it would take quadratic time.
_HYPHENATED = re.compile(f"(?<!{_LETTER})({_LETTER}{{2,}}){_HYPHEN_AT_END.pattern}[ \\t]*({_LETTER}{{2,}})")


def lexical_terms(text: str) -> Counter[str]:
    """How often a text has each term. Terms are words without case and punctuation, not stemmed; in scripts without
    spaces, characters and pairs of neighbouring ones.

    A word that is hyphenated at the end of a line counts both whole and in parts, since the hyphen may be its own.

    >>> sorted(lexical_terms("Net income: 3M's net. 东京都").items())
    [('3m', 1), ('income', 1), ('net', 2), ('s', 1), ('东', 1), ('东京', 1), ('京', 1), ('京都', 1), ('都', 1)]
    """
    text = without_unprinted(text)
    counts: Counter[str] = Counter()
    if _HYPHEN_AT_END.search(text):
        counts.update(normalise(first + last) for first, last in _HYPHENATED.findall(text))
    text = normalise(text)
    if text.isascii() or not _UNSPACED.search(text):
        counts.update(text.split())
        return counts
    for run in _RUN.findall(text):
        if _UNSPACED.match(run):
            counts.update(run)
            counts.update(run[i : i + 2] for i in range(len(run) - 1))
        else:
            counts[run] += 1
    return counts


def question_terms(question: str) -> tuple[Counter[str], str]:
    """The terms of a question, and the language in which to stem them.

    Function words of that language are left out, unless the question consists of them.

    >>> question_terms("Who wrote the Odyssey?")
    (Counter({'wrote': 1, 'odyssey': 1}), 'en')
    """
    language = written_language(question)
    terms = lexical_terms(question)
    small = function_words(language)
    telling = {term: times for term, times in terms.items() if term not in small and term not in FUNCTION_WORDS}
    return Counter(telling) or terms, language


BM25_K1 = 1.2
BM25_B = 0.75

_LARGEST_BLOCK = 2**16  # texts, so that two bytes hold the row of a posting


class FullScore(NamedTuple):
    """Score and length of a text of mean length that has each word of a sentence of a question once.

    Few texts have all words of a story or of a case. So the mean over the sentences of a question counts.

    Attributes
    ----------
    score : its BM25 score, the mean over sentences; 0 if there are no texts, or if it is not known
    length : how many words it has; 0 if there are no texts, or if it is not known
    program : how many words of programs (`PROGRAM_WORDS`) a text has on average
    advantage : how much better words find texts than cosines do (:mod:`~llama_index.ragkit.vectors.self_retrieval`)
    """

    score: float
    length: float = 0.0
    program: float = 0.0
    advantage: float = 0.0


NOT_KNOWN = FullScore(0.0)


class LexicalIndex:
    """An index of texts by their words. Immutable: a change gives a new index, which shares the unchanged blocks."""

    def __init__(self, blocks: Sequence[PostingBlock] = ()) -> None:
        self._blocks = tuple(blocks)

    @classmethod
    def of(cls, texts: Mapping[str, str]) -> "LexicalIndex":
        """The index of many texts at once: id -> its terms, each as often as the text has it, separated by spaces."""
        ids = list(texts)
        parts = [ids[start : start + _LARGEST_BLOCK] for start in range(0, len(ids), _LARGEST_BLOCK)]
        return cls([block_of_lists({text_id: texts[text_id] for text_id in part}) for part in parts])

    @classmethod
    def of_arrays(cls, arrays: Arrays) -> "LexicalIndex":
        """The index of :attr:`arrays`, over the same memory, which must not change."""
        parts = dict.fromkeys(name.split("/")[0] for name in arrays)
        return cls([PostingBlock.of_arrays(part_of(arrays, part)) for part in parts])

    @property
    def arrays(self) -> Arrays:
        """The whole index as arrays by name."""
        return nested({str(number): block.arrays for number, block in enumerate(self._blocks)})

    def __len__(self) -> int:
        return sum(block.size for block in self._blocks)

    @property
    def ids(self) -> list[tuple[str, ...]]:
        """The ids of the rows of each block."""
        return [block.ids for block in self._blocks]

    def changed(self, removed: Collection[str], added: Mapping[str, Mapping[str, int]]) -> "LexicalIndex":
        """The index without some texts and with others, which replace those of the same id.

        Parameters
        ----------
        added : id -> :func:`~llama_index.ragkit.text.lexical_index.lexical_terms` of the text
        """
        gone = {*removed, *added}
        blocks = [block for block in (block.without(gone) for block in self._blocks) if block.size]
        if added:
            blocks.append(block_of_counts(added))
        while len(blocks) > 1 and _joinable(*blocks[-2:]):
            blocks[-2:] = [merged(blocks[-2:])]
        return LexicalIndex(blocks)

    def rows_of(self, ids: Collection[str]) -> list[NDArray[np.intp]]:
        """The rows of texts in each block, shape (len(ids),); -1 for texts that are not in the block."""
        return [block.rows_of(ids) for block in self._blocks]

    def having(self, ids: Collection[str]) -> "LexicalIndex":
        """The same index, in which only some texts count."""
        return self.within([block.having(ids) for block in self._blocks])

    def within(self, masks: Sequence[NDArray[np.bool_]]) -> "LexicalIndex":
        """The same index, in which only some rows of each block count: others score 0 and change no other score."""
        return LexicalIndex([block.within(mask) for block, mask in zip(self._blocks, masks, strict=True)])

    @cached_property
    def _totals(self) -> tuple[int, float, int]:
        """The number of texts, of their words, and of their `PROGRAM_WORDS`."""
        return len(self), sum(block.length for block in self._blocks), sum(block.program for block in self._blocks)

    def scored(self, question: str) -> tuple[list[NDArray[np.float64]], FullScore]:
        """The BM25 scores of the rows of each block, 0 for texts without a word of the question; and the
        full score of the question, see :meth:`full_scores`.
        """
        found = [np.zeros(len(block.ids)) for block in self._blocks]
        n, words, _ = self._totals
        if not n:
            return found, NOT_KNOWN
        norms = [length_norms(block.lengths, words / n or 1.0) for block in self._blocks]
        asked = question_stems(question)
        texts = []
        for stem, times in asked.times.items():
            postings = [block.postings(stem, asked.language) for block in self._blocks]
            having = sum(len(rows) for rows, _ in postings)
            texts.append(having)
            if not having:
                continue
            weight = stem_weight(times, having, n)
            for norm, (rows, counts), score in zip(norms, postings, found, strict=True):
                score[rows] += stem_scores(weight, counts, norm[rows])
        return found, full_score(asked, texts, *self._totals)

    def scores(self, question: str) -> list[NDArray[np.float64]]:
        """The scores of :meth:`scored`."""
        return self.scored(question)[0]

    def full_scores(self, questions: Sequence[str]) -> list[FullScore]:
        """For each question, the score of a text of mean length that has each word of a sentence of it once: the sum
        of the weights of the stems, including those that no text has, by the number of sentences; with that length,
        and how many words of program code a text has.
        """

        def of(asked: QuestionStems) -> FullScore:
            having = (
                sum(len(block.postings(stem, asked.language)[0]) for block in self._blocks) for stem in asked.times
            )
            return full_score(asked, having, *self._totals)

        return [of(question_stems(question)) for question in questions]


def _joinable(block: PostingBlock, following: PostingBlock) -> bool:
    return block.size < 2 * following.size and block.size + following.size <= _LARGEST_BLOCK


class AlignedWords:
    """Scores of a lexical index, in the order of rows.

    Parameters
    ----------
    lexical : the words of texts
    rows_of : ids of texts -> their rows, -1 for texts without one
    count : number of rows; a row without a text has no words
    """

    def __init__(self, lexical: LexicalIndex, rows_of: Callable[[Sequence[str]], NDArray[np.intp]], count: int) -> None:
        self._lexical = lexical
        self._rows = [rows_of(ids) for ids in lexical.ids]  # of each row of each block
        self._count = count
        self._restricted: RecentMasks[_Counted] = RecentMasks(FEW)

    def scored(self, question: str, allowed: NDArray[np.bool_] | None = None) -> tuple[NDArray[np.float64], FullScore]:
        """The BM25 score of each row, shape (count,), and the full score of the question, as
        :meth:`LexicalIndex.scored` gives them; `allowed`, shape (count,), are the rows that count.
        """
        lexical, places = self._counted(allowed)
        found = np.zeros(self._count)
        of_blocks, full = lexical.scored(question)
        for (rows, there), scores in zip(places, of_blocks, strict=True):
            found[rows] = scores[there]
        return found, full

    def scores(self, question: str, allowed: NDArray[np.bool_] | None = None) -> NDArray[np.float64]:
        """The scores of :meth:`scored`."""
        return self.scored(question, allowed)[0]

    def full_scores(self, questions: Sequence[str], allowed: NDArray[np.bool_] | None = None) -> list[FullScore]:
        """See :meth:`LexicalIndex.full_scores`."""
        return self._counted(allowed)[0].full_scores(questions)

    def _counted(self, allowed: NDArray[np.bool_] | None) -> "_Counted":
        return self._whole if allowed is None else self._restricted.of(allowed, self._within)

    @cached_property
    def _whole(self) -> "_Counted":
        return self._within(None)

    def _within(self, allowed: NDArray[np.bool_] | None) -> "_Counted":
        """The words of the rows that count, and for each block these rows and where their scores are."""
        masks = [rows >= 0 if allowed is None else (rows >= 0) & allowed[rows] for rows in self._rows]
        places: list[_Place] = [
            (rows, slice(None)) if mask.all() else (rows[mask], np.flatnonzero(mask))
            for rows, mask in zip(self._rows, masks, strict=True)
        ]
        return self._lexical.within(masks), places


_Place = tuple[NDArray[np.intp], slice | NDArray[np.intp]]
_Counted = tuple[LexicalIndex, list[_Place]]


class QuestionStems(NamedTuple):
    """What a question asks.

    Attributes
    ----------
    times : stem -> how often the question has it
    language : in which it was stemmed
    sentences : how many of its sentences have one of the stems, at least 1
    """

    times: dict[str, int]
    language: str
    sentences: int


def question_stems(question: str) -> QuestionStems:
    """The stems of a question."""
    terms, language = question_terms(question)
    times_of: dict[str, int] = {}
    for stem, times in zip(stems(list(terms), language), terms.values(), strict=True):
        times_of[stem] = times_of.get(stem, 0) + times
    telling = sum(not terms.keys().isdisjoint(lexical_terms(part)) for part in split_sentences(question))
    return QuestionStems(times_of, language, max(1, telling))


def stem_weight(times: int, having: int, n: int) -> float:
    """The weight of a stem that a question has `times` times and `having` of n texts have: `times` times its idf."""
    return times * math.log(1 + (n - having + 0.5) / (having + 0.5))


def full_score(asked: QuestionStems, having: Iterable[int], n: int, words: float, program: int) -> FullScore:
    """See :meth:`LexicalIndex.full_scores`: by how many texts have each stem of the question, and how many words, and
    `PROGRAM_WORDS`, all n texts together have.
    """
    if not n:
        return NOT_KNOWN
    score = sum(stem_weight(often, some, n) for often, some in zip(asked.times.values(), having, strict=True))
    return FullScore(score / asked.sentences, words / n, program / n)


def length_norms(lengths: NDArray[np.float32], mean: float) -> NDArray[np.float32]:
    """The part of BM25 that depends on a text alone, k1 (1 - b + b l / m), for each length l and the mean m > 0."""
    return BM25_K1 * (1 - BM25_B + BM25_B * lengths / mean)


def stem_scores(weight: float, counts: NDArray[np.float64], norms: NDArray[np.float32]) -> NDArray[np.float64]:
    """What a stem adds to the scores of the texts that have it, by its :func:`stem_weight`, how often each has it, and
    their :func:`length_norms`, shape (m,).
    """
    scores: NDArray[np.float64] = weight * counts * (BM25_K1 + 1) / (counts + norms)
    return scores


def scores_of_few(term_counts: Sequence[Mapping[str, int]], question: str) -> NDArray[np.float64]:
    """The BM25 scores of texts, shape (n,), by how often each has each term.

    They are those of a :class:`LexicalIndex` of only these texts, at a third of its cost.

    >>> scores_of_few([{"silk": 1, "looms": 1}, {"harbour": 2}], "Who built the loom?").round(2).tolist()
    [0.69, 0.0]
    """
    scores = np.zeros(len(term_counts))
    times_of, language, _ = question_stems(question)
    words = list(dict.fromkeys(word for text in term_counts for word in text))
    stem_of = {word: stem for word, stem in zip(words, stems(words, language), strict=True) if stem in times_of}
    counts_of: dict[str, dict[int, int]] = {stem: {} for stem in times_of}
    for row, text in enumerate(term_counts):
        for word in text.keys() & stem_of.keys():
            counts = counts_of[stem_of[word]]
            counts[row] = counts.get(row, 0) + min(text[word], MOST_COUNTED)
    lengths = np.array([sum(text.values()) for text in term_counts], np.float32)
    norms = length_norms(lengths, float(lengths.sum(dtype=np.float64)) / max(len(term_counts), 1) or 1.0)
    for stem, counts in counts_of.items():
        rows, often = list(counts), np.array(list(counts.values()), np.float64)
        weight = stem_weight(times_of[stem], len(rows), len(term_counts))
        scores[rows] += stem_scores(weight, often, norms[rows])
    return scores
