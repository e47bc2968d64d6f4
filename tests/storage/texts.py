"""Texts in two indexes of words: one that is tested, and a `LexicalIndex` that says what is to be found."""

from collections import Counter
from collections.abc import Iterable
from random import Random

import pytest

from llama_index.ragkit.sql import lexical_records, lexical_rows, lexical_search
from llama_index.ragkit.storage.interface import Words
from llama_index.ragkit.text import lexical_index
from llama_index.ragkit.text.lexical_index import LexicalIndex, lexical_terms

__all__ = ["QUESTIONS", "WORDS", "Texts", "make_tiny", "sentence"]

WORDS = "net income rose taxes tax taxed Москве Москва házak ház häuser haus 東京 都民 서울은 서울의 3m lyon self void"
QUESTIONS = [
    "Did net incomes rise?",
    "tax taxed taxing",
    "Сколько налогов в Москве?",
    "東京都",
    "Häuser und Haus",
    "서울",
    "?",
    "Net income rose. Who taxed the houses in the year? Dr. No.",
    "東京都。서울? Häuser!",
]


class Texts:
    """Texts in both indexes."""

    def __init__(self, stored: Words) -> None:
        self.texts: dict[str, Counter[str]] = {}
        self.stored = stored
        self.memory = LexicalIndex()

    def change(self, removed: Iterable[str], added: dict[str, str]) -> None:
        counts = {name: lexical_terms(given) for name, given in added.items()}
        gone = list(removed)
        self.memory = self.memory.changed(gone, counts)
        self.stored.changed(gone, counts)
        self.texts = {name: each for name, each in self.texts.items() if name not in gone} | counts

    def expected(self, question: str, only: set[str] | None = None) -> dict[str, float]:
        counted = self.memory if only is None else self.memory.having(only)
        found: dict[str, float] = {}
        for block, scores in zip(counted.ids, counted.scores(question), strict=True):
            found.update({name: score for name, score in zip(block, scores.tolist(), strict=True) if score})
        return dict(sorted(found.items(), key=lambda each: (-each[1], each[0])))


def sentence(random: Random) -> str:
    return " ".join(random.choices(WORDS.split(), k=random.randrange(0, 12)))


def make_tiny(patch: pytest.MonkeyPatch) -> None:
    """Make blocks and spans so small that few texts fill many of them."""
    patch.setattr(lexical_index, "_LARGEST_BLOCK", 5)
    patch.setattr(lexical_records, "BLOCK", 3)
    patch.setattr(lexical_records, "SPAN", 8)
    patch.setattr(lexical_search, "SPAN", 8)
    patch.setattr(lexical_rows, "_TEXTS_AT_ONCE", 7)
    patch.setattr(lexical_rows, "_KEYS_AT_ONCE", 5)
