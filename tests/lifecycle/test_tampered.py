"""Records that were damaged or changed: a clear error when the index is loaded, or an index that answers."""

import json
from typing import Any

import pytest
from llama_index.core import Document
from tests.cases import TEXTS, Case, ask

from llama_index.ragkit.errors import RagKitError
from llama_index.ragkit.testing import Fault, FaultyKVStore, faulty_context

DOCUMENTS = [Document(text=f"{text} {TEXTS[i - 1]}", id_=f"D{i}") for i, text in enumerate(TEXTS)]


@pytest.mark.parametrize(
    "value", [{}, {"node_ids": 3}, {"record": "x", "key": 5}, {"v": "AAAA"}, {"generation": "x"}], ids=str
)
def test_a_record_that_was_changed_is_a_clear_error_or_does_no_harm(case: Case, value: Any):
    store = FaultyKVStore({}, Fault())
    index = case.from_documents(DOCUMENTS, storage_context=faulty_context(store))
    uid = index.index_struct.uid
    refused = 0
    for name in sorted(store.data):
        if uid not in name:
            continue  # nodes and structs, which core reads
        for key in list(store.data[name])[:2]:
            before = store.data[name][key]
            store.data[name][key] = json.dumps(value)
            try:
                assert isinstance(ask(case.load(faulty_context(store))), list)
            except RagKitError:
                refused += 1
            store.data[name][key] = before
    assert refused
    assert ask(case.load(faulty_context(store))) == ask(index)
