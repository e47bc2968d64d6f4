"""Segments behind a foreign retriever, with the neighbours from a document store or from the index."""

import pytest
from llama_index.core import Document, VectorStoreIndex
from llama_index.core.schema import NodeRelationship, NodeWithScore, RelatedNodeInfo, TextNode
from llama_index.core.storage.docstore import SimpleDocumentStore
from tests.sprag.corpus import LETTER, PAGES, SPLIT, letter, report

from llama_index.ragkit.errors import ConfigurationError
from llama_index.sprag import RelevantSegmentPostprocessor, RuleContext, SegmentConfig, SpRAGIndex, published_config

QUESTION = "What did the pilots ask for?"


def foreign(documents):
    nodes = SPLIT[0](documents)
    store = SimpleDocumentStore()
    store.add_documents(nodes)
    return store, VectorStoreIndex(nodes).as_retriever(similarity_top_k=4).retrieve(QUESTION)


def texts(results):
    return [result.node.get_content() for result in results]


def test_neighbours_come_from_the_document_store():
    store, found = foreign([letter()])
    kept = RelevantSegmentPostprocessor(docstore=store, irrelevant_chunk_penalty=0.0).postprocess_nodes(found)
    assert len(kept) < len(found)
    assert " ".join(texts(kept)[0].split()) in LETTER
    assert kept[0].node.metadata["sprag_chunks"]


def test_a_gap_between_two_hits_is_filled_with_the_chunk_that_was_not_retrieved():
    store, _ = foreign([letter()])
    ids = store.get_ref_doc_info("letter").node_ids
    ends = [NodeWithScore(node=store.get_document(ids[i]), score=1.0) for i in (0, 2)]
    (whole,) = RelevantSegmentPostprocessor(docstore=store, fill=False).postprocess_nodes(ends)
    assert whole.node.metadata["sprag_chunks"][:3] == ids[:3]
    assert store.get_document(ids[1]).get_content() in whole.node.get_content()


def test_without_a_store_chunks_are_returned_as_they_are():
    _, found = foreign([*report(), letter()])
    kept = RelevantSegmentPostprocessor().postprocess_nodes(found)
    assert {result.node.node_id for result in kept} == {result.node.node_id for result in found}


def test_chunks_that_are_deleted_from_the_store_meanwhile_are_returned_as_they_are(monkeypatch):
    store, found = foreign([letter()])
    monkeypatch.setattr(store, "get_nodes", lambda node_ids, raise_error: [])
    kept = RelevantSegmentPostprocessor(docstore=store).postprocess_nodes(found)
    assert {result.node.node_id for result in kept} == {result.node.node_id for result in found}


def test_with_an_index_pages_of_a_file_are_one_document():
    index = SpRAGIndex.from_documents([*report(), letter()], transformations=SPLIT, extractor=RuleContext())
    nodes = list(index.docstore.docs.values())
    found = VectorStoreIndex(nodes).as_retriever(similarity_top_k=16).retrieve(QUESTION)
    kept = RelevantSegmentPostprocessor(index=index, irrelevant_chunk_penalty=0.0).postprocess_nodes(found)
    assert max(len({p for p in PAGES if any(line in text for line in p.split(". "))}) for text in texts(kept)) > 1
    titled = RelevantSegmentPostprocessor(index=index, segment_headers=True).postprocess_nodes(found)
    assert any(text.startswith("Document context") for text in texts(titled))


def test_scores_of_a_reranker_are_calibrated():
    store, found = foreign([letter()])
    for result, score in zip(found, (0.99, 0.6, 0.02, 0.01), strict=False):
        result.score = score
    by_rank = RelevantSegmentPostprocessor(docstore=store, fill=False).postprocess_nodes(found)
    by_score = RelevantSegmentPostprocessor(docstore=store, fill=False, reranked=True).postprocess_nodes(found)
    assert by_rank[0].score != by_score[0].score


def test_published_presets_and_configurations_are_taken():
    assert RelevantSegmentPostprocessor(config=published_config("precision")).config.minimum_value == 0.7
    assert RelevantSegmentPostprocessor(**RelevantSegmentPostprocessor.paper()).config.overall_max_length == 30
    assert RelevantSegmentPostprocessor(max_length=7).config == SegmentConfig(max_length=7)


@pytest.mark.parametrize("wrong", [{"max_length": 0}, {"calibration": "best"}, {"fil": True}, {"top_n": 0}])
def test_what_cannot_be_is_refused_by_name(wrong):
    with pytest.raises(ConfigurationError, match=next(iter(wrong))):
        RelevantSegmentPostprocessor(**wrong)


def test_nodes_without_a_document_stand_at_their_rank():
    store = SimpleDocumentStore()
    pages = [Document(text=f"Page {i} of the letter tells of lamps and bells.", id_=f"doc {i}") for i in range(2)]
    known = [
        TextNode(
            id_=f"k{i}",
            text=page.text,
            relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=page.id_)},
        )
        for i, page in enumerate(pages)
    ]
    store.add_documents(known)
    notes = [TextNode(id_=f"n{i}", text=f"A note of nobody {i}") for i in range(3)]
    given = [notes[0], known[0], notes[1], known[1], notes[2]]
    found = [NodeWithScore(node=node, score=0.9 - place / 10) for place, node in enumerate(given)]
    kept = RelevantSegmentPostprocessor(docstore=store).postprocess_nodes(found)
    assert [result.node.node_id for result in kept] == ["n0", "k0", "n1", "k1", "n2"]
    scores = [result.get_score() for result in kept]
    assert scores == sorted(scores, reverse=True)


def test_nodes_without_a_document_are_kept():
    alone = [NodeWithScore(node=TextNode(text=f"note {i}"), score=None) for i in range(3)]
    assert len(RelevantSegmentPostprocessor(overall_max_length=1).postprocess_nodes(alone)) == 3
