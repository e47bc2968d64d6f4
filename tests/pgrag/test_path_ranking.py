"""The order of fact paths: by their words, and spread over the nodes that a trusted walk leads to."""

import numpy as np
import pytest
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.schema import TextNode

from llama_index.pgrag import GivenMindMaps, OutlineExtractor, PGRAGIndex, PGRAGPostprocessor
from llama_index.pgrag.search.ranking import rank_paths
from llama_index.ragkit.testing import HashEmbedding
from llama_index.ragkit.text.lexical_index import LexicalIndex, lexical_terms
from llama_index.ragkit.vectors.question_scores import standardised

MAPS = {
    "ada": {"Ada Hale": {"born in": ["Port Ellis"], "kept": ["Tern Rock"], "wrote": ["letters"], "sang": ["hymns"]}},
    "port": {"Port Ellis": {"county": ["Marl"], "trade": ["ropes"]}},
    "reef": {"Gull Reef": {"lamp": ["paraffin"]}},
}


def index_of(maps=MAPS) -> PGRAGIndex:
    nodes = [TextNode(id_=name, text=f"text of {name}") for name in maps]
    return PGRAGIndex(nodes=nodes, embed_model=HashEmbedding(dim=256), extractor=GivenMindMaps(maps=maps))


def ranked(index: PGRAGIndex, scores, question="", lexical_weight=0.0, repeated=0.0, count=100):
    graph = index.graph
    found = rank_paths(graph, np.array(scores), count, question, lexical_weight, repeated)
    return [(graph.fact(graph.facts.ids[row]), score) for row, score in found]


def test_without_words_and_a_walk_paths_keep_their_scores():
    index = index_of()
    scores = np.random.default_rng(0).normal(size=len(index.graph.facts))
    scores[2] = -np.inf
    found = ranked(index, scores, "Port Ellis")
    assert [score for _, score in found] == sorted(scores[np.isfinite(scores)], reverse=True)
    assert len(ranked(index, scores, count=3)) == 3
    assert ranked(index, np.full(len(scores), -np.inf), "Port Ellis", 0.5, 1.0) == []


def test_words_count_by_bm25_among_the_paths():
    index = index_of()
    graph = index.graph
    found = dict(ranked(index, np.zeros(len(graph.facts)), "Who sang hymns?", 0.25))
    texts = {fact_id: lexical_terms(graph.fact(fact_id).text) for fact_id in graph.facts.ids}
    (bm25,) = LexicalIndex().changed((), texts).scores("Who sang hymns?")
    expected = {graph.fact(i): z for i, z in zip(texts, (0.25 * standardised(bm25)).tolist(), strict=True)}
    assert {fact: pytest.approx(score) for fact, score in found.items()} == expected
    assert next(iter(found)).path == ("Ada Hale", "sang", "hymns")
    none = ranked(index, np.zeros(len(graph.facts)), "Quid est?", 0.25)
    assert {score for _, score in none} == {0.0}


def test_each_further_fact_of_a_node_counts_less():
    index = index_of()
    scores = [4.0 if index.graph.fact(i).node_id == "ada" else 1.0 for i in index.graph.facts.ids]
    found = ranked(index, scores, repeated=2.0)
    assert [score for fact, score in found if fact.node_id == "ada"] == [4.0, 2.0, 0.0, -2.0]
    assert [score for fact, score in found if fact.node_id == "port"] == [1.0, -1.0]
    assert [score for _, score in found[:4]] == [4.0, 2.0, 1.0, 1.0]


def test_only_the_best_are_compared_and_the_others_count_as_without_a_word(monkeypatch):
    monkeypatch.setattr("llama_index.pgrag.search.ranking._WORDS", 2)
    index = index_of()
    scores = -np.arange(float(len(index.graph.facts)))
    found = ranked(index, scores, "hymns ropes letters paraffin Marl Tern Port", 1.0)
    best = {index.graph.facts.ids[0], index.graph.facts.ids[1]}
    lowest = min(score - scores[index.graph.facts.row_of(fact.id)] for fact, score in found if fact.id in best)
    for fact, score in found:
        if fact.id not in best:
            assert score - scores[index.graph.facts.row_of(fact.id)] <= lowest


class Blind(BaseEmbedding):
    """A model that knows no text of this language: all vectors are all but equal."""

    def _get_text_embedding(self, text: str) -> list[float]:
        return [1.0, 1e-3 * (len(text) % 7), 0.0]

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)


def test_a_fact_is_found_by_its_words_where_the_model_knows_none_of_them():
    texts = [f"The valve_{i} is number {i}. It is made of brass. Turn valve_{i} with key_{i}." for i in range(40)]
    nodes = [TextNode(text=text, id_=str(i)) for i, text in enumerate(texts)]
    index = PGRAGIndex(nodes=nodes, embed_model=Blind(), extractor=OutlineExtractor())
    best = index.as_retriever(similarity_top_k=1).retrieve("key_17")[0]
    assert best.node.metadata["pgrag_path"][-1] == "Turn valve_17 with key_17."
    found = PGRAGPostprocessor(index, max_paths=1, lexical_weight=1).postprocess_nodes(
        index.as_retriever(similarity_top_k=5, return_source=True).retrieve("key_17"), query_str="key_17"
    )
    assert "Turn valve_17 with key_17." in found[0].node.get_content()


def test_facts_of_an_answer_are_spread_over_the_nodes_that_a_walk_leads_to(monkeypatch):
    habits = {f"habit {i}": [f"bird number {i}"] for i in range(12)}
    maps = {
        "keeper": {"Ada Hale": habits | {"born in": ["Port Ellis"]}},
        "port": {"Port Ellis": {"county": ["Marl"], "trade": ["ropes"]}},
        **{f"n{i}": {f"Gull Reef {i}": {"lamp": [f"oil {i}"]}} for i in range(30)},
    }
    index = index_of(maps)
    retriever = index.as_retriever(similarity_top_k=10)

    def topics() -> list[str]:
        results = retriever.retrieve("Ada Hale born in Port Ellis")
        return [result.node.metadata["pgrag_path"][0] for result in results]

    assert retriever.explain("Ada Hale born in Port Ellis")[0].trust > 0.3
    assert sorted(topics()[:3]) == ["Ada Hale", "Port Ellis", "Port Ellis"]
    spread = topics().count("Ada Hale")
    monkeypatch.setattr("llama_index.pgrag.search.ranking.REPEATED", 0.0)
    assert topics().count("Ada Hale") > spread
