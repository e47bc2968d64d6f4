"""Graph RAG (Edge et al. 2024): answers head to head, each pair judged with its places swapped.

C0 to C3 are answers from the community reports of one level, TS from all source texts, SS from the nearest: plain RAG.
The data folder has a corpus and questions without gold: in the paper 125 that an LLM wrote for a description of the
data.
"""

from dataclasses import replace
from functools import partial
from typing import Any

from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import NodeWithScore, QueryBundle

from benchmarks.papers.experiment import Experiment, Lab, Part, System, plain
from benchmarks.papers.graders import preferred
from llama_index.graphrag import (
    EntityExtractor,
    GraphRAGIndex,
    GraphRAGQueryEngine,
    GraphRAGRetriever,
    ReportMapReduce,
    ReportWriter,
)
from llama_index.ragkit import NodeExtractor
from llama_index.ragkit.evaluation import CRITERIA

__all__ = ["EXPERIMENTS"]

CHUNK, CONTEXT = 600, 8000  # tokens
NEAREST = CONTEXT // CHUNK


class AllNodes(BaseRetriever):
    """Every chunk of a corpus, whatever the question."""

    def __init__(self, lab: Lab) -> None:
        self._nodes = lab.corpus.fresh_nodes()
        super().__init__()

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return [NodeWithScore(node=node, score=1.0) for node in self._nodes]


def _index(lab: Lab, name: str, parameters: dict[str, Any]) -> GraphRAGIndex:
    def build() -> GraphRAGIndex:
        return GraphRAGIndex(lab.corpus.fresh_nodes(), embed_model=lab.embed_model, llm=lab.llm, **parameters)

    index: GraphRAGIndex = lab.once(name, build)
    return index


def _published(level: int, lab: Lab) -> BaseQueryEngine:
    search = {**GraphRAGRetriever.paper("global"), "level": level}
    pipeline = {**GraphRAGIndex.paper(), "summarizer": ReportWriter(min_in_text=0)}
    return GraphRAGQueryEngine.over(_index(lab, "published", pipeline), batch_tokens=CONTEXT, **search)


def _default(lab: Lab) -> BaseQueryEngine:
    return GraphRAGQueryEngine.over(_index(lab, "default", {}))


def _source_texts(lab: Lab) -> BaseQueryEngine:
    return RetrieverQueryEngine(AllNodes(lab), ReportMapReduce(lab.llm, batch_tokens=CONTEXT))


def _plain(name: str, lab: Lab) -> BaseQueryEngine:
    return RetrieverQueryEngine.from_args(plain(name).build(lab), llm=lab.llm)


def _extractor(lab: Lab) -> NodeExtractor:
    extractor: NodeExtractor = GraphRAGIndex.paper()["extractor"]
    return extractor


def _system(name: str, build: Any) -> System:
    return System(name, build, calls=2, needs_llm=True, batches=True)


def _over_reports(name: str, build: Any, extractor: Any) -> System:
    return replace(_system(name, build), extractor=extractor, index=GraphRAGIndex)


EXPERIMENTS = {
    "figure 2": Experiment(
        "Graph RAG, figure 2: how often an answer is preferred to that of plain RAG",
        (Part("podcasts", "podcasts", chunk_tokens=CHUNK), Part("news", "news", chunk_tokens=CHUNK)),
        (
            _system("SS, dense", partial(_plain, "dense")),
            _system("BM25", partial(_plain, "BM25")),
            _system("hybrid", partial(_plain, "hybrid")),
            _system("TS, source texts", _source_texts),
            *(_over_reports(f"C{level}, paper()", partial(_published, level), _extractor) for level in range(4)),
            _over_reports("Graph RAG, default", _default, lambda lab: EntityExtractor()),
        ),
        graders=preferred(),
        grading_calls=2 * len(CRITERIA),
        printed={
            "C0 to C3 and TS": ("72-83", None, "75-82", *[None] * 5, "72-80", None, "62-71", *[None] * 5),
        },
        depth=NEAREST,
        baseline="SS, dense",
        axis="shades",
        note="50 is as good as plain RAG. The paper asks each pair five times and gives means; here each pair is asked "
        "in both orders. As printed are the ranges of section 5.1, for all its global conditions together.",
    ),
}
