"""Bootstrap intervals: closed forms, coverage, determinism, and odd input."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from llama_index.ragkit.errors import ConfigurationError
from llama_index.ragkit.evaluation import Interval, bootstrap_interval, paired_bootstrap
from llama_index.ragkit.evaluation import results as module

SCORES = st.lists(st.floats(0, 1), min_size=1, max_size=30)


def test_constant_scores_have_a_point_interval():
    assert bootstrap_interval([0.25] * 7) == Interval(0.25, 0.25, 0.25)
    assert bootstrap_interval([1.0]) == Interval(1.0, 1.0, 1.0)


def test_interval_of_coin_flips_is_that_of_the_binomial():
    scores = [1.0] * 50 + [0.0] * 50  # resampled means are Binomial(100, 1/2) / 100: 2.5 % and 97.5 % at .40 and .60
    interval = bootstrap_interval(scores, n_resamples=40_000)
    assert (interval.mean, interval.low, interval.high) == (
        0.5,
        pytest.approx(0.40, abs=0.011),
        pytest.approx(0.60, abs=0.011),
    )


def test_wider_level_contains_narrower():
    scores = np.random.default_rng(1).random(40)
    wide, narrow = bootstrap_interval(scores, level=0.99), bootstrap_interval(scores, level=0.5)
    assert wide.low < narrow.low < narrow.high < wide.high


def test_same_seed_same_interval_another_seed_another():
    scores = np.random.default_rng(2).random(40)
    assert bootstrap_interval(scores) == bootstrap_interval(list(scores))
    assert bootstrap_interval(scores, seed=1) != bootstrap_interval(scores)


def test_interval_does_not_depend_on_global_random_state():
    scores = np.random.default_rng(3).random(10)
    first = bootstrap_interval(scores)
    np.random.seed(5)  # noqa: NPY002 - the legacy global state is what must not matter
    assert bootstrap_interval(scores) == first


def test_resampling_in_blocks_draws_every_resample(monkeypatch):
    scores = np.random.default_rng(4).random(10)
    monkeypatch.setattr(module, "_DRAWS_AT_ONCE", 35)  # blocks of 3 resamples, the last one shorter
    blocks = bootstrap_interval(scores, n_resamples=1000)
    assert blocks.low < blocks.mean < blocks.high
    assert blocks.low == pytest.approx(bootstrap_interval(scores, n_resamples=40_000, seed=9).low, abs=0.03)


def test_pairing_cancels_what_is_hard_for_both():
    hard = np.random.default_rng(5).random(200)
    better, worse = hard + 0.01, hard
    gap = paired_bootstrap(better, worse)
    assert gap.mean == pytest.approx(0.01)
    assert gap.excludes_zero
    assert gap.high - gap.low < 1e-9
    assert not paired_bootstrap(hard, hard).excludes_zero


def test_negative_differences_exclude_zero_too():
    assert paired_bootstrap([0.0, 0.0, 0.1], [1.0, 0.9, 1.0]).excludes_zero


def test_systems_of_different_length_are_refused():
    with pytest.raises(ConfigurationError, match="3 and 2"):
        paired_bootstrap([1, 2, 3], [1, 2])


@pytest.mark.parametrize("values", [[], [[1.0, 2.0]], [1.0, float("nan")], [float("inf")]])
def test_odd_scores_are_refused(values):
    with pytest.raises(ConfigurationError, match="values"):
        bootstrap_interval(values)


@pytest.mark.parametrize("kwargs", [{"level": 0}, {"level": 1.0}, {"n_resamples": 0}])
def test_parameters_out_of_range_are_named(kwargs):
    with pytest.raises(ConfigurationError, match=next(iter(kwargs))):
        bootstrap_interval([0.5, 1], **kwargs)


@given(SCORES)
def test_interval_lies_within_the_scores(scores):
    interval = bootstrap_interval(scores, n_resamples=200)
    assert min(scores) - 1e-12 <= interval.low <= interval.high <= max(scores) + 1e-12


@given(SCORES, st.randoms())
def test_swapping_the_systems_mirrors_the_mean(scores, random):
    other = [random.random() for _ in scores]
    there, back = paired_bootstrap(scores, other, n_resamples=100), paired_bootstrap(other, scores, n_resamples=100)
    assert there.mean == pytest.approx(-back.mean)
    assert there.low == pytest.approx(-back.high, abs=1e-9)
