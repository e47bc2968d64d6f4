"""Scripts without spaces between words, as character ranges for regular expressions.

Word splitting must treat them separately: a run of their characters is not one word, and a single character may be one.

>>> import re
>>> re.findall(f"[{UNSPACED}]|[^\\\\W_{UNSPACED}]+", "Tokyo 東京 ไทย")
['Tokyo', '東', '京', 'ไ', 'ท', 'ย']
"""

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
    "script_of",
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
