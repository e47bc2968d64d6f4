"""The fault tests fail where a write that ended early does harm."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.cases import CASES
from tests.conformance.test_faults import TestEveryIndexEnded as FaultTestsOfCases

from llama_index.ragkit.index.writer import IndexWriter
from llama_index.ragkit.steps import Steps, call
from llama_index.ragkit.storage.commits import Commits, Unfinished
from llama_index.ragkit.storage.index_storage import IndexStorage
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
    ("pgrag", VectorSpace, "reload", _nothing, "cancel", "insert"),
]


@pytest.mark.parametrize(("case", "owner", "name", "broken", "kind", "operation"), FAULTS)
def test_a_fault_of_the_write_path_is_caught(
    monkeypatch: pytest.MonkeyPatch, case: str, owner: type, name: str, broken: Any, kind: Any, operation: Any
) -> None:
    test = FaultTestsOfCases()
    test.take(next(each for each in CASES if each.name == case))
    monkeypatch.setattr(owner, name, broken)
    with pytest.raises(AssertionError, match=f"{operation}: {kind} at call"):
        test.test_a_write_that_ends_early(kind, operation)
