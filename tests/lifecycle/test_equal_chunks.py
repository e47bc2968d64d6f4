"""Many chunks of one text: every method builds, answers with as many as asked for, and grows."""

import pytest
from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode
from tests.cases import Case, retriever

TEXT = "Marco Polo brought silk from Venice to the Khan."


def copies(number: int, start: int = 0) -> list[TextNode]:
    source = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id="d")}
    return [TextNode(id_=f"d-{i}", text=TEXT, relationships=source) for i in range(start, start + number)]


def test_equal_chunks_are_an_ordinary_corpus(case: Case) -> None:
    index = case.build(copies(300))
    index.insert_nodes(copies(3, start=300))
    found = retriever(index, similarity_top_k=5).retrieve("What did Marco Polo bring?")
    assert len(found) == 5
    assert len({result.node.node_id for result in found}) == 5
    index.delete_ref_doc("d", delete_from_docstore=True)
    assert index.docstore.docs == {}


@pytest.mark.slow
def test_thousands_of_equal_chunks(case: Case) -> None:
    if case.name not in ("gemrag", "pgrag"):
        pytest.skip("takes a method with themes or super-facts")
    found = retriever(case.build(copies(3000)), similarity_top_k=5).retrieve("What did Marco Polo bring?")
    assert len(found) == 5
