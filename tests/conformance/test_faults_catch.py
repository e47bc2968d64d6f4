"""The fault tests fail where a write that ended early does harm."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.cases import CASES
from tests.conformance.test_faults import TestEveryIndexEnded as FaultTestsOfCases
from tests.serving.fault_places import FAULT_PLACES, ServedEnded

from llama_index.ragkit.index.writer import IndexWriter
from llama_index.ragkit.steps import Steps, call
from llama_index.ragkit.storage.commits import Commits, Unfinished
from llama_index.ragkit.storage.index_storage import IndexStorage
from llama_index.ragkit.storage.stored_space import StoredSpace
from llama_index.ragkit.storage.vector_spaces import VectorSpace


def _nothing(self: Any, *args: Any, **kwargs: Any) -> Steps[None]:
    return
    yield


def _nothing_unfinished(self: Any) -> Steps[Unfinished]:
    return Unfinished()
    yield


def _by_the_document_store(self: IndexStorage, node_ids: Any, ref_doc_ids: Any) -> Steps[None]:
    """Core's own delete, which goes by the entry of the document."""
    for ref_doc_id in ref_doc_ids:
        docstore = self.context.docstore
        yield from call(docstore.delete_ref_doc, docstore.adelete_ref_doc, ref_doc_id, raise_error=False)


FAULTS: list[tuple[str, type, str, Callable[..., Any], Any, Any]] = [
    ("toy", IndexWriter, "_recover", _nothing, "cancel", "update"),
    ("pgrag", IndexWriter, "_recover", _nothing, "interrupt", "insert"),
    ("toy", Commits, "unfinished", _nothing_unfinished, "kill", "insert"),
    ("toy", IndexStorage, "delete_from_docstore", _nothing, "error", "delete"),
    ("toy", IndexStorage, "delete_from_docstore", _by_the_document_store, "kill", "delete"),
    ("gemrag", VectorSpace, "reload", _nothing, "cancel", "insert"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("case", "owner", "name", "broken", "kind", "operation"), FAULTS)
def test_a_fault_of_the_write_path_is_caught(
    monkeypatch: pytest.MonkeyPatch, case: str, owner: type, name: str, broken: Any, kind: Any, operation: Any
) -> None:
    test = FaultTestsOfCases()
    test.take(next(each for each in CASES if each.name == case))
    monkeypatch.setattr(FaultTestsOfCases, "points", None)  # some do harm at one call alone
    monkeypatch.setattr(owner, name, broken)
    with pytest.raises(AssertionError, match=f"{operation}: {kind} at call"):
        test.test_a_write_that_ends_early(kind, operation)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_row_without_a_word_that_stays_in_a_vector_store_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    test = ServedEnded()
    test.take(next(each for each in CASES if each.name == "pgrag"))
    test.where = FAULT_PLACES[0]
    monkeypatch.setattr(ServedEnded, "points", 3)
    monkeypatch.setattr(StoredSpace, "delete_writes", _nothing)
    with pytest.raises(AssertionError, match="insert: kill at call") as caught:
        test.test_a_write_that_ends_early("kill", "insert")
    assert "vectors" in str(caught.value.__cause__)
