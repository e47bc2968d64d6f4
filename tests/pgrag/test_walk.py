"""The walk: by hand on small trees, and beside a slow reference on random ones."""

import numpy as np
import pytest
from tests.pgrag.slow_walk import slow_walk

from llama_index.pgrag.config import CODE_CONTROL, PAPER_CONTROL, Control
from llama_index.pgrag.search.pseudo_graph_walk import walk
from llama_index.ragkit.errors import ConfigurationError

# topic 0; route 1 with facts 2 and 3; route 4 with fact 5; fact 6 directly under the topic
SIGNED = Control(0.03, 0.05)
IDS = np.array([[0, 1, 2], [0, 1, 3], [0, 4, 5], [0, 6, -1]])


def sims(*cells: float) -> np.ndarray:
    table = np.array([*cells, 9.0])  # the last is read where the template is padded, and must not count
    return table[IDS][np.newaxis]


def test_a_route_that_supports_the_seed_brings_its_other_facts():
    found = walk(IDS, sims(0.1, 0.60, 0.62, 0.58, 0.1, 0.1, 0.1), 1, SIGNED)
    # The topic is a reject, so the walk stops at the route; row 1 is within .05 of the seed, by half.
    assert found.seeds.tolist() == [[0]]
    np.testing.assert_allclose(found.scores, [0.60 + 0.62, 0.60 + 0.5 * 0.58, 0, 0])


def test_a_topic_that_supports_the_seed_brings_the_whole_map_up_to_each_reject():
    found = walk(IDS, sims(0.60, 0.60, 0.62, 0.1, 0.60, 0.61, 0.1), 1, SIGNED)
    np.testing.assert_allclose(found.scores, [1.82, 1.2, 1.81, 0.60])


def test_a_better_ancestor_supports_when_signed_and_ends_the_walk_when_absolute():
    better = sims(0.1, 0.90, 0.62, 0.61, 0.1, 0.1, 0.1)
    assert walk(IDS, better, 1, SIGNED).scores[1] > 0
    np.testing.assert_allclose(walk(IDS, better, 1, PAPER_CONTROL).scores, [0.62, 0, 0, 0])


def test_rows_of_one_parent_need_not_stand_together():
    order = [0, 2, 1, 3]
    cells = np.array([0.1, 0.60, 0.62, 0.58, 0.1, 0.1, 0.1])[IDS[order]][np.newaxis]
    np.testing.assert_allclose(walk(IDS[order], cells, 1, SIGNED).scores, [1.22, 0, 0.89, 0])


def test_what_two_key_points_reach_adds_up_and_nothing_negative_counts():
    one = sims(0.1, 0.2, 0.62, 0.1, 0.1, 0.1, 0.1)
    assert walk(IDS, np.concatenate([one, one]), 1, SIGNED).scores[0] == pytest.approx(1.24)
    assert walk(IDS, -one, 4, SIGNED).scores.tolist() == [0, 0, 0, 0]


def test_the_presets_are_those_of_paper_and_code():
    assert (PAPER_CONTROL.support, PAPER_CONTROL.fuzzy, PAPER_CONTROL.difference) == (0.03, 0.05, "absolute")
    assert PAPER_CONTROL.unit == CODE_CONTROL.unit == "cosines"
    assert (CODE_CONTROL.support, CODE_CONTROL.fuzzy, CODE_CONTROL.difference) == (0.01, 0.02, "absolute")


@pytest.mark.parametrize(
    "bad", [{"support": -0.1}, {"support": 0.9}, {"fuzzy": float("nan")}, {"difference": "both"}, {"unit": "x"}]
)
def test_a_control_that_cannot_be_meant_is_refused(bad):
    with pytest.raises(ConfigurationError):
        Control(**bad)


@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (1, 1)])
def test_empty_and_tiny_templates(shape):
    ids = np.zeros(shape, dtype=np.int64)
    assert walk(ids, np.full((1, *shape), 0.5), 8).scores.tolist() == [0.5] * shape[0]
    assert walk(np.full((2, 2), -1), np.zeros((1, 2, 2)), 3).scores.tolist() == [0, 0]


def test_one_thousand_random_pseudo_graphs_as_the_slow_reference_has_them():
    rng = np.random.default_rng(0)
    for trial in range(1000):
        rows, columns = int(rng.integers(1, 25)), int(rng.integers(1, 6))
        ids = np.full((rows, columns), -1)
        known: dict[tuple[int, ...], int] = {}
        for i in range(rows):
            path: tuple[int, ...] = ()
            for j in range(int(rng.integers(1, columns + 1))):
                path = (*path, int(rng.integers(0, 3)))
                ids[i, j] = known.setdefault(path, len(known))
        cells = rng.uniform(-0.2, 0.9, size=(int(rng.integers(1, 4)), len(known) + 1))
        if trial % 2:
            cells = 0.4 + cells / 10  # cosines that stand close, as those of real models do
        control = Control(0.03, 0.05, "signed" if trial % 3 else "absolute")
        seeds = int(rng.integers(1, 10))
        found = walk(ids, cells[:, ids], seeds, control)
        wanted = slow_walk(ids.tolist(), cells[:, ids].tolist(), seeds, 0.03, 0.05, control.difference == "signed")
        np.testing.assert_allclose(found.scores, wanted, atol=1e-12)
        np.testing.assert_allclose(found.stained.sum(axis=(0, 1)), wanted, atol=1e-12)
