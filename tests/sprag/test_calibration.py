"""Scores as relevance: closed forms, what every calibration keeps, and what is chosen automatically."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta

from llama_index.ragkit.errors import ConfigurationError
from llama_index.sprag.relevance.calibration import (
    CALIBRATIONS,
    BetaCalibration,
    ConstantCalibration,
    MinMaxCalibration,
    NoCalibration,
    SigmoidCalibration,
    automatic_calibration,
    beta_cdf,
    calibration_of,
    check_calibration,
)

UNIT = np.linspace(0, 1, 201)


def test_the_beta_distribution_in_its_closed_forms():
    np.testing.assert_allclose(beta_cdf(UNIT, 1, 1), UNIT, atol=1e-15)
    np.testing.assert_allclose(beta_cdf(UNIT, 3, 1), UNIT**3, atol=1e-14)
    np.testing.assert_allclose(beta_cdf(UNIT, 1, 2.5), 1 - (1 - UNIT) ** 2.5, atol=1e-14)
    np.testing.assert_allclose(beta_cdf(UNIT, 0.5, 0.5), 2 / np.pi * np.arcsin(np.sqrt(UNIT)), atol=1e-14)


@pytest.mark.parametrize(("a", "b"), [(0.4, 0.4), (0.5, 1.8), (2, 5), (50, 3), (0.01, 0.01), (0.001, 5), (1000, 1000)])
def test_the_beta_distribution_as_scipy_has_it(a, b):
    np.testing.assert_allclose(beta_cdf(UNIT, a, b), beta.cdf(UNIT, a, b), atol=1e-11)


def test_the_published_parameters():
    assert BetaCalibration() == BetaCalibration(0.4, 0.4) == CALIBRATIONS["beta"]
    assert ConstantCalibration()([0.3, 0.6]).tolist() == [0.8, 0.8]
    assert CALIBRATIONS["rank"]([0.3]).tolist() == [1.0]


def test_each_calibration_by_hand():
    assert SigmoidCalibration()([0.0]).tolist() == [0.5]
    assert SigmoidCalibration(2, 0.5)([2 + 0.5 * np.log(3)])[0] == pytest.approx(0.75)
    assert MinMaxCalibration()([2, 6, 4]).tolist() == [0, 1, 0.5]
    assert MinMaxCalibration()([2, 2]).tolist() == [1, 1]
    assert NoCalibration()([-0.2, 0.4, 3]).tolist() == [0, 0.4, 1]


@pytest.mark.parametrize("name", CALIBRATIONS)
@settings(max_examples=100)
@given(scores=st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=20))
def test_relevance_lies_between_0_and_1_and_keeps_the_order(name, scores):
    relevance = CALIBRATIONS[name](scores)
    assert relevance.shape == (len(scores),)
    assert ((relevance >= 0) & (relevance <= 1)).all()
    assert (np.diff(relevance[np.argsort(scores, kind="stable")]) >= -1e-12).all()


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_missing_scores_are_refused_where_they_are_read_and_not_elsewhere(bad):
    for name in ("beta", "sigmoid", "min-max", "none"):
        with pytest.raises(ConfigurationError, match='calibration="rank"'):
            CALIBRATIONS[name]([0.5, bad])
    assert CALIBRATIONS["constant"]([0.5, bad]).tolist() == [0.8, 0.8]


@pytest.mark.parametrize(
    ("scores", "reranked", "name"),
    [
        ([0.61, 0.58], False, "rank"),  # cosines
        ([21.0, 3.5], False, "rank"),  # BM25
        ([0.98, 0.02], True, "beta"),
        ([7.9, -10.2], True, "sigmoid"),
        ([9.0, 2.0], True, "min-max"),  # an LLM's marks
        ([0.5, 0.5], True, "rank"),
        ([0.5, float("nan")], True, "rank"),
        ([], True, "rank"),
    ],
)
def test_the_automatic_choice(scores, reranked, name):
    assert automatic_calibration(scores, reranked=reranked) is CALIBRATIONS[name]
    assert calibration_of("auto", scores, reranked=reranked) is CALIBRATIONS[name]


def test_a_calibration_by_name_or_of_ones_own():
    own = SigmoidCalibration(3, 2)
    assert calibration_of(own, [1]) is own
    assert calibration_of("min-max", [1]) == MinMaxCalibration()
    with pytest.raises(ConfigurationError, match="'rank', 'constant', 'beta', 'sigmoid', 'min-max', 'none'"):
        check_calibration("gamma")
    with pytest.raises(ConfigurationError, match="a function from scores"):
        check_calibration(0.8)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "make",
    [
        lambda: BetaCalibration(0, 1),
        lambda: BetaCalibration(1, -1),
        lambda: SigmoidCalibration(0, 0),
        lambda: SigmoidCalibration(float("nan"), 1),
        lambda: ConstantCalibration(0),
        lambda: ConstantCalibration(1.2),
    ],
)
def test_parameters_that_cannot_be_are_refused(make):
    with pytest.raises(ConfigurationError):
        make()
