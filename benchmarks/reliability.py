"""Writes ended at every call, counted: `python -m benchmarks.reliability` prints the tables of docs/reliability.md.

    python -m benchmarks.reliability                            all four tables
    python -m benchmarks.reliability --only stores --points 3   one of them, each write ended at three calls alone

- `memory`: indexes in memory. A line is a method, a column what ended the writes: at how many places, over build,
  insert, update, delete and refresh; and how many tests found an index that was not whole, or other rows than those of
  one that was built at once.
- `stores`: the same for indexes that are served from stores: SQLite with LanceDB, and the PostgreSQL of PG_DSN.
- `kills`: a PostgreSQL server of its own, killed in the midst of writes.
- `servers`: indexes in the PostgreSQL of PG_DSN after odd filters and lost connections, in forked processes, and behind
  readers, a streaming replica, PgBouncer and few connections. A cell is how many trials there were.
"""

import argparse
import io
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from tests.cases import CASES, Case
from tests.conformance.test_faults import TestEveryIndexEnded
from tests.own_postgres import OwnPostgres
from tests.serving import fault_places
from tests.serving.conftest import SERVED
from tests.serving.fault_places import FAULT_PLACES, ServedEnded

from benchmarks.server_kills import KILLED, kill_server
from llama_index.ragkit.testing import FaultTests
from llama_index.ragkit.testing.index_kit.faults import KINDS, OPERATIONS

_KILLS = 24  # of the server, a method
_TESTS = Path(fault_places.__file__).parent
_SERVER_TESTS = (_TESTS / "test_users_servers.py", _TESTS / "test_forks.py")


def memory(points: int | None) -> None:
    """One row for each method in memory."""
    _head()
    for case in CASES:
        _row(case.name, TestEveryIndexEnded, lambda test, case=case: test.take(case), points)  # type: ignore[misc]


def stores(points: int | None) -> None:
    """One row for each method and place."""
    _head()
    for where in FAULT_PLACES:
        for case in SERVED:
            try:
                _row(f"{case.name}, {where.name}", ServedEnded, _taking(case, where), points)
            except pytest.skip.Exception as reason:
                print(f"{where.name}: skipped, {reason}", file=sys.stderr)
                break


def kills(points: int | None) -> None:
    """One row for each method that keeps vectors of what it derives."""
    print("| method | kills | writes that they ended | rows left |\n|---|---|---|---|", flush=True)
    with OwnPostgres() as server:
        for case in CASES:
            if case.name in KILLED:
                with redirect_stdout(io.StringIO()):
                    done = kill_server(server, case, _KILLS)
                print(f"| {case.name} | {_KILLS} | {done.ended} | {done.left} |", flush=True)


class _Trials:
    """A plugin for pytest that takes down the trials of each test, and which failed."""

    def __init__(self) -> None:
        self.of: dict[tuple[str, str], str] = {}

    def pytest_runtest_logreport(self, report: Any) -> None:
        test, _, method = report.nodeid.partition("::")[2].rstrip("]").partition("[")
        if report.failed:
            self.of[method, test] = "failed"
            print(report.longreprtext, file=sys.stderr)
        elif report.when == "call":
            self.of[method, test] = str(dict(report.user_properties).get("trials", ""))


def servers(_: int | None) -> None:
    """One row for each method, one column for each test that counts trials."""
    taken = _Trials()
    with redirect_stdout(io.StringIO()):
        pytest.main(["-p", "no:cacheprovider", *map(str, _SERVER_TESTS)], plugins=[taken])
    counted = {key: said for key, said in taken.of.items() if said}
    tests = list(dict.fromkeys(test for _, test in counted))
    print(f"| method | {' | '.join(each.removeprefix('test_').replace('_', ' ') for each in tests)} |")
    print(f"|---|{'---|' * len(tests)}")
    for case in SERVED:
        print(f"| {case.name} | {' | '.join(counted.get((case.name, test), '') for test in tests)} |", flush=True)


def _taking(case: Case, where: Any) -> Callable[[Any], None]:
    def take(test: ServedEnded) -> None:
        test.take(case)
        test.where = where

    return take


def _head() -> None:
    print(f"| method | {' | '.join(KINDS)} | not whole |\n|---|{'---|' * (len(KINDS) + 1)}", flush=True)


def _row(name: str, tests: type[FaultTests], take: Callable[[Any], None], points: int | None) -> None:
    """End the writes of one index, and print at how many places they were ended."""
    ended: Counter[str] = Counter()
    failed = 0

    class Counted(tests):  # type: ignore[misc, valid-type]
        def _is_ended(self, place: Any, kind: Any, *args: Any) -> bool:
            ended[kind] += 1
            happened: bool = super()._is_ended(place, kind, *args)
            ended[kind] -= not happened
            return happened

    Counted.points = points
    for kind in KINDS:
        for operation in OPERATIONS:
            test = Counted()
            take(test)
            try:
                with redirect_stdout(io.StringIO()):  # core prints a remark on every small chunk
                    test.test_a_write_that_ends_early(kind, operation)
            except AssertionError as error:
                failed += 1
                print(f"{name}: {error}: {error.__cause__}", file=sys.stderr)
    print(f"| {name} | {' | '.join(str(ended[kind]) for kind in KINDS)} | {failed} |", flush=True)


_PARTS = {"memory": memory, "stores": stores, "kills": kills, "servers": servers}


def main() -> None:
    """Print the tables that were asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--only", choices=_PARTS, help="one of the tables [all]")
    parser.add_argument("--points", type=int, help="calls at which each write is ended [every one]")
    given = parser.parse_args()
    for part in [given.only] if given.only else _PARTS:
        began = time.monotonic()
        _PARTS[part](given.points)
        print(f"\n{part}: {time.monotonic() - began:.0f} s\n", flush=True)


if __name__ == "__main__":
    main()
