"""Two processes write to one index at once: nothing is lost in silence."""

import os
from contextlib import ExitStack
from pathlib import Path
from uuid import uuid4

import pytest
from tests.cases import CASES, chunks
from tests.processes import Worker
from tests.together.stores import BACKENDS, Backend

ROUNDS = 10
CASE = next(case for case in CASES if case.name == "hipporag")

WORKER = """
import sys
from contextlib import ExitStack
from pathlib import Path
from tests.together.test_two_processes import CASE, chunks, place
from llama_index.ragkit import persist
from llama_index.ragkit.errors import RagKitError

name, tag, folder, writer, rounds = *sys.argv[1:5], int(sys.argv[5])
print("ready", flush=True)
for number in range(rounds):
    sys.stdin.readline()
    with ExitStack() as stack:
        try:
            here = place(name, tag, Path(folder), stack)
            index = CASE.load(here, extractor=CASE.components()["extractor"])
            index.insert_nodes(chunks(f"{writer}{number}", 2))
            if name == "folder":
                persist(here, folder)
            print("written", flush=True)
        except RagKitError as error:
            print(type(error).__name__, flush=True)
"""


def place(name: str, tag: str, folder: Path, stack: ExitStack):
    """The stores, as a process that has just started opens them."""
    if name == "folder":
        from llama_index.ragkit import load_storage_context

        return load_storage_context(folder)
    backend = next(backend for backend in BACKENDS if backend.name == name)
    return backend.open(tag, folder, stack).context


@pytest.mark.slow
@pytest.mark.parametrize("name", ["folder", *(backend.name for backend in BACKENDS if backend.remote)])
def test_what_a_writer_was_told_is_written_is_there(name: str, tmp_path: Path):
    """Two processes open the index, write, and save it, at the same moment, again and again."""
    from llama_index.ragkit import persist

    backend: Backend | None = next((backend for backend in BACKENDS if backend.name == name), None)
    if backend is not None:
        backend.skip_unless_there()
    tag, folder = uuid4().hex[:8], tmp_path / "storage"
    rounds = int(os.environ.get("ROUNDS", str(ROUNDS)))
    with ExitStack() as stack:
        if backend is None:
            index = CASE.build(chunks("d", 2))
            persist(index.storage_context, folder)
        else:
            CASE.build(chunks("d", 2), storage_context=backend.open(tag, tmp_path, stack).context)
        workers = [
            stack.enter_context(Worker(WORKER, name, tag, str(folder), writer, str(rounds)))
            for writer in ("one", "two")
        ]
        for worker in workers:
            assert worker.stdout.readline().strip() == "ready"
        written, refused = {"d"}, 0
        for number in range(rounds):
            for worker in workers:
                worker.stdin.write("go\n")
                worker.stdin.flush()
            for writer, worker in zip(("one", "two"), workers, strict=True):
                outcome = worker.stdout.readline().strip()
                assert outcome in ("written", "ConcurrentWriteError"), f"round {number}: {outcome}"
                if outcome == "written":
                    written.add(f"{writer}{number}")
                refused += outcome != "written"
            with ExitStack() as opened:
                index = CASE.load(place(name, tag, folder, opened))
                assert set(index.ref_doc_info) >= written, f"round {number}"
        for worker in workers:
            worker.stdin.close()
    print(f"{rounds} rounds, {len(written) - 1} written, {refused} refused")
    assert len(written) > rounds // 2
