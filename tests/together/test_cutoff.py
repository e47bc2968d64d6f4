"""The documented cutoff of scores, 0.5, through LlamaIndex's postprocessor, for every method."""

import pytest
from llama_index.core.postprocessor import SimilarityPostprocessor
from llama_index.core.schema import NodeWithScore, TextNode
from tests.cases import CASES, Case
from tests.together.plugins import chunk_retriever

from llama_index.ragkit import HybridRetriever
from llama_index.ragkit.testing import HashEmbedding

TEXTS = [
    "Tern Rock Lighthouse was kept by Ada Hale from 1871 until 1893.",
    "Ada Hale was born in Port Ellis, the third daughter of a ropemaker.",
    "Port Ellis has the oldest ropewalk on the coast.",
    "Marl Head Lighthouse burned paraffin from the day it was lit.",
    "Whoever keeps a lighthouse writes down the weather every four hours.",
]
QUESTION = "Where was the keeper of Tern Rock born?"
NODES = [TextNode(id_=str(place), text=text) for place, text in enumerate(TEXTS)]


def passing(found: list[NodeWithScore]) -> str:
    assert all(0 <= each.get_score() <= 1 for each in found)
    kept = SimilarityPostprocessor(similarity_cutoff=0.5).postprocess_nodes(found)
    assert 0 < len(kept) < len(found)
    return "\n".join(each.node.get_content() for each in kept)


@pytest.mark.parametrize("case", [case for case in CASES if case.name != "toy"], ids=lambda case: case.name)
def test_the_answer_passes_the_cutoff_and_not_everything_does(case: Case):
    index = case.build(NODES)
    for retriever in (index.as_retriever(similarity_top_k=9), chunk_retriever(index, similarity_top_k=9)):
        passed = passing(retriever.retrieve(QUESTION))
        assert "Tern Rock" in passed
        assert "Port Ellis" in passed


def test_nearness_passes_the_cutoff():
    assert "Tern Rock" in passing(HybridRetriever(NODES, HashEmbedding(), similarity_top_k=9).retrieve(QUESTION))


def test_a_question_to_equal_chunks_or_to_one_chunk_passes_them():
    for nodes in (NODES[:1], [TextNode(id_=str(place), text="The same.") for place in range(4)]):
        found = HybridRetriever(nodes, HashEmbedding()).retrieve("The same?")
        assert [each.get_score() for each in found] == [0.5] * len(nodes)
