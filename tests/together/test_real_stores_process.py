"""An index whose stores are all remote opens in a process that has no folder, and answers."""

import json
from contextlib import ExitStack
from pathlib import Path
from uuid import uuid4

import pytest
from llama_index.core import Document
from tests.cases import CASES, TEXTS, ask
from tests.processes import Worker
from tests.together.stores import BACKENDS, Backend

WORKER = """
import json, sys
from contextlib import ExitStack
from pathlib import Path
from tests.cases import CASES, ask
from tests.together.stores import BACKENDS

backend = next(b for b in BACKENDS if b.name == sys.argv[1])
with ExitStack() as stack:
    answers = {}
    for case in CASES:
        here = backend.open(f"{case.name}_{sys.argv[2]}", Path("nowhere"), stack)
        answers[case.name] = ask(case.load(here.context, **here.options), top_k=50)
    print(json.dumps(answers))
"""


@pytest.mark.slow
@pytest.mark.parametrize("backend", [b for b in BACKENDS if b.remote], ids=lambda backend: backend.name)
def test_a_fresh_process_opens_it_without_a_folder_and_answers(
    backend: Backend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    backend.skip_unless_there()
    tag, expected = uuid4().hex[:8], {}
    with ExitStack() as stack:
        for case in CASES:
            here = backend.open(f"{case.name}_{tag}", tmp_path, stack)
            documents = [Document(text=f"{text} Note {i}.", id_=f"D{i}") for i, text in enumerate(TEXTS)]
            index = case.from_documents(documents, storage_context=here.context, **here.options)
            expected[case.name] = ask(index, top_k=50)
        monkeypatch.chdir(tmp_path)
        answers = json.loads(Worker(WORKER, backend.name, tag).communicate().splitlines()[-1])
    assert {name: [tuple(one) for one in found] for name, found in answers.items()} == expected
    assert list(tmp_path.iterdir()) == []
