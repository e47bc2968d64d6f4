"""Readers and writers in processes of their own, on one index: no torn answer, no lost write, no lock left behind."""

import os
import time
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
from tests.cases import Case, ask, chunks
from tests.processes import Worker
from tests.serving.conftest import SERVED
from tests.serving.fault_places import FAULT_PLACES
from tests.serving.places import Place

pytestmark = pytest.mark.pairs

WORKER = """
import sys, time
from pathlib import Path
from contextlib import ExitStack
from tests.cases import CASES, chunks, ask
from tests.processes import Worker
from tests.serving.places import PLACES, Place
from llama_index.ragkit.errors import ConcurrentWriteError

kind, tag, folder, name, role, number, seconds = sys.argv[1:]
case = next(case for case in CASES if case.name == name)
with ExitStack() as stack:
    place = Place(next(each for each in PLACES if each.name == kind), Path(folder), stack, tag)
    index = case.load(place.open(), **case.components())
    end, done = time.monotonic() + float(seconds), 0
    while time.monotonic() < end:
        if role == "write":
            document = f"w{number}-{done % 4}"
            try:
                if document in index.ref_doc_info:
                    index.delete_ref_doc(document, delete_from_docstore=True)
                else:
                    index.insert_nodes(chunks(document, 3))
            except ConcurrentWriteError:
                print("refused", flush=True)
            print("left", *sorted(i for i in index.ref_doc_info if i.startswith(f"w{number}-")), flush=True)
        else:
            found = index.as_retriever(similarity_top_k=1000).retrieve("The Analytical Engine used punched cards.")
            of = {}
            for each in found:
                if each.node.child_nodes:  # a summary is of the document that all its chunks are of
                    continue
                of.setdefault(each.node.ref_doc_id, []).append(each.node.node_id)
            torn = {i: len(nodes) for i, nodes in of.items() if len(nodes) != 3}
            print("torn" if torn else "whole", len(of), flush=True)
        done += 1
"""


# Each method in one of the two places: the locks and the commits that are tested are ragkit's.
EACH_IN_ONE = list(zip(SERVED, cycle(FAULT_PLACES[::-1]), strict=False))


@pytest.mark.slow
@pytest.mark.parametrize(("case", "kind"), EACH_IN_ONE, ids=lambda each: each.name)
def test_no_answer_is_torn_and_no_write_is_lost(kind: Any, case: Case, tmp_path: Path) -> None:
    """Every document has three chunks: an answer with fewer of one would be of no generation."""
    from contextlib import ExitStack

    seconds = os.environ.get("SECONDS_BESIDE", "2")
    with ExitStack() as stack:
        place = Place(kind, tmp_path, stack)
        case.build([*chunks("d", 3), *chunks("e", 3)], storage_context=place.open())

        def start(role: str, number: int) -> Worker:
            return Worker(WORKER, kind.name, place.tag, str(tmp_path), case.name, role, str(number), seconds)

        writers = [start("write", number) for number in range(2)]
        readers = [start("read", number) for number in range(int(os.environ.get("READERS_BESIDE", "2")))]
        told = [worker.communicate() for worker in [*writers, *readers]]
        assert [worker.returncode for worker in [*writers, *readers]] == [0] * len(told)
        answers = [line for out in told[2:] for line in out.splitlines()]
        assert answers
        assert [line for line in answers if line.startswith("torn")] == []
        index = case.load(place.open())
        left = {i for out in told[:2] for i in out.splitlines()[-1].split()[1:]}
        assert set(index.ref_doc_info) == {"d", "e", *left}
        written = {f"w{number}-{i}" for number in range(2) for i in range(4)}
        there, gone = (
            {node.text for document in documents for node in chunks(document, 3)}
            for documents in ({"d", "e", *left}, written - left)
        )
        found = {text for text, _ in ask(index, top_k=1000)}  # RAPTOR's summaries among them
        assert there <= found
        assert not gone & found
        print(f"{len(answers)} answers, {sum(len(out.splitlines()) for out in told[:2])} writes")


KILLED = WORKER.replace("index.insert_nodes(chunks(document, 3))", "index.insert_nodes(chunks(document, 300))")


@pytest.mark.slow
def test_a_killed_writer_holds_no_lock_and_leaves_no_doubles(case: Case, here: Place) -> None:
    twin = case.build(chunks("d", 3))
    case.build(chunks("d", 3), storage_context=here.open())
    program = KILLED.replace("end, done =", "print('open', flush=True); end, done =")
    for wait in (0.0, 0.15, 0.4):
        worker = Worker(program, here.kind.name, here.tag, str(here.folder), case.name, "write", "0", "60")
        worker.stdout.readline()
        time.sleep(wait)
        worker.kill()
        worker.wait()
        index = case.load(here.open())
        index.insert_nodes(chunks("e", 3))
        twin.insert_nodes(chunks("e", 3))
        for document in [i for i in (*index.ref_doc_info, *index.unfinished) if i.startswith("w")]:
            index.delete_ref_doc(document, delete_from_docstore=True)
        assert index.unfinished == []
        assert [text for text, _ in ask(index)] == [text for text, _ in ask(twin)]
        for each in (index, twin):
            each.delete_ref_doc("e", delete_from_docstore=True)
