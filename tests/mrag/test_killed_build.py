"""MRAG after a build that was killed at any store call: it answers, shows a page, and resumes to the whole index."""

import itertools
from pathlib import Path
from typing import Any

import pytest
from llama_index.core import Document, StorageContext
from llama_index.core.storage.docstore.keyval_docstore import KVDocumentStore
from llama_index.core.storage.index_store.keyval_index_store import KVIndexStore
from tests.cases import CASES, ask

from llama_index.ragkit.llm.cache import SQLiteKVStore

MRAG = next(case for case in CASES if case.name == "mrag")
DOCUMENTS = [Document(id_="d", text="Marco Polo. " * 5), Document(id_="e", text="Silk from Lyon. " * 5)]


class StoppedError(BaseException):
    """Stands for the end of the process."""


def context(kv: SQLiteKVStore) -> StorageContext:
    return StorageContext.from_defaults(docstore=KVDocumentStore(kv), index_store=KVIndexStore(kv))


def test_it_answers_and_resumes_wherever_the_build_was_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = ask(MRAG.from_documents(DOCUMENTS))
    killed = 0
    for call in range(60):
        kv = SQLiteKVStore(tmp_path / f"{call}.db")
        calls, put_all = itertools.count(), kv.put_all

        def dying(*args: Any, calls: Any = calls, put_all: Any = put_all, last: int = call, **kwargs: Any) -> None:
            if next(calls) >= last:
                raise StoppedError
            put_all(*args, **kwargs)

        with monkeypatch.context() as patch:
            patch.setattr(kv, "put_all", dying)
            try:
                MRAG.from_documents(DOCUMENTS, storage_context=context(kv))
                break
            except StoppedError:
                killed += 1
        if not context(kv).index_store.index_structs():
            continue  # killed before anything was stored
        index = MRAG.load(context(kv))
        ask(index)
        assert index.as_retriever().explain("silk") is not None
        index.visualize(str(tmp_path / "page.html"))
        index.refresh_ref_docs(DOCUMENTS)
        assert ask(MRAG.load(context(kv))) == expected
    assert 10 < killed < 60
