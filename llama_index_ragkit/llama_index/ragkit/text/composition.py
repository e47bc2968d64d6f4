"""Normal forms in time proportional to the length of a text.

Normal forms order the marks on a letter, and `unicodedata` sorts them in time quadratic in their number. In Unicode's
stream-safe format (UAX #15, section 13) a letter has at most 30, and in no language more than 18.
"""

import re
import unicodedata

__all__ = ["nfc", "nfkc"]

_MOST_MARKS = 30
_LONG_RUN = re.compile(rf"[^\w\x00-\x7f]{{{_MOST_MARKS + 1},}}")  # of marks, or of other signs


def nfkc(text: str) -> str:
    """Normal form NFKC of a text, without the marks of a letter beyond the first 30.

    >>> nfkc("ＧＯ\u0308"), len(nfkc("x" + "\u0301\u0316" * 1_000))
    ('GÖ', 31)
    """
    return unicodedata.normalize("NFKC", _LONG_RUN.sub(_with_fewer_marks, text))


def nfc(text: str) -> str:
    """Normal form NFC, likewise.

    >>> nfc("GO\u0308"), len(nfc("x" + "\u0301\u0316" * 1_000))
    ('GÖ', 31)
    """
    if unicodedata.is_normalized("NFC", text):
        return text
    return unicodedata.normalize("NFC", _LONG_RUN.sub(_with_fewer_marks, text))


def _with_fewer_marks(run: re.Match[str]) -> str:
    kept: list[str] = []
    marks = 0
    for character in run.group():
        marks = marks + 1 if unicodedata.combining(character) else 0
        if marks <= _MOST_MARKS:
            kept.append(character)
    return "".join(kept)
