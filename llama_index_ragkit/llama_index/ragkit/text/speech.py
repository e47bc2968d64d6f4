"""Speech in a text: the turns of a dialogue, and quotations that a sentence introduces."""

import re
from itertools import pairwise

__all__ = ["sentences_within", "speech_spans"]

# "Ross Geller: Hi!", at the beginning of a line or after a sentence: lines may have been joined.
_SPEAKER = re.compile(
    r"(?:^|(?<=[.!?…)\]]\s))#?[^\W\d_][\w.'’-]*(?: [^\W\d_][\w.'’-]*){0,3}#?:[ \t]+(?=\S)", re.MULTILINE
)
_ENDED = re.compile(r"[.!?…][\"'”’)\]]{0,3}\s*\Z")
# A quotation at the beginning of a sentence or after a comma or colon, whose last mark stands before the closing quote.
_QUOTED = re.compile(
    r"[\"“„«'‘](?=\w)(?:(?<=^.)|(?<=[,:;.!?…\"“”'‘’—–-]\s.))((?:(?!\n\n).){1,500}?[,.!?…—–-][\"”“»'’])(?!\w)",
    re.MULTILINE | re.DOTALL,
)
_START = re.compile(r"[.!?…][\"”»'’)\]]*\s+")


def speech_spans(text: str) -> list[tuple[int, int]]:
    """Where speech begins and ends, by position: from the first word of each turn or quotation.

    What follows a short name and a colon is a turn if it ends as sentences do.

    >>> text = "Ross: Hi, Rachel!\\nRachel: Hello. Ross: Bye!"
    >>> [text[start:end].strip() for start, end in speech_spans(text)]
    ['Hi, Rachel!', 'Hello.', 'Bye!']
    >>> text = "He read 'Heat' and said, 'Now I know.'"
    >>> [text[start:end] for start, end in speech_spans(text)]
    ["Now I know.'"]
    """
    speakers = list(_SPEAKER.finditer(text)) if ":" in text else []
    turns = []
    for match, after in zip(speakers, [*(match.start() for match in speakers[1:]), len(text)], strict=False):
        line_end = text.find("\n", match.end(), after)
        turn = match.end(), after if line_end < 0 else line_end
        if _ENDED.search(text, *turn):
            turns.append(turn)
    return sorted([*turns, *(match.span(1) for match in _QUOTED.finditer(text))])


def sentences_within(text: str, span: tuple[int, int]) -> list[tuple[int, int]]:
    """The positions of the sentences of speech: a splitter of sentences leaves a quotation in one piece.

    >>> sentences_within("'Be quiet. Go to sleep,' she said.", (1, 24))
    [(1, 11), (11, 24)]
    """
    start, end = span
    ends = (match.end() for match in _START.finditer(text, start, end))
    return list(pairwise((start, *ends, end)))
