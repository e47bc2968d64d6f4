"""Replies that are prose or lines, without what announces them, what is said after them, and repetitions.

"Sure! Here is a summary of the passages:" is no part of a summary. What announces is recognised by its place, its
ending in a colon, and its words; a first line with a colon that says something of its own is kept.
"""

import re
import zlib

from llama_index.ragkit.errors import ParseError
from llama_index.ragkit.llm.json.output import texts_in_values
from llama_index.ragkit.llm.json.shapes import item_texts
from llama_index.ragkit.llm.reasoning import strip_reasoning
from llama_index.ragkit.llm.usage import note_repeated
from llama_index.ragkit.text.sentences import sentence_spans

__all__ = [
    "plain_answer",
    "plain_lines",
    "whole_sentences",
    "without_announcement",
    "without_loop",
    "without_repetitions",
]

_MOST = 2  # times that a passage may occur in a reply
_LONGEST_LOOP = 20_000  # characters at the end of a reply that are searched for the beginning of a loop
_SHORTEST = 4  # characters of a passage that is repeated
_BOUNDARY = re.compile(r"[.!?。！？…][\"'”’)]*(?=\s|$)|\n")

_LONGEST = 200  # characters of an announcement
# How announcements begin, in the languages that models chat in.
_OPENERS = (
    r"sure|certainly|of course|absolutely|ok(?:ay)?|yes|great|gladly|happy to|i'?d be happy|i have|i'?ve|i will|i can|"
    r"here(?:'s| is| are| you go)?|below|the following|following|based on|as requested|these are|this is (?:a|the)|"
    r"let me|let's|according to|"
    r"klar|gerne?|sicher|natürlich|hier (?:ist|sind|kommt)|nachfolgend|im folgenden|die folgenden?|"
    r"bien sûr|voici|voilà|ci-dessous|d'accord|claro|por supuesto|aquí (?:está|están|tienes)|a continuación|"
    r"ecco|certo|di seguito|aqui (?:está|estão)|конечно|вот|ниже|hier (?:is|zijn)|här är|oto|tutaj|işte|elbette|"
    r"好的|当然|以下|这是|下面|根据|もちろん|はい|こちら|以下|다음은|물론|여기"
)
# What announcements are about; a first line with one of these words and a colon at its end announces.
_NOUNS = (
    r"summar(?:y|ies)|title|statements?|key ?points?|points?|list|answer|questions?|queries|entities|triples|facts|"
    r"article|story|report|topics?|response|result|output|mind ?map|json|next step|step|"
    r"zusammenfassung|titel|aussagen|punkte|antwort|résumé|titre|points clés|réponse|resumen|título|puntos|respuesta|"
    r"riassunto|resumo|резюме|ответ|摘要|总结|标题|要点|回答|要約|答え|요약|제목"
)
_OPENER = re.compile(rf"(?:{_OPENERS})(?!\w)|(?:好的|当然|以下|这是|下面|根据|もちろん|こちら|다음은)", re.IGNORECASE)
_OPENER_ALONE = re.compile(rf"(?:{_OPENERS})\W*", re.IGNORECASE)
_LABEL = re.compile(rf"[*_#\s]*(?:the |a )?(?:{_NOUNS})[*_\s]*[:：][*_]*\s*", re.IGNORECASE)
_NOUN = re.compile(rf"(?<!\w)(?:{_NOUNS})", re.IGNORECASE)
# "Sure! Here is a title for the text: ..." in front of the text on the same line.
_INLINE = re.compile(rf"^(?:{_OPENERS})(?!\w)[^\n:：]{{0,{_LONGEST}}}[:：]\s*", re.IGNORECASE)
_INTERJECTION = re.compile(
    r"^(?:sure|certainly|of course|absolutely|okay|ok|great|klar|gerne|voilà|claro|好的|当然)[!！.,。，]+\s+",
    re.IGNORECASE,
)
_CLOSERS = re.compile(
    r"^(?:let me know|i hope (?:this|that)|hope (?:this|that)|feel free|if you (?:need|have|would|want)|"
    r"please let me|would you like|do you (?:want|need)|is there anything|anything else|note: (?:this|i)|"
    r"sag mir|lass mich|ich hoffe|n'hésitez pas|j'espère|espero que|如果您|希望)",
    re.IGNORECASE,
)
_FENCED = re.compile(r"```\w*[^\S\n]*\n(.*)```", re.DOTALL)
_TAG = re.compile(r"</?[\w-]+-[0-9a-f]{8}(?: number=\"\d+\")?>")
_OPEN_ENDS = (",", ";", ":", "-", "(", "，", "、")  # at the end of a text that is cut off
_LOOKED_AT = 4_000  # characters
_LEAST_NEW = 0.06  # compressed size; ordinary prose has 0.4 or more


def without_loop(text: str) -> tuple[str, int]:
    """A text without the repetitions of a passage at its end, and how many there were.

    If the text has no JSON, only whole sentences and lines remain, since an unfinished sentence says nothing. In a text
    with JSON the passage remains twice, since it may begin in the middle of an item.

    >>> without_loop('{"years": ["1911", "1955", "1955", "1955", "19')
    ('{"years": ["1911", "1955", "1955', 2)
    >>> without_loop("The lamp burned oil. Ada lit it again and again and again and again and again")
    ('The lamp burned oil.', 3)
    """
    start, length, times = _loop(text.rstrip())
    if times <= _MOST:
        return text, 0
    kept = text[: start + 2 * length]
    if not {"{", "["} & set(kept):
        kept = kept[: start + length]
        ends = [found.end() for found in _BOUNDARY.finditer(kept)]
        kept = kept[: ends[-1]].rstrip() if ends else ""
    return kept, times - 1


def _loop(text: str) -> tuple[int, int, int]:
    """Where the longest repetition of one passage at the end of a text begins, the passage's length, and its count."""
    end = text[-_LONGEST_LOOP:][::-1]
    borders = [0] * len(end)  # of each prefix, its longest border (Knuth, Morris, Pratt), which gives its period
    border = 0
    best = (len(text), 0, 0)
    for i in range(1, len(end)):
        while border and end[i] != end[border]:
            border = borders[border - 1]
        border += end[i] == end[border]
        borders[i] = border
        period = i + 1 - border
        times = (i + 1) // period
        if times > _MOST and period >= _SHORTEST and any(map(str.isalnum, end[:period])):
            best = (len(text) - i - 1, period, times)
    return best


def without_repetitions(text: str) -> tuple[str, int]:
    """A text with only the first occurrence of each sentence that it has more than twice, and how many were removed.

    >>> without_repetitions("He died. He was old. He died. It rained. He died.")
    ('He died. He was old. It rained.', 2)
    """
    sentences = [text[start:end] for start, end in sentence_spans(text)]
    keys = [" ".join(sentence.split()).casefold() for sentence in sentences]
    kept = [
        sentence
        for i, (sentence, key) in enumerate(zip(sentences, keys, strict=True))
        if keys.count(key) <= _MOST or key not in keys[:i]
    ]
    if len(kept) == len(sentences):
        return text, 0
    return " ".join(sentence.strip() for sentence in kept), len(sentences) - len(kept)


def without_announcement(text: str) -> str:
    """A text without what announces it, without labels such as "Summary:", and without offers of further help.

    >>> without_announcement("Sure! Here is a summary of the passages:\\n\\nThe lamp burned oil.\\n\\nLet me know!")
    'The lamp burned oil.'
    >>> without_announcement('Here is a title for the text: "The lamp"'), without_announcement("Oil: its uses")
    ('"The lamp"', 'Oil: its uses')
    """
    lines = text.strip().splitlines()
    first = 0
    while first < len(lines) and (not lines[first].strip() or _announces(lines[first], first + 1 < len(lines))):
        first += 1
    lines = lines[first:]
    while lines and (not lines[-1].strip() or _CLOSERS.match(lines[-1].strip())):
        lines.pop()
    if not lines:
        return ""
    line = _INTERJECTION.sub("", lines[0].strip())
    line = _INLINE.sub("", line) if _NOUN.search(line.split(":")[0].split("：")[0]) else line
    label = _LABEL.match(line)
    return "\n".join([line[label.end() :] if label else line, *lines[1:]]).strip()


def _announces(line: str, more: bool) -> bool:
    line = line.strip().strip("*_#").strip()
    if len(line) > _LONGEST:
        return False
    if _INTERJECTION.sub("", line + " ").strip() == "" or _OPENER_ALONE.fullmatch(line):
        return more
    ends = line.endswith((":", "："))
    said = _OPENER.match(line) is not None or _NOUN.search(line) is not None
    return ends and (said or not more)


def plain_answer(reply: str) -> str:
    """The text of a reply in prose.

    Reasoning, code fences around it, and announcements are removed, and so are sentences that were said before, if they
    are said more than twice; a JSON object with a single text is that text.

    Raises
    ------
    ParseError
        If nothing is left, if the reply contains the tags of the prompt, or if it repeats itself without end.
    """
    answer = strip_reasoning(reply)
    fenced = _FENCED.fullmatch(without_announcement(answer))
    text = without_announcement(fenced[1] if fenced else answer)
    text, repeated = without_repetitions(_unwrapped(text))
    if not any(character.isalnum() for character in text):
        raise ParseError("The reply is empty." if not reply.strip() else "The reply contains no answer.")
    if _TAG.search(text):
        raise ParseError("The reply repeats tags of the prompt.")
    if _is_endless(text):
        raise ParseError(f"The reply repeats itself without end: {text[:60]!r} ...")
    note_repeated(repeated)
    return text


def _unwrapped(text: str) -> str:
    """The text of a reply that is a JSON object or array with a single text."""
    if text[:1] not in ("{", "["):
        return text
    texts = texts_in_values(text)
    if len(texts) == 1:
        return texts[0]
    raise ParseError(f"The reply is JSON, not text: {text[:80]!r}")


def whole_sentences(text: str) -> str:
    """A text without the beginning of a sentence at which a model was cut off; one sentence is left as it is.

    >>> whole_sentences("The lamp burned oil. Ada lit"), whole_sentences("The lamp burned")
    ('The lamp burned oil.', 'The lamp burned')
    """
    text = text.rstrip()
    spans = sentence_spans(text)
    is_cut = text[-1:].isalnum() or text[-1:] in _OPEN_ENDS
    return text[: spans[-2][1]].rstrip() if is_cut and len(spans) > 1 else text


def plain_lines(reply: str) -> list[str]:
    """The lines of a reply, each once, without numbers and bullets.

    If some lines have numbers or bullets, these are the lines meant. Errors are those of :func:`plain_answer`.

    >>> plain_lines("Sure! Here are the key points:\\n1. The lamp burned oil.\\n2. Ada lit it.\\nAnything else?")
    ['The lamp burned oil.', 'Ada lit it.']
    """
    text = plain_answer(reply)
    items = item_texts(text)
    lines = items or [line.strip() for line in text.splitlines() if not line.startswith("```")]
    return [line for line in dict.fromkeys(lines) if any(character.isalnum() for character in line)]


def _is_endless(text: str) -> bool:
    """Whether a long text is one passage over and over."""
    end = text[-_LOOKED_AT:].encode()
    return len(text) > _LOOKED_AT and len(zlib.compress(end)) < _LEAST_NEW * len(end)
