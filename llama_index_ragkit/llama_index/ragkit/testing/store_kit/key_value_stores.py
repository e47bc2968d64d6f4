"""Is a key-value store a faithful set of collections of JSON values?"""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from llama_index.core.storage.kvstore.types import BaseKVStore

from llama_index.ragkit.testing.store_kit.harness import StoreHarness

__all__ = [
    "KeyValueAsyncTests",
    "KeyValueBatchTests",
    "KeyValueCollectionTests",
    "KeyValueIsolationTests",
    "KeyValueKeyTests",
    "KeyValuePersistTests",
    "KeyValueReadWriteTests",
    "KeyValueStoreConformance",
    "KeyValueThreadTests",
    "KeyValueValueTests",
]

VALUES: dict[str, dict[str, Any]] = {
    "empty": {},
    "kinds": {"text": "t", "int": 1, "float": 0.1, "true": True, "false": False, "none": None},
    "nested": {"list": [1, [2, [3, {"deep": [{}]}]]], "dict": {"a": {"b": {"c": None}}}},
    "numbers": {"large": 2**53, "small": 5e-324, "huge": 1e300, "negative": -0.5, "third": 1 / 3},
    "scripts": {"漢字": "Ελληνικά", "emoji": "👩‍👩‍👧 🏳️‍🌈", "rtl": "نص عربي"},
    "marks": {"quotes": "' \" ` \\", "braces": "{x} {{y}} %s $1", "sql": "'); DROP TABLE data; --"},
    "control": {"lines": "a\nb\r\nc\td", "escape": "\x1b[31m", "separators": "\u2028\u2029"},
    "blanks": {"": "", " ": " "},
    "long": {"text": "silk from Lyon " * 10_000},
    "imitating": {"__type__": "t", "__data__": {}, "doc_hash": "h", "_id": 1, "id": 2, "key": 3},
}
KEYS = [
    "two words", "a/b__c", "../outside", "UPPER", "upper", "漢字", "e\u0301", "\u00e9", "1", "01", "'quoted' \"twice\"",
    "%", "_", "*", "a:b", "a\\b", "a\nb", "x" * 500, "key ", "key",
]  # fmt: skip


class KeyValueReadWriteTests(StoreHarness):
    """`put`, `get` and `delete` of single values."""

    def test_a_value_is_got_as_it_was_put(self, store: BaseKVStore) -> None:
        """Under its own key only."""
        store.put("k", {"a": 1})
        assert store.get("k") == {"a": 1}
        assert store.get("other") is None

    def test_a_value_that_is_put_again_replaces_the_old(self, store: BaseKVStore) -> None:
        """As a whole: nothing of the old value is merged in."""
        store.put("k", {"a": 1, "b": 2})
        store.put("k", {"c": 3})
        assert store.get("k") == {"c": 3}
        assert store.get_all() == {"k": {"c": 3}}

    def test_a_deleted_value_is_gone(self, store: BaseKVStore) -> None:
        """The delete says whether it was there, and may be repeated."""
        store.put("k", {"a": 1})
        store.put("l", {"a": 2})
        assert store.delete("k") is True
        assert store.get("k") is None
        assert store.get_all() == {"l": {"a": 2}}
        assert store.delete("k") is False

    def test_a_deleted_key_may_be_put_again(self, store: BaseKVStore) -> None:
        """It is a key like any other."""
        store.put("k", {"a": 1})
        store.delete("k")
        store.put("k", {"a": 2})
        assert store.get("k") == {"a": 2}


class KeyValueBatchTests(StoreHarness):
    """`put_all` and `get_all` of many values."""

    def test_many_values_are_put_and_got_at_once(self, store: BaseKVStore) -> None:
        """All of them, in addition to what was there."""
        store.put("k", {"a": 0})
        many = {f"k{i}": {"a": i} for i in range(100)}
        store.put_all(list(many.items()))
        assert store.get_all() == {"k": {"a": 0}, **many}

    def test_no_values_are_no_error(self, store: BaseKVStore) -> None:
        """And a collection that nobody wrote to is empty."""
        store.put_all([])
        assert store.get_all() == {}
        assert store.get_all("nowhere") == {}

    def test_of_two_values_for_one_key_the_last_is_kept(self, store: BaseKVStore) -> None:
        """Whether it comes in the same call or in a later one."""
        store.put_all([("k", {"a": 1}), ("l", {"a": 2})])
        store.put_all([("k", {"a": 3})])
        store.put_all([("l", {"a": 4}), ("l", {"a": 5})])
        assert store.get_all() == {"k": {"a": 3}, "l": {"a": 5}}


class KeyValueValueTests(StoreHarness):
    """Values are dictionaries of JSON values, kept exactly."""

    @pytest.mark.parametrize("kind", VALUES)
    def test_a_value_comes_back_exactly(self, store: BaseKVStore, kind: str) -> None:
        """By `get` and by `get_all`; booleans, integers and floats keep their types."""
        store.put("k", VALUES[kind])
        for got in (store.get("k"), store.get_all()["k"]):
            assert got == VALUES[kind]
            assert repr(got) == repr(VALUES[kind])


class KeyValueKeyTests(StoreHarness):
    """Keys are any texts, told apart exactly."""

    def test_unusual_keys_are_told_apart(self, store: BaseKVStore) -> None:
        """By case, accents, spaces, leading zeros; none is a pattern or a path."""
        for i, key in enumerate(KEYS):
            store.put(key, {"number": i})
        assert {key: store.get(key) for key in KEYS} == {key: {"number": i} for i, key in enumerate(KEYS)}
        assert store.get_all() == {key: {"number": i} for i, key in enumerate(KEYS)}

    def test_unusual_keys_are_deleted_alone(self, store: BaseKVStore) -> None:
        """A delete removes exactly its key."""
        for key in KEYS:
            store.put(key, {})
        left = list(KEYS)
        while left:
            assert store.delete(left.pop()) is True
            assert set(store.get_all()) == set(left)


class KeyValueCollectionTests(StoreHarness):
    """Collections are apart: the same key may be in several."""

    def test_a_key_has_a_value_in_each_collection(self, store: BaseKVStore) -> None:
        """Reads see one collection only."""
        collections = ["data", "docstore/data", "docstore/metadata", "a", "a/b", "a_b", "漢字"]
        store.put("k", {"in": "default"})
        for name in collections[1:]:
            store.put("k", {"in": name}, collection=name)
        for name in collections[1:]:
            assert store.get("k", collection=name) == {"in": name}
            assert store.get_all(collection=name) == {"k": {"in": name}}
        assert store.get("k") == store.get("k", collection="data") == {"in": "default"}
        assert store.get("k", collection="nowhere") is None

    def test_a_delete_concerns_one_collection(self, store: BaseKVStore) -> None:
        """The key stays in the others."""
        for name in ("a", "b"):
            store.put_all([("k", {}), ("l", {})], collection=name)
        assert store.delete("k", collection="a") is True
        assert store.delete("k", collection="a") is False
        assert set(store.get_all(collection="a")) == {"l"}
        assert set(store.get_all(collection="b")) == {"k", "l"}


class KeyValueAsyncTests(StoreHarness):
    """Every method has an asynchronous counterpart with the same outcome, on any event loop."""

    def test_asynchronous_calls_equal_synchronous_ones(self, store: BaseKVStore) -> None:
        """Each sees what the others wrote."""

        async def write() -> list[bool]:
            await store.aput("k", {"a": 1})
            await store.aput("k", {"in": "b"}, collection="b")
            await store.aput_all([("l", {"a": 2}), ("m", {"a": 3})])
            return [await store.adelete("l"), await store.adelete("l"), await store.adelete("k", collection="c")]

        async def read() -> list[Any]:
            return [await store.aget("k"), await store.aget("l"), await store.aget_all(), await store.aget_all("b")]

        assert asyncio.run(write()) == [True, False, False]
        written = [{"a": 1}, None, {"k": {"a": 1}, "m": {"a": 3}}, {"k": {"in": "b"}}]
        assert [store.get("k"), store.get("l"), store.get_all(), store.get_all("b")] == written
        assert asyncio.run(read()) == written
        store.delete("k")
        assert asyncio.run(read())[0] is None


class KeyValueThreadTests(StoreHarness):
    """Threads may read and write at once."""

    def test_threads_lose_no_value(self, store: BaseKVStore) -> None:
        """And every value that is read is one that was written."""

        def work(thread: int) -> bool:
            for i in range(25):
                store.put(f"{thread}-{i}", {"a": [thread, i]})
                store.put("shared", {"b": [thread] * 50})
                shared = store.get("shared")
                if store.get(f"{thread}-{i}") != {"a": [thread, i]} or len(set((shared or {"b": []})["b"])) != 1:
                    return False
            return True

        with ThreadPoolExecutor(2) as pool:
            assert all(pool.map(work, range(2)))
        assert len(store.get_all()) == 51


class KeyValueIsolationTests(StoreHarness):
    """Values are copies: changing what was put or got changes nothing in the store."""

    def test_what_was_put_or_got_may_be_changed(self, store: BaseKVStore) -> None:
        """At any depth."""
        given: dict[str, Any] = {"a": [1], "b": {"c": 1}}
        store.put("k", given)
        got, among_all = store.get("k"), store.get_all()["k"]
        for value in (given, got, among_all):
            assert value is not None
            value["a"].append(2)
            value["b"]["c"] = 2
        assert store.get("k") == {"a": [1], "b": {"c": 1}}


class KeyValuePersistTests(StoreHarness):
    """A store comes back from where it was kept. Override `reopen`."""

    def test_a_reopened_store_holds_the_same(self, store: BaseKVStore, tmp_path: Path) -> None:
        """Every collection, key and value, and no more."""
        for kind, value in VALUES.items():
            store.put(kind, value)
            store.put(kind, value, collection="a/b")
        store.put("gone", {"key": "qzxcanary"})
        store.delete("gone")
        again = self.reopen(store, tmp_path)
        assert again.get_all() == again.get_all("a/b") == VALUES
        assert again.delete("empty") is True
        assert again.get("empty") is None

    def test_no_byte_of_a_deleted_value_is_kept(self, store: BaseKVStore, tmp_path: Path) -> None:
        """In no file of the folder."""
        store.put("k", {"key": "kept"})
        store.put("gone", {"key": "qzxcanary"})
        store.put("replaced", {"key": "qzxcanary"})
        store.put("replaced", {"key": "new"})
        store.delete("gone")
        self.reopen(store, tmp_path)
        assert not any(b"qzxcanary" in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())


class KeyValueStoreConformance(
    KeyValueReadWriteTests,
    KeyValueBatchTests,
    KeyValueValueTests,
    KeyValueKeyTests,
    KeyValueCollectionTests,
    KeyValueAsyncTests,
    KeyValueThreadTests,
):
    """The part of `BaseKVStore` on which the packages rely, for an extraction cache and below a document store.

    They read and write with `get`, `get_all`, `put`, `put_all` (in batches of one) and `delete`, and with their
    asynchronous counterparts, in collections of their own names, from several threads. They never change values in
    place. Besides this class, inherit further capabilities: `KeyValueIsolationTests`, `KeyValuePersistTests`.
    """
