"""Characters that are in a text but not on its page, and that would change the words around them."""

import re

from llama_index.ragkit.text.composition import nfc

__all__ = ["without_format", "without_unprinted"]

_SOFT_HYPHEN = "\u00ad"
# Control sequences of terminals (ECMA-48, section 5.4), and a character that the next one is printed over.
_TERMINAL = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|[^\n]\x08")


# Zero-width spaces and joiners, the word joiner, the byte order mark, and marks, embeddings and isolates of direction.
_FORMAT = re.compile("[\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff]+")


def without_format(text: str) -> str:
    """A text without format characters, which have no width and stand within words.

    >>> without_format("Mu\u200bñoz \u2068Wien\u2069")
    'Muñoz Wien'
    """
    return text if text.isascii() else _FORMAT.sub("", text)


def without_unprinted(text: str) -> str:
    r"""A text with composed letters (NFC), without format characters, soft hyphens and the line break after one,
    terminal colours, and overstruck characters.

    >>> without_unprinted("the light\u00ad\nhouse"), without_unprinted("\x1b[1mNAME\x1b[0m")
    ('the lighthouse', 'NAME')
    >>> without_unprinted("Jose\u0301 Mu\u200bn\u0303oz")
    'José Muñoz'
    """
    if not text.isascii():
        text = nfc(without_format(text))
    if _SOFT_HYPHEN in text:
        text = text.replace("\r\n", "\n").replace(_SOFT_HYPHEN + "\n", "").replace(_SOFT_HYPHEN, "")
    return _TERMINAL.sub("", text) if "\x1b" in text or "\x08" in text else text
