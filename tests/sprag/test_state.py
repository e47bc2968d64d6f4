"""A state in memory after any writes is that of all that is stored, and so is that of an index that is opened again."""

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.sprag.corpus import SPLIT, letter, report

from llama_index.ragkit.steps import run_steps
from llama_index.ragkit.testing import HashEmbedding
from llama_index.sprag import RuleContext, SpRAGIndex
from llama_index.sprag.document_rows import DocumentRows
from llama_index.sprag.state import SpRAGState

WORDS = ["harbour", "lamp", "keeper", "crane", "boat", "pilot", "dues", "tide", "storm", "ledger"]
WRITES = st.lists(
    st.tuples(st.sampled_from(["write", "delete", "cut", "ask", "rebuild"]), st.integers(0, 9)), max_size=8
)


def index(extractor: RuleContext) -> SpRAGIndex:
    return SpRAGIndex.from_documents(
        [*report(), letter()], transformations=SPLIT, extractor=extractor, embed_model=HashEmbedding()
    )


def write(index: SpRAGIndex, kind: str, number: int) -> None:
    """A page of one of three files comes or changes, goes, or loses a chunk; or all are embedded without headers."""
    document = report([" ".join(f"The {word} of {number}." for word in WORDS[number % 4 :: 2])], f"{number % 3}.pdf")[0]
    document.metadata["page_label"] = str(number)
    document = document.model_copy(update={"id_": f"page-{number}"})
    held = index.ref_doc_info
    if kind == "write":
        index.update_ref_doc(document) if document.id_ in held else index.insert(document)
    elif kind == "delete" and held:
        index.delete_ref_doc(list(held)[number % len(held)], delete_from_docstore=True)
    elif kind == "cut" and held:
        index.delete_nodes(list(held.values())[number % len(held)].node_ids[:1], delete_from_docstore=True)
    elif kind == "ask":
        index.as_retriever(context_weight=0.5).retrieve("lamp")
    elif kind == "rebuild":
        index.rebuild()


def told(state: SpRAGState) -> dict[str, Any]:
    """What can be compared, in an order of its own."""
    ids, plain = sorted(state.chunks.ids), sorted(state.plain.ids)
    rows = state.chunks.rows_of(ids)
    documents = {
        key: (entry.chunks, entry.goes_on, entry.tokens.tolist(), entry.error, json.dumps(entry.description))
        for key, entry in sorted(state.documents.items())
    }
    return {
        "ids": (ids, plain),
        "documents": documents,
        "document_of": dict(state.document_of),
        "headers": dict(state.headers),
        "words": state.scored(" ".join(WORDS))[0][rows].round(9).tolist(),
        "vectors": state.cosines(np.ones(32, np.float32), 0.25)[rows].round(6).tolist() if ids else [],
    }


@pytest.mark.parametrize("salient_terms", [0, 2])
@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(WRITES)
def test_after_any_writes_it_is_that_of_all_rows(salient_terms: int, writes: list[tuple[str, int]]):
    grown = index(RuleContext(salient_terms=salient_terms))
    for kind, number in writes:
        write(grown, kind, number)
    state = grown.state
    counters = dict(grown.storage.struct.counters)
    assert told(run_steps(grown.builder.load())) == told(state)
    assert grown.storage.struct.counters == counters
    assert {name: counters.get(name, 0) for name in state.counters()} == state.counters()


@pytest.mark.parametrize("collection", ["sprag_chunks", "sprag_documents", "sprag_failed", "sprag_terms"])
def test_rows_that_a_killed_write_has_lost_are_mended(collection: str):
    hurt, whole = (index(RuleContext(salient_terms=2)) for _ in range(2))
    records = hurt.storage.records
    run_steps(records.delete(collection, list(run_steps(records.get_all(collection)))[::2]))
    again = run_steps(hurt.builder.load())
    assert again.document_of == whole.state.document_of
    hurt.rebuild()
    rows, others = DocumentRows(hurt.storage), DocumentRows(whole.storage)
    whole.rebuild()
    assert run_steps(rows.all_chunks()) == run_steps(others.all_chunks())
    assert told(hurt.state)["documents"] == told(whole.state)["documents"]
    counts = [run_steps(each.storage.records.get_all("sprag_terms")) for each in (hurt, whole)]
    assert counts[0] == counts[1]
