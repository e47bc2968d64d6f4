"""RaptorRetriever through LlamaIndex's doors."""

import asyncio
import itertools
from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llama_index.core.postprocessor import SimilarityPostprocessor
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.retrievers import QueryFusionRetriever
from llama_index.core.schema import MetadataMode, QueryBundle, TextNode
from tests.page_data import page_data
from tests.raptor.summarizers import FirstWords
from tests.raptor.test_index import corpus
from tests.shifted import ShiftedEmbedding

from llama_index.ragkit.errors import ConfigurationError
from llama_index.ragkit.text.tokens import count_tokens
from llama_index.ragkit.vectors.question_scores import result_scores, standardised, with_words
from llama_index.raptor import RaptorIndex, RaptorRetriever
from llama_index.raptor.config import Version


@pytest.fixture(scope="module")
def index() -> RaptorIndex:
    from llama_index.ragkit.testing import HashEmbedding

    return RaptorIndex(nodes=corpus(), summarizer=FirstWords(), embed_model=HashEmbedding())


MODES = pytest.mark.parametrize("mode", ["collapsed", "tree_traversal"])


@MODES
def test_scores_are_falling_between_0_and_1_and_sync_equals_async(index: RaptorIndex, mode: str):
    retriever = index.as_retriever(mode=mode, similarity_top_k=7)
    found = retriever.retrieve("silk bread")
    assert len(found) == 7
    scores = [n.score for n in found]
    assert scores == sorted(scores, reverse=True)
    assert all(type(score) is float and 0 <= score <= 1 for score in scores)
    assert asyncio.run(retriever.aretrieve("silk bread")) == found


def test_collapsed_ranks_chunks_and_summaries_together(index: RaptorIndex):
    paper = index.as_retriever(similarity_top_k=60, summary_margin=None, lexical_weight=0)
    levels = [index.tree.level(n.node.node_id) for n in paper.retrieve("silk")]
    assert set(levels) == set(range(index.tree.height + 1))
    assert len(levels) == 48 + len(index.tree.summaries)


def test_scores_are_made_of_cosine_and_words(index: RaptorIndex):
    chunks = [w for w in index.as_retriever(similarity_top_k=99).explain("silk bread") if not w.level]
    assert len(chunks) == 48
    (weight,) = {w.lexical_weight for w in chunks}
    dense = standardised(np.array([w.cosine for w in chunks]))
    near = with_words(dense, np.array([w.lexical for w in chunks]), weight)
    assert [w.nearness for w in chunks] == pytest.approx(near.tolist())
    assert [w.score for w in chunks] == pytest.approx(result_scores(near, near).tolist())


def test_without_lexical_weight_the_order_is_that_of_the_cosines(index: RaptorIndex):
    for why in (
        index.as_retriever(similarity_top_k=60, summary_margin=None, lexical_weight=0).explain("silk bread"),
        index.as_retriever(similarity_top_k=20, mode="tree_traversal", lexical_weight=0).explain("silk bread"),
    ):
        assert [w.cosine for w in why] == pytest.approx(sorted((w.cosine for w in why), reverse=True))
        assert {w.lexical for w in why} == {0.0}


@settings(max_examples=10)
@given(
    st.lists(
        st.lists(st.sampled_from(["silk", "loom", "bread", "lamp", "oil"]), min_size=1, max_size=5),
        min_size=2,
        max_size=8,
    ),
    st.sampled_from([1.0, 2.0]),
)
def test_the_range_of_cosines_of_an_embedding_model_changes_no_ranking(texts, common):
    nodes = [TextNode(text=f"{' '.join(words)} {i}", id_=f"n{i}") for i, words in enumerate(texts)]
    for weight in (0.0, 0.6):
        plain, shifted = (
            RaptorIndex(nodes=nodes, embed_model=ShiftedEmbedding(common=c), summarizer=FirstWords(), max_layers=0)
            .as_retriever(similarity_top_k=9, lexical_weight=weight)
            .retrieve("silk of the lamp")
            for c in (0.0, common)
        )
        assert {r.node_id: r.score for r in plain} == pytest.approx({r.node_id: r.score for r in shifted}, abs=1e-4)


def test_one_question_is_embedded_once(index: RaptorIndex):
    retriever = index.as_retriever(mode="tree_traversal", similarity_top_k=7)
    index.embed_model.texts.clear()
    retriever.retrieve("a question")
    assert index.embed_model.texts == ["a question"]


def test_a_vector_that_another_retriever_left_in_the_bundle_is_not_used(index: RaptorIndex):
    bundle = QueryBundle("silk", embedding=[1.0, 2.0])
    assert index.as_retriever().retrieve(bundle) == index.as_retriever().retrieve("silk")
    assert bundle.embedding == [1.0, 2.0]


@MODES
def test_a_token_budget_skips_what_does_not_fit_and_goes_on(index: RaptorIndex, mode: str):
    left, wanted = 60, []
    for result in index.as_retriever(mode=mode, similarity_top_k=60).retrieve("silk bread"):
        tokens = count_tokens(result.node.get_content(metadata_mode=MetadataMode.LLM))
        if tokens <= left:
            left -= tokens
            wanted.append(result.node.node_id)
    found = index.as_retriever(mode=mode, similarity_top_k=60, token_budget=60).retrieve("silk bread")
    assert [n.node.node_id for n in found] == wanted
    assert len(wanted) > 1


def test_options_out_of_range_are_refused(index: RaptorIndex):
    for wrong in (
        {"mode": "sideways"},
        {"beam_width": 0},
        {"similarity_top_k": 0},
        {"token_budget": 0},
        {"summary_margin": -1},
        {"lexical_weight": 1.5},
    ):
        with pytest.raises(ConfigurationError, match=next(iter(wrong))):
            index.as_retriever(**wrong)


def test_restrictions_by_node_and_document(index: RaptorIndex):
    by_node = index.as_retriever(similarity_top_k=60, node_ids=["n0-00", "n1-05", "unknown"]).retrieve("silk")
    assert {n.node.node_id for n in by_node} == {"n0-00", "n1-05"}
    of_topic = index.as_retriever(similarity_top_k=60, doc_ids=["doc0-0", "doc0-1", "doc0-2"], summary_margin=None)
    by_document = of_topic.retrieve("silk")
    leaves = {leaf for n in by_document for leaf in index.leaves_of(n.node.node_id)}
    assert leaves == {f"n0-{i:02d}" for i in range(12)}
    assert any(n.node.metadata.get("raptor_level") for n in by_document)


def test_an_explanation_shows_the_ways_down_from_the_root(index: RaptorIndex):
    retriever = index.as_retriever(similarity_top_k=60, summary_margin=None, lexical_weight=0)
    explained = retriever.explain("silk weaver")
    assert [e.node_id for e in explained] == [n.node.node_id for n in retriever.retrieve("silk weaver")]
    assert asyncio.run(retriever.aexplain("silk weaver")) == explained
    for e in explained:
        assert e.level == index.tree.level(e.node_id)
        assert e.sources == index.leaves_of(e.node_id)
        for path in e.paths:
            assert path[0][0] in index.state.roots
            assert path[-1] == (e.node_id, pytest.approx(e.cosine))
            for (above, _), (below, _) in itertools.pairwise(path):
                assert below in index.tree.children(above)


def test_a_page_lights_the_last_query(index: RaptorIndex, tmp_path):
    index.as_retriever(similarity_top_k=3).retrieve("Where is the silk?")
    page = index.visualize(tmp_path / "tree.html")
    assert "Where is the silk?" in page.read_text(encoding="utf-8")
    assert sum(bool(node.get("lit")) for node in page_data(page)["view"]["nodes"]) >= 3


def test_it_mixes_with_what_users_have(index: RaptorIndex):
    fusion = QueryFusionRetriever(
        [index.as_retriever(), index.as_retriever(mode="tree_traversal")], num_queries=1, use_async=False
    )
    assert fusion.retrieve("silk")
    engine = RetrieverQueryEngine.from_args(
        index.as_retriever(), node_postprocessors=[SimilarityPostprocessor(similarity_cutoff=0.2)]
    )
    assert engine.query("silk").source_nodes
    assert isinstance(index.as_query_engine(similarity_top_k=3, response_mode="compact")._retriever, RaptorRetriever)
    assert index.as_chat_engine(chat_mode="context").chat("silk").source_nodes


@pytest.mark.parametrize("version", get_args(Version))
def test_the_published_searches_are_accepted(index: RaptorIndex, version: str):
    keywords = RaptorRetriever.paper(version)
    if version == "threshold":
        assert all(why.cosine >= 0.5 for why in index.as_retriever(**keywords).explain("silk bread"))
        keywords["min_cosine"] = -1.0  # no made-up vector is as near as that
    found = index.as_retriever(**keywords).explain("silk bread")
    assert found
    assert {why.lexical for why in found} == {0.0}
    with pytest.raises(ConfigurationError, match="beam"):
        RaptorRetriever.paper("beam")


def test_two_ways_to_keep_nodes_are_refused(index: RaptorIndex):
    with pytest.raises(ConfigurationError, match="set one"):
        index.as_retriever(mode="tree_traversal", beam_width=3, min_cosine=0.5)
