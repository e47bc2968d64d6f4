"""Counting tokens as LlamaIndex does, and texts in parts that fit a number of tokens."""

from collections.abc import Callable, Sequence

from llama_index.core.utils import get_tokenizer

from llama_index.ragkit.text.sentences import split_sentences

__all__ = ["batches", "count_tokens", "pieces_of"]


def count_tokens(text: str) -> int:
    """The number of tokens of a text, by the tokenizer of LlamaIndex's `Settings`."""
    return len(get_tokenizer()(text))


def batches(sizes: Sequence[int], budget: int) -> list[list[int]]:
    """Positions of texts, in order, in batches that fit a budget; a text above the budget is a batch of its own.

    >>> batches([5, 4, 3, 20, 1], 10)
    [[0, 1], [2], [3], [4]]
    """
    found: list[list[int]] = []
    room = 0
    for position, size in enumerate(sizes):
        if not found or size > room:
            found.append([])
            room = budget
        found[-1].append(position)
        room -= size
    return found


def pieces_of(text: str, most: int, size_of: Callable[[str], int]) -> list[str]:
    """A text in pieces of at most `most` tokens: whole sentences, one a line; longer sentences are cut."""
    sentences = [part for sentence in split_sentences(text) for part in _parts(sentence, most, size_of)]
    groups = batches([size_of(sentence) + 1 for sentence in sentences], most)
    return ["\n".join(sentences[i] for i in group) for group in groups]


def _parts(sentence: str, most: int, size_of: Callable[[str], int]) -> list[str]:
    """Parts of about equal length; each is counted once more, so the work grows linearly with the length."""
    tokens = size_of(sentence)
    if tokens <= most or len(sentence) == 1:
        return [sentence]
    length = max(1, len(sentence) * most // tokens * 9 // 10)
    cuts = range(0, len(sentence), length)
    return [part for start in cuts for part in _parts(sentence[start : start + length], most, size_of)]
