"""HippoRAG (Jiménez Gutiérrez et al. 2024): tables 2 to 5.

Passages are read by an LLM as in the paper, or else by what the corpus has recorded, or by rules.
"""

from dataclasses import replace
from functools import partial
from typing import Any

from llama_index.core.base.base_retriever import BaseRetriever

from benchmarks import quality_hipporag
from benchmarks.papers.experiment import Experiment, Lab, Measure, Part, System, plain
from llama_index.hipporag import HippoRAGIndex, HippoRAGRetriever, IRCoTRetriever, OpenIEExtractor
from llama_index.hipporag.config import Version
from llama_index.ragkit import NodeExtractor
from llama_index.ragkit.evaluation import recall_at_k

__all__ = ["EXPERIMENTS"]

PARTS = (Part("MuSiQue", "musique"), Part("2Wiki", "2wiki"), Part("HotpotQA", "hotpotqa"))
MOST_STEPS = {"musique": 4}  # appendix H: of the chain of thought; 2 elsewhere
STEP, READ = 10, 5  # passages of a step and of the reader, appendix H


def _extractor(lab: Lab) -> NodeExtractor:
    if lab.llm is None or any("triples" in record for record in lab.corpus.records.values()):
        return quality_hipporag.extractor_of(lab.corpus)
    return OpenIEExtractor()


def _index(lab: Lab, name: str, **parameters: Any) -> HippoRAGIndex:
    def build() -> HippoRAGIndex:
        given: dict[str, Any] = {"llm": lab.llm} if lab.llm is not None else {}
        return HippoRAGIndex(
            nodes=lab.corpus.fresh_nodes(),
            embed_model=lab.embed_model,
            extractor=_extractor(lab),
            **{**parameters, **given},
        )

    index: HippoRAGIndex = lab.once(name, build)
    return index


def _published(lab: Lab, version: Version = "v1", **changed: Any) -> BaseRetriever:
    """`paper()`; without an LLM the entities of a question are read by rules."""
    search = {**HippoRAGRetriever.paper(version), **changed}
    if lab.llm is None:
        search["question_entities"] = "rules"
    parameters = {name: value for name, value in HippoRAGIndex.paper("v1").items() if name != "extractor"}
    return _index(lab, "published", **parameters).as_retriever(**{**search, "similarity_top_k": lab.depth})


def _default(lab: Lab) -> BaseRetriever:
    return _index(lab, "default").as_retriever(similarity_top_k=lab.depth)


def _interleaved(build: Any, lab: Lab) -> BaseRetriever:
    return IRCoTRetriever(build(lab), llm=lab.llm, max_steps=MOST_STEPS.get(lab.folder, 2), similarity_top_k=lab.depth)


def _interleaved_with(system: System) -> System:
    """IRCoT with a retriever; its chain of thought has an LLM write up to three sentences."""
    return System(
        f"IRCoT + {system.name}",
        partial(_interleaved, system.build),
        extractor=system.extractor,
        calls=system.calls * 4 + 3,
        needs_llm=True,
    )


def _recalls(*ks: int) -> dict[str, Measure]:
    return {f"R@{k}": lambda corpus, ranking, gold, k=k: recall_at_k(ranking, gold, k) for k in ks}  # type: ignore[misc]


PUBLISHED = System("HippoRAG, paper()", _published, extractor=_extractor, calls=1)
DEFAULT = System("HippoRAG, default", _default, extractor=_extractor)
ABLATIONS: dict[str, dict[str, Any]] = {
    "query nodes alone": {"version": "v1_nodes"},
    "query nodes and neighbours": {"version": "v1_neighbors"},
    "without node specificity": {"published": replace(HippoRAGRetriever.paper()["published"], node_specificity=False)},
    "without synonymy edges": {"synonyms": False},
}
SINGLE = (plain("dense"), plain("BM25"), plain("hybrid"), PUBLISHED, DEFAULT)

EXPERIMENTS = {
    "table 2": Experiment(
        "HippoRAG, table 2: single-step retrieval",
        PARTS,
        SINGLE,
        measures=_recalls(2, 5),
        printed={
            "BM25": (32.3, 41.2, 51.8, 61.9, 55.4, 72.2),
            "Contriever": (34.8, 46.6, 46.6, 57.5, 57.2, 75.5),
            "GTR": (37.4, 49.1, 60.2, 67.9, 59.4, 73.3),
            "ColBERTv2": (37.9, 49.2, 59.2, 68.2, 64.7, 79.3),
            "RAPTOR": (35.7, 45.3, 46.3, 53.8, 58.1, 71.2),
            "Proposition": (37.6, 49.3, 56.4, 63.1, 58.7, 71.1),
            "HippoRAG (Contriever)": (41.0, 52.1, 71.5, 89.5, 59.0, 76.2),
            "HippoRAG (ColBERTv2)": (40.9, 51.9, 70.7, 89.1, 60.5, 77.7),
        },
        note="The paper has 1,000 questions of each set, over corpora made of the passages of all of them.",
    ),
    "table 3": Experiment(
        "HippoRAG, table 3: multi-step retrieval",
        PARTS,
        (plain("hybrid"), *(_interleaved_with(system) for system in SINGLE)),
        measures=_recalls(2, 5),
        printed={
            "IRCoT + ColBERTv2": (41.7, 53.7, 64.1, 74.4, 67.9, 82.0),
            "IRCoT + HippoRAG (ColBERTv2)": (45.3, 57.6, 75.8, 93.9, 67.0, 83.0),
        },
        depth=STEP,
    ),
    "table 4": Experiment(
        "HippoRAG, table 4: answers",
        PARTS,
        (
            System("no passages", lambda lab: None, needs_llm=True),
            *SINGLE,
            _interleaved_with(plain("dense")),
            _interleaved_with(PUBLISHED),
        ),
        columns=("EM", "F1"),
        printed={
            "ColBERTv2": (15.5, 26.4, 33.4, 43.3, 43.4, 57.7),
            "HippoRAG (ColBERTv2)": (19.2, 29.8, 46.6, 59.5, 41.8, 55.0),
            "IRCoT (ColBERTv2)": (19.1, 30.5, 35.4, 45.1, 45.5, 58.4),
            "IRCoT + HippoRAG (ColBERTv2)": (21.9, 33.3, 47.7, 62.7, 45.7, 59.2),
        },
        depth=STEP,
        passages=READ,
        reader="chain_of_thought",
        note="One call with a worked example and a chain of thought reads the first five passages. Without an LLM: "
        "whether these hold the answer, which bounds the exact match of a reader that copies.",
    ),
    "table 5": Experiment(
        "HippoRAG, table 5: what makes it work",
        PARTS,
        (
            PUBLISHED,
            *(
                System(f"paper(), {name}", partial(_published, **changed), extractor=_extractor, calls=1)
                for name, changed in ABLATIONS.items()
            ),
            DEFAULT,
        ),
        measures=_recalls(2, 5),
        printed={
            "HippoRAG": (40.9, 51.9, 70.7, 89.1, 60.5, 77.7),
            "query nodes alone": (37.1, 41.0, 59.1, 61.4, 55.9, 66.2),
            "query nodes and neighbours": (25.4, 38.5, 53.4, 74.7, 47.8, 64.5),
            "without node specificity": (37.6, 50.2, 70.1, 88.8, 56.3, 73.7),
            "without synonymy edges": (40.2, 50.2, 69.2, 85.6, 59.1, 75.7),
        },
        baseline=PUBLISHED.name,
        note="Other models of extraction, the paper's rows 2 to 4, are runs with another --llm.",
    ),
}
