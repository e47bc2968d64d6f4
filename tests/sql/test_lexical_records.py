"""Postings in blocks, and words that share a stem: on arrays, without a database."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from llama_index.ragkit.sql import lexical_records
from llama_index.ragkit.sql.lexical_records import (
    Block,
    Postings,
    StemTable,
    blocks_of,
    packed_terms,
    postings_in,
    postings_of,
    shared_stems,
    terms_in,
    without,
)

SIZE, SPAN = 4, 16


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lexical_records, "BLOCK", SIZE)
    monkeypatch.setattr(lexical_records, "SPAN", SPAN)


def postings(pairs: list[tuple[int, int]]) -> Postings:
    """Postings of (word, text); times and lengths follow from these."""
    table = np.array(sorted(pairs), np.int64).reshape(-1, 2)
    return Postings(table[:, 0], table[:, 1], table.sum(1) % 7 + 1, table[:, 1] % 5 + 10)


def numbers_of(block: Block) -> list[int]:
    return [block.first // SPAN * SPAN + row for row in postings_in([block])["row"].tolist()]


def held(blocks: list[Block]) -> dict[int, list[tuple[int, int, int]]]:
    """word -> (text, times, words) of each posting."""
    found: dict[int, list[tuple[int, int, int]]] = {}
    for block in blocks:
        records = postings_in([block])
        rows = zip(numbers_of(block), records["times"].tolist(), records["words"].tolist(), strict=True)
        found.setdefault(block.word, []).extend(rows)
    return found


def expected(pairs: set[tuple[int, int]]) -> dict[int, list[tuple[int, int, int]]]:
    return {
        word: [(text, (word + text) % 7 + 1, text % 5 + 10) for one, text in sorted(pairs) if one == word]
        for word in {word for word, _ in pairs}
    }


PAIRS = st.sets(st.tuples(st.integers(-2, 2), st.integers(0, 60)), max_size=80)


@given(PAIRS, st.integers(0, 60), PAIRS)
def test_blocks_hold_what_was_added_and_not_removed(
    pairs: set[tuple[int, int]], border: int, gone: set[tuple[int, int]]
) -> None:
    stored: dict[tuple[int, int], Block] = {}
    for part in (sorted(p for p in pairs if p[1] < border), [p for p in pairs if p[1] >= border]):
        last = {block.word: block for _, block in sorted(stored.items())}
        stored.update({block[:2]: block for block in blocks_of(postings(part), last)})
    for block in stored.values():
        numbers = numbers_of(block)
        assert 1 <= len(numbers) <= SIZE
        assert numbers == sorted(numbers)
        assert block.first == numbers[0]
    in_order = [block for _, block in sorted(stored.items())]
    assert held(in_order) == expected(pairs)
    left = []
    for block in in_order:
        texts = [text for text in numbers_of(block) if (block.word, text) in gone]
        left.append(without(block, np.array(texts, np.int64)))
    assert {word: rows for word, rows in held(left).items() if rows} == expected(pairs - gone)


def test_a_full_block_is_not_written_again() -> None:
    full, open_block = blocks_of(postings([(1, text) for text in range(SIZE + 1)]), {})
    assert [block.first for block in blocks_of(postings([(1, SIZE)]), {1: full})] == [SIZE]
    (grown,) = blocks_of(postings([(1, SIZE + 1)]), {1: open_block})
    assert grown[:2] == open_block[:2]


def test_terms_of_texts_are_read_as_they_were_packed() -> None:
    hashes = {"net": 11, "income": -5}
    numbers = np.array([3, 4, 5])
    given = postings_of([{"net": 2, "income": 70_000}, {}, {"net": 1}], [70_002, 0, 1], numbers, hashes)
    places, terms = terms_in(packed_terms(given, numbers))
    assert list(zip(places.tolist(), terms["word"].tolist(), terms["times"].tolist(), strict=True)) == [
        (0, 11, 2),
        (0, -5, 65_535),
        (2, 11, 1),
    ]


@given(
    st.lists(st.sets(st.integers(0, 5)), max_size=6),
    st.dictionaries(st.integers(0, 5), st.dictionaries(st.integers(0, 2), st.integers(1, 7), min_size=1)),
)
def test_texts_with_a_stem_are_those_with_its_words_less_what_they_share(
    texts: list[set[int]], stems_of: dict[int, dict[int, int]]
) -> None:
    # A word has one stem in each language; later stems lose the languages of earlier ones.
    for word in range(6):
        left, masks = 7, stems_of.setdefault(word, {0: 7})
        for stem in sorted(masks):
            masks[stem], left = masks[stem] & left, left & ~masks[stem]
    rows = sorted((word, stem, mask) for word, masks in stems_of.items() for stem, mask in masks.items() if mask)
    table = StemTable(*np.array(rows, np.int64).reshape(-1, 3).T)
    pairs = np.array([(i, word) for i, words in enumerate(texts) for word in sorted(words)], np.int64).reshape(-1, 2)
    shared = shared_stems(pairs[:, 0], pairs[:, 1], table)
    for bit in (1, 2, 4):
        for stem in range(3):
            having = {word for word, masks in stems_of.items() if masks.get(stem, 0) & bit}
            single = sum(len(words & having) for words in texts)
            beyond = sum(count for (key, mask), count in shared.items() if key == stem and mask & bit)
            assert single - beyond == sum(bool(words & having) for words in texts)
