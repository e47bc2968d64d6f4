"""Records that were damaged or changed: a clear error when the index is loaded, or an index that answers."""

import json
from pathlib import Path
from typing import Any

import pytest
from llama_index.core import Document
from tests.cases import TEXTS, Case, ask
from tests.tampering import changed_parts

from llama_index.ragkit import load_storage_context, persist
from llama_index.ragkit.errors import FormatVersionError, HalfWrittenError, RagKitError
from llama_index.ragkit.testing import Fault, FaultyKVStore, faulty_context

pytestmark = pytest.mark.pairs

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


def test_a_struct_that_was_changed_is_an_error_of_ours_or_an_index_that_answers(case: Case, tmp_path: Path):
    index = case.from_documents(DOCUMENTS)
    persist(index.storage_context, tmp_path)
    file = tmp_path / "index_store.json"
    stored = json.loads(file.read_text())
    entry = stored["index_store/data"][index.index_id]
    refused = 0
    for change, struct in changed_parts(json.loads(entry["__data__"])):
        stored["index_store/data"] = {index.index_id: {**entry, "__data__": json.dumps(struct)}}
        file.write_text(json.dumps(stored))
        try:
            loaded = case.load(load_storage_context(tmp_path))
            assert repr(loaded)
            assert isinstance(ask(loaded), list), change
        except RagKitError:
            refused += 1
    assert refused > 50


@pytest.mark.usefixtures("no_collection")
def test_a_struct_of_another_format_is_that_even_if_it_cannot_be_read(case: Case):
    struct = case.cls.index_struct_cls
    with pytest.raises(FormatVersionError, match="format 2"):
        struct.from_json('{"format_version": 2, "params": []}')
    with pytest.raises(HalfWrittenError, match="params: Input should be an object"):
        struct.from_json('{"params": []}')
    for text in ("", "{", "[" * 100_000, '{"uid": "\\ud800"}', "null"):
        with pytest.raises(HalfWrittenError, match="Restore a copy"):
            struct.from_json(text)
