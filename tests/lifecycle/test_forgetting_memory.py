"""What is deleted or replaced leaves the memory of the process: its vectors, wherever an index keeps them."""

import gc

import numpy as np
import pytest
from llama_index.core.schema import Document
from tests.cases import Case, ask
from tests.memory import arrays_with, texts_in

TEXTS = [
    "Otto Lindqvist founded the Bergslund Glassworks in 1871.",
    "The Bergslund Glassworks stands at Lake Tovel, where Clara Ashdown was born.",
    "Clara Ashdown wrote the history of Lake Tovel and its ferries.",
]
PARTS = ["zygmunt quaternion", "forty barometers", "frozen strait"]
SECRET = "Zygmunt Quaternion smuggled forty barometers across the frozen strait."


@pytest.fixture(autouse=True, scope="module")
def _thawed():
    yield
    gc.unfreeze()


@pytest.fixture(autouse=True)
def _only_what_the_test_makes():
    gc.freeze()  # what earlier tests of the file have left, too: the collector has less to look at


def _documents(secret=SECRET):
    return [Document(text=text, id_=f"D{i}") for i, text in enumerate([*TEXTS, secret])]


def _forms(index, document):
    """The bytes of the vectors of the document's chunks, as stored and normalised."""
    ids = list(index.ref_doc_info[document].node_ids)
    rows = index.state.chunks.vectors_of(ids).astype(np.float64)
    units = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return [row.astype(dtype).tobytes() for matrix in (rows, units) for row in matrix for dtype in ("f4", "f8")]


def _held(forms):
    return [array.shape for form in forms for array in arrays_with(form)]


@pytest.mark.parametrize("how", ["delete", "update"])
def test_no_array_holds_the_vector_of_deleted_text(case: Case, how):
    index = case.from_documents(_documents())
    ask(index, SECRET)
    forms = _forms(index, "D3")
    assert _held(forms)
    if how == "delete":
        index.delete_ref_doc("D3", delete_from_docstore=True)
    else:
        index.update_ref_doc(_documents("The strait thawed, and the ferries of Lake Tovel went out again.")[3])
    gc.collect()
    assert _held(forms) == []
    ask(index, TEXTS[0])
    gc.collect()
    assert _held(forms) == []


def test_a_state_that_a_query_still_uses_keeps_its_vectors_until_the_query_ends(case: Case):
    index = case.from_documents(_documents())
    forms = _forms(index, "D3")
    state = index.state
    index.delete_ref_doc("D3", delete_from_docstore=True)
    gc.collect()
    assert _held(forms)
    assert np.isfinite(state.chunks.matrix).all()
    assert (np.linalg.norm(state.chunks.matrix, axis=1) > 0).all()
    del state
    gc.collect()
    assert _held(forms) == []


def test_no_state_holds_deleted_text(case: Case):
    """Even where the state after a write shares the values that the write did not change with the state before."""

    def held():
        return [text[:80] for text in texts_in(index.state) if any(part in text.lower() for part in PARTS)]

    index = case.from_documents(_documents()[:3])
    ask(index, TEXTS[0])
    for i in range(3):
        index.insert(Document(text=f"{SECRET} Colleague {i} of Clara Ashdown watched.", id_=f"S{i}"))
        if i < 2:  # what a question would bring up to date is not, when the deletes begin
            ask(index, SECRET)
    before = held()
    for i in range(3):
        index.delete_ref_doc(f"S{i}", delete_from_docstore=True)
    if case.name != "pgrag":  # which brings its names up to date at the next question
        assert held() == []
    ask(index, TEXTS[0])
    assert bool(before) == (case.name in ("gemrag", "graphrag", "hipporag", "pgrag", "raptor"))
    assert held() == []
