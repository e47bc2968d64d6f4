"""A database server that is killed in the midst of a write: nothing of the write is left in any store."""

from collections.abc import Iterator

import pytest
from benchmarks.server_kills import KILLED, kill_server
from tests.cases import CASES, Case
from tests.own_postgres import OwnPostgres

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")


@pytest.fixture(scope="module")
def server() -> Iterator[OwnPostgres]:
    with OwnPostgres() as started:
        yield started


@pytest.mark.slow
@pytest.mark.parametrize("case", [case for case in CASES if case.name in KILLED], ids=lambda case: case.name)
def test_no_row_is_left_after_the_server_was_killed(server: OwnPostgres, case: Case) -> None:
    """`python -m benchmarks.reliability --only kills` does it more often."""
    assert kill_server(server, case, kills=2).left == 0
