"""The order of all tests, threads, and garbage."""

import gc
import os
from collections import Counter

import pytest

# There is a process a core already, and the threads of OpenMP, which PyTorch uses, wait for each other busily: that is
# four times the work. It is set before a library reads it, and for the processes that tests start. OpenBLAS would read
# it too; it keeps its threads, since some tests are about them.
os.environ.setdefault("OPENBLAS_NUM_THREADS", str(os.cpu_count()))
os.environ.setdefault("OMP_NUM_THREADS", "1")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files with slow tests first, then those with many, so that processes that take file by file end together."""
    count = Counter(item.path for item in items)
    slow = Counter(item.path for item in items if item.get_closest_marker("slow"))
    items.sort(key=lambda item: (-slow[item.path], -count[item.path]))


@pytest.fixture
def no_garbage() -> None:
    """Collects the garbage of earlier tests: finalisers that run where a nested text has filled the stack fail."""
    gc.collect()
