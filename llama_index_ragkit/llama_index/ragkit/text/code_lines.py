"""Lines of program code in a text: those between fences, even if a chunk has only one fence, and those that look like
code.

A line looks like code if it is an import, the head of a definition or block, an assignment, a call, a tag, an entry of
JSON or a command, if it closes brackets, if it stands between two such lines, or if it is a statement of a word or two
below one ("return found"). Each rule asks for signs that prose does not have, so "return to the lake (1871);" is not
code.
"""

import re
from collections.abc import Sequence

__all__ = ["code_lines"]

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
