"""The segment with the nearest chunk comes first, and is among the chosen ones whatever the others are worth."""

import pytest
from llama_index.core import Document, VectorStoreIndex
from llama_index.core.node_parser import SentenceSplitter
from tests.sprag.corpus import SPLIT, letter, report

from llama_index.ragkit.testing import HashEmbedding
from llama_index.sprag import RelevantSegmentPostprocessor, RuleContext, SpRAGIndex, SpRAGRetriever

SENTENCES = [
    "The ferry to the island leaves at seven in the morning from the northern quay.",
    "Tea is grown in the hills.",
    "The baker of the village, who is also its mayor, has two ovens and sells rye bread to the ferry and the island.",
    "A lighthouse needs oil.",
    "Cork is the bark of an oak that is peeled every nine years by people who learned it from their parents.",
    "The library opens on Monday.",
    "Snow closes the pass from November to March, and the post then comes by boat twice a week or not at all.",
    "Bees winter in straw.",
    "The glacier has lost forty metres since it was first measured by two teachers from the school in the valley.",
    "Salt was taxed by weight.",
    "The orchestra rehearses in the old customs house, whose roof was mended by subscription in a wet summer.",
    "Clocks ran slow in winter.",
]
QUESTIONS = {
    "Where is tea grown?": 1,
    "What does a lighthouse need?": 3,
    "When does the library open?": 5,
    "How do bees winter?": 7,
    "How was salt taxed?": 9,
    "When did clocks run slow?": 11,
    "When does the ferry to the island leave?": 0,
}


def chunks_of(result):
    return result.node.metadata.get("sprag_chunks", [result.node.node_id])


@pytest.fixture(scope="module", params=["one document", "a document each"])
def index(request):
    if request.param == "one document":
        documents = [Document(text="\n\n".join(SENTENCES), id_="all")]
    else:
        documents = [Document(text=text, id_=f"d{number}") for number, text in enumerate(SENTENCES)]
    split = [SentenceSplitter(chunk_size=30, chunk_overlap=0, paragraph_separator="\n\n")]
    return SpRAGIndex.from_documents(
        documents, transformations=split, extractor=RuleContext(), embed_model=HashEmbedding()
    )


@pytest.mark.parametrize("options", [{}, {"selection": "optimal"}, {"fill": False}, {"token_budget": 60}])
def test_the_first_segment_has_the_nearest_chunk(index, options):
    for question, number in QUESTIONS.items():
        (nearest,) = index.as_retriever(mode="chunks", similarity_top_k=1).retrieve(question)
        assert SENTENCES[number][:20] in nearest.node.get_content()
        found = index.as_retriever(**options).retrieve(question)
        assert nearest.node.node_id in chunks_of(found[0])
        assert found[0].score == pytest.approx(nearest.score)
        scores = [result.score for result in found]
        assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize("options", [{}, {"selection": "optimal"}, {"overall_max_length": 60}])
def test_the_postprocessor_keeps_the_first_chunk_first(index, options):
    nodes = list(index.docstore.docs.values())
    plain = VectorStoreIndex(nodes, embed_model=HashEmbedding())
    segments = RelevantSegmentPostprocessor(docstore=index.docstore, **options)
    for question in QUESTIONS:
        given = plain.as_retriever(similarity_top_k=12).retrieve(question)
        assert given[0].node.node_id in chunks_of(segments.postprocess_nodes(given, query_str=question)[0])


def test_as_published_longer_segments_may_come_first():
    published = SpRAGRetriever.paper()
    assert published["order"] == "value"
    assert published["published"].nearest_first is False
    index = SpRAGIndex.from_documents(
        [*report(), letter()], transformations=SPLIT, extractor=RuleContext(), embed_model=HashEmbedding()
    )
    found = index.as_retriever(order="value", fill=False).explain("What did the pilots ask for?")
    assert [why.score for why in found] == pytest.approx([(1 + why.value / (1 + why.value)) / 2 for why in found])
    assert [why.value for why in found] == sorted((why.value for why in found), reverse=True)


def test_a_segment_below_the_minimum_value_is_left_out_even_if_it_has_the_nearest_chunk(index):
    for selection in ("greedy", "optimal"):
        retriever = index.as_retriever(minimum_value=0.9, fill=False, selection=selection)
        for why in retriever.explain("Where is tea grown?"):
            assert why.value >= 0.9 or "minimum value" in why.fallback


def test_segments_in_the_order_of_the_document_from_a_postprocessor(index):
    nodes = list(index.docstore.docs.values())
    given = VectorStoreIndex(nodes, embed_model=HashEmbedding()).as_retriever(similarity_top_k=12).retrieve("ferry")
    found = RelevantSegmentPostprocessor(index, order="document", overall_max_length=90).postprocess_nodes(given)
    places = [index.state.place(chunks_of(result)[0]) for result in found]
    documents = list(dict.fromkeys(document for document, _ in places))
    assert places == sorted(places, key=lambda place: (documents.index(place[0]), place[1]))
