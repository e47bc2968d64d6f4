"""Whether two texts are in different languages, judged only if both are clear."""

from collections import Counter

from llama_index.ragkit.text.function_words import language_votes
from llama_index.ragkit.text.scripts import script_of

__all__ = ["in_another_language"]

_CHARACTERS_READ = 4_000
_LEAST_LETTERS = 4  # of a text whose script counts
_FOREIGN = 0.1  # share of letters in the other script that may be chance
_LEAST_VOTES = 4  # function words of a text whose language counts
_MUCH_MORE = 4  # times as many function words of one language as of the other
_TOGETHER = {"HIRAGANA": "CJK", "KATAKANA": "CJK", "HALFWIDTH": "CJK", "FULLWIDTH": "LATIN"}


def in_another_language(text: str, reference: str) -> bool:
    """Whether a text is in another script or, by its function words, in another language than the reference.

    A text that is too short to tell, or a name alone, is not.

    >>> in_another_language("灯塔的灯烧鲸油，由守塔人点亮。", "The lamp burned whale oil.")
    True
    >>> in_another_language("Otto Lindqvist", "The glassworks was founded by Otto Lindqvist.")
    False
    """
    one, other = _scripts(text), _scripts(reference)
    if min(one.total(), other.total()) < _LEAST_LETTERS:
        return False
    usual = other.most_common(1)[0][0]
    if one[usual] < _FOREIGN * one.total():
        return True
    votes, expected = language_votes(text), language_votes(reference)
    language, count = votes.most_common(1)[0]
    own, known = expected.most_common(1)[0]
    return (
        count >= _LEAST_VOTES
        and known >= _LEAST_VOTES
        and count > _MUCH_MORE * votes[own]
        and (known > _MUCH_MORE * expected[language])
    )


def _scripts(text: str) -> Counter[str]:
    """How many letters of each script the beginning of a text has."""
    names = map(script_of, filter(str.isalpha, text[:_CHARACTERS_READ]))
    return Counter(_TOGETHER.get(name, name) for name in names)
