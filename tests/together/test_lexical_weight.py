"""Each question chooses how far words count, and explanations say so."""

import pytest
from llama_index.core.schema import TextNode

from llama_index.gemrag import GEMRAGIndex, KeyphraseQuestionExtractor
from llama_index.mrag import MRAGIndex, SplitEmbedding
from llama_index.ragkit import ExtractiveSummarizer
from llama_index.ragkit.testing import HashEmbedding
from llama_index.raptor import RaptorIndex

PLACES = ["harbour", "tower", "cellar", "garden", "mill", "chapel"]
NODES = [
    TextNode(
        text=f"The keeper walked to the {place} on day {day}. The lamp number {day} stood there.", id_=f"{place}{day}"
    )
    for place in PLACES
    for day in range(8)
]
INDEXES = {
    "mrag": lambda: MRAGIndex(NODES, embed_model=SplitEmbedding(HashEmbedding(dim=128), num_heads=4)),
    "raptor": lambda: RaptorIndex(NODES, embed_model=HashEmbedding(dim=128), summarizer=ExtractiveSummarizer()),
    "gemrag": lambda: GEMRAGIndex(
        NODES,
        embed_model=HashEmbedding(dim=128),
        extractor=KeyphraseQuestionExtractor(),
        summarizer=ExtractiveSummarizer(),
    ),
}


@pytest.mark.parametrize("name", INDEXES)
def test_explanations_tell_the_weight_that_a_question_chose(name):
    index = INDEXES[name]()

    def weights(question, **kwargs):
        found = index.as_retriever(similarity_top_k=5, **kwargs).explain(question)
        assert found
        return {each.lexical_weight for each in found}

    (common,), (rare,) = weights("Who is the keeper of the lamp?"), weights("What stood in the chapel on day 7?")
    assert 0 < common < rare < 1
    assert common < 0.5  # all chunks have these words alike
    assert weights("Who is the keeper of the lamp?", lexical_weight=0) == {0}
