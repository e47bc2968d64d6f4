"""Reading takes time in proportion to the length of a text, whatever the text.

Two tests hold that together. One counts the work of every function that reads text, on texts that are hard to read,
as if a regular expression read each character once. The other counts the steps of every regular expression, on texts
made to be hard for it, so that this is so. No time is measured: all numbers are the same on any machine. Each function
reads a fifth of the texts; `ALL_TEXTS=1` gives each all of them.
"""

import os
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest
from tests.house import modules
from tests.long_texts import long_texts
from tests.readers import READERS
from tests.regex_steps import TooManyStepsError, hard_texts, steps_of
from tests.work import Work, patterns

SIZES = (300, 1_200, 8_000, 32_000, 128_000)  # characters; the next where the work grew faster than the text
FASTER = 1.25  # times
# Readers that look up every run of up to 14 words, which is much work at any length: they begin with less.
SHORT_SIZES = (75, 300, 1_200)
WINDOWS = {
    "ragkit.text.known_names.lookups", "ragkit.text.known_names.mentions", "graphrag.search.linking.linked_entities",
    "KnownNames", "names of a question to Graph RAG", "names of a node of PG-RAG",
}  # fmt: skip
SMALL = 1_000  # work that may be anything, such as that of a table made on first use
QUADRATIC = {"pgrag.maps.verification.rouge_l"}  # every word with every word, of texts that it cuts

LENGTH = 400  # characters of a text for a regular expression
STEPS = 120  # for each of them: some expressions try a hundred words at each place
SHORT = {"llama_index.ragkit.text.unwrapping._FORMS"}  # reads lines of at most 300 characters
ROOT = Path(__file__).parents[2]
MODULES = {name: path for folder in ROOT.glob("llama_index_*/llama_index/*") for name, path in modules(folder).items()}
SCANNING = {"search", "finditer", "findall", "sub", "subn", "split"}
USE = re.compile(rf"(?<![\w.])(?<!>>> )(\w+)\.({'|'.join(sorted(SCANNING))}|match|fullmatch)\b")

texts_of = cache(long_texts)


@pytest.fixture(scope="module")
def work() -> Iterator[Work]:
    counter = Work()
    with counter.counted():
        yield counter


@pytest.mark.parametrize("name", [name for name in READERS if name not in QUADRATIC])
def test_work_grows_no_faster_than_the_text(work, name):
    chosen = slice(None) if os.environ.get("ALL_TEXTS") else slice(list(READERS).index(name) % 5, None, 5)
    assert [text for text in list(texts_of(1))[chosen] if grows_faster(work, name, text)] == []


def grows_faster(work: Work, name: str, text: str) -> bool:
    """Whether the work of a function grows faster than the text, however long that is."""
    sizes = (*SHORT_SIZES, *SIZES[2:]) if name in WINDOWS else SIZES
    before = work.of(READERS[name], texts_of(sizes[0])[text])
    for less, more in pairwise(sizes):
        now = work.of(READERS[name], texts_of(more)[text])
        if now <= FASTER * before * more / less + SMALL:
            return False
        before = now
    return True


def expressions() -> dict[str, tuple[re.Pattern[str], set[str]]]:
    """The regular expressions of all modules by their names, and how each is used: "search", "match", "fullmatch"."""
    used: defaultdict[re.Pattern[str], set[str]] = defaultdict(set)
    for module, path in MODULES.items():
        for name, method in USE.findall(path.read_text(encoding="utf-8")):
            if isinstance(pattern := getattr(sys.modules.get(module), name, None), re.Pattern):
                used[pattern].add("search" if method in SCANNING else method)
    names = {pattern: f"{space['__name__']}.{name}" for space, name, pattern in patterns() if pattern in used}
    return {name: (pattern, used[pattern]) for pattern, name in names.items()}


EXPRESSIONS = expressions()


@pytest.mark.parametrize("name", sorted(EXPRESSIONS.keys() - SHORT))
def test_a_regular_expression_reads_each_character_a_limited_number_of_times(name):
    pattern, uses = EXPRESSIONS[name]
    steps = steps_of(pattern)

    def is_slow(text: str, use: str) -> bool:
        try:
            steps(text, use, STEPS * len(text))
        except TooManyStepsError:
            return True
        return False

    assert [(text, use) for text in hard_texts(pattern, LENGTH) for use in sorted(uses) if is_slow(text, use)] == []


def test_every_regular_expression_has_a_name():
    """One that is made where it is used would not be found."""
    uses = [(module, name) for module, path in MODULES.items() for name, _ in USE.findall(path.read_text("utf-8"))]
    assert [module for module, name in uses if name == "re"] == []
