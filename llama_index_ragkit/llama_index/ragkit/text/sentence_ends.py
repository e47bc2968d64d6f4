"""How a sentence ends on paper: with one of these marks, and what closes a quotation or a bracket after it."""

import re

__all__ = ["LINE_END", "SENTENCE_END"]

_MARKS, _CLOSING = ".!?…।؟。！？", "[\"'”’»)\\]]*"

SENTENCE_END = re.compile(f"[{_MARKS}]{_CLOSING}$")
"""At the end of a text: it ends a sentence."""

LINE_END = re.compile(f"[{_MARKS}:：]{_CLOSING}$")
"""At the end of a line: the next line does not continue it. A colon counts too, though no sentence ends there: "Who
paid:" before a list is a whole line, but says nothing by itself.
"""
