"""Texts of any length that lead readers astray, each one sign or phrase over and over."""

import base64
import random
from collections.abc import Mapping

__all__ = ["long_texts"]


def _words(capital: bool) -> str:
    """Words that are all different."""
    letters = random.Random(0).choices("abdeiklmnorstu", k=120_000)
    words = ("".join(letters[start : start + 6]) for start in range(0, len(letters), 6))
    return " ".join(word.title() if capital else word for word in words) + " "


_UNITS = {
    "one letter": "a",
    "spaces": " ",
    "spaces between": " " * 400 + "a",
    "line breaks": "\n",
    "line breaks of Windows": "Bob ate\r\n",
    "tabs": "Bob\t\t1\t",
    "no-break spaces": "\u00a0",
    "Chinese": "鲁迅出生于浙江绍兴的北京大学",
    "Chinese words": "京和，",
    "Japanese": "東京タワーは日本の電波塔です",
    "Thai": "กรุงเทพเป็นเมืองหลวง",
    "Thai marks": "กิ" + "ิ" * 400,
    "Hangul": "에서는",
    "Hangul words": "서울은 한국의 수도이다 ",
    "Arabic": "كتاب قديم ",
    "Hebrew letters": "ש",
    "Hindi": "दिल्ली की ",
    "right to left": "\u202eabc\u202c ",
    "capitalised words": _words(capital=True),
    "words": _words(capital=False),
    "words with commas": _words(capital=False).replace(" ", ", "),
    "A B A B": "A B ",
    "names and names": "Bob and Ada of ",
    "names of many words": "Prince of the House of Orange and ",
    "initials": "J. ",
    "abbreviations": "U.S.",
    "quotation marks": '"',
    "opening quotation marks": "“Bob ",
    "quotations of spaces": '"' + " " * 400,
    "apostrophes": "a'b’",
    "brackets": "([{",
    "closing brackets": ")]}",
    "bracketed": "(Ada) ",
    "braces": '{"',
    "links": "[a](",
    "references": "[a][",
    "footnotes": "[^a]: ",
    "link destinations": "[a]: " + "/" * 400 + " b\n",
    "backticks": "`",
    "inline code": "`a.B` ",
    "fences": "```\n",
    "languages of fences": "```py ",
    "thoughts": "<think>",
    "ends of thoughts": "</think>{",
    "addresses": "http://",
    "addresses and pages": "https://a.example 1/2\n",
    "mailboxes": "a@b.",
    "colons": "a:",
    "fields": "From: x\n",
    "fields and rules": "From: x\n ---\n",
    "mails": "\n\nFrom: a@b.example\nTo: c\nSubject: Re: d\n\n",
    "quoted mails": "> > From: x\n",
    "quotations": ">>> ",
    "digits": "1",
    "numbers": "1,234.5, ",
    "rows of numbers": "12 ",
    "dates": "1/2/2003, 4:05 PM\n",
    "years": "in 1904 and ",
    "list items": "- a\n",
    "items in a line": "- ",
    "numbered items": "1) **Bob**\n",
    "table rows": "| a | 1 |\n",
    "cells": "|",
    "headings": "# A\n",
    "number signs": "#",
    "underlined headings": "A\n---\n",
    "heading and signs": "# a " + "#" * 400 + " b\n",
    "dots": ".",
    "dots and spaces": " .",
    "hyphens": "-",
    "hyphenated": "aa-\n",
    "commas and spaces": ",   ",
    "semicolons without words": ".; ",
    "combining marks": "\u0301\u0316",
    "joined emoji": "👩\u200d",
    "code": "x = f(y)\n",
    "code in a line": "f(x.y[",
    "names of code": "a_b.c::",
    "prose": "The lamp of Ada Byron burned oil, and was dear. ",
    "prose without an end": "the lamp burned red oil and ",
    "verbs": "walking quickly, treated and ",
    "JSON arrays": "[",
    "JSON objects": '{"a": [',
    "JSON values": '[{"a": 1}, ',
    "broken JSON": '{"a" 1} ',
    "comments in JSON": "[1,//] ",
    "comments between JSON": "//[1,\n//]\n",
    "open comments in JSON": "[/*",
    "strings of JSON": "['[",
    "escaped quotation marks": '\\"',
    "base64": base64.b64encode(random.Random(0).randbytes(3_000)).decode(),
    "tags": "<a ",
    "open tags": "<",
    "comments": "<!--",
    "headings of HTML": "<h1>a",
    "emphasis": "*a ",
    "stars": "*",
    "soft hyphens": "light\u00ad\n",
    "colours": "\x1b[1",
    "announcements": "Sure\n",
    "triples": "a |  | b\n",
    "speakers": "Ada: hm\n",
}


def long_texts(length: int) -> Mapping[str, str]:
    """Texts of so many characters, by name."""
    texts = {name: (unit * (length // len(unit) + 1))[:length] for name, unit in _UNITS.items()}
    for name in ("one letter", "spaces", "line breaks", "dots", "digits", "tabs"):
        texts[f"{name}, then an end"] = f"a{texts[name][2:]}!"
    return texts
