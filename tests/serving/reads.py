"""How an index that is served from stores reads its database."""

from typing import Any

import pytest

from llama_index.ragkit.sql import SQLKVStore
from llama_index.ragkit.storage.index_storage import IndexStorage

__all__ = ["count_reads", "refuse_other_reads"]


def count_reads(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """The collection and the number of keys of every read of many keys from now on."""
    reads: list[tuple[str, int]] = []
    get_many = SQLKVStore.get_many

    def counted(self: SQLKVStore, keys: Any, collection: str) -> Any:
        reads.append((collection, len(list(keys))))
        return get_many(self, keys, collection=collection)

    monkeypatch.setattr(SQLKVStore, "get_many", counted)
    return reads


def refuse_other_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on, reads of whole collections, and of nodes one by one, fail."""

    def refused(*args: Any, **kwargs: Any) -> Any:
        raise AssertionError("read one by one, or as a whole")

    monkeypatch.setattr(SQLKVStore, "get_all", refused)
    monkeypatch.setattr(IndexStorage, "get_node", refused)
