"""Words without inflection, for comparison: "Москве" and "Москва", "서울은" and "서울의"."""

from collections import defaultdict
from collections.abc import Sequence

from Stemmer import Stemmer

from llama_index.ragkit.text.characters import script_of
from llama_index.ragkit.text.uncased import without_particles

__all__ = ["all_stems", "language_bit", "stem_masks", "stems"]

# ISO 639-1 code -> name of the Snowball algorithm. Ukrainian has none; the Russian one removes most of its endings.
_SNOWBALL = {
    "ar": "arabic", "da": "danish", "de": "german", "el": "greek", "en": "english", "es": "spanish", "fi": "finnish",
    "fr": "french", "hi": "hindi", "hu": "hungarian", "hy": "armenian", "it": "italian", "nl": "dutch",
    "no": "norwegian", "pt": "portuguese", "ro": "romanian", "ru": "russian", "sv": "swedish", "ta": "tamil",
    "tr": "turkish", "uk": "russian",
}  # fmt: skip
# First word of a letter's Unicode name -> the languages of its script, the most frequent first.
_OF_SCRIPT = {
    "LATIN": ("en", "cs", "da", "de", "es", "fi", "fr", "hu", "it", "nl", "no", "pl", "pt", "ro", "sv", "tr"),
    "CYRILLIC": ("ru", "uk"),
    "GREEK": ("el",),
    "ARABIC": ("ar", "fa"),
    "DEVANAGARI": ("hi",),
    "TAMIL": ("ta",),
    "ARMENIAN": ("hy",),
}
# The bits of languages in stored masks: more may follow, but none may move.
_BITS = tuple(dict.fromkeys(code for languages in _OF_SCRIPT.values() for code in languages))
_ANY = (1 << len(_BITS)) - 1


def all_stems(word: str) -> dict[str, int]:
    """The stems that a word has in the languages of its script, each with a bit mask of these languages.

    >>> "москв" in all_stems("москве")
    True
    """
    (found,) = stem_masks([word])
    return found


def stem_masks(words: Sequence[str]) -> list[dict[str, int]]:
    """:func:`all_stems` of many words.

    >>> stem_masks(["москве", "москва"])[1] == all_stems("москва")
    True
    """
    found: list[dict[str, int]] = [{} for _ in words]
    by_script: defaultdict[str, list[int]] = defaultdict(list)
    for i, word in enumerate(words):
        by_script[script_of(word[:1])].append(i)
    for script, places in by_script.items():
        here, languages = [words[i] for i in places], _OF_SCRIPT.get(script)
        for code in languages or _BITS[:1]:
            mask = 1 << _BITS.index(code) if languages else _ANY
            for i, stem in zip(places, _in_language(here, script, code), strict=True):
                found[i][stem] = found[i].get(stem, 0) | mask
    return found


def language_bit(word: str, language: str) -> int:
    """The bit of the language in which :func:`stems` reads a word."""
    languages = _OF_SCRIPT.get(script_of(word[:1]), _BITS)
    return 1 << _BITS.index(language if language in languages else languages[0])


def stems(words: Sequence[str], language: str) -> list[str]:
    """The stem of each word, by Snowball; a Korean word without its particles; other words as they are.

    Parameters
    ----------
    words : in lower case
    language : ISO 639-1 code; for words in another script, the most frequent language of that script is used

    >>> stems(["москве", "москва", "einsteins", "서울은", "北京"], "de")
    ['москв', 'москв', 'einstein', '서울', '北京']
    """
    found = list(words)
    by_script: defaultdict[str, list[int]] = defaultdict(list)
    for i, word in enumerate(words):
        by_script[script_of(word[:1])].append(i)
    for script, places in by_script.items():
        languages = _OF_SCRIPT.get(script, (language,))
        code = language if language in languages else languages[0]
        for i, stem in zip(places, _in_language([words[i] for i in places], script, code), strict=True):
            found[i] = stem
    return found


def _in_language(words: Sequence[str], script: str, code: str) -> list[str]:
    """The stems of words of one script."""
    if script == "HANGUL":
        return [without_particles(word) for word in words]
    if script not in _OF_SCRIPT or code not in _SNOWBALL:
        return list(words)
    # One stemmer per call, since threads must not share its cache.
    stemmed = Stemmer(_SNOWBALL[code], 0).stemWords(list(words))
    return [stem or word for stem, word in zip(stemmed, words, strict=True)]
