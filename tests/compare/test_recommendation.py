"""Only a significant difference recommends a method."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from llama_index.ragkit.compare.recommendation import agreement, recommend, without_labels
from llama_index.ragkit.evaluation import Evaluation


def scored(name: str, scores: list[float]) -> Evaluation:
    return Evaluation(name, tuple(str(i) for i in range(len(scores))), {"R": tuple(scores)})


def test_a_method_that_is_clearly_better_is_recommended() -> None:
    found = recommend(
        [scored("graph", [1.0] * 40), scored("tree", [0.0] * 40)], [scored("dense", [0.0, 1.0] * 20)], "R"
    )
    assert (found.name, found.is_sure) == ("graph", True)
    assert "dense" in found.reason
    assert "+0.500" in found.reason


def test_a_difference_within_chance_recommends_plain_search() -> None:
    plain = [0.0, 1.0] * 20
    found = recommend([scored("graph", [1.0, *plain[1:]])], [scored("dense", [0.0] * 40), scored("BM25", plain)], "R")
    assert (found.name, found.is_sure) == ("BM25", False)
    assert "plain search is enough" in found.reason


def test_few_questions_are_never_sure() -> None:
    found = recommend([scored("graph", [1.0] * 5)], [scored("dense", [0.0] * 5)], "R")
    assert (found.name, found.is_sure) == ("graph", False)
    assert "only 5 questions" in found.reason


def test_the_best_of_many_methods_without_effect_is_rarely_recommended() -> None:
    rng = np.random.default_rng(0)
    wrong = 0
    for _ in range(40):
        systems = [scored(f"m{i}", rng.integers(0, 2, 30).astype(float).tolist()) for i in range(7)]
        wrong += recommend(systems, [scored("dense", rng.integers(0, 2, 30).astype(float).tolist())], "R").is_sure
    assert wrong <= 6  # seven uncorrected intervals would recommend one far more often


def test_of_equal_systems_the_one_that_ranks_better_is_named() -> None:
    found, ids = (1.0,) * 30, tuple(map(str, range(30)))
    dense, hybrid = (
        Evaluation(name, ids, {"R": found, "MRR": (rank,) * 30}) for name, rank in (("d", 0.5), ("h", 1.0))
    )
    assert recommend([], [dense, hybrid], "R").name == recommend([], [hybrid, dense], "R").name == "h"


def test_a_tie_is_told() -> None:
    even, odd = [0.0, 1.0] * 20, [0.0] * 40
    plain = [scored("dense", even), scored("BM25", even), scored("hybrid", odd)]
    told = " A tie: BM25 scored the same, and dense is named since it comes first."
    for methods in ([], [scored("graph", even)]):
        found = recommend(methods, plain, "R")
        assert found.name == "dense"
        assert told in found.reason
    assert "A tie" not in recommend([], plain[1:], "R").reason
    sure = recommend([scored("graph", [1.0] * 40), scored("tree", [1.0] * 40)], plain, "R")
    assert (sure.name, sure.is_sure) == ("graph", True)
    assert "A tie: tree scored the same, and graph is named" in sure.reason


def test_without_a_method_the_best_baseline_is_named() -> None:
    assert recommend([], [scored("dense", [0.0] * 30), scored("BM25", [1.0] * 30)], "R").name == "BM25"


def test_without_labels_methods_that_find_the_same_are_named() -> None:
    found = without_labels({"tree": 0.95, "graph": 0.3}, "hybrid")
    assert found.name == "hybrid"
    assert "tree find what it finds" in found.reason
    assert "graph find other passages" in found.reason


@pytest.mark.parametrize(
    ("one", "other", "share"),
    [([["a", "b"]], [["b", "a"]], 1.0), ([["a", "b"]], [["b", "c"]], 1 / 3), ([[]], [[]], 1.0), ([["a"]], [[]], 0.0)],
)
def test_agreement_is_the_share_of_common_results(one: list[list[str]], other: list[list[str]], share: float) -> None:
    assert agreement(one, other) == pytest.approx(share)


@given(st.lists(st.tuples(st.lists(st.sampled_from("abcd")), st.lists(st.sampled_from("abcd"))), min_size=1))
def test_agreement_is_symmetric_and_a_share(pairs: list[tuple[list[str], list[str]]]) -> None:
    one, other = [a for a, _ in pairs], [b for _, b in pairs]
    assert 0 <= agreement(one, other) == agreement(other, one) <= 1
    assert agreement(one, one) == 1
