"""Replies of small models that repeat themselves until they are cut off."""

import re

from llama_index.ragkit.text.sentences import sentence_spans

__all__ = ["without_loop", "without_repetitions"]

_MOST = 2  # times that a passage may occur in a reply
_LOOKED_AT = 20_000  # characters at the end of a reply that are searched for the beginning of a loop
_SHORTEST = 4  # characters of a passage that is repeated
_BOUNDARY = re.compile(r"[.!?。！？…][\"'”’)]*(?=\s|$)|\n")


def without_loop(text: str) -> tuple[str, int]:
    """A text without the repetitions of a passage at its end, and how many there were.

    If the text has no JSON, only whole sentences and lines remain, since an unfinished sentence says nothing. In a text
    with JSON the passage remains twice, since it may begin in the middle of an item.

    >>> without_loop('{"years": ["1911", "1955", "1955", "1955", "19')
    ('{"years": ["1911", "1955", "1955', 2)
    >>> without_loop("The lamp burned oil. Ada lit it again and again and again and again and again")
    ('The lamp burned oil.', 3)
    """
    start, length, times = _loop(text.rstrip())
    if times <= _MOST:
        return text, 0
    kept = text[: start + 2 * length]
    if not {"{", "["} & set(kept):
        kept = kept[: start + length]
        ends = [found.end() for found in _BOUNDARY.finditer(kept)]
        kept = kept[: ends[-1]].rstrip() if ends else ""
    return kept, times - 1


def _loop(text: str) -> tuple[int, int, int]:
    """Where the longest repetition of one passage at the end of a text begins, the passage's length, and its count."""
    end = text[-_LOOKED_AT:][::-1]
    borders = [0] * len(end)  # of each prefix, its longest border (Knuth, Morris, Pratt), which gives its period
    border = 0
    best = (len(text), 0, 0)
    for i in range(1, len(end)):
        while border and end[i] != end[border]:
            border = borders[border - 1]
        border += end[i] == end[border]
        borders[i] = border
        period = i + 1 - border
        times = (i + 1) // period
        if times > _MOST and period >= _SHORTEST and any(map(str.isalnum, end[:period])):
            best = (len(text) - i - 1, period, times)
    return best


def without_repetitions(text: str) -> tuple[str, int]:
    """A text with only the first occurrence of each sentence that it has more than twice, and how many were removed.

    >>> without_repetitions("He died. He was old. He died. It rained. He died.")
    ('He died. He was old. It rained.', 2)
    """
    sentences = [text[start:end] for start, end in sentence_spans(text)]
    keys = [" ".join(sentence.split()).casefold() for sentence in sentences]
    kept = [
        sentence
        for i, (sentence, key) in enumerate(zip(sentences, keys, strict=True))
        if keys.count(key) <= _MOST or key not in keys[:i]
    ]
    if len(kept) == len(sentences):
        return text, 0
    return " ".join(sentence.strip() for sentence in kept), len(sentences) - len(kept)
