"""What an agent may send in one call. Limits, checked before any work, keep it from occupying the server."""

import math
from collections.abc import Mapping
from typing import Any

from llama_index.ragkit.errors import ToolArgumentError

__all__ = [
    "MOST_FILTERS",
    "MOST_ID_CHARACTERS",
    "MOST_QUESTION_CHARACTERS",
    "MOST_RESULTS",
    "MOST_TEXT_CHARACTERS",
    "MOST_VALUE_CHARACTERS",
    "check_filters",
    "check_id",
    "check_text",
    "check_top_k",
]

MOST_QUESTION_CHARACTERS = 4_000
MOST_RESULTS = 100
MOST_FILTERS = 50  # also of the metadata of a document
MOST_VALUE_CHARACTERS = 1_000  # of a name or a value of a filter or of metadata
MOST_ID_CHARACTERS = 1_000
MOST_TEXT_CHARACTERS = 1_000_000  # of a document
_LARGEST_INTEGER = 2**63  # databases hold no larger integers


def check_text(name: str, text: Any, most: int) -> str:
    """A text that is not empty, has at most `most` characters, and can be stored.

    Raises
    ------
    ToolArgumentError
    """
    if not isinstance(text, str):
        raise ToolArgumentError(f"The {name} must be a text, not a {type(text).__name__}.")
    if len(text) > most:
        raise ToolArgumentError(f"The {name} has {len(text):,} characters; at most {most:,} are allowed. Shorten it.")
    if not text.strip():
        raise ToolArgumentError(f"The {name} is empty.")
    _check_storable(name, text)
    return text


def check_id(document_id: Any) -> str:
    """The id of a document.

    Raises
    ------
    ToolArgumentError
    """
    return check_text("document_id", document_id, MOST_ID_CHARACTERS)


def check_top_k(top_k: Any) -> int:
    """A number of results.

    Raises
    ------
    ToolArgumentError
    """
    if type(top_k) is not int or not 1 <= top_k <= MOST_RESULTS:
        raise ToolArgumentError(f"top_k must be from 1 to {MOST_RESULTS}, not {_short(top_k)}.")
    return top_k


def check_filters(name: str, values: Any) -> dict[str, Any]:
    """Names with texts, numbers or booleans; None for none.

    Raises
    ------
    ToolArgumentError
    """
    if values is None:
        return {}
    if not isinstance(values, Mapping):
        raise ToolArgumentError(f"{name} must be an object of names and values, not a {type(values).__name__}.")
    if len(values) > MOST_FILTERS:
        raise ToolArgumentError(f"{name} has {len(values):,} entries; at most {MOST_FILTERS} are allowed.")
    for key, value in values.items():
        for part in (key, value):
            if isinstance(part, str):
                if len(part) > MOST_VALUE_CHARACTERS:
                    raise ToolArgumentError(
                        f"{name} has a name or a value of {len(part):,} characters; at most {MOST_VALUE_CHARACTERS:,} "
                        "are allowed."
                    )
                _check_storable(name, part)
        if not isinstance(key, str) or not _is_plain(value):
            raise ToolArgumentError(
                f"The values of {name} must be texts, booleans or finite numbers below 2**63, not {_short(value)}."
            )
    return dict(values)


def _is_plain(value: Any) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, str | bool) or (isinstance(value, int) and abs(value) < _LARGEST_INTEGER)


def _check_storable(name: str, text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        bad = text[error.start]
        raise ToolArgumentError(f"The {name} contains a lone surrogate, {bad!r}, which is not a character.") from None


def _short(value: Any) -> str:
    kind = type(value)
    small = kind in (bool, float) or (kind is int and abs(value) < _LARGEST_INTEGER)
    return repr(value) if small else f"a {kind.__name__}"
