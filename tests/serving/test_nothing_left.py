"""No row is left in any store of a write that ended before its commit, whatever ended it."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import cycle, product
from typing import Any
from unittest.mock import patch

import pytest
from llama_index.core import Document
from llama_index.core.node_parser import SentenceSplitter
from tests.cases import TEXTS, Case, ask, chunks
from tests.serving.conftest import SERVED
from tests.serving.fault_places import FAULT_PLACES, ServedEnded, ServedPlace
from tests.serving.places import Kind, Place

from llama_index.ragkit import Records, Steps
from llama_index.ragkit.errors import ConcurrentWriteError
from llama_index.ragkit.steps import run_steps
from llama_index.ragkit.storage import commits
from llama_index.ragkit.storage.commits import Commits
from llama_index.ragkit.testing.index_kit.faults import KINDS, OPERATIONS

pytestmark = [pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning"), pytest.mark.pairs]

SPLIT = [SentenceSplitter(chunk_size=24, chunk_overlap=0)]
BEFORE = [Document(id_="A", text=" ".join(TEXTS[:3])), Document(id_="B", text=" ".join(TEXTS[3:6]))]
WRITTEN = Document(id_="X", text=" ".join(["Zanzibar exports cloves.", *TEXTS]), metadata={"note": "zanzibar"})
# Each method in one of the two places: ragkit takes the rows back.
each_in_one = pytest.mark.parametrize(
    ("case", "kind"), list(zip(SERVED, cycle(FAULT_PLACES), strict=False)), ids=lambda each: each.name
)


class DiskFullError(OSError):
    pass


@contextmanager
def failing() -> Iterator[None]:
    """The commit of a write fails, in a block that expects it."""

    def commit(self: Commits, *args: Any) -> Steps[None]:
        raise DiskFullError
        yield

    with patch.object(Commits, "commit", commit), pytest.raises(DiskFullError):
        yield


def rebuild(index: Any) -> None:
    if hasattr(index, "rebuild"):
        index.rebuild()


def rows(place: ServedPlace) -> dict[str, int]:
    return {name: len(found) for name, found in place.rows().items() if found}


@each_in_one
def test_after_a_commit_that_failed_a_delete_leaves_what_there_was_and_a_drop_nothing(case: Case, kind: Kind) -> None:
    place = ServedPlace(kind)
    index: Any = case.from_documents(BEFORE, transformations=SPLIT, storage_context=place.open())
    rebuild(index)
    before = rows(place)
    for again in (False, True):
        with failing():
            index.insert(WRITTEN)
        assert sum(rows(place).values()) > sum(before.values())
        index = case.load(place.open(), transformations=SPLIT) if again else index
        index.delete_ref_doc("X", delete_from_docstore=True)
        rebuild(index)
        assert rows(place) == before
    with failing():
        index.insert(WRITTEN)
    place.open().drop()
    assert rows(place) == {}
    place.close()


class EndedOnce(ServedEnded):
    points = 1


# Every index in both places, and every kind of write ended in every way; `benchmarks.reliability` has all of all.
WAYS = list(product(KINDS, OPERATIONS))
SAMPLE = [
    (case, where, *WAYS[7 * number % len(WAYS)])
    for number, (case, where) in enumerate(product(SERVED, [FAULT_PLACES[0], *FAULT_PLACES]))
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "where", "how", "what"), SAMPLE, ids=lambda each: each if isinstance(each, str) else each.name
)
def test_a_write_that_ends_early_leaves_what_one_that_did_not_begin_leaves(
    case: Case, where: Kind, how: Any, what: Any
) -> None:
    test = EndedOnce()
    test.take(case)
    test.where = where
    test.test_a_write_that_ends_early(how, what)


def stored_commit(place: Place, case: Case) -> tuple[dict[str, Any], Records]:
    """The record of the last commit, and of what is being written; and where it is."""
    context = place.open()
    (struct,) = context.index_store.index_structs()
    records = Records(context.docstore, f"{case.cls.method}_{struct.uid}")  # type: ignore[attr-defined]
    return run_steps(commits.read_commit(records)), records


def vectors(place: Place, index: Any) -> dict[str, int]:
    """The number of rows in each vector store of this process."""
    store: Any = place.kind.vectors(place.tag, place.folder)
    return {name: len(store(name, 0).snapshot()) for name in index.index_struct.spaces}


def test_the_rows_of_a_writer_that_goes_on_stay(case: Case, here: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another writer waits for it in vain, is refused, and has deleted nothing."""
    monkeypatch.setattr(commits, "_PATIENCE", 0.1)
    ours = case.build(chunks("d", 3), storage_context=here.open())
    other: Any = case.load(here.open())
    held, refused = threading.Event(), threading.Event()
    commit = Commits.commit

    def held_up(self: Commits, *args: Any) -> Steps[None]:
        if threading.current_thread() is writer:
            held.set()
            assert refused.wait(20)
        yield from commit(self, *args)

    monkeypatch.setattr(Commits, "commit", held_up)
    writer = threading.Thread(target=lambda: ours.insert_nodes(chunks("e", 3)))
    writer.start()
    assert held.wait(20)
    with pytest.raises(ConcurrentWriteError):
        other.delete_ref_doc("d", delete_from_docstore=True)
    refused.set()
    writer.join()
    assert {text for text, _ in ask(other, top_k=1000)} >= {node.text for node in [*chunks("d", 3), *chunks("e", 3)]}


def test_rows_of_a_writer_on_another_machine_go_when_another_has_taken_its_place(case: Case, here: Place) -> None:
    index: Any = case.build(chunks("d", 3), storage_context=here.open())
    before = vectors(here, index)
    with failing():
        index.insert(WRITTEN)
    stored, records = stored_commit(here, case)
    stored["writer"]["process"]["machine"] = "elsewhere"
    run_steps(records.put("meta", [("state", stored)]))
    with patch.object(commits, "_PATIENCE", 0):
        again: Any = case.load(here.open())
        again.delete_ref_doc("X", delete_from_docstore=True)
        rebuild(again)
    assert vectors(here, index) == before


def test_notes_do_not_grow_with_the_writes_that_fail(case: Case, here: Place) -> None:
    index: Any = case.build(chunks("d", 3), storage_context=here.open())
    for _ in range(4):
        with failing():
            index.insert_nodes(chunks("e", 2))
    stored, _ = stored_commit(here, case)
    assert len(stored["left"]) <= 1
    index.insert_nodes(chunks("e", 2))
    stored, _ = stored_commit(here, case)
    assert (stored["left"], stored["writer"]) == ([], None)


def test_a_drop_deletes_rows_that_no_record_knows_of(case: Case, here: Place) -> None:
    index: Any = case.build(chunks("d", 3), storage_context=here.open())
    other = case.build(chunks("f", 3), storage_context=here.open("other"))
    with failing():
        index.insert(WRITTEN)
    stored, records = stored_commit(here, case)
    run_steps(records.put("meta", [("state", {**stored, "writer": None, "left": []})]))
    here.open().drop()
    alone = vectors(here, other)
    here.open("other").drop()
    assert set(vectors(here, other).values()) == {0}
    assert alone["chunks"] == 3
