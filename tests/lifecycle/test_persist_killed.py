"""`persist` killed at any moment leaves a folder that opens."""

import time

import pytest
from llama_index.core import Document, StorageContext
from tests.cases import Case, ask, chunks
from tests.processes import Worker

from llama_index.ragkit import persist

WORKER = """
import sys
from llama_index.core import Document, StorageContext
from llama_index.ragkit import persist
from tests.cases import CASES
case = next(c for c in CASES if c.name == sys.argv[1])
index = case.load(StorageContext.from_defaults(persist_dir=sys.argv[2]))
print("ready", flush=True)
for i in range(1000):
    index.insert(Document(text=f"note {i}", id_=f"N{i}"))
    persist(index.storage_context, sys.argv[2])
"""


@pytest.mark.slow
def test_a_folder_opens_whenever_the_writer_was_killed(case: Case, tmp_path):
    folder = tmp_path / "store"
    persist(case.build(chunks("d", 5)).storage_context, folder)
    documents = 1
    for delay in (0.02, 0.05, 0.11, 0.23, 1.0):
        run = Worker(WORKER, case.name, str(folder))
        assert any(line.strip() == "ready" for line in run.stdout)  # core says things of its own before
        time.sleep(delay)
        run.kill()
        run.wait()
        index = case.load(StorageContext.from_defaults(persist_dir=str(folder)))
        assert ask(index)
        assert len(index.ref_doc_info) >= documents
        documents = len(index.ref_doc_info)
    assert documents > 1
    index.insert(Document(text="one more"))
    persist(index.storage_context, folder)
    assert [path.name for path in tmp_path.iterdir()] == ["store"]  # what killed writers left is swept away
