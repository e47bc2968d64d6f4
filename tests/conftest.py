"""The order of all tests, which of a grid are run, time limits, threads, the disk, certificates, and garbage."""

import gc
import os
import sqlite3
import ssl
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from sqlalchemy import Engine, event
from tests.pairs import is_left

# There is a process a core already, and the threads of OpenMP, which PyTorch uses, wait for each other busily: that is
# four times the work. It is set before a library reads it, and for the processes that tests start. OpenBLAS would read
# it too; it keeps its threads, since some tests are about them.
os.environ.setdefault("OPENBLAS_NUM_THREADS", str(os.cpu_count()))
os.environ.setdefault("OMP_NUM_THREADS", "1")


# How long an example takes says what else the machine does.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")

# Clients of models are made for each call, and each reads all certificates: 50 ms. No test has a server with one.
ssl.create_default_context = cache(ssl.create_default_context)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Files with slow tests first, then those with many, so that processes that take file by file end together.

    Of tests that are marked `pairs`, half are run; with the environment variable GRID=whole all.
    """
    if os.environ.get("GRID") != "whole":
        grid = _Places()
        left_out = {item: None for item in items if item.get_closest_marker("pairs") and not grid.has_left(item)}
        config.hook.pytest_deselected(items=list(left_out))
        items[:] = [item for item in items if item not in left_out]
    count = Counter(item.path for item in items)
    slow = Counter(item.path for item in items if item.get_closest_marker("slow"))
    items.sort(key=lambda item: (-slow[item.path], -count[item.path]))


class _Places:
    """The places of parameters among their values; pytest numbers the combinations instead."""

    def __init__(self) -> None:
        self._known: defaultdict[tuple[str, str], dict[int, int]] = defaultdict(dict)

    def has_left(self, item: pytest.Item) -> bool:
        """Whether a test is one of its half; tests are to be given in their order."""
        assert isinstance(item, pytest.Function)
        # Parameters that are given together are a selection already.
        if any(len(_names(mark.args[0])) > 1 for mark in item.iter_markers("parametrize")):
            return True
        places = {}
        for name, value in item.callspec.params.items() if hasattr(item, "callspec") else ():
            known = self._known[item.nodeid.split("[")[0], name]
            places[name] = known.setdefault(id(value), len(known))
        return is_left(item.originalname, places)


def _names(argnames: str | Sequence[str]) -> Sequence[str]:
    return argnames.split(",") if isinstance(argnames, str) else argnames


def pytest_collection_finish() -> None:
    """What there is now stays: garbage collection need not look at it again."""
    gc.collect()
    gc.freeze()


# Tests end processes, not the machine, so nothing need wait until it is on the disk; there, a commit takes 30 ms.
os.fsync = lambda descriptor: None


@event.listens_for(Engine, "connect")
def _without_waiting_for_the_disk(connection: Any, record: Any) -> None:
    if isinstance(connection, sqlite3.Connection):
        connection.execute("PRAGMA synchronous = OFF")


@pytest.fixture
def no_collection() -> Iterator[None]:
    """No garbage is collected during the test: finalisers that run where a nested text has filled the stack fail."""
    gc.disable()
    yield
    gc.enable()
