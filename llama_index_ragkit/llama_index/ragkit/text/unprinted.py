"""Characters that are in a text and not on its page: they would make other words of those around them."""

import re

__all__ = ["without_unprinted"]

_SOFT_HYPHEN = "\u00ad"
# Control sequences of terminals (ECMA-48, section 5.4), and a character that the next one is printed over.
_TERMINAL = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|[^\n]\x08")


def without_unprinted(text: str) -> str:
    r"""A text without soft hyphens, with the line break after one, colours of a terminal, and overstruck characters.

    >>> without_unprinted("the light\u00ad\nhouse"), without_unprinted("\x1b[1mNAME\x1b[0m")
    ('the lighthouse', 'NAME')
    """
    if _SOFT_HYPHEN in text:
        text = text.replace("\r\n", "\n").replace(_SOFT_HYPHEN + "\n", "").replace(_SOFT_HYPHEN, "")
    return _TERMINAL.sub("", text) if "\x1b" in text or "\x08" in text else text
