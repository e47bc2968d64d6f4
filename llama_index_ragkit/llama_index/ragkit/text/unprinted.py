"""Normal forms of a text, and characters that are in it but not on its page, and would change the words around."""

import re
import unicodedata

__all__ = ["nfc", "nfkc", "without_format", "without_unprinted"]

# Normal forms order the marks on a letter, and `unicodedata` sorts them in time quadratic in their number. In Unicode's
# stream-safe format (UAX #15, section 13) a letter has at most 30, and in no language more than 18.
_MOST_MARKS = 30
_LONG_RUN = re.compile(rf"[^\w\x00-\x7f]{{{_MOST_MARKS + 1},}}")  # of marks, or of other signs

_SOFT_HYPHEN = "\u00ad"
# Control sequences of terminals (ECMA-48, section 5.4), and a character that the next one is printed over.
_TERMINAL = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|[^\n]\x08")


# Zero-width spaces and joiners, the word joiner, the byte order mark, and marks, embeddings and isolates of direction.
_FORMAT = re.compile("[\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff]+")


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


def without_format(text: str) -> str:
    """A text without format characters, which have no width and stand within words.

    >>> without_format("Mu\u200bñoz \u2068Wien\u2069")
    'Muñoz Wien'
    """
    return text if text.isascii() else _FORMAT.sub("", text)


def without_unprinted(text: str) -> str:
    r"""A text with composed letters (NFC), without format characters, soft hyphens and the line break after one,
    terminal colours, and overstruck characters.

    >>> without_unprinted("the light\u00ad\nhouse"), without_unprinted("\x1b[1mNAME\x1b[0m")
    ('the lighthouse', 'NAME')
    >>> without_unprinted("Jose\u0301 Mu\u200bn\u0303oz")
    'José Muñoz'
    """
    if not text.isascii():
        text = nfc(without_format(text))
    if _SOFT_HYPHEN in text:
        text = text.replace("\r\n", "\n").replace(_SOFT_HYPHEN + "\n", "").replace(_SOFT_HYPHEN, "")
    return _TERMINAL.sub("", text) if "\x1b" in text or "\x08" in text else text
