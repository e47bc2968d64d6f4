"""Removing the reasoning that some models write before their answer."""

import re

__all__ = ["THOUGHT_END", "THOUGHT_NAMES", "strip_reasoning"]

THOUGHT_NAMES = "think|thinking|thought|thoughts|reasoning"
THOUGHT_END = re.compile(rf"</(?:{THOUGHT_NAMES})>", re.IGNORECASE)
_START = re.compile(rf"<(?:{THOUGHT_NAMES})>", re.IGNORECASE)
_AROUND = 8  # characters before and after a tag, by which one within a sentence is known
_BEFORE = re.compile(r"[\w,;][ \t]+[\"'`(]?\Z|[\w,;][ \t]*[\"'`(]\Z")
_AFTER = re.compile(r"[\"'`)]?(?:[.,;:!?]|\s+[a-z])")


def strip_reasoning(text: str) -> str:
    """The answer without reasoning: blocks, text before an end tag alone, and blocks without an end tag.

    A tag within a sentence that has no counterpart is part of the answer, which may be about such tags.

    >>> strip_reasoning("<think>Hm.</think> Yes. <think>Or")
    'Yes.'
    >>> strip_reasoning("Hm.</think>Yes.")
    'Yes.'
    >>> strip_reasoning("R1 thinks after the tag <think>. It then answers.")
    'R1 thinks after the tag <think>. It then answers.'
    """
    answer = ""
    position, has_end = 0, True
    for start in _START.finditer(text):
        if start.start() < position:
            continue
        end = THOUGHT_END.search(text, start.end()) if has_end else None
        has_end = end is not None
        if end is not None:
            answer += text[position : start.start()]
            position = end.end()
        elif not _is_within(text, start, position):
            return _after_lone_end(answer + text[position : start.start()])
    return _after_lone_end(answer + text[position:])


def _is_within(text: str, tag: re.Match[str], first: int = 0) -> bool:
    """Whether a tag stands within a sentence, which begins at `first` at the earliest."""
    return _BEFORE.search(text[max(first, tag.start() - _AROUND) : tag.start()]) is not None


def _after_lone_end(answer: str) -> str:
    ends = [
        end
        for end in THOUGHT_END.finditer(answer)
        if not (_is_within(answer, end) and _AFTER.match(answer, end.end(), end.end() + _AROUND))
    ]
    return (answer[ends[-1].end() :] if ends else answer).strip()
