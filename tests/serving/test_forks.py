"""Forked processes: whatever made their pools, they connect anew."""

import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.cases import Case, ask
from tests.serving.conftest import SERVED
from tests.serving.database import built, context, in_child

pytestmark = [
    pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning"),
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork"),
]


def test_forked_processes_reconnect_while_threads_of_their_parent_ask(
    case: Case, database: str, record_property: Callable[[str, int], None]
):
    wanted = built(case, database)
    index = case.load(context(database))
    assert ask(index) == wanted
    ends = time.monotonic() + 60
    done = False

    def busy() -> bool:
        while not done and time.monotonic() < ends:
            assert ask(index) == wanted
        return True

    with ThreadPoolExecutor(2) as pool:
        asking = [pool.submit(busy) for _ in range(2)]
        statuses = [in_child(lambda: ask(index) == wanted) for _ in range(4)]
        done = True
        assert statuses == [0] * 4
        assert all(each.result() for each in asking)
    record_property("trials", len(statuses))


@pytest.mark.parametrize(
    "case", [each for each in SERVED if each.name == "hipporag"], indirect=True, ids=lambda case: case.name
)
def test_workers_of_gunicorn_answer_from_an_index_that_was_opened_before_they_were_forked(
    case: Case, database: str, tmp_path: Path, record_property: Callable[[str, int], None]
):
    pytest.importorskip("gunicorn")
    wanted = built(case, database)
    address = tmp_path / "address"
    command = [
        *(sys.executable, "-m", "gunicorn", "tests.serving.preloaded_app:app", "--preload"),
        *("--workers", "2", "--threads", "8", "--bind", "127.0.0.1:0", "--log-file", str(address)),
    ]
    server = subprocess.Popen(
        command, env={**os.environ, "CASE": case.name, "DATABASE": database, "PYTHONPATH": os.pathsep.join(sys.path)}
    )
    try:
        while "Listening at: " not in (log := address.read_text() if address.exists() else ""):
            assert server.poll() is None, log
            time.sleep(0.1)
        url = log.partition("Listening at: ")[2].split()[0]

        def answer(number: int) -> list[Any]:
            with urllib.request.urlopen(f"{url}/{'async' if number % 2 else ''}", timeout=60) as reply:
                return [tuple(each) for each in json.load(reply)]

        with ThreadPoolExecutor(16) as pool:
            answers = list(pool.map(answer, range(40)))
    finally:
        server.terminate()
        server.wait()
    assert answers == [wanted] * 40
    record_property("trials", len(answers))
