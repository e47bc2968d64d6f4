"""The retriever's two modes, its budgets, and its explanations."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llama_index.core.schema import TextNode
from tests.gemrag.test_index import build, corpus
from tests.shifted import ShiftedEmbedding

from llama_index.gemrag import GEMRAGIndex
from llama_index.ragkit.errors import ConfigurationError
from llama_index.ragkit.text.tokens import count_tokens
from llama_index.ragkit.vectors.question_scores import result_scores


@pytest.fixture(scope="module")
def index() -> GEMRAGIndex:
    return build()


@pytest.mark.parametrize("mode", ["argmax", "best_first"])
def test_nodes_come_once_best_first_and_as_they_were(index, mode):
    by_id = {node.node_id: node for node in corpus()}
    found = index.as_retriever(similarity_top_k=99, mode=mode, keep_covered=True).retrieve("silk thread")
    assert len({r.node.node_id for r in found}) == len(found) == 52
    scores = [r.score for r in found]
    assert scores == sorted(scores, reverse=True)
    assert all(type(score) is float for score in scores)
    for result in found:
        if result.node.node_id in by_id:
            assert result.node.hash == by_id[result.node.node_id].hash
        else:
            assert result.node.metadata == {"gemrag_theme": True}
            assert sorted(c.node_id for c in result.node.child_nodes) == sorted(index.themes[result.node.node_id])
            assert "gemrag_theme" not in result.node.get_content(metadata_mode="llm")


@pytest.mark.parametrize("mode", ["argmax", "best_first"])
def test_the_quota_of_themes_and_the_token_budget(index, mode):
    def themes(**kwargs):
        found = index.as_retriever(similarity_top_k=99, mode=mode, keep_covered=True, **kwargs).retrieve("loom silk")
        return sum(r.node.node_id in index.themes for r in found)

    assert [themes(max_summaries=quota) for quota in (0, 2, None)] == [0, 2, 4]
    found = index.as_retriever(similarity_top_k=9, mode=mode, token_budget=40).retrieve("loom silk")
    assert found
    assert sum(count_tokens(r.node.get_content(metadata_mode="llm")) for r in found) <= 40


def test_edges_bring_what_hangs_together(index):
    asked = "loom number7 harbour number7"
    walked = index.as_retriever(mode="best_first", edge_weight=1.0, similarity_top_k=5, max_summaries=0).explain(asked)
    assert len({why.node_id[:2] for why in walked}) == 1
    assert walked[0].via is None
    assert all(why.via in {other.node_id for other in walked} for why in walked[1:])
    alone = index.as_retriever(mode="best_first", edge_weight=0.0, similarity_top_k=5, max_summaries=0).retrieve(asked)
    flat = index.as_retriever(similarity_top_k=5, max_summaries=0).retrieve(asked)
    assert [r.node.node_id for r in alone] == [r.node.node_id for r in flat]


def test_an_explanation_names_the_question_and_adds_up(index):
    retriever = index.as_retriever(similarity_top_k=len(index.docstore.docs), max_summaries=0)
    every = retriever.explain("whether engine cards gears wheels number5 cards.?")
    why = every[0]
    assert why.node_id == "n1-05"
    assert why.question == "whether engine cards gears wheels number5 cards.?"
    assert why.question_similarity == pytest.approx(1)
    nearness = np.array([each.nearness for each in every])
    assert [each.score for each in every] == pytest.approx(result_scores(nearness, nearness).tolist())
    assert why.lexical > 0
    assert why.sources == ["n1-05"]
    assert build([]).as_retriever().explain("x") == []


def test_without_words_and_questions_the_order_is_that_of_the_cosines():
    index = build([TextNode(text=t, id_=t) for t in ("silk loom", "bread oven silk", "lamp oil", "tide")], num_themes=0)
    why = index.as_retriever(lexical_weight=0, question_weight=0, hub_penalty=0).explain("silk of the loom")
    assert [w.text_similarity for w in why] == sorted((w.text_similarity for w in why), reverse=True)
    assert {w.lexical for w in why} == {0.0}
    words = index.as_retriever(lexical_weight=1).explain("tide")
    assert (words[0].node_id, words[0].lexical > 0) == ("tide", True)


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
            build(nodes, embed_model=ShiftedEmbedding(common=c), num_themes=0)
            .as_retriever(similarity_top_k=9, lexical_weight=weight)
            .retrieve("silk of the lamp")
            for c in (0.0, common)
        )
        assert {r.node_id: r.score for r in plain} == pytest.approx({r.node_id: r.score for r in shifted}, abs=1e-3)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("mode", "x"),
        ("question_weight", 1.1),
        ("hub_penalty", -1),
        ("blend", 2),
        ("edge_weight", -0.1),
        ("max_summaries", -1),
        ("summary_margin", -1),
        ("lexical_weight", 1.5),
        ("similarity_top_k", 0),
    ],
)
def test_parameters_out_of_range_are_refused(index, name, value):
    with pytest.raises(ConfigurationError, match=name):
        index.as_retriever(**{name: value})
