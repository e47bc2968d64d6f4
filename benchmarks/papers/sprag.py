"""spRAG on the questions of FinanceBench: there is no paper, only what the authors say of their code.

Contexts are of 4,000 tokens for all, chunks of 200, about the published 800 characters. Without an LLM documents are
described by rules.
"""

from functools import partial
from typing import Any

from llama_index.core.base.base_retriever import BaseRetriever

from benchmarks.papers.experiment import Experiment, Lab, Part, System, plain
from benchmarks.papers.graders import correct
from llama_index.ragkit import NodeExtractor
from llama_index.sprag import AutoContext, RuleContext, SpRAGIndex, SpRAGRetriever

__all__ = ["EXPERIMENTS"]

CHUNK, CONTEXT = 200, 4000  # tokens


def _index(lab: Lab, version: Any) -> SpRAGIndex:
    """The index of a published version, or with "" ours."""

    def build() -> SpRAGIndex:
        published: dict[str, Any] = SpRAGIndex.paper(version) if version else {}
        given = {"extractor": RuleContext()} if lab.llm is None else {"llm": lab.llm}
        return SpRAGIndex(lab.corpus.fresh_nodes(), embed_model=lab.embed_model, **{**published, **given})

    index: SpRAGIndex = lab.once(f"sprag {version}", build)
    return index


def _extractor(version: Any, lab: Lab) -> NodeExtractor:
    if lab.llm is None:
        return RuleContext()
    if not version:
        return AutoContext()
    extractor: NodeExtractor = SpRAGIndex.paper(version)["extractor"]
    return extractor


def _published(version: Any, preset: str, lab: Lab) -> BaseRetriever:
    return _index(lab, version).as_retriever(**SpRAGRetriever.paper(preset))


def _default(lab: Lab) -> BaseRetriever:
    return _index(lab, "").as_retriever(token_budget=CONTEXT, similarity_top_k=lab.depth)


def _part(heading: str, within: bool) -> Part:
    return Part(heading, "financebench", within=within, chunk_tokens=CHUNK)


EXPERIMENTS = {
    "table answers": Experiment(
        "spRAG: answers to FinanceBench",
        (_part("all documents", False), _part("its document", True)),
        (
            plain("dense"),
            plain("BM25"),
            plain("hybrid"),
            System(
                "spRAG, paper(), article", partial(_published, "article", "article"), partial(_extractor, "article")
            ),
            System("spRAG, paper()", partial(_published, "code", "balanced"), partial(_extractor, "code")),
            System("spRAG, default", _default, partial(_extractor, "")),
        ),
        columns=("F1",),
        graders={"correct": correct},
        grading_calls=1,
        printed={
            "spRAG, its README": (None, 83.0, None, None),
            "vanilla RAG, its README": (None, 19.0, None, None),
        },
        depth=CONTEXT // 10,
        passages=CONTEXT,
        context_tokens=CONTEXT,
        reader="plain",
        note="As printed in the authors' README, which does not say how it was judged. Without an LLM: whether the "
        "context holds the answer.",
    ),
}
