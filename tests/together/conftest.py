"""The tests of one folder more for every index of the project."""

import pytest
from tests.cases import CASES, Case
from tests.lifecycle.conftest import case, offline  # noqa: F401 - fixtures
from tests.together.plugins import has_postprocessor


@pytest.fixture(params=[each for each in CASES if has_postprocessor(each)], ids=lambda each: each.name)
def with_postprocessor(request: pytest.FixtureRequest) -> Case:
    return request.param
