"""Each question chooses how far words count, and explanations say so."""

import pytest
from llama_index.core.schema import TextNode
from tests.cases import CASES

from llama_index.ragkit import CombinedRetriever

PLACES = ["harbour", "tower", "cellar", "garden", "mill", "chapel"]
NODES = [
    TextNode(
        text=f"The keeper walked to the {place} on day {day}. The lamp number {day} stood there.", id_=f"{place}{day}"
    )
    for place in PLACES
    for day in range(8)
]
CASE = {case.name: case for case in CASES if case.name != "toy"}


@pytest.mark.parametrize("name", CASE)
def test_explanations_tell_the_weight_that_a_question_chose(name):
    index = CASE[name].build(NODES)

    def weights(question, **kwargs):
        found = index.as_retriever(similarity_top_k=5, **kwargs).explain(question)
        assert found
        return {each.lexical_weight for each in found}

    (common,), (rare,) = weights("Who is the keeper of the lamp?"), weights("What stood in the chapel on day 7?")
    assert 0 < common < rare < 1
    assert common < 0.5  # all chunks have these words alike
    assert weights("Who is the keeper of the lamp?", lexical_weight=0) == {0}


def test_several_methods_together_tell_it_too():
    both = CombinedRetriever([CASE[name].build(NODES) for name in ("hipporag", "mrag")], similarity_top_k=5)
    question = "What stood in the chapel on day 7?"
    found = both.explain(question)
    alone = {
        each.node_id: each for each in CASE["mrag"].build(NODES).as_retriever(similarity_top_k=50).explain(question)
    }
    for each in found:
        own = alone[each.node_id]
        assert each.lexical_weight == own.lexical_weight
        assert (each.cosine, each.lexical) == pytest.approx((own.cosine, own.lexical))
