"""RAPTOR (Sarthi et al. 2024): tables 1 to 4 and 7.

Each question is asked of its own document, in chunks of 100 tokens, from 2,000 tokens of context; UnifiedQA reads 400.
The published clustering needs the extra `umap`. Without an LLM summaries are extracts.
"""

from functools import partial
from typing import Any

from llama_index.core.base.base_retriever import BaseRetriever

from benchmarks.papers.experiment import Experiment, Lab, Part, System, plain
from benchmarks.papers.graders import best_of, meteor, precisions
from llama_index.pgrag.evaluation import rouge_l
from llama_index.raptor import RaptorIndex, RaptorRetriever

__all__ = ["EXPERIMENTS"]

CHUNK, CONTEXT = 100, 2000  # tokens


def _index(lab: Lab, published: bool) -> RaptorIndex:
    def build() -> RaptorIndex:
        return RaptorIndex(**(RaptorIndex.paper() if published else {}), **lab.models(published))

    index: RaptorIndex = lab.once(f"published {published}", build)
    return index


def _published(version: Any, lab: Lab) -> BaseRetriever:
    return _index(lab, True).as_retriever(**RaptorRetriever.paper(version))


def _default(lab: Lab) -> BaseRetriever:
    return _index(lab, False).as_retriever(token_budget=CONTEXT, similarity_top_k=lab.depth)


# For estimates: summaries of three nodes each, since clusters overlap and some are small.
TREE: dict[str, Any] = {"index": RaptorIndex, "sizes": {"cluster_size": 3}}
SYSTEMS = (
    plain("dense"),
    plain("BM25"),
    plain("hybrid"),
    System("RAPTOR, paper()", partial(_published, "collapsed"), **TREE),
    System("RAPTOR, paper(), tree traversal", partial(_published, "tree_traversal"), **TREE),
    System("RAPTOR, default", _default, **TREE),
)
SHARED: dict[str, Any] = {"depth": CONTEXT // 10, "passages": CONTEXT, "context_tokens": CONTEXT}


def _part(heading: str, folder: str, group: str = "") -> Part:
    return Part(heading, folder, group=group, within=True, chunk_tokens=CHUNK)


EXPERIMENTS = {
    "table 1": Experiment(
        "RAPTOR, table 1: NarrativeQA",
        (_part("NarrativeQA", "narrativeqa"),),
        SYSTEMS,
        graders={
            "ROUGE-L": best_of(rouge_l),
            "BLEU-1": best_of(precisions(1)),
            "BLEU-4": best_of(precisions(4)),
            "METEOR": best_of(meteor),
        },
        printed={
            "SBERT with RAPTOR": (30.87, 23.50, 6.42, 19.20),
            "SBERT without RAPTOR": (29.26, 22.56, 5.95, 18.15),
            "BM25 with RAPTOR": (27.93, 21.17, 5.70, 17.03),
            "BM25 without RAPTOR": (23.52, 17.73, 4.65, 13.98),
            "DPR with RAPTOR": (30.94, 23.51, 6.45, 19.05),
            "DPR without RAPTOR": (29.56, 22.84, 6.12, 18.44),
        },
        reader="plain",
        note="UnifiedQA-3B reads in the paper. Of two references the better counts. METEOR needs WordNet in NLTK's "
        "data (python -m nltk.downloader wordnet), and its column is empty without.",
        **SHARED,
    ),
    "table 2": Experiment(
        "RAPTOR, table 2: QuALITY",
        (_part("QuALITY", "quality"),),
        SYSTEMS,
        columns=("accuracy",),
        printed={
            "SBERT with RAPTOR": (56.6,),
            "SBERT without RAPTOR": (54.9,),
            "BM25 with RAPTOR": (52.1,),
            "BM25 without RAPTOR": (49.9,),
            "DPR with RAPTOR": (54.7,),
            "DPR without RAPTOR": (53.1,),
        },
        reader="multiple_choice",
        note="UnifiedQA-3B reads in the paper. QASPER, the other column of the table, is in table 3.",
        **SHARED,
    ),
    "table 3": Experiment(
        "RAPTOR, table 3: QASPER",
        (_part("QASPER", "qasper"),),
        SYSTEMS,
        columns=("F1",),
        printed={
            "Title + abstract, GPT-3": (25.2,),
            "BM25, GPT-3": (46.6,),
            "DPR, GPT-3": (51.3,),
            "RAPTOR, GPT-3": (53.1,),
            "Title + abstract, GPT-4": (22.2,),
            "BM25, GPT-4": (50.2,),
            "DPR, GPT-4": (53.0,),
            "RAPTOR, GPT-4": (55.7,),
            "BM25, UnifiedQA": (26.4,),
            "DPR, UnifiedQA": (32.1,),
            "RAPTOR, UnifiedQA": (36.6,),
            "SBERT with RAPTOR, table 2": (36.70,),
            "SBERT without RAPTOR, table 2": (36.23,),
            "BM25 with RAPTOR, table 2": (27.00,),
            "BM25 without RAPTOR, table 2": (26.47,),
            "DPR with RAPTOR, table 2": (32.23,),
            "DPR without RAPTOR, table 2": (31.70,),
        },
        reader="plain",
        note="Of table 2, where UnifiedQA-3B reads, the rows are those with its name.",
        **SHARED,
    ),
    "table 7": Experiment(
        "RAPTOR, table 7: QuALITY with its hard questions",
        (_part("all", "quality"), _part("HARD", "quality", "HARD")),
        SYSTEMS,
        columns=("accuracy",),
        printed={
            "Longformer-base": (39.5, 35.3),
            "DPR and DeBERTaV3-large": (55.4, 46.1),
            "CoLISA (DeBERTaV3-large)": (62.3, 54.7),
            "RAPTOR + GPT-4": (82.6, 76.2),
        },
        reader="multiple_choice",
        note="The paper asks the test set.",
        **SHARED,
    ),
}
