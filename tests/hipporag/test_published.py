"""`v1_code` against the published code, written anew in `published.py`: the same graph, the same top passages."""

import gzip
import json
import os
import random
from pathlib import Path

import numpy as np
import pytest
from llama_index.core.schema import TextNode
from tests.hipporag.published import PublishedHippoRAG, processed

from llama_index.hipporag import HippoRAGIndex, HippoRAGRetriever, RecordedExtractor
from llama_index.ragkit.testing import HashEmbedding

pytest.importorskip("igraph")

WORDS = [
    "Ada",
    "Byron",
    "Charles",
    "Babbage",
    "Göttingen",
    "U.S.",
    "engine",
    "loom",
    "20%",
    "Lyon",
    "№ 5",
    "the",
    "漢字",
]


def made_up(seed: int, passages: int = 40) -> list[list[list[str]]]:
    random_ = random.Random(seed)
    name = lambda: " ".join(random_.sample(WORDS, random_.randint(1, 2)))  # noqa: E731
    all_triples = []
    for _ in range(passages):
        triples = [[name(), random_.choice(["met", "saw"]), name()] for _ in range(random_.randint(0, 4))]
        all_triples.append(triples + random_.sample([[], ["lonely"], ["a", "b"], ["a", "b", "c", "d"]], 1))
        if triples and random_.random() < 0.3:
            all_triples[-1].append(triples[0])  # stated twice
    return all_triples


def index_of(passages, embed_model, **kwargs) -> HippoRAGIndex:
    records = {f"p{i:05d}": {"triples": triples} for i, triples in enumerate(passages)}
    nodes = [TextNode(id_=name, text=f"passage {name}") for name in records]
    parameters = {**HippoRAGIndex.paper("v1_code"), **kwargs}
    return HippoRAGIndex(nodes=nodes, extractor=RecordedExtractor(records), embed_model=embed_model, **parameters)


def agree(published: np.ndarray, found, k: int = 10) -> bool:
    """The same top k, where a tie at its end may be broken either way."""
    scores = {f"p{i:05d}": score for i, score in enumerate(published)}
    floor = np.sort(published)[::-1][k - 1] if len(published) >= k else -1.0
    ours = [n.node.node_id for n in found][:k]
    surely = {name for name, score in scores.items() if score > floor + 1e-9}
    return surely <= set(ours) and all(scores[name] >= floor - 1e-9 for name in ours)


@pytest.mark.parametrize("damping", [0.1, 0.5])
@pytest.mark.parametrize("seed", range(4))
def test_made_up_passages(seed: int, damping: float):
    passages, model = made_up(seed), HashEmbedding(dim=12)
    embed = lambda texts: np.array([model.vector(text) for text in texts])  # noqa: E731
    published = PublishedHippoRAG(passages, embed)
    index = index_of(passages, model)
    memory = index.state.graph
    order = [index.state.phrases[phrase] for phrase in published.phrases]
    dense = np.zeros((len(order), len(order)))
    for (i, j), weight in published.weights.items():
        if i != j:
            dense[i, j] += weight
            dense[j, i] += weight
    ours = memory.adjacency("published", synonyms=True)[order][:, order].toarray()
    np.testing.assert_allclose(ours, dense, atol=1e-9)
    rows = index.state.chunks.rows_of([f"p{i:05d}" for i in range(len(passages))])
    np.testing.assert_array_equal(memory.facts_with_phrase[rows][:, order].toarray(), published.phrase_counts)
    for entities in (["Ada Byron"], ["loom", "Charles Babbage"], ["Göttingen", "Lyon", "U.S."]):
        scores = published.search(entities, damping=damping)
        retriever = HippoRAGRetriever.v1_code(
            index, question_entities={"q": entities}, damping=damping, similarity_top_k=len(passages)
        )
        found = retriever.retrieve("q")
        by_passage = {n.node.node_id: n.score for n in found}
        best = max(by_passage.values())
        wanted = {f"p{i:05d}": score for i, score in enumerate(scores)}
        low = min(by_passage.values())
        for name, score in by_passage.items():  # ours is a share of the best; theirs starts at the lowest
            assert (score - low) / (best - low) == pytest.approx(wanted[name], abs=1e-6)
        assert agree(scores, found)


def test_the_legacy_normaliser_is_the_published_one():
    from llama_index.hipporag.text.normalization import normalise

    for text in ["U.S. Army", "Göttingen", "  Goiás ", "$", "20%", "漢字", "İstanbul", "a\tb\nc", "ﬁ", "É"]:
        assert normalise(text, "legacy") == processed(text)


@pytest.mark.slow
@pytest.mark.minilm
@pytest.mark.skipif("RAG_DATA" not in os.environ, reason="needs the recorded triples of the folder RAG_DATA")
def test_recorded_triples_of_musique():
    from benchmarks.embedding import minilm

    from llama_index.hipporag.text.noun_phrases import read_question

    folder = Path(os.environ["RAG_DATA"]) / "musique"
    passages, questions = (
        [json.loads(line) for line in gzip.decompress((folder / f"{name}.jsonl.gz").read_bytes()).splitlines()]
        for name in ("corpus", "queries")
    )
    triples, model = [row["triples"] for row in passages[::8]], minilm()  # to embed all of them takes minutes
    published = PublishedHippoRAG(triples, model.get_text_embedding_batch)
    index = index_of(triples, model)
    same = []
    for row in questions:
        entities = read_question(row["question"]) or [row["question"]]
        retriever = HippoRAGRetriever.v1_code(index, question_entities={row["question"]: entities}, similarity_top_k=10)
        scores = published.search(entities)
        same.append(agree(scores, retriever.retrieve(row["question"])))
    assert np.mean(same) >= 0.99, same
