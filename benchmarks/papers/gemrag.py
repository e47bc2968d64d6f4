"""GEM-RAG (Rappazzo et al. 2024): answers from 400 tokens of the question's own document, and what components and
utility questions are worth.

Without an LLM the utility questions are key phrases and the summaries extracts.
"""

from functools import partial
from typing import Any, Literal

from llama_index.core.base.base_retriever import BaseRetriever

from benchmarks.papers.experiment import Experiment, Found, Lab, Part, System, plain
from llama_index.gemrag import GEMRAGIndex, GEMRAGRetriever, KeyphraseQuestionExtractor, UtilityQuestionExtractor
from llama_index.ragkit import NodeExtractor
from llama_index.raptor import GraphClustering, RaptorIndex, RaptorRetriever

__all__ = ["EXPERIMENTS"]

CHUNK, CONTEXT = 100, 400  # tokens
QUALITY = partial(Part, folder="quality", within=True, chunk_tokens=CHUNK)


def _extractor(lab: Lab, questions: int = 5) -> NodeExtractor:
    if lab.llm is None:
        return KeyphraseQuestionExtractor(num_questions=questions)
    return UtilityQuestionExtractor(num_questions=questions, min_in_text=0)


def _our_extractor(lab: Lab) -> NodeExtractor:
    return KeyphraseQuestionExtractor() if lab.llm is None else UtilityQuestionExtractor()


def _published(
    themes: Literal["spectral", "k-means"], lab: Lab, components: int = 2, questions: int = 5
) -> BaseRetriever:
    memory = {**GEMRAGIndex.paper(themes), "num_themes": components}
    index = GEMRAGIndex(extractor=_extractor(lab, questions), **memory, **lab.models(published=True))
    return index.as_retriever(**GEMRAGRetriever.paper())


def _default(lab: Lab) -> BaseRetriever:
    index = GEMRAGIndex(extractor=_our_extractor(lab), **lab.models())
    return index.as_retriever(token_budget=CONTEXT, similarity_top_k=lab.depth)


def _raptor(lab: Lab) -> BaseRetriever:
    """RAPTOR's search as published, over our tree; the published clustering needs the extra `umap`."""
    index = RaptorIndex(clustering=GraphClustering(), summary_tokens=CHUNK, **lab.models(published=True))
    return index.as_retriever(**{**RaptorRetriever.paper(), "token_budget": CONTEXT})


MEMORY: dict[str, Any] = {"index": GEMRAGIndex, "sizes": {"themes_per_document": 10, "theme_size": 10}}


def _ablation(name: str, at: tuple[str, float], **changed: int) -> System:
    sizes = {**MEMORY["sizes"], "themes_per_document": changed.get("components", 2)}
    asked = partial(_extractor, questions=changed.get("questions", 5))
    return System(
        f"paper(), {name}", partial(_published, "spectral", **changed), asked, at=at, index=GEMRAGIndex, sizes=sizes
    )


def _summaries(found: Found) -> float:
    """The share of the nodes found that are summaries."""
    return sum(each.node.node_id not in found.lab.corpus.passage_of for each in found.nodes) / max(1, len(found.nodes))


COMPONENTS = (0, 2, 4, 6, 8, 10)
OVER_COMPONENTS = tuple(
    _ablation(f"{n} components", ("eigencomponents, five questions", n), components=n) for n in COMPONENTS
)
OVER_QUESTIONS = tuple(
    _ablation(f"{n} questions", ("utility questions, ten components", n), components=10, questions=n) for n in range(6)
)

BASELINES = tuple(map(plain, ("dense", "BM25", "hybrid")))
DEFAULT = System("GEM-RAG, default", _default, _our_extractor, **MEMORY)
SYSTEMS = (
    *BASELINES,
    System("RAPTOR, our tree", _raptor, index=RaptorIndex, sizes={"cluster_size": 3}),
    System("GEM-RAG, paper()", partial(_published, "spectral"), _extractor, **MEMORY),
    System("GEM-RAG, paper(), k-means", partial(_published, "k-means"), _extractor, **MEMORY),
    DEFAULT,
)

EXPERIMENTS = {
    "table I": Experiment(
        "GEM-RAG, table I: QuALITY",
        (QUALITY("all"), QUALITY("HARD", group="HARD")),
        SYSTEMS,
        columns=("accuracy",),
        printed={
            "GEM-RAG (SBERT, UnifiedQA)": (52.14, 44.70),
            "RAPTOR (SBERT, UnifiedQA)": (51.71, 43.30),
            "Embed (SBERT, UnifiedQA)": (51.04, 44.06),
            "GEM-RAG (OpenAI, UnifiedQA)": (52.81, 44.83),
            "RAPTOR (OpenAI, UnifiedQA)": (53.48, 44.96),
            "Embed (OpenAI, UnifiedQA)": (52.14, 42.53),
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
    "table III": Experiment(
        "GEM-RAG, table III: how many of the nodes found are summaries",
        (QUALITY("QuALITY"),),
        (*OVER_COMPONENTS, DEFAULT),
        measures={"summaries": _summaries},
        printed={
            f"{n} components": (share,)
            for n, share in zip(COMPONENTS, (0.0, 14.4, 24.5, 32.8, 38.1, 42.6), strict=True)
        },
        depth=CONTEXT // 10,
        baseline=OVER_COMPONENTS[0].name,
        note="The paper asks the first 50 of the 230 articles of the development set.",
    ),
    "figure 2": Experiment(
        "GEM-RAG, figure 2: utility questions and eigencomponents",
        (QUALITY("QuALITY"),),
        (*OVER_QUESTIONS, *OVER_COMPONENTS, *BASELINES, DEFAULT),
        columns=("accuracy",),
        depth=CONTEXT // 10,
        passages=CONTEXT,
        context_tokens=CONTEXT,
        reader="multiple_choice",
        baseline="paper(), 0 questions",
        axis="systems",
        note="The figure has no numbers; the text says that accuracy rises up to three questions, and that two "
        "components are best. The paper asks the first 50 of the 230 articles of the development set.",
    ),
}
