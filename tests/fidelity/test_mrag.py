"""`paper()` of Multi-Head RAG against a slow copy written from the paper (arXiv 2406.05085).

Votes of a chunk are added up and ranks begin at 0 (docs/mrag/differences.md). What heads a model has, tests/mrag holds.
"""

import json
from typing import Any

import numpy as np
import pytest
from llama_index.core.schema import TextNode
from tests.cases import TEXTS
from tests.mrag.published import importance_by_pairs, votes_by_hand
from tests.mrag.test_retriever import STORY, RandomEmbedding

from llama_index.mrag import MRAGIndex, MRAGRetriever
from llama_index.ragkit.testing import ScriptedLLM

QUERIES = ["punched cards", "silk in Lyon", "the Rhone", "Ada Byron in London"]


MODEL = RandomEmbedding()


def heads(text: str) -> np.ndarray:
    return np.array(MODEL.vector(text), dtype=np.float32).reshape(4, 8)


def found(version: Any, top_k: int = len(TEXTS)) -> dict[str, float]:
    index = MRAGIndex([TextNode(text=text, id_=f"n{i}") for i, text in enumerate(TEXTS)], embed_model=MODEL)
    llm = ScriptedLLM(json.dumps({"queries": QUERIES}))
    retriever = index.as_retriever(similarity_top_k=top_k, llm=llm, **MRAGRetriever.paper(version))
    return {result.node_id: result.get_score() for result in retriever.retrieve(STORY)}


@pytest.mark.parametrize("version", ["mrag", "decay", "distance"])
def test_heads_vote_for_the_chunks_of_a_question(version: str):
    """Section 2.3, Algorithms 1 and 2; section 4.5 for the two other strategies; ranked by the weights."""
    vectors = np.stack([heads(text) for text in TEXTS])
    scores = importance_by_pairs(vectors)
    wanted = votes_by_hand(vectors, heads(STORY), scores, 32, version)
    total = {"mrag": scores.sum(), "decay": 4, "distance": sum(wanted.values())}[version]
    assert found(version) == pytest.approx({f"n{row}": votes / total for row, votes in wanted.items()}, abs=1e-6)


def test_the_importance_of_a_head_is_its_mean_norm_times_its_mean_distance():
    """Algorithm 1."""
    index = MRAGIndex([TextNode(text=text, id_=f"n{i}") for i, text in enumerate(TEXTS)], embed_model=MODEL)
    np.testing.assert_allclose(index.importance, importance_by_pairs(np.stack([heads(t) for t in TEXTS])), rtol=1e-9)


@pytest.mark.parametrize("depth", [len(TEXTS), 2])
def test_fusion_applies_the_votes_to_the_queries_of_a_model_and_not_to_the_question(depth: int):
    """Section 4.2: "Each question is separately applied"; reciprocal ranks with a constant of 60, as in the code.

    The code fuses lists of as many documents as are fetched.
    """
    vectors = np.stack([heads(text) for text in TEXTS])
    scores = importance_by_pairs(vectors)
    total = np.zeros(len(TEXTS))
    for query in QUERIES:
        votes = votes_by_hand(vectors, heads(query), scores, 32, "mrag")
        for place, row in enumerate(sorted(votes, key=lambda row: -votes[row])[:depth]):
            total[row] += 1 / (60 + place)
    wanted = {f"n{row}": 60 * score / len(QUERIES) for row, score in enumerate(total)}
    got = found("fusion", depth)
    assert got == pytest.approx({name: wanted[name] for name in got}, abs=1e-6)
    assert sorted(got.values()) == pytest.approx(sorted(wanted.values())[-depth:], abs=1e-6)
