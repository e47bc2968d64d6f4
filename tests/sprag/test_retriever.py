"""The retriever: segments within a budget, rerankers, several queries, filters, explanations."""

import asyncio

import pytest
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import MetadataMode, NodeRelationship, NodeWithScore, QueryBundle, TextNode
from llama_index.core.utils import get_tokenizer
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters
from tests.sprag.corpus import PAGES, SPLIT, letter, report

from llama_index.ragkit.errors import ConfigurationError
from llama_index.ragkit.testing import ScriptedLLM
from llama_index.sprag import RuleContext, SpRAGIndex, SpRAGRetriever

QUESTION = "What did the pilots ask for?"


@pytest.fixture(scope="module")
def index():
    from llama_index.ragkit.testing import HashEmbedding

    return SpRAGIndex.from_documents(
        [*report(), letter()], transformations=SPLIT, extractor=RuleContext(), embed_model=HashEmbedding()
    )


class Reversed(BaseNodePostprocessor):
    """Ranks the last first, by scores that it makes up."""

    def _postprocess_nodes(self, nodes, query_bundle=None):
        seen.append(nodes[0].node.get_content(metadata_mode=MetadataMode.EMBED))
        return [NodeWithScore(node=r.node, score=1.0 / (2 + i)) for i, r in enumerate(reversed(nodes))]


seen: list[str] = []


def test_neighbouring_chunks_are_one_node_that_points_at_them(index):
    found = index.as_retriever(irrelevant_chunk_penalty=0.01, fill=False).retrieve(QUESTION)
    longest = max(found, key=lambda result: len(result.node.metadata.get("sprag_chunks", [])))
    chunks = longest.node.metadata["sprag_chunks"]
    assert len(chunks) > 1
    assert [child.node_id for child in longest.node.relationships[NodeRelationship.CHILD]] == chunks
    for chunk in chunks:
        assert index.docstore.docs[chunk].get_content() in longest.node.get_content()
    assert longest.node.ref_doc_id == index.docstore.docs[chunks[0]].ref_doc_id
    assert "sprag_chunks" not in longest.node.get_content(metadata_mode=MetadataMode.LLM)


def test_a_delete_during_a_question_leaves_its_explanation(index, monkeypatch):
    read, calls = index.storage.get_nodes, []

    def deleted_meanwhile(node_ids):
        calls.append(node_ids)
        found = yield from read(node_ids)
        return found if len(calls) < 3 else dict([*found.items()][1:])  # after the chunks and documents of the answer

    retriever = index.as_retriever(irrelevant_chunk_penalty=0.01, fill=False)
    before = retriever.explain(QUESTION)
    monkeypatch.setattr(index.storage, "get_nodes", deleted_meanwhile)
    assert [each.document for each in retriever.explain(QUESTION)] == [each.document for each in before]


def test_no_chunk_comes_twice_and_scores_do_not_rise(index):
    found = index.as_retriever().retrieve(QUESTION)
    chunks = [c for result in found for c in result.node.metadata.get("sprag_chunks", [result.node.node_id])]
    assert len(set(chunks)) == len(chunks)
    scores = [result.score for result in found]
    assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize("budget", [10, 25, 60, 200])
@pytest.mark.parametrize("selection", ["greedy", "optimal"])
def test_a_budget_of_tokens_holds_for_what_the_llm_reads(index, budget, selection):
    tokens = get_tokenizer()
    retriever = index.as_retriever(token_budget=budget, selection=selection, similarity_top_k=50)
    found = retriever.retrieve(QUESTION)
    used = sum(len(tokens(result.node.get_content(metadata_mode=MetadataMode.LLM))) for result in found)
    assert used <= budget
    assert found or budget == 10


def test_a_budget_is_filled_from_further_documents_where_each_is_a_single_chunk():
    """Ten documents as published; with long ones, their chunks fill the budget."""
    texts = [f"The pilots of harbour {i} asked for a boat, a lamp and a rope in the year 19{i}." for i in range(10, 50)]
    index = SpRAGIndex([TextNode(text=text, id_=str(i)) for i, text in enumerate(texts)], extractor=RuleContext())
    tokens = get_tokenizer()

    def used(**keywords):
        found = index.as_retriever(token_budget=500, similarity_top_k=50, **keywords).retrieve(QUESTION)
        return sum(len(tokens(result.node.get_content(metadata_mode=MetadataMode.LLM))) for result in found)

    longest = max(len(tokens(text)) for text in texts)
    assert 450 <= used() <= 500
    assert used(fill=False) <= 10 * longest


def test_a_filter_holds_for_every_part_of_a_segment():
    documents = [*report(tenant="a"), *report([PAGES[1].replace("forty", "fifty")], tenant="b")]
    whole = SpRAGIndex.from_documents(documents, transformations=SPLIT, extractor=RuleContext())
    only = MetadataFilters(filters=[MetadataFilter(key="tenant", value="b")])
    retriever = whole.as_retriever(filters=only, irrelevant_chunk_penalty=0.0)
    text = " ".join(result.node.get_content() for result in retriever.retrieve("dues crowns pilots"))
    assert "fifty" in text
    assert "pilots" not in text
    second = MetadataFilters(filters=[MetadataFilter(key="page_label", value="2")])
    found = whole.as_retriever(filters=second, irrelevant_chunk_penalty=0.0).retrieve("dues pilots crane")
    assert not any("crane" in result.node.get_content() for result in found)


@pytest.mark.parametrize("mode", ["segments", "chunks"])
def test_what_is_said_about_a_document_is_shown_only_where_all_of_it_may_be(index, mode, tmp_path):
    """Title, summary and sections are written from all chunks of a document."""
    shown = [node_id for node_id in index.docstore.docs if index.docstore.docs[node_id].ref_doc_id]
    entry = next(each for each in index.state.documents.values() if len(each.chunks) > 1 and each.title)
    for node_ids, whole in ((shown, True), (list(entry.chunks[:-1]), False)):
        options = {"mode": mode, "node_ids": node_ids, "segment_headers": True}
        reasons = index.as_retriever(**options).explain(QUESTION)
        assert any(each.document for each in reasons) == whole
        assert any(chunk.header for each in reasons for chunk in each.chunks) == whole
        texts = " ".join(each.node.get_content() for each in index.as_retriever(**options).retrieve(QUESTION))
        assert ("Document context" in texts) == (whole and mode == "segments")
        page = index.visualize(tmp_path / "page.html", QUESTION, **options).read_text(encoding="utf-8")
        assert (entry.title in page) == whole


def test_explanations_name_the_chunks_with_their_ranks_and_values(index):
    retriever = index.as_retriever(irrelevant_chunk_penalty=0.05)
    explained = retriever.explain(QUESTION)
    for why in explained:
        assert why.end - why.start == len(why.chunks)
        assert why.value == pytest.approx(sum(chunk.value for chunk in why.chunks), abs=1e-6)
        assert why.query == QUESTION
    assert {why.document for why in explained} >= {"harbour report"}
    assert any(chunk.rank == 0 for why in explained for chunk in why.chunks)


def test_a_reranker_sees_headers_and_decides_the_order(index):
    seen.clear()
    plain = index.as_retriever(mode="chunks").retrieve(QUESTION)
    turned = index.as_retriever(mode="chunks", reranker=Reversed(), similarity_top_k=50).retrieve(QUESTION)
    assert turned[-1].node.node_id == plain[0].node.node_id
    assert seen[0].startswith("harbour report\n")
    segments = index.as_retriever(reranker=Reversed()).retrieve(QUESTION)
    assert segments
    assert all(type(result.score) is float for result in segments)
    with pytest.raises(ConfigurationError, match="reranker"):
        index.as_retriever(reranker="best")


def test_several_queries_share_the_budget(index):
    bundle = QueryBundle(QUESTION, custom_embedding_strs=["dues crowns", "the lamp came back from the museum"])
    explained = index.as_retriever(fill=False).explain(bundle)
    assert {why.query for why in explained} == set(bundle.custom_embedding_strs)


def test_a_query_that_is_the_question_has_a_vector_of_its_own(index):
    queries = [QUESTION, "dues crowns", "the lamp came back from the museum"]
    found = [
        [
            (result.node_id, result.score)
            for result in index.as_retriever(lexical_weight=0, mode="chunks").retrieve(each)
        ]
        for each in (QueryBundle(text, custom_embedding_strs=queries) for text in (QUESTION, "something else"))
    ]
    assert found[0] == found[1]


def test_an_llm_may_write_the_queries(index):
    llm = ScriptedLLM('{"queries": ["dues crowns", "lamp museum", "dues crowns"]}')
    retriever = index.as_retriever(auto_query=True, llm=llm)
    assert {why.query for why in retriever.explain(QUESTION)} <= {"dues crowns", "lamp museum"}
    assert QUESTION in llm.prompts[0]


def test_the_document_order_puts_segments_where_they_stand(index):
    found = index.as_retriever(order="document", irrelevant_chunk_penalty=0.3, similarity_top_k=50).explain(QUESTION)
    places = [(why.document, why.start) for why in found]
    titles = list(dict.fromkeys(title for title, _ in places))
    assert places == sorted(places, key=lambda place: (titles.index(place[0]), place[1]))


@pytest.mark.parametrize("preset", ["balanced", "precision", "find_all", "article"])
def test_the_published_presets_run(index, preset):
    found = index.as_retriever(**SpRAGRetriever.paper(preset)).retrieve(QUESTION)
    assert found
    assert found[0].node.get_content().startswith("Document context: the following excerpt is from")


def test_where_nothing_is_worth_its_price_the_best_chunk_answers_and_it_is_said(index):
    retriever = index.as_retriever(minimum_value=1000.0, fill=False)
    (only,) = retriever.explain(QUESTION)
    assert "minimum value" in only.fallback
    assert [result.node.node_id for result in retriever.retrieve(QUESTION)] == [only.node_id]


def test_asynchronous_answers_are_the_same(index):
    retriever = index.as_retriever()
    awaited = asyncio.run(retriever.aretrieve(QUESTION))
    assert [(r.node.node_id, r.score) for r in awaited] == [
        (r.node.node_id, r.score) for r in retriever.retrieve(QUESTION)
    ]


@pytest.mark.parametrize(
    "wrong", [{"mode": "both"}, {"candidates": 0}, {"lexical_weight": 2}, {"order": "rank"}, {"context_weight": -1}]
)
def test_options_that_cannot_be_are_refused_by_name(index, wrong):
    with pytest.raises(ConfigurationError, match=next(iter(wrong))):
        index.as_retriever(**wrong)
