"""Questions with several options, of which one is right."""

import re
from collections.abc import Sequence
from string import ascii_uppercase

from llama_index.ragkit.errors import ConfigurationError
from llama_index.ragkit.evaluation.answers import answer_tokens

__all__ = ["chosen_option", "lettered"]

_ALONE = re.compile(r"[^\w]*([A-Za-z])[^\w]*")
_FIRST = re.compile(r"[^\w]*([A-Z])\s*[).:\]]")
_MOST = len(ascii_uppercase)


def lettered(options: Sequence[str]) -> str:
    """The options of a question, a line each, from A.

    Raises
    ------
    ConfigurationError
        If there are fewer than two options or more than 26.
    """
    if not 2 <= len(options) <= _MOST:
        raise ConfigurationError(f"A multiple-choice question has 2 to {_MOST} options, not {len(options)}.")
    return "\n".join(f"{letter}. {option}" for letter, option in zip(ascii_uppercase, options, strict=False))


def chosen_option(answer: str, options: Sequence[str]) -> int | None:
    """The place, from 0, of the option that an answer names by letter or in words; None if it names none or several.

    >>> options = ["oil", "coal"]
    >>> chosen_option("(B) coal", options), chosen_option("It burned oil.", options), chosen_option("Gas", options)
    (1, 0, None)
    """
    letter = _ALONE.fullmatch(answer) or _FIRST.match(answer)
    if letter is not None:
        place = ascii_uppercase.index(letter[1].upper())
        return place if place < len(options) else None
    said = answer_tokens(answer)
    equal = [i for i, option in enumerate(options) if answer_tokens(option) == said]
    text = f" {' '.join(said)} "
    named = equal or [i for i, option in enumerate(options) if f" {' '.join(answer_tokens(option))} " in text]
    return named[0] if len(named) == 1 else None
