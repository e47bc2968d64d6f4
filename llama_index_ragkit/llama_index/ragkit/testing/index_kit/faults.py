"""Is an index whole after a write that ended early, wherever it ended?"""

import asyncio
import copy
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import pytest
from llama_index.core import Document, StorageContext
from llama_index.core.node_parser import SentenceSplitter

from llama_index.ragkit.testing.corpus import TEXTS
from llama_index.ragkit.testing.faults import (
    Data,
    Fault,
    FaultKind,
    FaultyKVStore,
    InjectedError,
    Killed,
    faulty_context,
    faulty_requests,
)
from llama_index.ragkit.testing.index_kit.harness import Index, IndexHarness
from llama_index.ragkit.vectors.matrix_vector_store import MatrixVectorStore

__all__ = ["FaultTests"]

Operation = Literal["build", "insert", "update", "delete", "refresh"]
OPERATIONS: tuple[Operation, ...] = ("build", "insert", "update", "delete", "refresh")

_SPLIT = [SentenceSplitter(chunk_size=24, chunk_overlap=0)]
_A = Document(id_="A", text=f"{TEXTS[0]} {TEXTS[1]}")
_B = Document(id_="B", text=f"{TEXTS[2]} {TEXTS[3]}")
_C = Document(id_="C", text="Grace Hopper found a moth in the Harvard Mark.")
_OLD = Document(id_="X", text=f"Zanzibar exports cloves to Lyon. {TEXTS[4]}")
_NEW = Document(id_="X", text=f"Quillaja bark comes from Chile. {TEXTS[4]}")
_OTHER = Document(id_="E", text="Konrad Zuse built the Plankalkul in Berlin.")


@dataclass(frozen=True)
class _Write:
    """A write: what the index holds before it and after it, and a word that must then be gone."""

    before: list[Document]
    after: list[Document]
    gone: str = ""


_WRITES: dict[Operation, _Write] = {
    "build": _Write([], [_A, _B, _OLD]),
    "insert": _Write([_A, _B], [_A, _B, _OLD]),
    "update": _Write([_A, _B, _OLD], [_A, _B, _NEW], "zanzibar"),
    "delete": _Write([_A, _B, _OLD], [_A, _B], "zanzibar"),
    "refresh": _Write([_A, _B, _OLD], [_A, _B, _NEW, _C], "zanzibar"),
}


class _Place:
    """The stores of one run."""

    def __init__(self, data: Data, kind: FaultKind) -> None:
        self.store = FaultyKVStore(data, Fault(), persists=kind == "interrupt")
        self.context = faulty_context(self.store)


class FaultTests(IndexHarness):
    """A write that ends early leaves an index that works, and that can be finished or rid of the document.

    Each test ends one write at one call after another, until it is not ended any more. What ended it is an error of a
    store, the death of the process, an interrupt, or the cancellation of the task. Then the index answers, takes
    another document, and either the write is repeated, after which the index equals one that was built at once, or
    the document is deleted, after which no word of it is left in any store.
    """

    @pytest.mark.parametrize("operation", OPERATIONS)
    @pytest.mark.parametrize("kind", ["error", "kill", "interrupt", "cancel"])
    def test_a_write_that_ends_early(self, kind: FaultKind, operation: Operation) -> None:
        """At every call of its stores; every interrupt and cancellation also at every call of models."""
        for at, place in enumerate(self._places(operation, kind), 1):
            index = self._ended(place, operation, Fault(kind, at))
            if index is None:
                return
            try:
                self._check(index, place, operation, finish=bool((at + (kind in ("error", "cancel"))) % 2))
            except Exception as error:
                raise AssertionError(f"{operation}: {kind} at call {at}") from error

    # -- the parts of a test ----------------------------------------------------------------------------

    def _places(self, operation: Operation, kind: FaultKind) -> Iterator[_Place]:
        """New stores, again and again, that hold what there is before the write."""
        first = _Place({}, kind)
        if _WRITES[operation].before:
            self._from(_WRITES[operation].before, first.context)
        while True:
            place = _Place(copy.deepcopy(first.store.data), kind)
            if kind == "interrupt":  # vectors that live and die with the process, too
                place.context.vector_stores.update(copy.deepcopy(first.context.vector_stores))
            yield place

    def _ended(self, place: _Place, operation: Operation, fault: Fault) -> Index | None:
        """The index after its write was ended; None if the write came to its end."""
        index = None if operation == "build" else self.load(place.context)
        try:
            if fault.kind == "cancel":
                asyncio.run(self._awrite(index, operation, place.context, fault))
            elif fault.kind == "interrupt":
                with faulty_requests(fault):
                    self._write(index, operation, place.context)
            else:
                place.store.fault = fault
                self._write(index, operation, place.context)
        except (InjectedError, Killed, KeyboardInterrupt, asyncio.CancelledError):
            pass
        except Exception as error:  # one of ours that names the injected one as its cause
            if not isinstance(error.__cause__, InjectedError):
                raise
        if not fault.happened:
            return None
        place.store.fault = Fault()
        if fault.kind == "kill":
            place.context = faulty_context(FaultyKVStore(place.store.data, Fault()))
            index = None if operation == "build" else self.load(place.context)
        if operation == "build":  # a script that is run again resumes its build; one that was completed is loaded
            stored: list[Any] = place.context.index_store.index_structs()
            complete = any(struct.generation and not struct.building for struct in stored)
            index = self.load(place.context) if complete else self._from(_WRITES[operation].after, place.context)
        return index

    def _from(self, documents: list[Document], context: StorageContext) -> Index:
        return self.from_documents(documents, storage_context=context, transformations=_SPLIT)

    def _write(self, index: Any, operation: Operation, context: StorageContext) -> None:
        if operation == "build":
            self._from(_WRITES[operation].after, context)
        elif operation == "insert":
            index.insert(_OLD)
        elif operation == "update":
            index.update_ref_doc(_NEW)
        elif operation == "delete":
            index.delete_ref_doc("X", delete_from_docstore=True)
        else:
            index.refresh_ref_docs([_A, _NEW, _C])

    async def _awrite(self, index: Any, operation: Operation, context: StorageContext, fault: Fault) -> None:
        with faulty_requests(fault):
            if operation == "build":
                await self.afrom_documents(_WRITES[operation].after, storage_context=context, transformations=_SPLIT)
            elif operation == "insert":
                await index.ainsert(_OLD)
            elif operation == "update":
                await index.aupdate_ref_doc(_NEW)
            elif operation == "delete":
                await index.adelete_ref_doc("X", delete_from_docstore=True)
            else:
                await index.arefresh_ref_docs([_A, _NEW, _C])

    def _check(self, index: Any, place: _Place, operation: Operation, finish: bool) -> None:
        self.ask(index)
        index.insert(_OTHER)
        assert any("Plankalkul" in text for text, _ in self.ask(index))
        final = [*_WRITES[operation].after, _OTHER]
        if finish and operation == "delete":
            index.delete_ref_doc("X", delete_from_docstore=True)
        elif finish:
            reported, is_known = "X" in index.unfinished, "X" in index.ref_doc_info
            written = dict(zip([document.id_ for document in final], index.refresh_ref_docs(final), strict=True))
            if operation in ("build", "insert") and is_known:
                assert reported == written["X"], "what is stored in part is unfinished, and nothing else"
        else:
            index.delete_ref_doc("X", delete_from_docstore=True)
            final = [document for document in final if document.id_ != "X"]
            index.refresh_ref_docs(final)
        words = _stored_words(place)
        assert _WRITES[operation].gone not in words or not _WRITES[operation].gone
        if not finish:
            assert "zanzibar" not in words
            assert "quillaja" not in words
        assert index.unfinished == []
        self.rebuild(index)
        assert self.ask(index) == self._expected(final)

    def _expected(self, documents: list[Document]) -> list[tuple[str, float]]:
        known: dict[str, list[tuple[str, float]]] = self.__dict__.setdefault("_answers", {})
        key = json.dumps([document.hash for document in documents])
        if key not in known:
            index = self._from(documents, StorageContext.from_defaults())
            self.rebuild(index)
            known[key] = self.ask(index)
        return known[key]


def _stored_words(place: _Place) -> str:
    """Everything that the stores hold, in lower case."""
    stores = place.context.vector_stores.values()
    rows = [store.snapshot().records for store in stores if isinstance(store, MatrixVectorStore)]
    return f"{place.store.data} {rows}".casefold()
