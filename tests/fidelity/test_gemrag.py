"""`paper()` of GEM-RAG against a slow copy written from the paper (arXiv 2409.15566).

Where the paper leaves something open, the copy takes the reading that docs/gemrag/differences.md gives: the symmetric
part of S, the degrees of S - I, unit vectors before and after averaging, the sign of the heavier tail, ten members.
"""

import json
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from llama_index.core.schema import MetadataMode, NodeRelationship, RelatedNodeInfo, TextNode

from llama_index.gemrag import GEMRAGIndex, GEMRAGRetriever, UtilityQuestionExtractor
from llama_index.ragkit.testing import HashEmbedding, ScriptedLLM

MODEL = HashEmbedding(dim=96)
WORDS = ["loom silk weaver thread", "engine cards gears wheels", "river bridge boats harbour"]
CHANCE = np.random.default_rng(1)
CHUNKS = [
    f"The {' '.join(CHANCE.choice(words.split(), 5))} of {' '.join(CHANCE.choice(' '.join(WORDS).split(), 3))} in {i}."
    for words, size in zip(WORDS, (11, 8, 5), strict=True)
    for i in range(size)
]


def reply(prompt: str) -> str:
    """Questions that a text answers, or a summary longer than the context of the paper."""
    if "useful questions" not in prompt:
        return " ".join(f"The themes of {i} are {words}." for i in range(25) for words in WORDS[i % 3 :])
    said = re.findall(r"<text-\w+[^>]*>\n(.*?)\n</text", prompt, re.DOTALL)[-1].split()
    return json.dumps({"questions": [f"What of {' '.join(said[i : i + 3])}?" for i in range(1, 6)]})


def built(questions: int = 5, **kwargs: Any) -> GEMRAGIndex:
    nodes = [
        TextNode(id_=f"n{i:02}", text=text, relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id="d")})
        for i, text in enumerate(CHUNKS)
    ]
    return GEMRAGIndex(
        nodes,
        llm=ScriptedLLM(reply),
        embed_model=MODEL,
        extractor=UtilityQuestionExtractor(num_questions=questions),
        **{**GEMRAGIndex.paper(), **kwargs},
    )


def unit(vector: Any) -> np.ndarray:
    return np.asarray(vector) / np.linalg.norm(vector)


def embedded(text: str) -> np.ndarray:
    return unit(MODEL.vector(text))


def tagged(index: GEMRAGIndex, node_id: str, text: str) -> list[np.ndarray]:
    """v_ij = (E(q_ij) + v_i) / 2 (section III.B.1, "Text Embeddings")."""
    return [unit((embedded(question) + embedded(text)) / 2) for question in index.questions_of(node_id)]


def laplacian(index: GEMRAGIndex, similarity: Callable[[float], float] = lambda cosine: cosine) -> np.ndarray:
    """L = D^-1/2 (S - I) D^-1/2 (section III.B.1, "Building the Weighted Complete Graph" and "Summary Nodes")."""
    n = len(CHUNKS)
    s = np.zeros((n, n))
    for i, text in enumerate(CHUNKS):
        for v in tagged(index, f"n{i:02}", text):
            for j, other in enumerate(CHUNKS):
                s[i, j] += similarity(v @ embedded(other))
    w = (s + s.T) / 2 - np.eye(n)
    d = w.sum(axis=1)
    return w / np.sqrt(np.outer(d, d))


def themes(index: GEMRAGIndex, count: int) -> list[list[str]]:
    """The top components of the vectors of the eigenvalues of largest magnitude (section III.B.1)."""
    values, vectors = np.linalg.eigh(laplacian(index))
    found = []
    for k in sorted(range(len(values)), key=lambda k: -abs(values[k]))[:count]:
        x = vectors[:, k] * (1 if (vectors[:, k] ** 3).sum() > 0 else -1)
        found.append([f"n{i:02}" for i in sorted(range(len(x)), key=lambda i: (-round(x[i], 10), i))[:10] if x[i] > 0])
    return found


@pytest.mark.parametrize("questions", [1, 5])
def test_themes_are_the_top_components_of_the_eigenvectors_of_largest_magnitude(questions: int):
    index = built(questions)
    assert sorted(map(sorted, index.themes.values())) == sorted(map(sorted, themes(index, 2)))


def test_with_one_question_an_eigenvalue_below_zero_leads_by_magnitude():
    """Section III.B.1: "in non-increasing order of their magnitude"."""
    values = np.linalg.eigvalsh(laplacian(built(1)))
    assert values.max() == pytest.approx(1)  # property 3, with the degrees of S - I
    assert -values.min() > values[-4]
    index = built(1, num_themes=6)
    assert sorted(map(sorted, index.themes.values())) == sorted(map(sorted, themes(index, 6)))


class Opposed(HashEmbedding):
    """Texts with a word of the third subject point away from all others."""

    def vector(self, text: str) -> list[float]:
        away = any(word in text for word in WORDS[2].split())
        return list(np.array([*super().vector(text), 3.0]) * (-1 if away else 1))


def test_where_a_degree_would_not_be_positive_every_cosine_is_shifted(monkeypatch: pytest.MonkeyPatch):
    """docs/papers.md, "Where `paper()` stays apart": "similarities are (1 + cos) / 2"."""
    monkeypatch.setitem(globals(), "MODEL", Opposed(dim=96))
    spectrum = built().spectrum("d")
    assert spectrum.shifted
    values = np.linalg.eigvalsh(laplacian(built(), lambda cosine: (1 + cosine) / 2))
    assert spectrum.values[:5] == pytest.approx(sorted(values, key=lambda x: -abs(x))[:5], abs=1e-6)
    assert spectrum.distinctness == pytest.approx((values**2).sum(), abs=1e-6)


def test_the_number_of_themes_follows_from_magnitudes():
    """Remark 2 on eigenvalues "in non-increasing order of their magnitude" (section III.B.1)."""
    index = built()
    sizes = np.sort(np.abs(np.linalg.eigvalsh(laplacian(index))))[::-1][1:]
    drops = (sizes[:-1] - sizes[1:]) / sizes[:-1]
    assert index.spectrum("d").num_themes == 2 + np.argmax(drops[1:]) + 1


@pytest.mark.parametrize("prompt", ["Which loom wove silk?", "What turns the wheels?", "themes", "boats of a harbour"])
def test_algorithm_1_returns_a_budget_of_nodes_by_their_nearest_question(prompt: str):
    """Algorithm 1, and section IV.E: four nodes of context, whatever their length."""
    index = built()
    texts = {f"n{i:02}": text for i, text in enumerate(CHUNKS)}
    results = index.as_retriever(similarity_top_k=99).retrieve(prompt)
    texts.update({r.node.node_id: r.node.get_content(MetadataMode.NONE) for r in results})
    assert len(texts) == len(CHUNKS) + 2
    near = {node_id: max(v @ embedded(prompt) for v in tagged(index, node_id, text)) for node_id, text in texts.items()}
    found = [r.node.node_id for r in index.as_retriever(**GEMRAGRetriever.paper()).retrieve(prompt)]
    assert len(found) == 4
    assert [near[node_id] for node_id in found] == pytest.approx(sorted(near.values(), reverse=True)[:4])
