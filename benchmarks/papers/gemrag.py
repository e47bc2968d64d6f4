"""GEM-RAG (Rappazzo et al. 2024): tables I and II, answers from 400 tokens of the question's own document.

Without an LLM the utility questions are key phrases and the summaries extracts.
"""

from functools import partial
from typing import Any, Literal

from llama_index.core.base.base_retriever import BaseRetriever

from benchmarks.papers.experiment import Experiment, Lab, Part, System, plain
from llama_index.gemrag import GEMRAGIndex, GEMRAGRetriever, KeyphraseQuestionExtractor, UtilityQuestionExtractor
from llama_index.ragkit import ExtractiveSummarizer, NodeExtractor
from llama_index.raptor import GraphClustering, RaptorIndex, RaptorRetriever

__all__ = ["EXPERIMENTS"]

CHUNK, CONTEXT = 100, 400  # tokens
QUALITY = partial(Part, folder="quality", within=True, chunk_tokens=CHUNK)


def _extractor(lab: Lab) -> NodeExtractor:
    return KeyphraseQuestionExtractor() if lab.llm is None else UtilityQuestionExtractor()


def _models(lab: Lab) -> dict[str, Any]:
    """The embedding model, and the LLM or what stands in for it."""
    written = {"summarizer": ExtractiveSummarizer()} if lab.llm is None else {"llm": lab.llm}
    return {"nodes": lab.corpus.fresh_nodes(), "embed_model": lab.embed_model, **written}


def _published(themes: Literal["spectral", "k-means"], lab: Lab) -> BaseRetriever:
    index = GEMRAGIndex(extractor=_extractor(lab), **{**GEMRAGIndex.paper(themes), **_models(lab)})
    return index.as_retriever(**GEMRAGRetriever.paper())


def _default(lab: Lab) -> BaseRetriever:
    index = GEMRAGIndex(extractor=_extractor(lab), **_models(lab))
    return index.as_retriever(token_budget=CONTEXT, similarity_top_k=lab.depth)


def _raptor(lab: Lab) -> BaseRetriever:
    """RAPTOR's search as published, over our tree; the published clustering needs the extra `umap`."""
    index = RaptorIndex(clustering=GraphClustering(), summary_tokens=CHUNK, **_models(lab))
    return index.as_retriever(**{**RaptorRetriever.paper(), "token_budget": CONTEXT})


SYSTEMS = (
    plain("dense"),
    plain("BM25"),
    plain("hybrid"),
    System("RAPTOR, our tree", _raptor),
    System("GEM-RAG, paper()", partial(_published, "spectral"), extractor=_extractor),
    System("GEM-RAG, paper(), k-means", partial(_published, "k-means"), extractor=_extractor),
    System("GEM-RAG, default", _default, extractor=_extractor),
)

EXPERIMENTS = {
    "table I": Experiment(
        "GEM-RAG, table I: QuALITY",
        (QUALITY("all"), QUALITY("HARD", group="HARD")),
        SYSTEMS,
        columns=("accuracy",),
        printed={
            "GEM-RAG (SBERT, GPT-3.5)": (61.84, 51.60),
            "RAPTOR (SBERT, GPT-3.5)": (60.13, 50.32),
            "Embed (SBERT, GPT-3.5)": (58.61, 47.25),
            "GEM-RAG (OpenAI, GPT-3.5)": (63.37, 51.85),
            "RAPTOR (OpenAI, GPT-3.5)": (60.32, 50.96),
            "Embed (OpenAI, GPT-3.5)": (60.32, 49.55),
            "GEM-RAG, k-means (OpenAI, GPT-3.5)": (61.42, 50.83),
        },
        depth=CONTEXT // 10,
        passages=CONTEXT,
        context_tokens=CONTEXT,
        reader="multiple_choice",
        note="The paper asks the last 180 of the 230 articles of the development set. Without an LLM: whether the "
        "context holds the words of the right option.",
    ),
    "table II": Experiment(
        "GEM-RAG, table II: Qasper",
        (Part("Qasper", "qasper", within=True, chunk_tokens=CHUNK),),
        SYSTEMS,
        columns=("F1",),
        printed={
            "GEM-RAG (SBERT, GPT-3.5)": (18.53,),
            "RAPTOR (SBERT, GPT-3.5)": (18.51,),
            "Embed (SBERT, GPT-3.5)": (19.24,),
            "GEM-RAG (OpenAI, GPT-3.5)": (20.13,),
            "RAPTOR (OpenAI, GPT-3.5)": (18.13,),
            "Embed (OpenAI, GPT-3.5)": (19.07,),
        },
        depth=CONTEXT // 10,
        passages=CONTEXT,
        context_tokens=CONTEXT,
        reader="plain",
        note="The paper asks the first 100 papers.",
    ),
}
