"""Sentence splitting in any script, without a model and without a download.

It is based on `sentencex` (Wikimedia, MIT licence): sentence marks of some 300 languages, abbreviation
lists ("Dr.", "i.e.", "z. B."), decimals, addresses, initials, quotations and list items. It needs the language; by
default that is derived from the script of the text (Russian for Cyrillic, English for Latin), which finds every
sentence mark but misses some abbreviations. LlamaIndex's own splitter uses an untrained Punkt model, which splits
after "Dr." and does not support `。`.

Added here: sentence marks of Khmer and Tibetan, headings, and Thai and Lao, which end a sentence with a space; common
abbreviations that its English rules lack ("Ms.", "approx.", "bzw."), initials other than ASCII letters, German ordinals
before a month or a century, and Chinese and Japanese sentences that begin with a number. A single line break does not
end a sentence, since texts are wrapped. A blank line, a list item or a Markdown heading does.

Speech is found by its marks, since a splitter leaves a quotation in one piece.

No sentence has more than 10,000 characters. `sentencex` takes time quadratic in the length of a paragraph, so a longer
paragraph is read in windows of that length, each from the beginning of a sentence. A quotation or bracket that does not
end in its window is ended there.
"""

import re
from collections import Counter
from collections.abc import Iterator
from itertools import islice, pairwise

from sentencex import segment  # type: ignore[import-untyped]

from llama_index.ragkit.text.characters import script_of

__all__ = [
    "LINE_END",
    "SENTENCE_END",
    "language_of",
    "sentence_spans",
    "sentences_within",
    "speech_spans",
    "split_sentences",
]

_MARKS, _CLOSING = ".!?…।؟。！？", "[\"'”’»)\\]]*"

SENTENCE_END = re.compile(f"[{_MARKS}]{_CLOSING}$")
"""At the end of a text: it ends a sentence, with a mark and what closes a quotation or a bracket after it."""

LINE_END = re.compile(f"[{_MARKS}:：]{_CLOSING}$")
"""At the end of a line: the next line does not continue it. A colon counts too, though no sentence ends there: "Who
paid:" before a list is a whole line, but says nothing by itself.
"""

# First word of a letter's Unicode name -> language whose rules are used for its script.
_LANGUAGES = {
    "LATIN": "en", "CYRILLIC": "ru", "GREEK": "el", "ARABIC": "ar", "HEBREW": "he", "ARMENIAN": "hy", "GEORGIAN": "ka",
    "ETHIOPIC": "am", "DEVANAGARI": "hi", "BENGALI": "bn", "GURMUKHI": "pa", "GUJARATI": "gu", "ORIYA": "or",
    "TAMIL": "ta", "TELUGU": "te", "KANNADA": "kn", "MALAYALAM": "ml", "SINHALA": "si", "MYANMAR": "my", "CJK": "zh",
    "HIRAGANA": "ja", "KATAKANA": "ja", "HANGUL": "ko",
}  # fmt: skip
_LETTERS_READ = 500  # enough to determine the script of a text
_WINDOW = 10_000  # characters that are segmented at once

# sentencex measures some gaps in bytes, and panics if a space or a line end is longer than one.
_WIDE = re.compile(r"[^\S\x00-\x7f]|[\ud800-\udfff]")
_NARROW = {"\x85": "\n", "\u2028": "\n", "\u2029": "\n"}
# A point that ends no sentence, by what stands before and after it. Lookbehinds need words of one length.
_POINT = re.compile(
    r"\.(?:(?<=\b(?:Bd|Eq|Jh|Ms|Mx|Nr|Ud|Wm)\.)"
    r"|(?<=\b(?:Abb|Abs|Dra|Eqs|Kap|Mio|Mme|Mrd|Sra|Uds|Vol|bzw|env|geb|ggf|núm|pág|sog|vgl)\.)"
    r"|(?<=\b(?:Aufl|Chap|Chas|Figs|Hrsg|Mlle|Thos|Vols|chap|evtl|excl|incl|inkl|págs|zzgl)\.)"
    r"|(?<=\b(?:Srta|janv|févr)\.)|(?<=\baprox\.)|(?<=\bapprox\.)"
    r"|(?:(?<=\b\d\.)|(?<=\b\d\d\.))(?= (?:Januar|Februar|März|Mai|Juni|Juli|Oktober|Dezember|Jahrhundert|Jh\."
    r"|Weltkrieg|und \d|(?:April|August|September|November) \d{4}))"
    r"|(?<=-U\.)(?=S\.)|(?<=-U\.S\.)|(?<=\b[A-Z]\.)(?=-[A-Z]\.)|(?<=\b[A-Z]\.-[A-Z]\.)"
    r"|(?<=\b[À-ÞĀ-ſΆ-ΫЁЄІЇА-Я]\.)|(?<=\bт\.[екн]\.)|(?=[,;]))"  # initials; "т.е."
)
_NUMBER = re.compile("([。！？][”」』]?)[0-9]")  # the library takes the mark for a decimal point

_LATE_ENDS = re.compile(
    "(?<=[\u17d4\u17d5\u0f0d-\u0f11])(?![\u17d4\u17d5\u0f0b-\u0f14])"  # after the marks of Khmer and Tibetan
    "|(?<=[\u0e01-\u0e45\u0e47-\u0eff])\\s+(?=[\u0e01-\u0eff])"  # a space in Thai or Lao, but not after the sign ๆ
    "|^ {0,3}#{1,6}[ \t].*\n",  # a markdown heading
    re.MULTILINE,
)


def split_sentences(text: str, language: str | None = None) -> list[str]:
    """The sentences of a text in order, without the white space around them.

    `language` is an ISO 639-1 code ("de", "ja"); None to choose it by the script.

    >>> split_sentences("Dr. Lee paid $3.50. 很好。走吧！")
    ['Dr. Lee paid $3.50.', '很好。', '走吧！']
    """
    return [text[start:end] for start, end in sentence_spans(text, language)]


def sentence_spans(text: str, language: str | None = None) -> list[tuple[int, int]]:
    """The positions of the sentences of :func:`split_sentences`: `text[start:end]`, in order, without overlap."""
    readable = text if text.isascii() else _NUMBER.sub(r"\1一", _WIDE.sub(_narrow, text))
    readable = _POINT.sub("_", readable)  # the same length as the text, character by character
    spans = []
    for start, piece in _pieces(readable, language or language_of(readable)):
        cuts = [0, *(match.end() for match in _LATE_ENDS.finditer(piece)), len(piece)]
        for a, b in pairwise(cuts):
            part = piece[a:b]
            if part.strip():
                spans.append((start + a + len(part) - len(part.lstrip()), start + a + len(part.rstrip())))
    return spans


def _pieces(text: str, language: str) -> Iterator[tuple[int, str]]:
    """The pieces of a text that end with a sentence, and where they begin."""
    begin = 0
    while begin < len(text):
        window = text[begin : begin + _WINDOW]
        goes_on = begin + len(window) < len(text)
        blank = window.rfind("\n\n") if goes_on else -1
        if blank >= 0:
            window = window[: blank + 2]
        elif goes_on:
            window = window[: max(window.rfind(" "), window.rfind("\n")) + 1] or window
        found = []
        end = 0
        for piece in segment(language, window):
            if not piece.isspace():  # blank lines and some marks may be in no piece
                place = window.index(piece, end)
                end = place + len(piece)
                found.append((begin + place, piece))
        if goes_on and blank < 0 and len(found) > 1:
            begin, _ = found.pop()  # it may continue after the window
        else:
            begin += len(window)
        yield from found


def _narrow(match: re.Match[str]) -> str:
    character = match.group()
    return _NARROW.get(character, " " if character.isspace() else "\ufffd")


def language_of(text: str) -> str:
    """The language whose rules are used for a text, an ISO 639-1 code derived from its script; "en" for a text without
    letters.

    >>> language_of("Το πλοίο έφυγε.")
    'el'
    """
    if text.isascii():
        return "en"  # as below, in a fraction of the time
    scripts = Counter(map(script_of, islice(filter(str.isalpha, text), _LETTERS_READ)))
    if scripts["HIRAGANA"] + scripts["KATAKANA"] > scripts.total() / 20:
        return "ja"  # Japanese is mostly written with Chinese characters
    known = [(count, script) for script, count in scripts.items() if script in _LANGUAGES]
    return _LANGUAGES[max(known)[1]] if known else "en"


# "Ross Geller: Hi!", at the beginning of a line or after a sentence: lines may have been joined.
_SPEAKER = re.compile(
    r"(?:^|(?<=[.!?…)\]]\s))#?[^\W\d_][\w.'’-]*(?: [^\W\d_][\w.'’-]*){0,3}#?:[ \t]+(?=\S)", re.MULTILINE
)
_ENDED = re.compile(r"[.!?…][\"'”’)\]]{0,3}\s*\Z")
# A quotation at the beginning of a sentence or after a comma or colon, whose last mark stands before the closing quote.
_SAID = re.compile(
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
    return sorted([*turns, *(match.span(1) for match in _SAID.finditer(text))])


def sentences_within(text: str, span: tuple[int, int]) -> list[tuple[int, int]]:
    """The positions of the sentences of speech: a splitter of sentences leaves a quotation in one piece.

    >>> sentences_within("'Be quiet. Go to sleep,' she said.", (1, 24))
    [(1, 11), (11, 24)]
    """
    start, end = span
    ends = (match.end() for match in _START.finditer(text, start, end))
    return list(pairwise((start, *ends, end)))
