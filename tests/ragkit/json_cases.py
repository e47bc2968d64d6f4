"""What the tests of the JSON parser draw from and compare with."""

import math
from typing import Any

from hypothesis import strategies as st

scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
containers = st.recursive(
    st.lists(scalars, max_size=4) | st.dictionaries(st.text(), scalars, max_size=4),
    lambda inner: st.lists(scalars | inner, max_size=4) | st.dictionaries(st.text(), scalars | inner, max_size=4),
    max_leaves=20,
)
# Prose that opens no JSON of its own: anything without brackets and tags.
noise = st.text(st.characters(exclude_characters="{[<", exclude_categories=("Cs",)), max_size=30)
SHARDS = [
    '"',
    "'",
    "{",
    "}",
    "[",
    "]",
    ":",
    ",",
    "\\",
    "a",
    "1",
    "-",
    ".",
    "e",
    " ",
    "\n",
    "//",
    "/*",
    "*/",
    "#",
    "```",
]
SHARDS += ["true", "None", "NaN", '"a"', '"a":', "'b':", "<think>", "</think>", "\\u", "\\ud800", "“", "”", "(", ")"]


def same(left: Any, right: Any) -> bool:
    """Equality in which NaN equals itself and 1 does not equal True or 1.0."""
    if isinstance(left, float) and isinstance(right, float) and math.isnan(left):
        return math.isnan(right)
    if type(left) is not type(right):
        return False
    if isinstance(left, dict):
        return list(left) == list(right) and all(same(left[key], right[key]) for key in left)
    if isinstance(left, list):
        return len(left) == len(right) and all(map(same, left, right))
    return bool(left == right)
