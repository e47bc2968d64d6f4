"""From rankings to segments, with the parameters of the method."""

import numpy as np
import pytest
from tests.sprag.laid_out import laid_out
from tests.sprag.slow_segments import slow_greedy

from llama_index.sprag.config import PublishedSegments, SegmentConfig, published_config
from llama_index.sprag.segments.relevant_segments import extract_segments
from llama_index.sprag.segments.values import select_documents


def segments(rankings, documents, lengths, config, relevance=1.0):
    """The segments, and for each its document and the numbers of its chunks in it."""
    places, owners, sizes = laid_out(rankings, documents, lengths)
    given = [
        np.full(len(hits), relevance) if np.isscalar(relevance) else relevance[i] for i, hits in enumerate(rankings)
    ]
    found = extract_segments(places, given, owners, sizes, config)
    starts = np.cumsum([0, *map(len, lengths)]).tolist()
    spans = []
    for segment in found:
        first = starts[owners[segment.start]]
        spans.append((documents[owners[segment.start]], segment.start - first, segment.end - first))
    return found, spans


def spans(*args, **kwargs):
    return segments(*args, **kwargs)[1]


def test_hits_at_both_ends_of_a_long_document_do_not_drag_in_what_lies_between():
    """Version 0.2.0 returns one segment of 15 chunks here, 13 of them unrelated: its gaps cost nothing."""
    found = spans([[("a", 0), ("a", 14)]], ["a"], [[700] * 20], published_config())
    assert found == [("a", 0, 1), ("a", 14, 15)]


def test_a_segment_does_not_begin_with_chunks_that_were_not_retrieved():
    """Version 0.2.0 pads a single hit at chunk 3 to the segment from 0 to 4."""
    assert spans([[("a", 3)]], ["a"], [[700] * 9], published_config()) == [("a", 3, 4)]


def test_a_lone_chunk_is_worth_returning_up_to_the_rank_that_the_published_numbers_imply():
    for rank, expected in ((11, 1), (12, 0)):
        hits = [*[("x", i) for i in range(rank)], ("a", 0)]
        assert len(spans([hits], ["a"], [[700]], published_config())) == expected
    for rank, expected in ((4, 1), (5, 0)):
        hits = [*[("x", i) for i in range(rank)], ("a", 0)]
        assert len(spans([hits], ["a"], [[700]], published_config(), relevance=0.8)) == expected


def test_with_raw_cosines_the_published_numbers_return_nothing():
    hits = [("a", i) for i in range(0, 40, 4)]
    assert spans([hits], ["a"], [[700] * 40], published_config(), relevance=0.6) == []


def test_a_budget_of_tokens_is_filled_and_never_exceeded():
    rng = np.random.default_rng(0)
    lengths = [rng.integers(20, 200, size=300) for _ in range(3)]
    hits = [("abc"[i % 3], int(c)) for i, c in enumerate(rng.permutation(200))]
    for budget, share in ((300, 0.85), (2000, 0.97), (8000, 0.99)):
        found = spans([hits], ["a", "b", "c"], lengths, SegmentConfig(overall_max_length=budget))
        tokens = sum(int(lengths["abc".index(document)][start:end].sum()) for document, start, end in found)
        assert share * budget < tokens <= budget


def test_the_budget_is_filled_by_rank_with_chunks_of_the_same_documents_where_that_is_wished():
    hits = [("a", 0), ("x", 0), ("a", 5), ("a", 8)]
    config = published_config(fill=True, minimum_value=0.95, overall_max_length=2)
    found, where = segments([hits], ["a"], [[700] * 9], config)
    assert where == [("a", 0, 1), ("a", 5, 6)]
    assert found[1].value == pytest.approx(np.exp(-2 / 30) - 0.18)
    config = published_config(minimum_value=0.95, overall_max_length=2)
    assert spans([hits], ["a"], [[700] * 9], config) == []


@pytest.mark.parametrize(("length", "expected"), [(200, [("a", 3, 6)]), (1000, [("a", 4, 5)])])
def test_long_chunks_beside_a_hit_are_not_worth_their_price(length, expected):
    config = SegmentConfig(overall_max_length=8 * length, fill=False)
    assert spans([[("a", 4)]], ["a"], [[length] * 9], config) == expected


def test_each_further_query_extends_the_budget():
    config = SegmentConfig(
        overall_max_length=2,
        length_unit="chunks",
        decay_rate=30,
        neighbor_relevance=0,
        published=PublishedSegments(overall_max_length_extension=1),
    )
    queries = [[("a", 2 * i) for i in range(9)]] * 3
    assert sum(end - start for _, start, end in spans(queries, ["a"], [[1] * 30], config)) == 4
    assert spans([], ["a"], [[1] * 30], config) == []


def test_the_whole_way_is_that_of_the_slow_reference():
    rng = np.random.default_rng(3)
    for _ in range(50):
        sizes = rng.integers(1, 9, size=3)
        lengths = [rng.integers(1, 1500, size=n) for n in sizes]
        known = [(name, int(c)) for name, n in zip("abc", sizes, strict=True) for c in range(n)]
        queries, relevance = [], []
        for _ in range(int(rng.integers(1, 3))):
            picked = rng.permutation(len(known))[: rng.integers(1, len(known) + 1)]
            queries.append([known[i] for i in picked])
            relevance.append(rng.random(len(picked)))
        config = published_config(minimum_value=0.2, max_length=4, overall_max_length=8)
        of_hits = [[name for name, _ in hits] for hits in queries]
        documents = select_documents(of_hits, config.published.top_k_for_document_selection)
        rows = [lengths["abc".index(name)] for name in documents]
        found, where = segments(queries, documents, rows, config, relevance)
        values = []
        for hits, relevant in zip(queries, relevance, strict=True):
            rank = {hit: r for r, hit in enumerate(hits)}
            value = []
            for name, row in zip(documents, rows, strict=True):
                for chunk, length in enumerate(row):
                    r = rank.get((name, chunk))
                    worth = -0.18 if r is None else np.exp(-r / 30) * relevant[r] - 0.18
                    value.append(worth * max(length, 700) / 700)
            values.append(value)
        owners = [number for number, row in enumerate(rows) for _ in row]
        budget = 8 + 5 * (len(queries) - 1)
        expected = slow_greedy(values, owners, [1] * len(owners), 4, budget, 0.2)
        starts = np.cumsum([0, *map(len, rows)])
        assert where == [
            (documents[owners[s[0]]], s[0] - starts[owners[s[0]]], s[1] - starts[owners[s[0]]]) for s in expected
        ]
        assert [s.query for s in found] == [s[3] for s in expected]
        assert [s.value for s in found] == pytest.approx([s[2] for s in expected], abs=1e-8)


def test_the_optimum_is_chosen_where_it_is_asked_for():
    hits = [("a", 0), ("a", 2), ("b", 0)]
    config = SegmentConfig(
        overall_max_length=3, length_unit="chunks", decay_rate=30, selection="optimal", neighbor_relevance=0
    )
    assert spans([hits], ["a", "b"], [[1] * 3, [1]], config) == [("a", 0, 1), ("a", 2, 3), ("b", 0, 1)]
