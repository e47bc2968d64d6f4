"""Writes ended at every call, counted: `python -m benchmarks.reliability` prints the table of docs/reliability.md.

Each line is one method, each column what ended the writes: the number of places at which a write was ended, over build,
insert, update, delete and refresh, and how many of them left an index that was not whole.
"""

import io
import sys
import time
from collections import Counter
from contextlib import redirect_stdout
from typing import Any

from tests.cases import CASES
from tests.conformance.test_faults import TestEveryIndexEnded

from llama_index.ragkit.testing.index_kit.faults import OPERATIONS

KINDS = ("error", "kill", "interrupt", "cancel")


def main() -> None:
    """Print one row for each method."""
    print(f"| method | {' | '.join(KINDS)} | not whole |\n|---|{'---|' * (len(KINDS) + 1)}", flush=True)
    began, total = time.monotonic(), 0
    for case in CASES:
        ended: Counter[str] = Counter()
        failed = 0

        class Counted(TestEveryIndexEnded):
            kind = ""

            def _check(self, *args: Any, **kwargs: Any) -> None:
                ended[self.kind] += 1  # noqa: B023
                super()._check(*args, **kwargs)

        for kind in KINDS:
            for operation in OPERATIONS:
                test = Counted()
                test.take(case)
                test.kind = kind
                try:
                    with redirect_stdout(io.StringIO()):  # core prints a remark on every small chunk
                        test.test_a_write_that_ends_early(kind, operation)  # type: ignore[arg-type]
                except AssertionError as error:
                    failed += 1
                    print(f"{case.name}: {error}", file=sys.stderr)
        total += sum(ended.values())
        print(f"| {case.name} | {' | '.join(str(ended[kind]) for kind in KINDS)} | {failed} |", flush=True)
    print(f"\n{total} places in {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
