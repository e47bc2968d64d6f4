"""The code of docs/production.md: the service with its servers, and what it says of pickles and back-ups."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.parse import quote
from urllib.request import urlopen

import pytest
from llama_index.core import Settings
from tests.cases import ask, chunks
from tests.pages import ROOT, blocks
from tests.preamble import PREAMBLE
from tests.processes import Worker
from tests.serving.database import new_database

from llama_index.ragkit.testing import HashEmbedding

PAGE = ROOT / "docs" / "production.md"
MODEL = "HuggingFaceEmbedding"
TEST_MODEL = "from llama_index.ragkit.testing import HashEmbedding"
PATIENCE = 120.0


def code(start: str) -> str:
    (found,) = (block.code for block in blocks(PAGE) if block.code.startswith(start))
    return found


def write_files(folder: Path) -> None:
    """The modules of the page, with an embedding model that needs no download."""
    for name in ("service", "app", "tasks"):
        module = code(f"# {name}.py")
        if name == "service":
            module = re.sub(f"from llama_index.embeddings.huggingface import {MODEL}", TEST_MODEL, module)
            module = re.sub(rf"{MODEL}\([^)]*\)", "HashEmbedding()", module)
        (folder / f"{name}.py").write_text(module, encoding="utf-8")


@contextmanager
def running(*command: str, cwd: Path, env: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """A server with all its processes."""
    with (cwd / "log.txt").open("ab") as log:
        server = subprocess.Popen(command, cwd=cwd, env=env, stdout=log, stderr=log, start_new_session=True)
    try:
        yield server
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        try:
            server.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(server.pid, signal.SIGKILL)


def until(look: Callable[[], Any]) -> Any:
    """What a look finds at last."""
    end = time.monotonic() + PATIENCE
    while True:
        found = look()
        if found or time.monotonic() > end:
            return found
        time.sleep(0.1)


CALLER = """
import runpy, sys
sys.path.insert(0, "")
runpy.run_path("service.py", run_name="__main__")
import tasks
print("made", flush=True)
for line in sys.stdin:
    name, *arguments = line.rstrip("\\n").split("\\t")
    getattr(tasks, name).delay(*arguments)
    print("sent", flush=True)
"""


@pytest.mark.slow
def test_workers_answer_with_what_background_tasks_have_written(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("celery")
    if not os.environ.get("REDIS_URL"):
        pytest.skip("REDIS_URL is not set")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    write_files(tmp_path)
    broker = os.environ["REDIS_URL"].rsplit("/", 1)[0] + "/9"
    env = {
        **os.environ,
        "DATABASE": database,
        "VECTORS": "pgvector",
        "BROKER": broker,
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    serve = [sys.executable, "-m", "uvicorn", "app:app", "--port", str(port), "--workers", "2"]
    work = [sys.executable, "-m", "celery", "-A", "tasks", "worker", "--concurrency", "2", "--loglevel", "WARNING"]

    def asked(question: str) -> list[Any]:
        with urlopen(f"http://127.0.0.1:{port}/ask?question={quote(question)}", timeout=30) as reply:
            return list(json.load(reply))

    def answers() -> bool:
        try:
            return asked("anything") == []
        except URLError:
            return False

    monkeypatch.chdir(tmp_path)
    caller = Worker(CALLER, environment=env)

    def task(*words: str) -> None:
        print(*words, sep="\t", file=caller.stdin, flush=True)
        assert caller.stdout.readline() == "sent\n"

    assert caller.stdout.readline() == "made\n"  # the index, which servers open
    with caller, running(*serve, cwd=tmp_path, env=env), running(*work, cwd=tmp_path, env=env):
        assert until(answers), (tmp_path / "log.txt").read_text()
        task("put", "lamp", "Jonas Pell lit the lamp of Skerry.")
        task("put", "gate", "Mira Holt painted the gate of Lyon.")
        question = "Who lit the lamp of Skerry?"
        assert until(lambda: len(asked(question)) == 2), (tmp_path / "log.txt").read_text()
        assert [each["document"] for each in asked(question)] == ["lamp", "gate"]
        task("forget", "lamp")
        assert until(lambda: [each["document"] for each in asked(question)] == ["gate"]), "forgotten by both workers"


def test_a_pickled_retriever_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    exec(compile(PREAMBLE, "preamble", "exec"), names)
    monkeypatch.setattr(Settings, "_embed_model", HashEmbedding())
    exec(compile(code("import pickle"), str(PAGE), "exec"), names)
    assert names["there"].retrieve("lamp")


def test_a_restored_dump_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if shutil.which("pg_dump") is None:
        pytest.skip("pg_dump is not installed")
    write_files(tmp_path)
    commands = re.search(r"^pg_dump .*\npg_restore .*$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert commands is not None
    service: dict[str, Any] = {"__name__": "__main__"}
    with new_database() as url, new_database(empty=True) as copy:
        monkeypatch.setenv("VECTORS", "pgvector")
        monkeypatch.setenv("DATABASE", url)
        monkeypatch.setenv("NEW_DATABASE", copy)
        exec(compile((tmp_path / "service.py").read_text(), "service.py", "exec"), service)
        index = service["open_index"]()
        index.insert_nodes(chunks("d", 4))
        done = subprocess.run(commands[0], shell=True, cwd=tmp_path, capture_output=True, text=True)
        if "server version mismatch" in done.stderr:
            pytest.skip("pg_dump is older than the server")
        assert (done.returncode, done.stderr) == (0, "")
        monkeypatch.setenv("DATABASE", copy)
        assert ask(service["open_index"]()) == ask(index)
