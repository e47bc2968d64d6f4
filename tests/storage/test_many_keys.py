"""Many keys of a key-value store at once."""

import pytest
from llama_index.core.storage.kvstore import SimpleKVStore

from llama_index.ragkit.storage.records import delete_keys, get_keys


def test_a_store_in_this_process_is_read_and_written_without_a_request() -> None:
    kv = SimpleKVStore()
    kv.put_all([(str(i), {"n": i}) for i in range(5)], "c")
    assert list(delete_keys(kv, {"c": ["1", "4", "none"]})) == []
    with pytest.raises(StopIteration) as ended:
        next(get_keys(kv, ["3", "none", "1", "0", "3"], "c"))
    assert list(ended.value.value.items()) == [("3", {"n": 3}), ("0", {"n": 0})]
