"""Characters: the scripts without spaces or capitals, normal forms, and characters that are not printed.

Word splitting must treat scripts without spaces separately: a run of their characters is not one word, and a single
character may be one.

>>> import re
>>> re.findall(f"[{UNSPACED}]|[^\\\\W_{UNSPACED}]+", "Tokyo 東京 ไทย")
['Tokyo', '東', '京', 'ไ', 'ท', 'ย']
"""

import re
import unicodedata
from functools import lru_cache

__all__ = [
    "CASELESS",
    "HAN",
    "HANGUL",
    "HIRAGANA",
    "KANA",
    "KATAKANA",
    "LETTER",
    "MARKS",
    "SOUTHEAST_ASIAN",
    "UNSPACED",
    "nfc",
    "nfkc",
    "normalise",
    "script_of",
    "without_format",
    "without_unprinted",
]

# Chinese characters, with radicals (as some PDF files hold them), strokes, and the marks 々 and 〇.
HAN = "\u2e80-\u2fdf\u3005\u3007\u31c0-\u31ef\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
HIRAGANA = "\u3041-\u309f"  # its letters
KATAKANA = "\u30a1-\u30fa\u30fc"  # its letters, and the mark of a long vowel
KANA = "\u3040-\u30ff\u31f0-\u31ff"  # all characters of both blocks
SOUTHEAST_ASIAN = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u19e0-\u19ff"  # Thai and Lao, Burmese, Khmer
UNSPACED = f"{SOUTHEAST_ASIAN}\u0f00-\u0fff{KANA}\u3100-\u312f\u31a0-\u31bf{HAN}"  # with Tibetan and Bopomofo

HANGUL = "\uac00-\ud7af"  # Korean has spaces, but its words are as short as those of Chinese and Japanese


def _ranges(categories: str, *blocks: range) -> str:
    """The characters of blocks that belong to general categories, as ranges."""
    codes = [code for block in blocks for code in block if unicodedata.category(chr(code))[0] in categories]
    ranges: list[list[int]] = []
    for code in codes:
        if ranges and code == ranges[-1][1] + 1:
            ranges[-1][1] = code
        else:
            ranges.append([code, code])
    return "".join(f"\\u{first:04x}-\\u{last:04x}" for first, last in ranges)


_JOINERS = "\u200c\u200d"  # zero-width, within words of Persian and of Indic scripts
MARKS = _ranges("M", range(0x0300, 0x1B00)) + _JOINERS
"""Vowel signs, points and accents: `\\w` does not match them, but they belong to the word of the letter before them."""
LETTER = f"(?:[^\\W\\d_]|[{MARKS}])"
"""A letter with its marks, but no digit, as a regular expression."""
CASELESS = (
    _ranges("LM", range(0x0590, 0x0E00), range(0x10D0, 0x1100), range(0x1200, 0x1380), range(0xFB1D, 0xFE00))
    + _ranges("LM", range(0xFE70, 0xFF00))
    + _JOINERS
)
"""Letters and marks of scripts with spaces but without capitals: Hebrew, Arabic, the Indic ones, Georgian, Ethiopic."""


@lru_cache(maxsize=4096)
def script_of(character: str) -> str:
    """The script of a letter: the first word of its Unicode name, such as "LATIN" or "CJK"; "?" without a name.

    >>> script_of("東"), script_of("")
    ('CJK', '?')
    """
    return unicodedata.name(character, "?").split(" ", 1)[0] if character else "?"


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


# Marks are part of letters in many scripts (Devanagari vowels, Arabic points); the underscore is neither.
_WORD_CATEGORIES = frozenset("LMN")
_ASCII_TABLE = {code: " " for code in range(128) if not chr(code).isalnum()}

_OPTIONAL = re.compile(
    "(?<=[\u0400-\u052f])[\u0300\u0301]+"  # stress on Cyrillic letters
    "|[\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7]+"  # points of Hebrew
    "|[\u0610-\u061a\u0640\u064b-\u065f\u0670\u06d6-\u06dc\u06df-\u06e8\u06ea-\u06ed]+"  # those of Arabic
)
_SAME_LETTERS = {0x06CC: 0x064A, 0x06A9: 0x0643}


def normalise(text: str) -> str:
    """The form in which phrases are compared; it may be empty.

    NFKC and full case folding. Every character that is not a letter, a mark or a number becomes a space, an apostrophe
    too, so that a name is found in its genitive. Runs of spaces become one space. All scripts are kept. Format
    characters vanish, and so do marks that writers may leave out: stress in Cyrillic, points in Hebrew and Arabic.
    Persian and Urdu forms of letters become the Arabic ones.

    >>> normalise("  The U.S. Army"), normalise("ＧÖＴＴＩＮＧＥＮ"), normalise("Straße"), normalise("东京（日本）")
    ('the u s army', 'göttingen', 'strasse', '东京 日本')
    """
    if text.isascii():
        return " ".join(text.lower().translate(_ASCII_TABLE).split())
    # Folding can undo a composition, and composition can produce a capital. So Unicode's rule for caseless matching
    # (The Unicode Standard, section 3.13, D146) is to repeat both.
    folded = nfkc(nfkc(nfkc(without_format(text)).casefold()).casefold())
    folded = _OPTIONAL.sub("", folded).translate(_SAME_LETTERS)
    kept = (char if unicodedata.category(char)[0] in _WORD_CATEGORIES else " " for char in folded)
    return " ".join("".join(kept).split())
