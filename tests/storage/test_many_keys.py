"""Many keys of a key-value store at once."""

import pytest
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.storage.kvstore import SimpleKVStore

from llama_index.ragkit.steps import run_steps
from llama_index.ragkit.storage.records import Records, delete_keys, get_keys


def test_a_store_in_this_process_is_read_and_written_without_a_request() -> None:
    kv = SimpleKVStore()
    kv.put_all([(str(i), {"n": i}) for i in range(5)], "c")
    assert list(delete_keys(kv, {"c": ["1", "4", "none"]})) == []
    with pytest.raises(StopIteration) as ended:
        next(get_keys(kv, ["3", "none", "1", "0", "3"], "c"))
    assert list(ended.value.value.items()) == [("3", {"n": 3}), ("0", {"n": 0})]


def test_records_are_written_and_deleted_together() -> None:
    records = Records(SimpleDocumentStore(), "index")
    run_steps(records.put("c", [("a", {"n": 1}), ("b", {"n": 2})]))
    run_steps(records.update("c", {"a": None, "b": {"n": 3}, "d": {}, "none": None}))
    assert run_steps(records.get_all("c")) == {"b": {"n": 3}, "d": {}}
    run_steps(records.replace("c", {"b": {"n": 3}, "e": {"n": 5}}))
    assert run_steps(records.get_all("c")) == {"b": {"n": 3}, "e": {"n": 5}}


def test_repairs_are_noted_without_a_write_and_stored_later() -> None:
    records = Records(SimpleDocumentStore(), "index")
    run_steps(records.put("c", [("a", {"n": 1}), ("b", {"n": 2})]))
    assert not run_steps(records.note_repairs({"c": {"b": {"n": 2}, "a": {"n": 1}}, "d": {}}))
    assert run_steps(records.note_repairs({"c": {"a": {"n": 1}}, "d": {"x": {}}}, {"d": {"x": {}}}))
    assert run_steps(records.get_all("c")) == {"a": {"n": 1}, "b": {"n": 2}}
    run_steps(records.repair())
    assert run_steps(records.get_all("c")) == {"a": {"n": 1}}
    assert run_steps(records.get_all("d")) == {}  # what was read of it was right
    assert not records.repairs
