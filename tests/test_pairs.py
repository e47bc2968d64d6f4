"""Of a grid of which half is run, each value is left, and each pair of values."""

from itertools import combinations, product
from pathlib import Path

import pytest
from tests.pairs import is_left

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parent
SIZES = ([4, 5, 8], [2, 2, 2], [2, 3, 2, 5])


@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_half_of_a_grid_has_all_pairs(sizes: list[int]) -> None:
    grid = list(product(*map(range, sizes)))
    left = [places for places in grid if is_left("test_a", dict(enumerate(places)))]
    assert len(grid) // 2 <= len(left) <= (len(grid) + 1) // 2
    for one, other in combinations(range(len(sizes)), 2):
        pairs = {(places[one], places[other]) for places in left}
        assert len(pairs) == sizes[one] * sizes[other]


@pytest.mark.parametrize("module", ["serving/test_life.py", "together/test_real_stores.py"])
def test_functions_of_two_parameters_have_both_parities(module: str) -> None:
    lines = (ROOT / module).read_text(encoding="utf-8").splitlines()
    names = [line[4:].split("(")[0] for line in lines if line.startswith("def test_") and "place: Place" in line]
    assert {is_left(name, {"case": 0, "place": 0}) for name in names} == {True, False}


def test_a_test_of_the_methods_is_run_with_half_of_them() -> None:
    halves = [{place for place in range(8) if is_left(name, {"case": place})} for name in ("test_a", "test_d")]
    assert halves[0] | halves[1] == set(range(8))
    assert [len(half) for half in halves] == [4, 4]


def test_a_test_of_one_other_parameter_is_always_left() -> None:
    assert all(is_left(name, {"kind": place}) for name in ("test_a", "test_b") for place in range(4))


def test_each_value_of_a_grid_is_left(pytester: pytest.Pytester) -> None:
    pytester.makeconftest("from tests.conftest import pytest_collection_modifyitems")
    pytester.makeini("[pytest]\nmarkers = pairs: half")
    pytester.makepyfile(
        """
        import pytest

        grid = pytest.mark.pairs

        @pytest.fixture(params="abcdefgh")
        def case(request):
            return request.param

        @grid
        @pytest.mark.parametrize("case, kind", [(n, n) for n in range(8)])
        def test_of_both_together(case, kind):
            pass

        @grid
        def test_of_one(case):
            pass

        @grid
        @pytest.mark.parametrize("how", "xy")
        @pytest.mark.parametrize("kind", "xyz")
        def test_of_all(case, kind, how):
            pass
        """
    )
    done = pytester.runpytest("-p", "no:cacheprovider", "-v")
    done.assert_outcomes(passed=8 + 4 + 24, deselected=4 + 24)
    ran = [line.split("[")[1].split("]")[0] for line in done.outlines if "test_of_all[" in line]
    assert {tuple(name.split("-")[:2]) for name in ran} == set(product("abcdefgh", "xyz"))
