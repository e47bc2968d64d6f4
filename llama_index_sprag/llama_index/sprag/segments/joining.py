"""The text of a segment: cut from its source, or put together from its chunks without gluing words or doubling text."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

__all__ = ["Piece", "joined_text"]

_PARAGRAPH = "\n\n"


class Piece(NamedTuple):
    """A chunk of a segment.

    Attributes
    ----------
    text : its text
    source : id of the text that it was cut from; None where that is not known
    start, end : where it stands in its source, in characters; None where that is not known
    """

    text: str
    source: str | None = None
    start: int | None = None
    end: int | None = None


def joined_text(pieces: Sequence[Piece], sources: Mapping[str, str] | None = None) -> str:
    """The text that neighbouring chunks stand for.

    Neighbours of one source are a slice of it, with the white space that a splitter strips and anything else that lies
    between them, once where they overlap. That needs the source's text and offsets that fit it. Otherwise, the texts
    follow each other: what is doubled by overlapping offsets is left out; texts that touch are joined as they are;
    across a gap, across sources and where nothing is known, a blank line stands between them.

    Parameters
    ----------
    pieces : chunks in the order of the document
    sources : text of each source, of those that are known

    >>> a, b = Piece("One.", "d", 0, 4), Piece("Two.", "d", 5, 9)
    >>> joined_text([a, b], {"d": "One. Two."}), joined_text([a, b])
    ('One. Two.', 'One.\\n\\nTwo.')
    """
    runs: list[list[Piece]] = []
    for piece in pieces:
        if runs and _follows(runs[-1][-1], piece):
            runs[-1].append(piece)
        else:
            runs.append([piece])
    return _PARAGRAPH.join(text for run in runs if (text := _run(run, sources or {})))


def _follows(last: Piece, piece: Piece) -> bool:
    """Whether both have places in one source, in order."""
    return (
        piece.source is not None
        and piece.source == last.source
        and None not in (last.start, last.end, piece.start, piece.end)
        and (last.start or 0) <= (piece.start or 0)
    )


def _run(run: Sequence[Piece], sources: Mapping[str, str]) -> str:
    """The text of chunks of one source that have places in it, or of a single chunk."""
    source = sources.get(run[0].source) if run[0].source is not None else None
    if source is not None and all(_fits(piece, source) for piece in run):
        return source[run[0].start : max(piece.end or 0 for piece in run)]
    text = run[0].text
    reached = run[0].end or 0
    for piece in run[1:]:
        start, end = piece.start or 0, piece.end or 0
        doubled = reached - start
        if doubled >= 0 and text.endswith(piece.text[:doubled]):
            text += piece.text[doubled:]
        elif end > reached:  # a gap, or a text that is not what its source has there
            text += _PARAGRAPH + piece.text
        reached = max(reached, end)
    return text


def _fits(piece: Piece, source: str) -> bool:
    return piece.start is not None and source[piece.start : piece.end] == piece.text
