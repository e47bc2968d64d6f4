"""Every index of the project, with its writes ended at calls spread over each: at POINTS of them, or at all with 0.

`python -m benchmarks.reliability --only memory` ends them at every call.
"""

import os

import pytest
from tests.cases import CASES
from tests.conformance.test_indexes import OfCase

from llama_index.ragkit.testing import FaultTests


@pytest.mark.pairs
class TestEveryIndexEnded(OfCase, FaultTests):
    points = int(os.environ.get("POINTS", "6")) or None

    @pytest.fixture(autouse=True, params=CASES, ids=lambda case: case.name)
    def _case(self, request: pytest.FixtureRequest) -> None:
        self.take(request.param)
