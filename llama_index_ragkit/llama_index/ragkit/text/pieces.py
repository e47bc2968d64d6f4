"""Texts in parts that fit a number of tokens."""

from collections.abc import Callable, Sequence

from llama_index.ragkit.text.sentences import split_sentences

__all__ = ["batches", "pieces_of"]


def batches(sizes: Sequence[int], budget: int) -> list[list[int]]:
    """Positions of texts, in order, in batches that fit a budget; a text that is larger alone is a batch.

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


def pieces_of(text: str, most: int, count: Callable[[str], int]) -> list[str]:
    """A text in pieces of whole sentences, one a line; longer sentences are cut.

    Parameters
    ----------
    most : tokens of a piece, at least 1
    count : counts the tokens of a text
    """
    sentences: list[str] = []
    for sentence in split_sentences(text):
        sentences.append(sentence)
        while len(sentences[-1]) > 1 and (tokens := count(sentences[-1])) > most:
            cut = max(1, len(sentences[-1]) * most // tokens * 9 // 10)
            sentences[-1:] = [sentences[-1][:cut], sentences[-1][cut:]]
    groups = batches([count(sentence) + 1 for sentence in sentences], most)
    return ["\n".join(sentences[i] for i in group) for group in groups]
