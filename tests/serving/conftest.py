"""Indexes that are served from stores, and where they live."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.cases import CASES, Case
from tests.serving.database import new_database
from tests.serving.places import PLACES, Place

SERVED = [case for case in CASES if case.name != "toy"]


@pytest.fixture(params=SERVED, ids=lambda case: case.name)
def case(request: pytest.FixtureRequest) -> Case:
    return request.param


@pytest.fixture
def database() -> Iterator[str]:
    """The URL of a PostgreSQL database of its own."""
    with new_database() as url:
        yield url


@pytest.fixture(params=PLACES, ids=lambda kind: kind.name)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    with ExitStack() as stack:
        yield Place(request.param, tmp_path, stack)


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Place]:
    """An SQLite file, with vectors in this process: for tests to which it does not matter."""
    with ExitStack() as stack:
        yield Place(PLACES[0], tmp_path, stack)
