"""Phrases of a text in a script without capitals: the words between function words.

Four kinds of writing systems, distinguished for each run of characters:

* Han and kana. In Japanese the script depends on the kind of word: runs of Han characters and of Katakana are phrases,
separated by Hiragana. In Chinese a few dozen function characters separate them. * Hangul: words, without their last
particle. * Thai, Lao, Khmer, Burmese: no spaces between words and no marks on names; the pieces between spaces, if
short. * Others with spaces (Arabic, Hebrew, Devanagari, Georgian, ...): runs of words between the short ones.
"""

import re
from collections.abc import Iterator

from llama_index.ragkit.text.names import Mention
from llama_index.ragkit.text.scripts import HAN, HANGUL, HIRAGANA, KATAKANA, SOUTHEAST_ASIAN

__all__ = ["uncased_phrases"]

# Characters that are words of their own, except those that also occur in names (都, 会, 以) and in 共和国.
_HAN_GLUE = "(?:[的了是在与與或而也没沒有为為被从從这這那该該个個们們吗嗎呢吧啊着並并]|(?<!共)和(?!平))"
_HAN = re.compile(f"(?:(?!{_HAN_GLUE})[{HAN}]){{2,8}}")
_JAPANESE = re.compile(f"[{HAN}]{{2,12}}|[{KATAKANA}・]{{2,20}}")
_HIRAGANA = re.compile(f"[{HIRAGANA}]")
_KATAKANA = re.compile(f"[{KATAKANA}・]{{2,20}}")
_HANGUL = re.compile(f"[{HANGUL}]{{2,}}")
_PARTICLES = (
    "에서",
    "으로",
    "에게",
    "까지",
    "부터",
    "이다",
    "은",
    "는",
    "이",
    "가",
    "을",
    "를",
    "의",
    "에",
    "로",
    "와",
    "과",
    "도",
)
_PIECE = re.compile(f"[{SOUTHEAST_ASIAN}]{{3,40}}")
# Letters and marks that are none of the above and have no case.
_OTHER_RUN = re.compile(
    "[\u0530-\u0dff\u10d0-\u10ff\u1200-\u137f\u07c0-\u08ff\ufb1d-\ufdff\ufe70-\ufeff]+"
    "(?: [\u0530-\u0dff\u10d0-\u10ff\u1200-\u137f\u07c0-\u08ff\ufb1d-\ufdff\ufe70-\ufeff]+)*"
)
_SHORT = 3  # maximum characters of a function word in those
_MOST_WORDS = 4


def uncased_phrases(text: str) -> list[Mention]:
    """The phrases of the parts of a text in scripts without capitals, by position.

    >>> [phrase.text for phrase in uncased_phrases("东京是日本的首都。")]
    ['东京', '日本', '首都']
    >>> [phrase.text for phrase in uncased_phrases("東京タワーは日本の電波塔です。")]
    ['東京', 'タワー', '日本', '電波塔']
    >>> [phrase.text for phrase in uncased_phrases("서울은 한국의 수도이다.")]
    ['서울', '한국', '수도']
    """
    if text.isascii():
        return []
    patterns = [_JAPANESE] if _HIRAGANA.search(text) else [_HAN, _KATAKANA]
    found = [match.span() for pattern in [*patterns, _PIECE] for match in pattern.finditer(text)]
    found += [span for match in _HANGUL.finditer(text) for span in _without_particle(match)]
    found += [span for match in _OTHER_RUN.finditer(text) for span in _between_short(match)]
    return [Mention(text[start:end], start, end) for start, end in sorted(set(found))]


def _without_particle(match: re.Match[str]) -> Iterator[tuple[int, int]]:
    word = match.group()
    ending = next((particle for particle in _PARTICLES if word.endswith(particle)), "")
    if len(word) - len(ending) >= 2:
        yield match.start(), match.end() - len(ending)
    else:
        yield match.span()


def _between_short(match: re.Match[str]) -> Iterator[tuple[int, int]]:
    """Runs of longer words between short words, of at most `_MOST_WORDS` each."""
    run: list[re.Match[str]] = []
    for word in re.finditer("[^ ]+", match.group()):
        if len(word.group()) > _SHORT:
            run.append(word)
            if len(run) < _MOST_WORDS:
                continue
        if run:
            yield match.start() + run[0].start(), match.start() + run[-1].end()
        run = []
    if run:
        yield match.start() + run[0].start(), match.start() + run[-1].end()
