"""Names in a text: capitalised words and quotations; in scripts without capitals the words between function words.

*With capitals.* Function words and numbers may occur inside a run of capitalised words ("Duke of Saxe-Eisenach", "2018
Winter Games"). The first word of a sentence is always capitalised. It counts only if a name continues after it, if the
text has it capitalised elsewhere within a sentence, or if a singular verb of being or brackets follow ("Ulm is", "Ulm
(in Swabia)"). A function word of the text's language never counts. The number of a section is no part of a name ("2.1
Confidential Information"), nor is a word in capitals that begins the next sentence ("Privacy Notice This explains"). In
speech, neither are interjections before a name and "I" after it ("Hey Monica", "Ross and I"). Whole sentences in
capitals and quoted speech are no names.

*Without capitals.* Four kinds of writing systems, distinguished for each run of characters:

* Han and kana. In Japanese the script depends on the kind of word: runs of Han characters and of Katakana are phrases,
  separated by Hiragana. In Chinese, function words and common verbs separate them; so do repetitions, since what a text
  contains twice is likely to be a word.
* Hangul: words, without their last particles.
* Thai, Lao, Khmer, Burmese: no spaces between words and no marks on names; the pieces between spaces and, in Thai,
  between the most common function words, if short.
* Others with spaces (Arabic, Hebrew, Devanagari, Georgian, ...): runs of words between function words and short words.
"""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from llama_index.ragkit.text.characters import CASELESS, HAN, HANGUL, HIRAGANA, KANA, KATAKANA, MARKS, SOUTHEAST_ASIAN
from llama_index.ragkit.text.function_words import (
    FUNCTION_WORDS,
    function_words,
    is_aside,
    is_date,
    is_filler,
    is_name,
    written_language,
)
from llama_index.ragkit.text.sentences import sentence_spans, sentences_within, speech_spans
from llama_index.ragkit.text.stems import without_particles

__all__ = ["ABBREVIATED", "WORD", "Mention", "names", "uncased_phrases"]


class Mention(NamedTuple):
    """A phrase as written in a text: ``text[start:end]``."""

    text: str
    start: int
    end: int


# A word may contain apostrophes, hyphens, points and "&", as in "O'Brien", "Saxe-Coburg", "U.S" and "AT&T"; a slash
# only between a few capitals, as in "I/O", "TCP/IP" and "OS/2".
_MARKED = rf"(?:[{MARKS}]+[^\W_{KANA}{HAN}{HANGUL}]*)*"  # letters that are not composed, and those after them
WORD = re.compile(
    r"\b(?!N/A\b|AND/OR\b)[A-Z]{1,4}/[A-Z0-9]{1,3}\b"
    rf"|[^\W_]+{_MARKED}(?:['’.\-‐‑&]?[^\W_{KANA}{HAN}{HANGUL}]+{_MARKED})*"
)
_INSIDE = r"([^\"“”„«»「」『』《》\n]{2,80}?)[\s,.;]*"
_QUOTED = re.compile(
    rf"[“„«「『《]\s*(?!\s){_INSIDE}[”“»」』》]"
    # A straight mark may open or close; a key of JSON is no name.
    rf"|(?<![A-Za-z0-9.,;:!?'\")])\"(?!\s){_INSIDE}\"(?![A-Za-z0-9\"]|\s?:\s?[\"\[{{\d])"
)
_CODE = re.compile(r"[=\[\]{}\\<>_|%#]|\w\(")
_GENITIVE = re.compile(r"['’]s?$")
_JOINTS = frozenset((" ", "-", " & ", "- ", "\u00a0"))
_TITLES_TEXT = "St Dr Mr Mrs Ms Jr Sr Mt Ft Prof Rev Gen Col Capt Mme Mlle Sra Srta Dra"
ABBREVIATED = frozenset(_TITLES_TEXT.split())
# Abbreviations before a number or a name, which are none with the point after them; and what firms add to their names.
_SHORT_TEXT = """
Abb Abs Art Bros Ch Chap Co Corp Dept Eds Eq Eqs Fig Figs Kap Messrs Mio Mrd No Nos Nr Sec Univ Vol
"""
_ABBREVIATIONS = ABBREVIATED.union(_SHORT_TEXT.split())
_LEGAL_FORMS = frozenset(("Inc", "GmbH", "LLC", "LLP", "Ltd", "PLC", "Plc"))
_INITIALS = re.compile(r"[^\W\d_](?:\.?[ -][^\W\d_])+")
_GREETING = re.compile(
    r"^(?:Hi|Hey|Hello|Dear|Hallo|Lieber?|Chère?|Cher|Bonjour|Querid[oa]|Estimad[oa]|Hola|Ciao)(?= [^\n,]{1,40},$)",
    re.MULTILINE,
)
_MOST_WORDS = 20  # of a name
_MOST_QUOTED = 5  # words of a quotation that is taken for a name, whatever its capitals
_MOST_SHOUTED = 8  # words in capitals
_MOST_SMALL = 3  # "Prince of the House of", "Maria de los Angeles": no name has more consecutive small words

# A verb of being in the singular, which follows a name at the beginning of a sentence.
_VERB_TEXT = """
is was has had ist war hat hatte wurde wird est était fut es era fue è fu foi é werd är var er blev ble był była jest
был была было является находится родился родилась основан основана основано расположен расположена расположено
"""
_VERBS = frozenset(_VERB_TEXT.split())
# A word before the year of an event, not of a name ("the 2018 Winter Games").
_DATING_TEXT = "in since until by im seit bis en depuis desde nel dal em sedan siden w od в с до"
_DATING = frozenset(_DATING_TEXT.split())
# Words that begin a sentence, and rarely end a name.
_BEGINNING = frozenset(("Although", "Except", "From", "If", "Our", "These", "This", "We", "When", "While", "Your"))
_SECTION = re.compile(r"\d+(?:\.\d+)+")
_YEAR = re.compile(r"1\d{3}|20\d{2}")
_NUMBER = re.compile(r"\d[\d.]*")
_DIGIT_COMMA = re.compile(r"\d,")
_BRACKET = re.compile(r"(?<!\s)\s*\(")

# Small words in names, in languages of Latin script.
_SMALL_TEXT = """
of the de la le los las les du des del della di da do dos das van von der den zu zur y e et and al el bin ibn ben av af
og i na no in on at to for a an und
"""
# Those that may also separate two names: both readings are returned.
_BETWEEN_TEXT = "and y e et und og i in on at to for"
# What a firm calls itself after "and": "Strake and Sons", "Vogel und Söhne". None is a name of its own.
_FIRM_TEXT = """
sons son daughters daughter brothers bros sisters co company partners partner associates successors nephews söhne sohn
töchter brüder fils filles frères cie compagnie associés hijos hijo hermanos compañía cía socios figli
figlio fratelli soci filhos irmãos zonen zoon söner bröder sønner synowie сыновья
"""
_SMALL, _BETWEEN, _FIRM = (frozenset(words.split()) for words in (_SMALL_TEXT, _BETWEEN_TEXT, _FIRM_TEXT))


def names(text: str) -> list[Mention]:
    """The names of a text by position; of two that begin together, the longer first.

    Where a small word may separate two names, the whole and its parts are returned, except the parts of a firm's name
    ("Strake and Sons"). A genitive ending is dropped.

    >>> [name.text for name in names("The son of Adalbert II of Tuscany and Bertha. Guy's widow read “Of Ships”.")]
    ['Adalbert II of Tuscany and Bertha', 'Adalbert II of Tuscany', 'Bertha', 'Guy', 'Of Ships']
    """
    words = list(WORD.finditer(text))
    starts = [word.start() for word in words]
    speech = speech_spans(text)
    spoken = {k for start, end in speech for k in range(bisect_left(starts, start), bisect_left(starts, end))}
    numbers = _rows_of_numbers(text, words)
    small = function_words(written_language(text)) | FUNCTION_WORDS
    sentences = [*sentence_spans(text), *(part for span in speech for part in sentences_within(text, span))]
    openers = {k for start, end in sentences if (k := bisect_left(starts, start)) < bisect_left(starts, end)}
    sections = {k for k, start in enumerate(starts) if text[start].isdigit() and _is_section(text, words, openers, k)}
    numbers |= sections | {bisect_left(starts, match.start()) for match in _GREETING.finditer(text)}
    openers |= {k + 1 for k in sections}
    inner = {word.group() for k, word in enumerate(words) if k not in openers and _is_capital(word.group())}
    found = _quoted(text, {start for start, _ in speech})
    k = 0
    while k < len(words):
        end = None if k in numbers else _run(text, words, openers, small, numbers, k)
        if end is None:
            k += 1
            continue
        first = _skip_dates(words, _skip_openers(words, openers, small, k, end), end)
        last = _without_beginning(text, words, first, end)
        if k in spoken:
            first, last = _without_address(words, first, last)
        counts = first < last or (first == last and (first not in openers or _counts(text, words, first, inner)))
        if counts and not _is_shouted(words, first, last, small):
            found.update(_readings(words, first, last))
        k = end + 1
    trimmed = {(start, start + len(_GENITIVE.sub("", text[start:end]))) for start, end in found}
    order = sorted(trimmed, key=lambda span: (span[0], -span[1]))
    mentions = (Mention(text[start:end], start, end) for start, end in order)
    return [mention for mention in mentions if _may_be_asked_for(mention.text) and not _is_abbreviation(text, mention)]


def _may_be_asked_for(phrase: str) -> bool:
    return is_name(phrase) and not is_aside(phrase) and not is_date(phrase)


def _is_abbreviation(text: str, mention: Mention) -> bool:
    """Whether a mention is no more than "Fig.", "3 Nr.", "Inc." or the initials of somebody named before them."""
    if text.startswith(".", mention.end):
        *before, last = mention.text.split()
        if last in _ABBREVIATIONS and all(map(str.isdigit, before)):
            return True
    return mention.text in _LEGAL_FORMS or _INITIALS.fullmatch(mention.text) is not None


def _quoted(text: str, speech: set[int]) -> set[tuple[int, int]]:
    """Text in quotation marks that may be a name; `speech` are the positions where speech begins."""
    spans = [match.span(match.lastindex or 1) for match in _QUOTED.finditer(text)]
    return {(start, end) for start, end in spans if _is_title(text[start:end], start in speech)}


def _is_title(quoted: str, is_speech: bool) -> bool:
    """Whether a quotation may be a name: it is short, or most of its words have capitals; speech is no name."""
    words = quoted.split()
    capitals = sum(map(_is_capital, words))
    if _CODE.search(quoted) or (is_speech and (len(words) < 3 or capitals < len(words) or "," in quoted)):
        return False
    return len(words) <= _MOST_QUOTED or 2 * capitals >= len(words)


def _counts(text: str, words: Sequence[re.Match[str]], k: int, inner: set[str]) -> bool:
    """Whether a single capitalised word that begins a sentence is a name."""
    word = words[k]
    if word.group() in inner or _GENITIVE.search(word.group()) or _BRACKET.match(text, word.end()):
        return True
    return k + 1 < len(words) and words[k + 1].group() in _VERBS and text[word.end() : words[k + 1].start()].isspace()


def _is_capital(word: str) -> bool:
    return word[0].isupper() or word[0].istitle()


def _joined(text: str, left: re.Match[str], right: re.Match[str], small: frozenset[str]) -> bool:
    """Whether two words are separated only by a joint, or the point of an initial or an abbreviation."""
    gap = text[left.end() : right.start()]
    if gap in _JOINTS or (gap.isspace() and gap.count("\n") < 2):
        return True
    initial = (len(left.group()) == 1 and left.group().isalpha()) or left.group() in ABBREVIATED
    return initial and gap in (".", ". ") and right.group().casefold() not in small


def _run(
    text: str,
    words: Sequence[re.Match[str]],
    openers: set[int],
    function: frozenset[str],
    numbers: set[int],
    first: int,
) -> int | None:
    """The last word of the name that begins with word `first`, or None. Words in `numbers` belong to no name."""
    if not _is_capital(words[first].group()) and not words[first].group()[0].isdigit():
        return None
    last, capitals = first, _is_capital(words[first].group())
    while last - first < _MOST_WORDS:
        following, small = last + 1, 0
        while (
            following < len(words)
            and small < _MOST_SMALL
            and words[following].group() in _SMALL
            and _joined(text, words[following - 1], words[following], function)
        ):
            following, small = following + 1, small + 1
        if following >= len(words) or not _joined(text, words[following - 1], words[following], function):
            break
        word = words[following].group()
        initial = text[words[following - 1].end() : words[following].start()].startswith(".")
        if (
            following in numbers
            or (following in openers and not initial)
            or not (_is_capital(word) or (word[0].isdigit() and not small))
        ):
            break
        last, capitals = following, capitals or _is_capital(word)
    return last if capitals else None


def _rows_of_numbers(text: str, words: Sequence[re.Match[str]]) -> set[int]:
    """Which words are numbers of a table: three or more in a row, or two of which one has a decimal point.

    So is the rest of a number with a comma: "000" of "50,000".
    """
    found: set[int] = set()
    length, has_point = 0, False  # of the row of numbers that ends with the word
    for k, word in enumerate(words):
        if not _NUMBER.fullmatch(word.group()):
            length, has_point = 0, False
            continue
        if length and not text[words[k - 1].end() : word.start()].isspace():
            length, has_point = 0, False
        length, has_point = length + 1, has_point or "." in word.group()
        if length > 2 or (length == 2 and has_point):
            found.update((k, k - 1, k - min(2, length - 1)))
        elif _DIGIT_COMMA.fullmatch(text, max(0, word.start() - 2), word.start()):
            found.add(k)
    return found


def _is_section(text: str, words: Sequence[re.Match[str]], openers: set[int], k: int) -> bool:
    """Whether word `k` is the number of a section: "2.1" that does not continue a name, or "2" where "2.1" follows."""
    word, before = words[k].group(), text[words[k - 1].end() if k else 0 : words[k].start()]
    if _SECTION.fullmatch(word):
        return k == 0 or k in openers or not before.isspace() or "\n" in before or words[k - 1].group()[0].islower()
    return k in openers and len(word) < 3 and word.isdigit() and f"\n{word}.1" in text


def _skip_openers(
    words: Sequence[re.Match[str]], openers: set[int], small: frozenset[str], first: int, last: int
) -> int:
    """The start of the name without the function words that begin its sentence."""
    begin = first
    if first in openers:
        while begin <= last and words[begin].group().casefold() in small:
            begin += 1
        while first < begin <= last and words[begin].group() in _SMALL:
            begin += 1
    return begin


def _skip_dates(words: Sequence[re.Match[str]], first: int, last: int) -> int:
    """The start of the name without a date before it: "In 1931 the Old Lamp", "between 2022 and June 30"."""
    while first + 1 < last and _NUMBER.fullmatch(words[first].group()) and words[first + 1].group() in _BETWEEN:
        first += 2
    year = first + (words[first].group().casefold() in _DATING) if first < last else first
    if not 0 < year < last or not _YEAR.fullmatch(words[year].group()):
        return first
    if words[year - 1].group().casefold() not in _DATING:
        return first
    begin = year + 1
    while begin < last and words[begin].group() in _SMALL:
        begin += 1
    return begin


def _without_beginning(text: str, words: Sequence[re.Match[str]], first: int, last: int) -> int:
    """The last word of the name without a word that begins the next sentence: "Privacy Notice This explains"."""
    after = last + 1
    goes_on = after < len(words) and words[after].group()[0].islower()
    if goes_on and text[words[last].end() : words[after].start()].isspace():
        while first < last and words[last].group() in _BEGINNING:
            last -= 1
    return last


def _without_address(words: Sequence[re.Match[str]], first: int, last: int) -> tuple[int, int]:
    """A name in speech without interjections before it and "I" after it: "Hey Monica", "Ross and I"."""
    while first <= last and is_filler(words[first].group().casefold()):
        first += 1
    if first < last and words[last].group() == "I":
        last -= 1
        while first < last and words[last].group() in _SMALL:
            last -= 1
    return first, last


def _is_shouted(words: Sequence[re.Match[str]], first: int, last: int, small: frozenset[str]) -> bool:
    """Whether a run is a sentence in capitals: it is long, or has function words that names do not have."""
    run = [word.group() for word in words[first : last + 1]]
    if len(run) < 3 or not all(word.isupper() or word.isdigit() for word in run):
        return False
    lower = [word.casefold() for word in run]
    return len(run) > _MOST_SHOUTED or any(word in small and word not in _SMALL for word in lower)


def _readings(words: Sequence[re.Match[str]], first: int, last: int) -> set[tuple[int, int]]:
    """The whole run and, where small words may separate two names, its parts."""
    spans = {(words[first].start(), words[last].end())}
    begin = first
    for k in range(first + 1, last + 1):
        if words[k].group() in _BETWEEN and not _is_firm(words, k + 1, last):
            if begin < k:
                spans.add((words[begin].start(), words[k - 1].end()))
            begin = k + 1
    while begin <= last and words[begin].group() in _SMALL:
        begin += 1
    if begin <= last:
        spans.add((words[begin].start(), words[last].end()))
    return spans


def _is_firm(words: Sequence[re.Match[str]], k: int, last: int) -> bool:
    """Whether word `k`, after an "and", ends the name of a firm: no further name follows in the run."""
    is_last = k == last or words[k + 1].group() in _SMALL
    return is_last and words[k].group().casefold() in _FIRM


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
_MOST_SPACED = 4  # words of a phrase


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


def _chinese(text: str) -> list[tuple[int, int]]:
    """Pieces between function words, and the parts of pieces that the text contains more than once."""
    pieces = [piece for run in _HAN_RUN.finditer(text) for piece in _pieces(_HAN_CUT, run)]
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
    yield from ((start, end) for start, end in _pieces(_THAI_GLUE, match) if end - start >= _SHORT)


def _pieces(cut: re.Pattern[str], run: re.Match[str]) -> Iterator[tuple[int, int]]:
    """The pieces of a run between words that cut it."""
    start = run.start()
    for found in cut.finditer(run.string, run.start(), run.end()):
        yield start, found.start()
        start = found.end()
    yield start, run.end()


def _between_small(match: re.Match[str], small: frozenset[str]) -> Iterator[tuple[int, int]]:
    """Runs of words between function words and short words, of at most `_MOST_SPACED` each.

    Where function words are known, a short word may be a name on its own.
    """
    run: list[re.Match[str]] = []
    for word in _SPACED.finditer(match.group()):
        is_long = len(word.group()) > _SHORT and word.group() not in small
        if is_long:
            run.append(word)
            if len(run) < _MOST_SPACED:
                continue
        if run:
            yield match.start() + run[0].start(), match.start() + run[-1].end()
        run = []
        if not is_long and small and len(word.group()) == _SHORT and word.group() not in small:
            yield match.start() + word.start(), match.start() + word.end()
    if run:
        yield match.start() + run[0].start(), match.start() + run[-1].end()
