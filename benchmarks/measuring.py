"""What the speed benchmarks measure with: seconds on the wall and on the processor, and memory."""

import argparse
import json
import os
import statistics
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar
from unittest import mock

__all__ = [
    "Times",
    "allocated_mb",
    "in_turns",
    "peak_mb",
    "repeated",
    "reset_peak",
    "resident_mb",
    "run_or_compare",
    "spent_in",
    "timed",
]

T = TypeVar("T")

_STATUS = Path("/proc/self/status")
_CLEAR = Path("/proc/self/clear_refs")


def timed(work: Callable[[], T]) -> tuple[T, float, float]:
    """What the work returns, and its seconds on the wall and on the processor, those of all threads together."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = work()
    return result, time.perf_counter() - wall, time.process_time() - cpu


@dataclass
class Times:
    """The runs of one work.

    Attributes
    ----------
    wall_s, cpu_s : seconds of every run in their order, on the wall and on the processor
    """

    wall_s: list[float] = field(default_factory=list)
    cpu_s: list[float] = field(default_factory=list)

    def run(self, work: Callable[[], T]) -> T:
        """Run it once more."""
        result, wall_s, cpu_s = timed(work)
        self.wall_s.append(wall_s)
        self.cpu_s.append(cpu_s)
        return result

    @property
    def median_ms(self) -> float:
        """Median milliseconds on the wall."""
        return statistics.median(self.wall_s) * 1000

    def difference_ms(self, other: "Times") -> float:
        """Median milliseconds that a run took more than the other work's in the same turn."""
        return statistics.median(a - b for a, b in zip(self.wall_s, other.wall_s, strict=True)) * 1000


def repeated(work: Callable[[], Any], repeats: int) -> Times:
    """One work, again and again."""
    times = Times()
    for _ in range(repeats):
        times.run(work)
    return times


def in_turns(works: Mapping[str, Callable[[], Any]], repeats: int, runs: int = 1) -> dict[str, Times]:
    """Each work in turn, some `runs` at a time, `repeats` turns each: what else the machine does falls on all alike."""
    times = {name: Times() for name in works}
    for _ in range(repeats):
        for name, work in works.items():
            for _ in range(runs):
                times[name].run(work)
    return times


@contextmanager
def spent_in(owner: type, method: str) -> Iterator[Times]:
    """The calls of a synchronous method while the block runs, so that its share of a longer work can be told."""
    times, plain = Times(), getattr(owner, method)

    def clocked(*arguments: Any, **options: Any) -> Any:
        return times.run(lambda: plain(*arguments, **options))

    with mock.patch.object(owner, method, clocked):
        yield times


def peak_mb() -> float:
    """Most resident memory that this process had at once.

    Not `ru_maxrss` where it can be helped: a new process inherits that of its parent.
    """
    if _STATUS.exists():
        return _status_mb("VmHWM")
    import resource  # only where there is no /proc, since Windows lacks it

    bytes_a_unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * bytes_a_unit / 2**20


def reset_peak() -> None:
    """Let `peak_mb` count from here on, where Linux allows it."""
    if os.access(_CLEAR, os.W_OK):
        _CLEAR.write_text("5", encoding="ascii")


def resident_mb() -> float:
    """Resident memory of this process now."""
    return _status_mb("VmRSS")


def _status_mb(field_name: str) -> float:
    lines = _STATUS.read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{field_name}:")) / 1024


def allocated_mb(work: Callable[[], Any]) -> float:
    """Most memory that the work holds at once, beside what was there."""
    tracemalloc.start()
    work()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 2**20


def run_or_compare(
    parser: argparse.ArgumentParser,
    arguments: Sequence[str] | None,
    measured: Callable[[argparse.Namespace], Iterable[dict[str, Any]]],
    compared: Callable[[Sequence[dict[str, Any]], Sequence[dict[str, Any]]], Iterable[str]],
) -> None:
    """Print the rows of a measurement, without answers, and keep them in `--out`; or a table of two such files."""
    parser.add_argument("--out", type=Path, help="a file for all figures")
    parser.add_argument("--compare", nargs=2, type=Path, metavar=("BEFORE", "AFTER"), help="files of --out")
    options = parser.parse_args(sys.argv[1:] if arguments is None else arguments)
    if options.compare:
        print("\n".join(compared(*(json.loads(path.read_text(encoding="utf-8")) for path in options.compare))))
        return
    rows = []
    for row in measured(options):
        print(json.dumps({name: value for name, value in row.items() if name != "answers"}), flush=True)
        rows.append(row)
        if options.out:
            options.out.write_text(json.dumps(rows), encoding="utf-8")
