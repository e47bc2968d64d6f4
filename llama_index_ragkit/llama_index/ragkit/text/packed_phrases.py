"""Many phrases in little memory, split into numbered words, so that they can be compared without an object for each."""

from collections.abc import ItemsView, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain, islice
from typing import overload

import numpy as np
from numpy.typing import NDArray

from llama_index.ragkit.nested_arrays import Arrays
from llama_index.ragkit.text.packed_words import PackedNames, PackedWords

__all__ = ["PackedPhrases", "SplitPhrases"]

_PIECE = 10_000  # phrases that are objects at a time


class SplitPhrases:
    """The words of phrases as numbers.

    Attributes
    ----------
    vocabulary : the distinct words
    words : int32, the words of all phrases in order, as places in the vocabulary
    ends : int64, shape (n + 1,), where the words of each phrase begin and the last phrase ends

    >>> split = SplitPhrases.of(["new york", "york"])
    >>> list(split.vocabulary), split.words.tolist(), split.ends.tolist()
    (['new', 'york'], [0, 1, 1], [0, 2, 3])
    """

    __slots__ = ("ends", "vocabulary", "words")

    def __init__(self, vocabulary: PackedWords, words: NDArray[np.int32], ends: NDArray[np.int64]) -> None:
        self.vocabulary, self.words, self.ends = vocabulary, words, ends

    @classmethod
    def of(cls, phrases: Iterable[str]) -> "SplitPhrases":
        """The words of these phrases."""
        numbers: dict[str, int] = {}
        words, counts = [np.empty(0, np.int32)], [np.zeros(1, np.int64)]
        left = iter(phrases)
        while piece := [phrase.split() for phrase in islice(left, _PIECE)]:
            found = [numbers.setdefault(word, len(numbers)) for word in chain.from_iterable(piece)]
            words.append(np.array(found, np.int32))
            counts.append(np.fromiter(map(len, piece), np.int64, len(piece)))
        return cls(PackedWords(list(numbers)), np.concatenate(words), np.cumsum(np.concatenate(counts)))

    def __len__(self) -> int:
        return len(self.ends) - 1


class PackedPhrases(Sequence[str]):
    """Distinct phrases that can be found by their text and by their words.

    Earlier versions stored only `letters` and `ends`; the other arrays are made from them on demand.

    >>> phrases = PackedPhrases.of_arrays(PackedPhrases.to_arrays(["new york", "york"]))
    >>> list(phrases), phrases.find("york"), phrases.find("new")
    (['new york', 'york'], 1, -1)
    """

    def __init__(self, words: PackedWords, arrays: Arrays) -> None:
        self._words, self._arrays = words, arrays

    @staticmethod
    def to_arrays(phrases: Sequence[str]) -> Arrays:
        """The stored form of phrases."""
        names, split = PackedNames.of(PackedWords(phrases)), SplitPhrases.of(phrases)
        (letters, ends), (sums, places) = names.names.arrays, names.arrays
        word_letters, word_ends = split.vocabulary.arrays
        return {
            "letters": letters, "ends": ends, "sums": sums, "places": places, "vocabulary": word_letters,
            "vocabulary_ends": word_ends, "words": split.words, "word_ends": split.ends,
        }  # fmt: skip

    @classmethod
    def of_arrays(cls, arrays: Arrays) -> "PackedPhrases":
        """The phrases of :meth:`to_arrays`, over the same memory."""
        return cls(PackedWords.of_arrays(arrays["letters"], arrays["ends"]), arrays)

    @cached_property
    def split(self) -> SplitPhrases:
        """The words of the phrases."""
        arrays = self._arrays
        if "words" not in arrays:
            return SplitPhrases.of(self)
        vocabulary = PackedWords.of_arrays(arrays["vocabulary"], arrays["vocabulary_ends"])
        return SplitPhrases(vocabulary, arrays["words"], arrays["word_ends"])

    @cached_property
    def _names(self) -> PackedNames:
        arrays = self._arrays
        return (
            PackedNames(self._words, arrays["sums"], arrays["places"])
            if "sums" in arrays
            else PackedNames.of(self._words)
        )

    def __len__(self) -> int:
        return len(self._words)

    @overload
    def __getitem__(self, place: int) -> str: ...

    @overload
    def __getitem__(self, place: slice) -> list[str]: ...

    def __getitem__(self, place: int | slice) -> str | list[str]:
        return self._words[place]

    def __iter__(self) -> Iterator[str]:
        return iter(self._words)

    def find(self, phrase: str) -> int:
        """The place of a phrase; -1 if it is not there."""
        return int(self._names.places_of([phrase])[0])

    @property
    def numbers(self) -> Mapping[str, int]:
        """The place of each phrase."""
        return _Places(self)


class _Places(Mapping[str, int]):
    """The places of packed phrases."""

    def __init__(self, phrases: PackedPhrases) -> None:
        self._phrases = phrases

    def __getitem__(self, phrase: str) -> int:
        place = self._phrases.find(phrase)
        if place < 0:
            raise KeyError(phrase)
        return place

    def __iter__(self) -> Iterator[str]:
        return iter(self._phrases)

    def __len__(self) -> int:
        return len(self._phrases)

    def items(self) -> ItemsView[str, int]:
        """All phrases with their places, in a fraction of the time of looking up each."""
        return {phrase: place for place, phrase in enumerate(self._phrases)}.items()
