"""Vectors of removed rows are deleted after the write that removed them, and no others."""

import threading
from typing import Any

import pytest
from tests.cases import Case, ask, chunks
from tests.serving.places import Place

from llama_index.ragkit import MatrixVectorStore

_LONG, _SHORT = 20.0, 0.5  # seconds


def test_what_another_writer_has_settled_is_not_deleted_again(
    case: Case, here: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both writers find the vectors of a document to delete; the first writes the document again before the second
    comes to delete them.
    """
    ours = case.build([*chunks("d", 3), *chunks("e", 3)], storage_context=here.open())
    other = case.load(here.open())
    held, again = threading.Event(), threading.Event()
    second = threading.Thread(target=lambda: other.insert_nodes(chunks("x", 1)))
    delete = MatrixVectorStore.delete_nodes

    def held_up(store: MatrixVectorStore, node_ids: Any = None, *arguments: Any, **keywords: Any) -> None:
        if threading.current_thread() is second:
            if len(node_ids) > 1:  # not a trial whether the store can delete
                held.set()
                again.wait(_LONG)
        elif not second.ident:
            second.start()
            held.wait(_SHORT)
        delete(store, node_ids, *arguments, **keywords)

    monkeypatch.setattr(MatrixVectorStore, "delete_nodes", held_up)
    ours.delete_ref_doc("d", delete_from_docstore=True)
    ours.insert_nodes(chunks("d", 3))
    again.set()
    second.join()
    expected = {node.text for node in [*chunks("d", 3), *chunks("e", 3), *chunks("x", 1)]}
    assert {text for text, _ in ask(case.load(here.open()), top_k=1000)} >= expected
