"""Is an index whole after a write that ended early, wherever it ended?"""

import asyncio
import json
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain, count
from typing import Any, ClassVar, Literal, get_args

import pytest
from llama_index.core import Document, StorageContext
from llama_index.core.node_parser import SentenceSplitter

from llama_index.ragkit.testing.corpus import TEXTS
from llama_index.ragkit.testing.faults import Fault, FaultKind, FaultPlace, InjectedError, Killed, MemoryPlace
from llama_index.ragkit.testing.index_kit.harness import Index, IndexHarness, SyncOrAsync, call

__all__ = ["FaultTests"]

_UNIQUE = re.compile("_?[0-9a-f]{8,}")  # in names of tables that no two indexes share

Operation = Literal["build", "insert", "update", "delete", "refresh"]
Ending = Literal["finish", "delete", "drop"]
OPERATIONS: tuple[Operation, ...] = get_args(Operation)
KINDS: tuple[FaultKind, ...] = get_args(FaultKind)
ENDINGS: tuple[Ending, ...] = get_args(Ending)

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


@dataclass(frozen=True)
class _Whole:
    """The answers of an index built at once, and its number of rows by table, collection and vector space."""

    answers: list[tuple[str, float]]
    sizes: Counter[str]


class FaultTests(IndexHarness):
    """A write that ends early leaves a working index, in which you can finish the write or delete its document.

    Each test ends one write at one call after another, until the write is no longer ended: by an error of a store, the
    death of the process, an interrupt or the cancellation of the task. Then one of these follows, by turns:

    - "finish": the index answers, takes another document, and the write is repeated;
    - "delete": the index answers, takes another document, and the document of the write is deleted, after which no row
      has a word of it;
    - "drop": the storage context's `drop`, if it has one, after which there is no row.

    After the first two, the index equals one built at once from the same documents: in its answers, and in the number
    of rows of every table, collection and vector space.

    Attributes
    ----------
    points : at how many calls each test ends its write, spread evenly; None for every call
    """

    points: ClassVar[int | None] = None

    def place(self, kind: FaultKind) -> FaultPlace:
        """New stores for an index [a key-value store as on a server, under an index in memory].

        Parameters
        ----------
        kind : what will end a write there
        """
        return MemoryPlace(persists=kind == "interrupt")

    @pytest.mark.parametrize("operation", OPERATIONS)
    @pytest.mark.parametrize("kind", KINDS)
    def test_a_write_that_ends_early(self, kind: FaultKind, operation: Operation) -> None:
        """At every call of its stores; interrupts and cancellations also at every call of a model."""
        filled = self._filled(kind, operation)
        for at in self._calls(filled, kind, operation):
            place = filled.copy() or self._filled(kind, operation)
            try:
                if not self._is_ended(place, kind, operation, at):
                    break
            except Exception as error:
                raise AssertionError(f"{operation}: {kind} at call {at}") from error
            finally:
                place.close()
        filled.close()

    # -- the parts of a test ----------------------------------------------------------------------------

    def _filled(self, kind: FaultKind, operation: Operation) -> FaultPlace:
        """New stores with the contents before the write."""
        place = self.place(kind)
        if _WRITES[operation].before:
            self._from(_WRITES[operation].before, place.open())
        return place

    def _calls(self, filled: FaultPlace, kind: FaultKind, operation: Operation) -> Iterable[int]:
        """The numbers of the calls to end."""
        if self.points is None:
            return count(1)
        place, fault = filled.copy() or self._filled(kind, operation), Fault(kind)
        self._end(place, operation, fault)
        place.close()
        part = (KINDS.index(kind) + 0.5) / len(KINDS)  # each kind of fault ends the write at other calls than the rest
        return [1 + int((i + part) * fault.calls / self.points) for i in range(self.points)]

    def _is_ended(self, place: FaultPlace, kind: FaultKind, operation: Operation, at: int) -> bool:
        """Whether the write was ended; checks what it left."""
        fault = Fault(kind, at)
        context, index = self._end(place, operation, fault)
        if fault.happened:
            drop = getattr(context, "drop", None)
            ending = ENDINGS[(at + (kind in ("kill", "interrupt"))) % (len(ENDINGS) - (drop is None))]
            if ending == "drop" and drop is not None:
                drop()
                assert _sizes(place) == Counter(), "no row is left of what was dropped"
            else:
                self._check(self._resumed(context) if index is None else index, place, kind, operation, ending)
        return fault.happened

    def _end(self, place: FaultPlace, operation: Operation, fault: Fault) -> tuple[StorageContext, Index | None]:
        """The storage context and the index after a write was ended; no index if that write was its build."""
        context = place.open()
        index = None if operation == "build" else self.load(context)
        try:
            with place.faults(fault):
                self._write(index, operation, context, "async" if fault.kind == "cancel" else "sync")
        except (InjectedError, Killed, KeyboardInterrupt, asyncio.CancelledError):
            pass
        except Exception as error:  # one of ours, whose cause is the injected one
            if not isinstance(error.__cause__, InjectedError):
                raise
        if fault.kind == "kill":
            context = place.open()
            index = None if operation == "build" else self.load(context)
        return context, index

    def _resumed(self, context: StorageContext) -> Index:
        """A script that is run again resumes its build; one that was completed is loaded."""
        stored: list[Any] = context.index_store.index_structs()
        complete = any(struct.generation and not struct.building for struct in stored)
        return self.load(context) if complete else self._from(_WRITES["build"].after, context)

    def _from(self, documents: list[Document], context: StorageContext) -> Index:
        return self.from_documents(documents, storage_context=context, transformations=_SPLIT)

    def _write(self, index: Any, operation: Operation, context: StorageContext, how: SyncOrAsync) -> None:
        if operation == "build":
            options = {"storage_context": context, "transformations": _SPLIT}
            call(how, self, "from_documents", _WRITES[operation].after, **options)
        elif operation == "insert":
            call(how, index, "insert", _OLD)
        elif operation == "update":
            call(how, index, "update_ref_doc", _NEW)
        elif operation == "delete":
            call(how, index, "delete_ref_doc", "X", delete_from_docstore=True)
        else:
            call(how, index, "refresh_ref_docs", [_A, _NEW, _C])

    def _check(self, index: Any, place: FaultPlace, kind: FaultKind, operation: Operation, ending: Ending) -> None:
        self.ask(index)
        index.insert(_OTHER)
        assert any("Plankalkul" in text for text, _ in self.ask(index))
        final = [*_WRITES[operation].after, _OTHER]
        if ending == "delete" or operation == "delete":
            index.delete_ref_doc("X", delete_from_docstore=True)
        if ending == "delete":
            final = [document for document in final if document.id_ != "X"]
            index.refresh_ref_docs(final)
        elif operation != "delete":
            reported, is_known = "X" in index.unfinished, "X" in index.ref_doc_info
            written = dict(zip([document.id_ for document in final], index.refresh_ref_docs(final), strict=True))
            if operation in ("build", "insert") and is_known:
                assert reported == written["X"], "what is stored in part is unfinished, and nothing else"
        gone = ["zanzibar", "quillaja"] if ending == "delete" else [_WRITES[operation].gone]
        words = "\n".join(chain.from_iterable(place.rows().values())).casefold()
        assert [word for word in gone if word and word in words] == []
        assert index.unfinished == []
        if index.failures():  # an error while a node was read is recorded with the node
            assert index.retry_failed() == 0
        self.rebuild(index)
        whole = self._whole(final, kind)
        assert self.ask(index) == whole.answers
        assert _sizes(place) == whole.sizes

    def _whole(self, documents: list[Document], kind: FaultKind) -> _Whole:
        known: dict[str, _Whole] = self.__dict__.setdefault("_wholes", {})
        key = json.dumps([kind, *(document.hash for document in documents)])
        if key not in known:
            place = self.place(kind)
            index = self._from(documents, place.open())
            self.rebuild(index)
            known[key] = _Whole(self.ask(index), _sizes(place))
            place.close()
        return known[key]


def _sizes(place: FaultPlace) -> Counter[str]:
    """The number of rows by what holds them; its name may contain the random number of an index."""
    sizes: Counter[str] = Counter()
    for name, rows in place.rows().items():
        sizes[_UNIQUE.sub("", name)] += len(rows)
    return +sizes
