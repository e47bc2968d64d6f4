"""Every index of the project, with its writes ended at every call."""

import pytest
from tests.cases import CASES
from tests.conformance.test_indexes import OfCase

from llama_index.ragkit.testing import FaultTests


class TestEveryIndexEnded(OfCase, FaultTests):
    @pytest.fixture(autouse=True, params=CASES, ids=lambda case: case.name)
    def _case(self, request: pytest.FixtureRequest) -> None:
        self.take(request.param)
