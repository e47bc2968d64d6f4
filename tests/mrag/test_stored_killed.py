"""Writes to stores that were killed at any call: queries show what was committed, repeated writes restore the sums."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from llama_index.core import Document
from tests.cases import ask
from tests.mrag.stored import Twins
from tests.returning_store import ReturningStore

from llama_index.mrag import MRAGIndex
from llama_index.ragkit.sql import SQLKVStore

DOCUMENTS = [Document(id_="d", text="Marco Polo. " * 5), Document(id_="e", text="Silk from Lyon. " * 5)]
NEW = Document(id_="n", text="Cloves from Zanzibar for the captain.")
OTHER = Document(id_="d", text="Ibn Battuta went to Timbuktu.")
QUESTION = "Silk from Lyon. And cloves from Zanzibar, for whom?"
WRITES: list[tuple[type, str]] = [
    (SQLKVStore, "put_all"),
    (SQLKVStore, "delete_all"),
    (SQLKVStore, "update"),
    (ReturningStore, "add"),
    (ReturningStore, "delete_nodes"),
]


class StoppedError(BaseException):
    """Stands for the end of the process."""


@contextmanager
def stopping(at: int) -> Iterator[None]:
    """Ends the process at that call of a store that writes, and at each that follows."""
    calls = 0

    def ending(method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls >= at:
                raise StoppedError
            return method(*args, **kwargs)

        return call

    patches = [patch.object(cls, name, ending(getattr(cls, name))) for cls, name in WRITES]
    for each in patches:
        each.start()
    try:
        yield
    finally:
        for each in patches:
            each.stop()


@pytest.mark.parametrize(
    "write",
    [
        lambda index: index.refresh_ref_docs([NEW, OTHER]),
        lambda index: index.delete_ref_doc("e", delete_from_docstore=True),
    ],
    ids=["write", "delete"],
)
@pytest.mark.parametrize("how", ["this object", "another process"])
def test_it_can_be_repeated_wherever_it_was_killed(tmp_path: Path, write: Callable[[Any], None], how: str) -> None:
    twin = MRAGIndex.from_documents(DOCUMENTS, embed_model=Twins.model())
    write(twin)
    expected, importance = ask(twin, QUESTION), twin.importance
    for at in range(1, 60):
        folder = tmp_path / str(at)
        folder.mkdir()
        twins = Twins(folder, lambda **options: MRAGIndex.from_documents(DOCUMENTS, **options))
        before = twins.memory.importance
        try:
            with stopping(at):
                write(twins.stored)
            break
        except StoppedError:
            index = twins.stored if how == "this object" else twins.again()
        sums = index.importance
        assert np.allclose(sums, before, rtol=1e-9) or np.allclose(sums, importance, rtol=1e-9)
        ask(index, QUESTION)
        write(index)
        np.testing.assert_allclose(index.importance, importance, rtol=1e-9)
        assert ask(index, QUESTION) == expected
    assert 5 < at < 59
