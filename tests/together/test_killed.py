"""A build over an LLM, killed at random points: nothing is lost, and nothing is paid twice."""

import random
import time
from pathlib import Path

import pytest
from llama_index.core import Document
from tests.cases import CASES, TEXTS, Case, ask
from tests.lifecycle.test_stores import remote
from tests.llm_server import Asked, LLMServer, Reply
from tests.processes import Worker
from tests.together.plugins import with_llm
from tests.together.server import client
from tests.together.test_hurt_models import reading

ASKING = [case for case in CASES if with_llm(case)]
WORKERS = 2

WORKER = """
import sys
from pathlib import Path
from tests.together.test_killed import CASES, documents, opened
case = next(case for case in CASES if case.name == sys.argv[1])
index = opened(case, sys.argv[2], Path(sys.argv[3]))
print("ready", flush=True)
index.refresh_ref_docs(documents())
print("done", flush=True)
"""


def documents() -> list[Document]:
    return [Document(text=f"{text} It is told in note {i}.", id_=f"D{i}") for i, text in enumerate(TEXTS * 2)]


def opened(case: Case, url: str, folder: Path):
    """The index in stores and with a cache that outlive the process."""
    context = remote(folder / "kv.db")
    options = {"llm": client(url), "cache": folder / "cache.db", "num_workers": WORKERS, **with_llm(case)}
    if case.name == "gemrag":
        options["num_themes"] = 0  # the server's questions are about notes, not about what a theme says
    if context.index_store.index_structs():
        return case.load(context, **options)
    return case.cls(nodes=[], storage_context=context, embed_model=case.embed_model(), **options)


def answer(asked: Asked) -> Reply:
    number = sum(asked.prompt.encode()) % 97  # not all alike: some methods drop what is said twice
    return Reply(reading(f"Engine {number}", "cards", f"Babbage {number}"), delay=0.05)


@pytest.mark.slow
@pytest.mark.parametrize("case", ASKING, ids=lambda case: case.name)
def test_a_build_killed_at_random_points_resumes_with_nothing_lost_and_nothing_paid_twice(case: Case, tmp_path):
    (tmp_path / "killed").mkdir()
    (tmp_path / "whole").mkdir()
    with LLMServer(answer) as server:
        kills, done = random.Random(case.name), False
        for attempt in range(6):
            run = Worker(WORKER, case.name, server.url, str(tmp_path / "killed"))
            assert any(line == "ready\n" for line in run.stdout)
            if attempt < 2:
                time.sleep(kills.uniform(0.05, 0.6))
                run.kill()
            done = "done\n" in run.stdout.read()
            run.wait()
            time.sleep(0.2)  # for the answers to the dead
            if done:
                break
        assert done
        paid = len(server.answered)
        index = opened(case, server.url, tmp_path / "killed")
        assert index.refresh_ref_docs(documents()) == [False] * len(documents())
        assert len(server.answered) == paid

        whole = opened(case, server.url, tmp_path / "whole")
        whole.refresh_ref_docs(documents())
        # What was on its way to a process that died may have been paid in vain, and no more than that.
        assert paid <= len(server.answered) - paid + WORKERS * attempt
        assert set(index.docstore.docs) == set(whole.docstore.docs)
        assert set(index.ref_doc_info) == set(whole.ref_doc_info)
        chunks = {node.get_content() for node in whole.docstore.docs.values()}
        assert {text for text, _ in ask(index, top_k=99)} >= chunks
        ours, theirs = ([(t, s) for t, s in ask(each, top_k=99) if t in chunks] for each in (index, whole))
        assert ours == theirs
