"""The text of a segment: cut from its source, or joined from its chunks without gluing words or repeating text."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

__all__ = ["Piece", "joined_text"]

_PARAGRAPH = "\n\n"
_LINE = "\n"


class Piece(NamedTuple):
    """A chunk of a segment.

    Attributes
    ----------
    text : its text
    source : id of the text from which it was cut; None if unknown
    start, end : its place in its source, in characters; None if unknown
    """

    text: str
    source: str | None = None
    start: int | None = None
    end: int | None = None


def joined_text(pieces: Sequence[Piece], sources: Mapping[str, str] | None = None) -> str:
    """The text of neighbouring chunks.

    Neighbours from one source are joined by the white space that the splitter stripped, if the source's text is known
    and the offsets fit it; or by a line break, if it is unknown and one character is missing. Text that overlapping
    offsets repeat is left out; chunks that touch are joined directly. Between sources, at any other gap, and if nothing
    is known, chunks are joined by a blank line, since the text in a gap may have been left out or deleted on purpose.

    Parameters
    ----------
    pieces : chunks in the order of the document
    sources : the text of each known source

    >>> a, b = Piece("One.", "d", 0, 4), Piece("Two.", "d", 5, 9)
    >>> joined_text([a, b], {"d": "One. Two."}), joined_text([a, b])
    ('One. Two.', 'One.\\nTwo.')
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
    if source is not None and any(source[piece.start : piece.end] != piece.text for piece in run):
        source = None
    text = run[0].text
    reached = run[0].end or 0
    for piece in run[1:]:
        start, end = piece.start or 0, piece.end or 0
        doubled = reached - start
        if doubled >= 0 and text.endswith(piece.text[:doubled]):
            text += piece.text[doubled:]
        elif end > reached:  # a gap, or a text that differs from its source there
            between = "" if source is None else source[reached:start]
            if not between and doubled == -1:
                between = _LINE  # a splitter stripped one character of white space
            text += (between if between.isspace() else _PARAGRAPH) + piece.text
        reached = max(reached, end)
    return text
