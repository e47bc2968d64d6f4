"""`paper()` of RAPTOR against the code that the article on it prints (its section "RAPTOR").

A scripted clustering stands for UMAP and mixtures, which are held against a slow copy of their own in
tests/raptor/test_clustering_umap.py. A cluster of one node is passed on and not summarised
(docs/raptor/differences.md).
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest
from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode

from llama_index.ragkit.testing import HashEmbedding, ScriptedLLM
from llama_index.raptor import RaptorIndex, RaptorRetriever

MODEL = HashEmbedding(dim=128)
WORDS = ["loom", "silk", "weaver", "engine", "cards", "gears", "river", "bridge", "boats", "lamp", "oil", "keeper"]
FEW = 11  # reduction_dimension + 1


def chunks(count: int) -> list[str]:
    chance = np.random.default_rng(count)
    return [f"The {' '.join(chance.choice(WORDS, 6))} of number{i}." for i in range(count)]


def summary(texts: Sequence[str]) -> str:
    """A summary: the first words of each text."""
    return " ".join(" ".join(text.split()[:5]) for text in texts) + "."


def reply(prompt: str) -> str:
    return summary(re.findall(r"<passage-\w+[^>]*>\n(.*?)\n</passage", prompt, re.DOTALL))


@dataclass(frozen=True)
class InTurn:
    """Every so many rows are a cluster; the last one may have one row alone."""

    size: int
    method: ClassVar[str] = "raptor"

    @property
    def fingerprint(self) -> dict[str, str]:
        return {"class": "InTurn", "size": str(self.size)}

    def cluster(self, vectors: np.ndarray, weights: np.ndarray | None = None) -> list[np.ndarray]:
        return [np.arange(i, min(i + self.size, len(vectors))) for i in range(0, len(vectors), self.size)]


def built(texts: Sequence[str], size: int, **kwargs: Any) -> RaptorIndex:
    nodes = [
        TextNode(
            id_=f"n{i:03}",
            text=text,
            start_char_idx=i,
            relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id="d")},
        )
        for i, text in enumerate(texts)
    ]
    given = {**RaptorIndex.paper(), "clustering": InTurn(size), "summary_tokens": 400, **kwargs}
    return RaptorIndex(nodes, llm=ScriptedLLM(reply), embed_model=MODEL, **given)


@dataclass(frozen=True)
class Node:
    text: str
    children: tuple["Node", ...] = ()


def construct_tree(texts: Sequence[str], size: int, num_layers: int = 5) -> list[list[Node]]:
    """`ClusterTreeBuilder.construct_tree`, layer by layer, the leaves first."""
    layers = [[Node(text) for text in texts]]
    for _ in range(num_layers):
        nodes = layers[-1]
        if len(nodes) <= FEW:  # "Cannot Create More Layers"
            break
        clusters = [nodes[i : i + size] for i in range(0, len(nodes), size)]
        layers.append([c[0] if len(c) == 1 else Node(summary([node.text for node in c]), tuple(c)) for c in clusters])
    return layers


def summaries_of(index: RaptorIndex) -> dict[str, list[str]]:
    """Text of each summary -> texts of its children."""
    everything = index.as_retriever(similarity_top_k=999, summary_margin=None).retrieve("all")
    text_of = {result.node.node_id: result.node.get_content() for result in everything}
    return {
        text_of[name]: sorted(text_of[child] for child in summary.children)
        for name, summary in index.tree.summaries.items()
    }


@pytest.mark.parametrize(("count", "size"), [(5, 3), (11, 3), (12, 3), (40, 3), (200, 2), (41, 10), (60, 4)])
def test_the_tree_ends_at_a_layer_of_eleven_nodes_and_has_no_root_above_it(count: int, size: int):
    """ "if len(node_list_current_layer) <= self.reduction_dimension + 1 ... break"."""
    texts = chunks(count)
    layers = construct_tree(texts, size)
    wanted = {
        node.text: sorted(child.text for child in node.children) for layer in layers for node in layer if node.children
    }
    index = built(texts, size)
    assert summaries_of(index) == wanted
    assert len(index.tree.roots([f"n{i:03}" for i in range(count)])) == len(layers[-1])


def test_a_layer_that_hardly_shrinks_is_built():
    """The published code has no rule that a layer must shrink."""

    @dataclass(frozen=True)
    class OnePair(InTurn):
        def cluster(self, vectors: np.ndarray, weights: np.ndarray | None = None) -> list[np.ndarray]:
            return [np.arange(2), *(np.array([i]) for i in range(2, len(vectors)))]

    texts = chunks(14)
    assert len(built(texts, 2, clustering=OnePair(2)).tree.summaries) == 3  # 13, 12 and 11 nodes
    assert len(built(texts, 2, clustering=OnePair(2), min_shrink=0.3).tree.summaries) == 0


# -- retrieval --------------------------------------------------------------------------------------


def near(text: str, question: str) -> float:
    return float(np.array(MODEL.vector(text)) @ np.array(MODEL.vector(question)))


def nearest(nodes: Sequence[Node], question: str) -> list[Node]:
    return sorted(nodes, key=lambda node: -near(node.text, question))


QUESTIONS = [f"{a} {a} {a} {a} {b} {b} {c}" for a, b, c in (WORDS[:3], WORDS[3:6], WORDS[7:10])]  # of few ties


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_collapsed_tree_gives_the_nearest_nodes_of_all_layers(question: str):
    """`retrieve_information_collapse_tree`; Figure 4: 2,000 tokens."""
    texts = chunks(40)
    nodes = list(dict.fromkeys(node for layer in construct_tree(texts, 3) for node in layer))
    found = built(texts, 3).as_retriever(**RaptorRetriever.paper()).retrieve(question)
    wanted = [near(node.text, question) for node in nearest(nodes, question)[:20]]
    assert [near(result.node.get_content(), question) for result in found] == pytest.approx(wanted)


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_traversal_keeps_the_nearest_nodes_of_each_layer(question: str):
    """`retrieve_information` in its mode "top_k"."""
    texts = chunks(64)
    layers = construct_tree(texts, 4)
    node_list, selected = layers[-1], []
    for _ in layers:
        best = nearest(node_list, question)[:5]
        selected += best
        node_list = list(dict.fromkeys(child for node in best for child in node.children))
    found = built(texts, 4).as_retriever(**RaptorRetriever.paper("tree_traversal")).retrieve(question)
    assert sorted(result.node.get_content() for result in found) == sorted({node.text for node in selected})
