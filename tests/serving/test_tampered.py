"""The struct and the last commit of an index in a database, changed by others."""

import json
from contextlib import suppress
from typing import Any

import pytest
from llama_index.core import Document
from tests.cases import CASES, TEXTS, Case, ask
from tests.serving.places import Place
from tests.tampering import changed_parts

from llama_index.ragkit.errors import RagKitError
from llama_index.ragkit.steps import run_steps

DOCUMENTS = [Document(text=f"{text} {TEXTS[i - 1]}", id_=f"D{i}") for i, text in enumerate(TEXTS)]
MRAG = [case for case in CASES if case.name == "mrag"]  # reads its parameters in the struct with each question


STRUCTS = "index_store/data"


@pytest.fixture
def index(case: Case, here: Place) -> Any:
    return case.from_documents(DOCUMENTS, storage_context=here.open())


def answers(case: Case, here: Place) -> bool:
    """Whether the index can be opened and answers; otherwise it must say so by an error of ours."""
    try:
        return isinstance(ask(case.load(here.open())), list)
    except RagKitError:
        return False


@pytest.mark.parametrize("case", MRAG, ids=lambda case: case.name)
def test_a_struct_that_was_changed_is_an_error_of_ours_or_an_index_that_answers(case: Case, here: Place, index: Any):
    records = here.open().records
    entry = records.get(index.index_id, STRUCTS)
    assert entry is not None
    outcomes = set()
    for _, struct in changed_parts(json.loads(entry["__data__"])):
        records.delete_all(records.get_all(STRUCTS), STRUCTS)  # loading has stored it anew
        records.put(index.index_id, {**entry, "__data__": json.dumps(struct)}, STRUCTS)
        outcomes.add(answers(case, here))
    assert outcomes == {True, False}


@pytest.mark.parametrize("case", MRAG, ids=lambda case: case.name)
def test_a_commit_that_was_changed_is_an_error_of_ours_or_an_index_that_answers(case: Case, here: Place, index: Any):
    records = index.storage.records
    commit = run_steps(records.get("meta", "state"))
    entry = here.open().records.get(index.index_id, STRUCTS)
    outcomes = set()
    for _, record in changed_parts(commit):
        if not isinstance(record, dict):
            continue
        run_steps(records.put("meta", [("state", record)]))
        with suppress(RagKitError):
            outcomes.add(isinstance(ask(index), list))  # opened before
        outcomes.add(answers(case, here))
        run_steps(records.put("meta", [("state", commit)]))
        here.open().records.put(index.index_id, entry, STRUCTS)
        index = case.load(here.open())
    assert outcomes == {True, False}
