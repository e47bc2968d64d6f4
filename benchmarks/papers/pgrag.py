"""PG-RAG (Liang et al. 2024) on CRUD-RAG, with the block graphs that it is compared with.

Blocks have 128 tokens; mind maps are made of whole articles. Without an LLM mind maps are outlines, and the question is
its own key point.
"""

from functools import partial
from typing import Any

import numpy as np
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.bridge.pydantic import Field
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.instrumentation.events import BaseEvent
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from numpy.typing import NDArray
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from benchmarks.papers.block_graphs import BeamSearch, BlockGraph, unit_rows
from benchmarks.papers.experiment import Experiment, Found, Lab, Part, System, plain
from benchmarks.papers.graders import bert_score, quest_f1, text_metrics
from benchmarks.quality_pgrag import describe
from llama_index.pgrag import MindMapExtractor, OutlineExtractor, PGRAGIndex, PGRAGRetriever
from llama_index.pgrag.retriever import KeyPointsEvent
from llama_index.ragkit import NodeExtractor
from llama_index.raptor import RaptorIndex, RaptorRetriever

__all__ = ["EXPERIMENTS"]

BLOCK, BEST = 128, 8  # tokens; blocks or paths of a context
TASKS = tuple(Part(kind, "crud", kind, chunk_tokens=BLOCK) for kind in ("1-Document", "2-Document", "3-Document"))
NEWS = (Part("CRUD-RAG", "crud", chunk_tokens=BLOCK),)
SHOWN = 1000  # points of a figure
NAN = float("nan")


# -- what is built --------------------------------------------------------------------------------------------


def _articles(lab: Lab) -> list[TextNode]:
    return [TextNode(id_=name, text=record["text"]) for name, record in lab.corpus.records.items()]


def _extractor(lab: Lab, published: bool = True) -> NodeExtractor:
    if lab.llm is None:
        return OutlineExtractor()
    extractor: NodeExtractor = PGRAGIndex.paper()["extractor"] if published else MindMapExtractor()
    return extractor


def _index(lab: Lab, published: bool = True) -> PGRAGIndex:
    def build() -> PGRAGIndex:
        given: dict[str, Any] = {**(PGRAGIndex.paper() if published else {}), "extractor": _extractor(lab, published)}
        return PGRAGIndex(nodes=_articles(lab), embed_model=lab.embed_model, llm=lab.llm, **given)

    index: PGRAGIndex = lab.once(f"pgrag, published {published}", build)
    return index


def _search(lab: Lab, **changed: Any) -> BaseRetriever:
    search = {**PGRAGRetriever.paper(), **changed}
    if lab.llm is None:
        search["key_points"] = "question"
    return _index(lab).as_retriever(**search)


def _default(lab: Lab) -> BaseRetriever:
    return _index(lab, False).as_retriever(similarity_top_k=lab.depth)


def _blocks(lab: Lab) -> BlockGraph:
    graph: BlockGraph = lab.once("blocks", lambda: BlockGraph(lab.corpus.nodes, lab.embed_model))
    return graph


def _beam(lab: Lab, guided: bool = False) -> BaseRetriever:
    return BeamSearch(_blocks(lab), lab.embed_model, lab.depth, lab.llm if guided else None)


def _tree(lab: Lab) -> RaptorIndex:
    index: RaptorIndex = lab.once("tree", lambda: RaptorIndex(**RaptorIndex.paper(), **lab.models(published=True)))
    return index


def _climb(version: Any, lab: Lab) -> BaseRetriever:
    return _tree(lab).as_retriever(**{**RaptorRetriever.paper(version), "token_budget": None, "similarity_top_k": BEST})


# -- tables 2 and 3 -------------------------------------------------------------------------------------------


def _map_numbers(lab: Lab, index: PGRAGIndex) -> dict[str, float]:
    told = describe(index, lab.corpus)
    clusters = told["clusters of topics"]
    cells = told["mind maps"] + told["routes"] + told["fact paths"]
    # A tree has an edge less than cells; each member of a cluster has one to its super node.
    super_nodes = [*index.graph.super_topics.nodes(), *index.graph.super_facts.nodes()]
    joined = sum(map(len, super_nodes))
    return {
        "nodes": cells + len(super_nodes),
        "texts": told["mind maps"],
        "clusters": clusters,
        "documents a cluster": told["maps a cluster of two or more"] or NAN,
        "edges": cells - told["mind maps"] + joined,
        "compression": told["compression ratio"],
    }


def _tree_numbers(lab: Lab, index: RaptorIndex) -> dict[str, float]:
    summaries = index.tree.summaries
    first = [name for name, summary in summaries.items() if summary.level == 1]
    documents = [{lab.corpus.passage_of[leaf] for leaf in index.leaves_of(summary)} for summary in first]
    return {
        "nodes": len(lab.corpus.nodes) + len(summaries),
        "texts": len(lab.corpus.nodes),
        "clusters": len(first),
        "documents a cluster": float(np.mean([*map(len, documents)])) if documents else NAN,
        "edges": sum(len(summary.children) for summary in summaries.values()),
        "compression": 1.0,
    }


def _graph_numbers(lab: Lab, graph: BlockGraph) -> dict[str, float]:
    """Clusters are blocks that are the nearest of each other, and those linked to them so."""
    nearest, own = graph.neighbours[:, 0], np.arange(len(graph.nodes))
    mutual = own[nearest[nearest] == own]
    links = coo_matrix((np.ones(len(mutual)), (mutual, nearest[mutual])), (len(own), len(own)))
    count, label = connected_components(links, directed=False)
    members: list[set[str]] = [set() for _ in range(count)]
    for node, cluster in zip(graph.nodes, label.tolist(), strict=True):
        members[cluster].add(lab.corpus.passage_of[node.node_id])
    several = np.bincount(label, minlength=count) > 1
    return {
        "nodes": len(graph.nodes),
        "texts": len(graph.nodes),
        "clusters": int(several.sum()),
        "documents a cluster": float(np.mean([len(m) for m, s in zip(members, several, strict=True) if s] or [NAN])),
        "edges": graph.neighbours.size,
        "compression": 1.0,
    }


def _numbers(lab: Lab, built: Any) -> dict[str, float]:
    of = _map_numbers if isinstance(built, PGRAGIndex) else _tree_numbers
    return (_graph_numbers if isinstance(built, BlockGraph) else of)(lab, built)


def _number(name: str) -> Any:
    return lambda lab, built: float(_numbers(lab, built)[name])


def _refinement(lab: Lab, built: Any) -> float:
    """The nodes in percent of those of the pseudo-graph."""
    return 100 * _numbers(lab, built)["nodes"] / _numbers(lab, _index(lab))["nodes"]


TREE: dict[str, Any] = {"index": RaptorIndex, "sizes": {"cluster_size": 3}}  # as in `raptor`
KNOWLEDGE = (
    System("PG-RAG, paper()", _index, extractor=_extractor),  # first, since the others' nodes are compared with its
    System("RAPTOR, paper()", _tree, **TREE),
    System("KNN graph", _blocks),
    System("PG-RAG, default", partial(_index, published=False), extractor=partial(_extractor, published=False)),
)


# -- figures 4 and 5 ------------------------------------------------------------------------------------------


def _block_vectors(lab: Lab) -> NDArray[np.float32]:
    return unit_rows(lab.embed_model, [node.get_content() for node in lab.corpus.nodes])


def _fact_vectors(lab: Lab) -> NDArray[np.float32]:
    graph = _index(lab).graph
    return unit_rows(lab.embed_model, [fact.text for found in graph.maps.values() for fact in found.facts])


def _concentration(lab: Lab, rows: NDArray[np.float32]) -> float:
    """The mean cosine of two vectors, in percent: how near to each other they lie."""
    n, total = len(rows), rows.sum(axis=0, dtype=np.float64)
    return 100 * float((total @ total - n) / (n * (n - 1)))


def _in_plane(lab: Lab, rows: NDArray[np.float32]) -> list[list[float]]:
    """Evenly spaced ones on the two main axes of the blocks."""

    def main_axes() -> NDArray[np.float32]:
        blocks = _block_vectors(lab)
        axes: NDArray[np.float32] = np.linalg.svd(blocks - blocks.mean(axis=0), full_matrices=False)[2][:2]
        return axes

    places = rows[:: -(-len(rows) // SHOWN)] @ lab.once("axes", main_axes).T
    found: list[list[float]] = places.round(4).tolist()
    return found


def _likeness(found: Found) -> float:
    """The cosine of what was asked with the evidence: of the question, or the mean over its key points."""
    model = found.lab.embed_model
    asked = [found.query.question]
    if found.nodes and found.nodes[0].node.metadata.get(_POINTS):
        asked = found.nodes[0].node.metadata[_POINTS]
    evidence = "\n".join(each.node.get_content() for each in found.nodes)
    if not evidence.strip():
        return 0.0
    rows = unit_rows(model, [evidence, *asked])
    return float((rows[1:] @ rows[0]).mean())


_POINTS = "key points"


class WithKeyPoints(BaseRetriever):
    """A search whose key points are noted with its results."""

    def __init__(self, retriever: BaseRetriever) -> None:
        self._retriever, self._heard = retriever, _Heard()
        get_dispatcher().add_event_handler(self._heard)
        super().__init__()

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        nodes = self._retriever.retrieve(query_bundle)
        for each in nodes:
            each.node.metadata[_POINTS] = self._heard.points
        return nodes


class _Heard(BaseEventHandler):
    """The key points that were used last."""

    points: list[str] = Field(default_factory=list)

    def handle(self, event: BaseEvent, **kwargs: Any) -> None:
        if isinstance(event, KeyPointsEvent):
            self.points = event.key_points


EXPERIMENTS = {
    "table 1": Experiment(
        "PG-RAG, table 1: answers to questions on one, two and three articles",
        TASKS,
        (
            System("no passages", lambda lab: None, needs_llm=True),
            plain("dense"),
            plain("BM25"),
            plain("hybrid"),
            System("tree traversal", partial(_climb, "tree_traversal"), **TREE),
            System("collapsed tree", partial(_climb, "collapsed"), **TREE),
            System("Graph-RAG (KNN)", _beam),
            System("KGP", partial(_beam, guided=True), calls=2, needs_llm=True),
            System("PG, paper()", partial(_search, mode="PG"), _extractor, calls=1),
            System("PG w. KPs, paper()", partial(_search, mode="PG w. KPs"), _extractor, calls=1),
            System("PG-RAG, paper()", _search, _extractor, calls=1),
            System("PG-RAG, default", _default, partial(_extractor, published=False)),
        ),
        graders={**text_metrics(), "BERTScore": bert_score, "F1 QE": quest_f1},
        grading_calls=2,
        bound="answer recall",
        printed={
            "w/o RAG": (41.37, 59.59, 81.52, 55.54, 21.82, 35.52, 83.92, 37.96, 20.08, 32.55, 84.27, 34.72),
            "BM25": (39.91, 57.33, 83.36, 59.30, 24.61, 38.31, 86.86, 47.63, 20.98, 34.33, 87.02, 42.01),
            "DPR": (39.76, 57.24, 83.81, 60.41, 22.75, 37.25, 87.16, 48.87, 21.05, 35.04, 87.81, 45.18),
            "Hybrid": (39.67, 57.38, 84.06, 60.44, 24.03, 38.43, 87.30, 51.11, 21.35, 35.34, 87.66, 45.54),
            "Hybrid+Rerank": (40.63, 58.26, 84.68, 62.81, 24.53, 38.91, 87.89, 52.08, 21.74, 35.88, 88.21, 46.54),
            "Tree traversal": (39.25, 57.14, 83.21, 59.22, 23.08, 38.25, 87.83, 47.03, 21.01, 34.72, 87.28, 43.51),
            "Collapsed tree": (39.74, 57.50, 83.37, 60.02, 23.17, 37.76, 86.94, 46.41, 21.14, 34.52, 87.15, 43.46),
            "Graph-RAG": (40.32, 58.39, 84.38, 61.59, 23.32, 38.62, 87.91, 51.93, 21.87, 36.60, 87.44, 46.98),
            "KGP-LLaMA": (41.47, 58.72, 85.36, 63.81, 25.53, 40.88, 87.39, 52.37, 22.63, 36.16, 88.02, 47.10),
            "PG": (47.94, 64.46, 87.46, 69.61, 27.98, 40.85, 86.90, 50.87, 25.08, 36.86, 86.98, 49.57),
            "PG w. KPs": (53.07, 66.64, 88.40, 71.14, 26.89, 41.69, 88.03, 52.24, 24.88, 38.78, 88.56, 51.38),
            "PG-RAG": (55.73, 69.68, 89.78, 79.66, 29.19, 43.08, 88.09, 55.71, 26.97, 39.19, 88.31, 52.83),
        },
        depth=BEST,
        passages=BEST,
        reader="citations",
        note="BLEU and ROUGE-L are of characters; CRUD-RAG's own are of the words of jieba, and its BLEU has no "
        "penalty for brevity, so that they compare within the rows as printed and within ours. BERTScore needs "
        "bert-score and --bert-score zh. Without an LLM: the share of the answer's tokens that the context has.",
    ),
    "table 2": Experiment(
        "PG-RAG, table 2: clusters",
        NEWS,
        KNOWLEDGE,
        numbers={name: _number(name) for name in ("texts", "clusters", "documents a cluster")},
        printed={"RAPTOR": (153_577, 46, 277), "KNN": (153_577, 3_877, 2.69), "Ours": (10_436, 3_500, 2.98)},
        note="Clusters of one are not counted. RAPTOR: the summaries of the first layer.",
    ),
    "table 3": Experiment(
        "PG-RAG, table 3: what is left of the texts",
        NEWS,
        KNOWLEDGE,
        numbers={"refinement, percent": _refinement, **{name: _number(name) for name in ("edges", "compression")}},
        printed={
            "Tree, threshold .3": ("31-32", 1.9e6, "0.99-1"),
            "Tree, threshold .5": ("31-32", 1.55e6, "0.99-1"),
            "Tree, threshold .8": ("31-32", 0.99e6, "0.99-1"),
            "KNN graph": (31, 4.88e6, 1),
            "PG": (100, 4.11e6, 2.64),
        },
        note="The paper does not say how it counts two of the columns. Its knowledge density is compared with the "
        "number of edges. Its refinement rate is read as nodes in percent of the pseudo-graph's, which it says are the "
        "most: a KNN graph has blocks alone, and a tree its summaries too, which fits the figures as printed.",
    ),
    "figure 4": Experiment(
        "PG-RAG, figure 4: blocks and facts in the plane",
        NEWS,
        (System("blocks", _block_vectors), System("facts", _fact_vectors, extractor=_extractor)),
        numbers={
            "vectors": lambda lab, rows: float(len(rows)),
            "mean cosine, percent": _concentration,
        },
        axis="points",
        points=_in_plane,
        note="The two main axes of the blocks. The paper says that facts are more dispersed: their mean cosine would "
        "be smaller.",
    ),
    "figure 5": Experiment(
        "PG-RAG, figure 5: how like the evidence the question and its key points are",
        TASKS,
        (
            System("question", partial(_search, key_points="question"), _extractor),
            System("key points", lambda lab: WithKeyPoints(_search(lab)), _extractor, calls=1, needs_llm=True),
        ),
        measures={"cosine": _likeness},
        depth=BEST,
        baseline="question",
        axis="scores",
        note="The figure has no numbers; the text says that the similarity of key points is significantly higher.",
    ),
}
