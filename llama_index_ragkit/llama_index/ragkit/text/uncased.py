"""Phrases of a text in a script without capitals: the words between function words.

Four kinds of writing systems, distinguished for each run of characters:

* Han and kana. In Japanese the script depends on the kind of word: runs of Han characters and of Katakana are phrases,
  separated by Hiragana. In Chinese, function words and common verbs separate them; so do repetitions, since what a text
  contains twice is likely to be a word.
* Hangul: words, without their last particles.
* Thai, Lao, Khmer, Burmese: no spaces between words and no marks on names; the pieces between spaces and, in Thai,
  between the most common function words, if short.
* Others with spaces (Arabic, Hebrew, Devanagari, Georgian, ...): runs of words between function words and short words.
"""

import re
from collections import Counter
from collections.abc import Iterator

from llama_index.ragkit.text.characters import CASELESS, HAN, HANGUL, HIRAGANA, KATAKANA, SOUTHEAST_ASIAN
from llama_index.ragkit.text.function_words import function_words, written_language
from llama_index.ragkit.text.names import Mention

__all__ = ["uncased_phrases", "without_particles"]

# Words of one character, except those that also occur in many names (都, 会, 所); in a few names others are allowed.
_HAN_GLUE = (
    "[的了是与與或而也没沒有被从從这這那该該个個们們吗嗎呢吧啊着並并在她它他谁誰哪很却卻又让讓跟给給您你我即若曾仍]"
    "|(?<!共)和(?!平)|为(?!公)|為|于(?!谦|右任|洪)|於|以(?!色列)|将(?!军|领|士|帅|相)|把(?!手)|由|不(?!丹|列颠)|几(?!内亚|何)|对(?!手|象)"
)
_HAN_PARTING_TEXT = """
出生 诞生 去世 逝世 毕业 位于 坐落 成立 创立 创办 创建 建立 建于 担任 出任 就任 获得 荣获 赢得 取得 发现 发明
发表 出版 创作 撰写 编写 写成 成为 作为 认为 表示 称为 名为 叫做 包括 包含 属于 来自 以及 因为 所以 因此 但是
然而 如果 虽然 可以 能够 已经 由于 关于 对于 根据 通过 进行 使用 利用 导致 之后 之前 以后 以前 时候 期间 当时
后来 同时 什么 哪里 哪儿 哪些 怎么 怎样 多少 如何 何时 何地 自己 其中 其他 这里 那里 一些 许多 目前 现在 通常
大约 大概 主要 著名 另一 第一 第二 第三
"""
_HAN_CUT = re.compile(f"{'|'.join(_HAN_PARTING_TEXT.split())}|{_HAN_GLUE}")
_HAN_RUN = re.compile(f"[{HAN}]+(?:·[{HAN}]+)*")
_LONGEST_HAN = 8  # characters of a phrase
_LONGEST_FOREIGN = 20  # of a foreign name, which contains points
_JAPANESE = re.compile(f"[{HAN}]{{2,12}}|[{KATAKANA}・]{{2,20}}")
_HIRAGANA = re.compile(f"[{HIRAGANA}]")
_KATAKANA = re.compile(f"[{KATAKANA}・]{{2,20}}")
_HANGUL = re.compile(f"[{HANGUL}]{{2,}}")
# The longest first: in "에서는" both 에서 and 는 are removed.
_PARTICLE_TEXT = """
이라는 이었다 이라고 으로써 으로서 에서 으로 에게 까지 부터 이다 였다 처럼 보다 라는 라고 마다 조차 밖에 이나
이란 이며 은 는 이 가 을 를 의 에 로 와 과 도 만 란 나
"""
_PARTICLES = tuple(_PARTICLE_TEXT.split())
_THAI_TEXT = """
ตั้งอยู่ เป็น ของ และ หรือ คือ ที่ไหน อะไร เมื่อไหร่ เมื่อ อยู่ ได้ ให้ จาก โดย กับ ใน ที่ มี ว่า เกิด ใคร ซึ่ง
นี้ นั้น การ ความ ถูก ไม่
"""
_THAI_GLUE = re.compile("|".join(_THAI_TEXT.split()))
_SEA = re.compile(f"[{SOUTHEAST_ASIAN}]{{3,40}}")
_CASELESS_RUN = re.compile(f"[{CASELESS}]+(?: [{CASELESS}]+)*")
_SPACED = re.compile("[^ ]+")
_SHORT_PIECE = 20
_SHORT = 3  # maximum characters of a function word without a list
_MOST_WORDS = 4


def uncased_phrases(text: str) -> list[Mention]:
    """The phrases of the parts of a text in scripts without capitals, by position.

    >>> [phrase.text for phrase in uncased_phrases("鲁迅出生于浙江绍兴。")]
    ['鲁迅', '浙江绍兴']
    >>> [phrase.text for phrase in uncased_phrases("東京タワーは日本の電波塔です。")]
    ['東京', 'タワー', '日本', '電波塔']
    >>> [phrase.text for phrase in uncased_phrases("서울은 한국의 수도이다.")]
    ['서울', '한국', '수도']
    """
    if text.isascii():
        return []
    is_japanese = _HIRAGANA.search(text) is not None
    found = [match.span() for match in (_JAPANESE if is_japanese else _KATAKANA).finditer(text)]
    found += [] if is_japanese else _chinese(text)
    found += [span for match in _SEA.finditer(text) for span in _between_thai(match)]
    for word in _HANGUL.finditer(text):
        found.append((word.start(), word.start() + len(without_particles(word.group()))))
    runs = list(_CASELESS_RUN.finditer(text))
    small = function_words(written_language(text)) if runs else frozenset()
    found += [span for run in runs for span in _between_small(run, small)]
    return [Mention(text[start:end], start, end) for start, end in sorted(set(found))]


def without_particles(word: str) -> str:
    """A Korean word without the particles at its end, with at least two syllables left.

    A name that ends like a particle loses its end too. It does so in every text, so it is still found.

    >>> without_particles("서울에서는"), without_particles("이순신이"), without_particles("나는")
    ('서울', '이순신', '나는')
    """
    end = len(word)
    while True:
        ending = next((particle for particle in _PARTICLES if word.endswith(particle, 0, end)), "")
        if not ending or end - len(ending) < 2:
            return word[:end]
        end -= len(ending)


def _chinese(text: str) -> list[tuple[int, int]]:
    """Pieces between function words, and the parts of pieces that the text contains more than once."""
    pieces = []
    for run in _HAN_RUN.finditer(text):
        start = run.start()
        for cut in [*_HAN_CUT.finditer(text, run.start(), run.end()), None]:
            end = run.end() if cut is None else cut.start()
            pieces.append((start, end))
            start = end if cut is None else cut.end()
    seen: Counter[str] = Counter()
    for start, end in pieces:
        for a in range(start, end - 1):
            seen.update(text[a:b] for b in range(a + 2, min(a + _LONGEST_HAN, end) + 1))
    spans: list[tuple[int, int]] = []
    for start, end in pieces:
        if 2 <= end - start <= (_LONGEST_FOREIGN if "·" in text[start:end] else _LONGEST_HAN):
            spans.append((start, end))
        for a in range(start, end - 1):
            again = [b for b in range(a + 2, min(a + _LONGEST_HAN, end) + 1) if seen[text[a:b]] > 1]
            if again and (a == start or seen[text[a - 1 : again[-1]]] < seen[text[a : again[-1]]]):
                spans.append((a, again[-1]))
    return spans


def _between_thai(match: re.Match[str]) -> Iterator[tuple[int, int]]:
    """The pieces between function words, and the whole if it is short."""
    if len(match.group()) <= _SHORT_PIECE:
        yield match.span()
    start = match.start()
    for cut in [*_THAI_GLUE.finditer(match.string, match.start(), match.end()), None]:
        end = match.end() if cut is None else cut.start()
        if end - start >= _SHORT:
            yield start, end
        start = end if cut is None else cut.end()


def _between_small(match: re.Match[str], small: frozenset[str]) -> Iterator[tuple[int, int]]:
    """Runs of words between function words and short words, of at most `_MOST_WORDS` each.

    Where function words are known, a short word may be a name on its own.
    """
    run: list[re.Match[str]] = []
    for word in _SPACED.finditer(match.group()):
        is_long = len(word.group()) > _SHORT and word.group() not in small
        if is_long:
            run.append(word)
            if len(run) < _MOST_WORDS:
                continue
        if run:
            yield match.start() + run[0].start(), match.start() + run[-1].end()
        run = []
        if not is_long and small and len(word.group()) == _SHORT and word.group() not in small:
            yield match.start() + word.start(), match.start() + word.end()
    if run:
        yield match.start() + run[0].start(), match.start() + run[-1].end()
