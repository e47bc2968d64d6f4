"""Removal of hard line breaks, so that a name may span one.

Blank lines separate paragraphs. A single line break is a *wrap* if the text continues after it. The rules in order:

1. Markup is never joined: a Markdown heading, table row, quotation, rule or link definition, a list item, a line that
   is indented more than the one before.
2. Rows of a table (columns, mostly numbers, or the same number of commas) and lines of code are never joined. Nothing
   is joined to a line that begins with a date and a time, or with a label ("Ada: ") if the line before has a label or
   another line of the block has the same one: these are entries of a log, turns of a talk and fields of a record.
3. A second line that begins with a lower-case letter is a continuation, and so is one after a comma, a function word,
   an opening bracket or a hyphen.
4. Otherwise the first line must be full: the first word of the second line would have made it longer than the lines of
   its block, and it is too long for a label. Labels all begin with a capital or a number, like the cells of a table
   that a PDF gives column by column. Among labels, no line is full.

Scripts without spaces are joined without one, if the lines of a block are equally long.

Lines of code are those between fences, even if a chunk has only one fence, and those that look like code: an import,
the head of a definition or block, an assignment, a call, a tag, an entry of JSON or a command, closing brackets, a line
between two such lines, or a statement of a word or two below one ("return found"). Each rule asks for signs that prose
does not have, so "return to the lake (1871);" is not code.
"""

import itertools
import re
from collections import Counter
from collections.abc import Sequence

from llama_index.ragkit.text.characters import UNSPACED
from llama_index.ragkit.text.function_words import function_words, written_language
from llama_index.ragkit.text.sentences import LINE_END

__all__ = ["LINK_DEFINITION", "LIST_ITEM", "NUMBER", "code_lines", "is_table_row", "unwrap"]

_FENCE = re.compile(r"\s*(`{3,}|~{3,})\s*([^\s`]*)")
_NAME = r"[A-Za-z_$][\w$]*(?:\.[\w$]+|\[[^\]]*\]|::\w+)*"
_FORMS = re.compile(
    "|".join(
        (
            r"from [\w.]+ import (?:\(|\*|\w+(?: as \w+)?(?:, ?\w+(?: as \w+)?)*)[,\\]?$",
            r"import (?:[a-z]\w*|[\w.]*[._]\w+|\w+ as \w+|[\w{*][^.]* from .+);?$",
            r"#include\b|using [\w.:]+;|package [\w.]+;",
            r"(?:export |async |pub |static |public |private )*(?:def|function|func|fn)\s+\w+\s*[(<\[]",
            r"(?:export |public |abstract )*(?:class|struct|interface|enum|trait|impl)\s+\w+(?:[(<].*)?\s*[:{]$",
            r"(?:const|let|var)\s+\w+\s*(?::.*)?=",
            r"(?:public|private|protected|static|final)\s.*\w\([^)]*\)\s*(?:throws \w+\s*)?[{;]$",
            r"(?:if|elif|for|while|with|switch|except|else if)\b.*(?:\w[(\[.]\w|[=<>!]=).*[:{]$",
            r"for \w+(?:, ?\w+)* in [\w.]+:$|(?:if|elif|while) (?:not )?[\w.]+(?: (?:is|in|is not|not in) [\w.]+)?:$",
            rf"{_NAME}(?:\s*:\s*[\w\[\], .|]+)?\s*(?:[-+*/|&%]?=|:=|<-)(?!=)\s*\S",
            r"</?[A-Za-z][\w:-]*(?:\s[^<>]*)?/?>$|<!--",
            r"[\"'][\w .$@/-]+[\"']\s*:\s*(?:[\[{\"'\d-]|true|false|null)",
            r">>>\s|[$%>]\s+(?:pip|npm|npx|git|cd|ls|make|docker|python3?|curl|wget|sudo|apt|brew|cargo|go)\s",
            r"(?:pip|npm|apt|apt-get|brew|cargo|conda) install\s|@\w+(?:\.\w+)+|@\w+\(|/\*|\*/",
            r"[)\]}]+[,;:]?(?:\s*else\s*\{)?$",
            r"SELECT\s.+\sFROM\s|(?:CREATE|ALTER|DROP)\s+(?:TABLE|INDEX)\s|INSERT\s+INTO\s",
            r".*(?:\w=\S.*|\w->\w.*);$|.*\w\(.*\)\s*\{$|.*=>\s*[{(]",
        )
    )
)
# Only below a line of code: these are words of prose too.
_AFTER_CODE = re.compile(
    rf"(?:return|yield|raise|del|assert)\s+(?:not\s+)?{_NAME};?$|(?:pass|break|continue|return);?$|(?:else|try|finally):$"
)
_CALL = re.compile(rf"(?:(?:await|return|yield|raise|new|assert)\s+)?({_NAME})\((?!\s)(.*)")
_CALL_END = re.compile(r"[)\](\[{,][;:]?$|[\"'];?$")
_SIGNS = re.compile(r"^\)|[\"'=]|\w[(\[]|[(\[{]$")
_LONGEST = 300  # characters of a line; longer ones are prose, or data


def code_lines(lines: Sequence[str]) -> list[bool]:
    """Which lines are code; fences are, and so are all lines between two fences.

    >>> code_lines(["The lamp is lit.", "lamp = Lamp(oil=True)", "```", "lamp.light() twice", "```", "It burns."])
    [False, True, True, True, True, False]
    """
    marks = [_has_form(line) for line in lines]
    for i in range(1, len(lines) - 1):
        marks[i] |= marks[i - 1] and marks[i + 1] and bool(lines[i].strip())
    for i in range(1, len(lines)):
        marks[i] |= marks[i - 1] and _AFTER_CODE.match(lines[i].strip()) is not None
    fences = [(i, mark[1][0], mark[2]) for i, line in enumerate(lines) if (mark := _FENCE.match(line))]
    position = 0
    if len(fences) % 2 and not fences[0][2] and _is_end(marks, fences):
        marks[: fences[0][0] + 1] = [True] * (fences[0][0] + 1)  # the chunk begins within the code
        position = 1
    while position < len(fences):
        start, sign, _ = fences[position]
        after = range(position + 1, len(fences))
        closing = next((k for k in after if fences[k][1] == sign and not fences[k][2]), None)
        stop = len(lines) if closing is None else fences[closing][0] + 1
        marks[start:stop] = [True] * (stop - start)
        position = len(fences) if closing is None else closing + 1
    return marks


def _is_end(marks: Sequence[bool], fences: Sequence[tuple[int, str, str]]) -> bool:
    """Whether the first of an odd number of fences ends code rather than begins it, by which side looks like code."""
    first = fences[0][0]
    after = marks[first + 1 : fences[1][0] if len(fences) > 1 else len(marks)]
    return _share(marks[:first]) > _share(after)


def _share(marks: Sequence[bool]) -> float:
    return sum(marks) / len(marks) if marks else 0.0


def _has_form(line: str) -> bool:
    line = line.strip()
    return len(line) <= _LONGEST and (_FORMS.match(line) is not None or _is_call(line))


def _is_call(line: str) -> bool:
    """A name and arguments, with a sign that distinguishes them from a footnote, as in "Other(1)"."""
    call = _CALL.fullmatch(line)
    if call is None or not _CALL_END.search(line):
        return False
    return "." in call[1] or "_" in call[1] or _SIGNS.search(call[2]) is not None


LIST_ITEM = re.compile(
    r"\s*(?:[-*+•·▪◦‣–]\s|(?:\d{1,3}|[a-z]|[ivx]{1,5})[.)]\s|[A-Z]\)\s|\([0-9a-zA-Z]{1,4}\)\s"
    r"|\[\^[^\]\s]{1,30}\]:\s)"
)
"""The start of a list item: a bullet, "1.", "a)", "(iv)"; or of a footnote in Markdown, "[^1]:"."""

LINK_DEFINITION = re.compile(
    r" {0,3}\[(?!\^)[^\[\]]{1,200}\]:\s+(?=#\S|\S+?[/#]|\S+\.\w{2,5}(?!\S))\S+(?!\S)(?:\s+[\"'(].*)?\s*"
)
"""Where a link of Markdown leads: ``[the guide]: guide.md#lamps``."""

# Heading, table row, quotation, rule, times of a subtitle.
_MARKUP = re.compile(r"\s*(?:#{1,6}\s|\||>|[=*_-]{3,}\s*$|[\d:]{5,8}[.,]\d{3} --> )")
_COLUMNS = re.compile(r"\S(?:\t| {4,})\S|[^\s.!?:] {3}\S|\.{4,}|(?: \.){3,}")
# Three blanks after a sentence belong to a justified line.
_COLUMN_SIGNS = "\t", "   ", "....", " . ."  # a line without any has no columns
NUMBER = re.compile(r"[$€£(]?\d[\d,.]*[%)]?")
_OPEN_END = re.compile(r"[,;(\[{&/–—-]$|[^\W\d_]['’-]$")
_SENTENCE_WITHIN = re.compile(r"[^\W\d]{2}[.!?…][\"'”’»)\]]* ")
_DAY = r"(?:\d{1,4}[-./]\d{1,2}[-./]\d{1,4},?|[A-Z][a-z]{2} [ \d]\d)[ T]"
_STAMP = re.compile(rf"\s*(?:[\[(]?{_DAY}[ \t]?\d{{1,2}}:\d{{2}}|[\[(]\d{{1,2}}:\d{{2}}[\d:.,]*[\])])")
_FIELD = re.compile(r"\s*([^\W_][^:：.!?,;]{0,30})(?::\s|：)")
_QUOTED = re.compile(r"\"[^\"]*\"")
_LEAST_COMMAS, _LEAST_ROWS, _ALIKE = 3, 3, 0.75  # of a row, of a table, and the share of rows with as many commas
_HYPHEN = re.compile(r"(?<![^\W\d_])([^\W\d_]+)-$")
_LETTERS = re.compile(r"[^\W\d_]*")
_WIDE = re.compile(f"[{UNSPACED}，。、；：！？“”《》（）「」『』]")
_LABEL = 25  # maximum characters of a label; half of that in scripts without spaces
_AROUND, _LABELS = 6, 0.8  # lines before and after that tell whether a line is among labels, and the share of these
_LONGEST_LABEL = 80  # characters; a longer line among labels may be wrapped
_BREAKS = str.maketrans({"\r": "\n", "\x0b": "\n", "\x0c": "\n", "\x85": "\n", "\u2028": "\n", "\u2029": "\n"})


def unwrap(text: str) -> str:
    """The text without wraps: every paragraph, list item, row and heading on one line, with blank lines between.

    Lines of code are left unchanged. A hyphen at a wrap is removed if the text contains the word without it.

    >>> unwrap("Otto Lindqvist founded the\\nBergslund Glassworks.\\n\\nIt stood at\\nLake Tovel.")
    'Otto Lindqvist founded the Bergslund Glassworks.\\n\\nIt stood at Lake Tovel.'
    >>> unwrap("Sales 12 14\\nCosts 10 11")
    'Sales 12 14\\n\\nCosts 10 11'
    """
    text = text.replace("\r\n", "\n").translate(_BREAKS)
    if "\n" not in text:
        return text
    small = function_words(written_language(text))
    words = frozenset(_LETTERS.findall(text.casefold()))
    paragraphs: list[str] = []
    for block, is_code in _blocks(text):
        paragraphs += ["\n".join(block)] if is_code else _paragraphs(block, small, words)
    return "\n\n".join(paragraphs)


def is_table_row(line: str) -> bool:
    """Whether a line looks like a row of a table: columns, leaders, or mostly numbers.

    >>> is_table_row("Net sales   1,234   1,100"), is_table_row("Sales 12 14"), is_table_row("It was founded in 1871.")
    (True, True, False)
    """
    tokens = line.split()
    numbers = sum(NUMBER.fullmatch(token) is not None for token in tokens)
    has_columns = any(sign in line for sign in _COLUMN_SIGNS) and _COLUMNS.search(line.strip()) is not None
    return has_columns or (numbers >= 2 and 2 * numbers >= len(tokens))


def _blocks(text: str) -> list[tuple[list[str], bool]]:
    """Runs of lines without blank lines, and whether they are code."""
    blocks: list[tuple[list[str], bool]] = []
    lines = text.split("\n")
    last: bool | None = None  # whether the line before is code; None after a blank line
    for line, is_code in zip(lines, code_lines(lines), strict=True):
        if not is_code and not line.strip():
            last = None
            continue
        if is_code is not last:
            blocks.append(([], is_code))
        blocks[-1][0].append(line if is_code else line.rstrip())
        last = is_code
    return blocks


def _paragraphs(block: Sequence[str], small: frozenset[str], words: frozenset[str]) -> list[str]:
    """The lines of a block, joined at wraps."""
    width = sorted(map(len, block))[-1 - len(block) // 4]  # of the lines, except some longer ones
    rows = [is_table_row(line) for line in block]
    labels, entries = _among_labels(block), _begin_entries(block)
    parts: list[list[str]] = [[block[0].strip()]]
    for i in range(1, len(block)):
        a, b = block[i - 1], block[i]
        is_wrap = not (rows[i - 1] or rows[i] or entries[i] or _is_markup(a, b)) and (
            _continues(a, b, small) or ((not labels[i] or len(a) >= _LONGEST_LABEL) and _is_full(a, b, width))
        )
        if is_wrap:
            parts[-1] += [_joint(parts[-1], b.strip(), words), b.strip()]
        else:
            parts.append([b.strip()])
    return ["".join(part) for part in parts]


def _begin_entries(block: Sequence[str]) -> list[bool]:
    """Which lines begin an entry of a log, a turn of a talk, a field of a record or a row with commas."""
    labels = ["" for _ in block]
    found = [False for _ in block]
    for i, line in enumerate(block):
        if ":" in line or "：" in line:
            found[i] = _STAMP.match(line) is not None
            label = _FIELD.match(line)
            labels[i] = label[1] if label else ""
    times = Counter(filter(None, labels))
    for i in range(1, len(block)) if times else ():
        found[i] |= times[labels[i]] > 1 or bool(labels[i - 1] and labels[i])
    commas = [line.count(",") for line in block]
    if len(block) >= _LEAST_ROWS and sum(count >= _LEAST_COMMAS for count in commas) >= _ALIKE * len(block):
        commas = [_QUOTED.sub("", line).count(",") for line in block]
        usual, rows = Counter(commas).most_common(1)[0]
        if usual >= _LEAST_COMMAS and rows >= _ALIKE * len(block):
            for i in range(1, len(block)):
                found[i] |= commas[i - 1] == commas[i] == usual and not block[i - 1].endswith(",")
    return found


def _among_labels(block: Sequence[str]) -> list[bool]:
    """Whether most lines around each line are labels: they do not continue a sentence and do not end one."""
    starts = [line.lstrip() for line in block]
    is_label = [not start[0].islower() and (start[0].isupper() or not start[0].isalpha()) for start in starts]
    is_label = [yes and not LINE_END.search(line[-5:]) for yes, line in zip(is_label, block, strict=True)]
    counts = [0, *itertools.accumulate(is_label)]
    found = []
    for i in range(len(block)):
        first, end = max(0, i - _AROUND), min(len(block), i + _AROUND)
        found.append(end - first >= _AROUND and counts[end] - counts[first] >= _LABELS * (end - first))
    return found


def _is_markup(a: str, b: str) -> bool:
    if _MARKUP.match(a) or _MARKUP.match(b) or LIST_ITEM.match(b):
        return True
    if LINK_DEFINITION.fullmatch(a) or LINK_DEFINITION.fullmatch(b):
        return True
    return _indent(b) > _indent(a) + 1 and not LIST_ITEM.match(a)


def _continues(a: str, b: str, small: frozenset[str]) -> bool:
    last = a.rsplit(None, 1)[-1].casefold()
    return b.lstrip()[0].islower() or last in small or _OPEN_END.search(a[-2:]) is not None


def _is_full(a: str, b: str, width: int) -> bool:
    ends = LINE_END.search(a[-5:]) is not None
    if _WIDE.match(a[-1]) and _WIDE.match(b.lstrip()[0]):
        return len(a) >= max(width - 2, _LABEL / 2) and not ends
    if not ends and (a.lstrip()[0].islower() or _SENTENCE_WITHIN.search(a)):
        return True  # prose that stops within a sentence
    return len(a) >= _LABEL and len(a) + 1 + len(b.split(None, 1)[0]) > width


def _joint(before: list[str], after: str, words: frozenset[str]) -> str:
    """What joins two lines; a hyphen that only marks the wrap is removed from the first."""
    hyphen = _HYPHEN.search(before[-1][-100:])
    if hyphen:
        following = _LETTERS.match(after)
        if after[0].islower() and following and (hyphen[1] + following.group()).casefold() in words:
            before[-1] = before[-1][:-1]
        return ""
    return "" if _WIDE.match(before[-1][-1]) and _WIDE.match(after[0]) else " "


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
