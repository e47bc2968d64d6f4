"""Multi-Head RAG (Besta et al. 2024): table 1, figures 4 to 8, and the layers of section 4.5.

The paper's embedding models have 7B parameters. Here the heads are those of MiniLM, or with another model the parts of
its vectors; Standard RAG is the same vectors as one space. Queries of Fusion RAG are those recorded with the questions,
or else written by the LLM.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.llms import LLM

from benchmarks.embedding import MINILM
from benchmarks.papers.experiment import Experiment, Found, Lab, Measure, Part, System, plain
from benchmarks.quality_mrag import HEADS, heads_of, minilm_heads
from llama_index.mrag import HeadEmbedding, MRAGIndex, MRAGRetriever, SplitEmbedding
from llama_index.ragkit.evaluation import category_ratio, success_ratio, weighted_ratio
from llama_index.ragkit.testing import ScriptedLLM

__all__ = ["EXPERIMENTS"]

STORIES, LEGAL = "mrag_wikipedia", "mrag_legal"
FETCHED = (10, 15, 20, 25, 30)
ASPECTS = (5, 10, 15, 20)


def _heads(lab: Lab) -> HeadEmbedding:
    return heads_of(lab.plain_model, "auto")


def _parts(lab: Lab) -> HeadEmbedding:
    return SplitEmbedding(lab.embed_model, num_heads=HEADS if lab.plain_model.model_name == MINILM else None)


def _whole(lab: Lab) -> HeadEmbedding:
    return SplitEmbedding(lab.embed_model, num_heads=1)


def _first_layer(lab: Lab) -> HeadEmbedding:
    return minilm_heads(layer=0)


def _middle_layer(lab: Lab) -> HeadEmbedding:
    return minilm_heads(layer=2)


def _last_layer(lab: Lab) -> HeadEmbedding:
    return minilm_heads()


def _build(model: Any, version: str | None, lab: Lab, **changed: Any) -> BaseRetriever:
    """A published search, or with None the default, over the spaces of an embedding model."""

    def build() -> MRAGIndex:
        return MRAGIndex(nodes=lab.corpus.fresh_nodes(), embed_model=model(lab))

    search: dict[str, Any] = {} if version is None else MRAGRetriever.paper(version)  # type: ignore[arg-type]
    if version == "fusion":
        search["llm"] = _queries(lab)
    index: MRAGIndex = lab.once(model.__name__, build)
    return index.as_retriever(**{**search, **changed, "similarity_top_k": lab.depth})


def _queries(lab: Lab) -> LLM:
    """The LLM of Fusion RAG; recorded queries answer in its place."""
    recorded = lab.task.subqueries_of
    if not recorded and lab.llm is not None:
        return lab.llm

    def reply(prompt: str) -> str:
        question = max((each for each in recorded if each in prompt), key=len)
        return "\n".join(recorded[question])

    return ScriptedLLM(reply)


def _system(name: str, model: Any, version: str | None, **changed: Any) -> System:
    fusion = version == "fusion"
    return System(name, partial(_build, model, version, **changed), calls=int(fusion))


def _success(found: Found, k: int | None = None) -> float:
    return success_ratio(found.ranking, found.query.gold, k)


def _category(found: Found, k: int | None = None) -> float:
    return category_ratio(found.ranking, found.query.gold, found.lab.corpus.category_of, k)


def _weighted(found: Found, k: int | None = None) -> float:
    return weighted_ratio(_success(found, k), _category(found, k))


def _at(measure: Callable[..., float], name: str, *ks: int) -> dict[str, Measure]:
    return {f"{name}@{k}": partial(measure, k=k) for k in ks}


STANDARD = _system("Standard RAG", _whole, "mrag")
MRAG = _system("MRAG, paper()", _heads, "mrag")
SPLIT = _system("Split RAG", _parts, "mrag")
DEFAULT = _system("MRAG, default", _heads, None)
BASELINES = (plain("BM25"), plain("hybrid"))
BEST = 30
TWICE = {"weighted": partial(_weighted, k=BEST)}


def _stories(*aspects: int) -> tuple[Part, ...]:
    return tuple(Part(f"n = {n}", STORIES, f"n = {n}") for n in aspects)


def _both_depths(folder: str) -> tuple[Part, ...]:
    """The n documents for n aspects, then 30: Fusion RAG fuses lists of as many documents as are fetched."""
    return tuple(
        Part(f"n = {n}, {depth} fetched", folder, f"n = {n}", depth=depth) for n in ASPECTS for depth in (n, BEST)
    )


EXPERIMENTS = {
    "table 1": Experiment(
        "MRAG, table 1: questions of one aspect",
        _stories(1),
        (STANDARD, MRAG, *BASELINES, DEFAULT),
        measures=_at(_success, "success", 1, 2, 3),
        printed={
            "MRAG, SFR": (96.0, 100.0, 100.0),
            "Standard RAG, SFR": (100.0, 100.0, 100.0),
            "MRAG, e5": (96.0, 100.0, 100.0),
            "Standard RAG, e5": (100.0, 100.0, 100.0),
        },
        depth=BEST,
        baseline="Standard RAG",
    ),
    "figure 4": Experiment(
        "MRAG, figure 4: success over the documents fetched, ten aspects",
        _stories(10),
        (STANDARD, MRAG, *BASELINES, DEFAULT),
        measures=_at(_success, "success", *FETCHED) | _at(_category, "category", *FETCHED),
        depth=BEST,
        baseline="Standard RAG",
        axis="columns",
        boxes=True,
        histograms=(f"success@{BEST}", f"category@{BEST}"),
        note='The figure has no numbers; the paper says "> 10 % increase in the retrieval success ratio on average for '
        'exact document matches" and "> 25 %" for categories.',
    ),
    "figure 5": Experiment(
        "MRAG, figure 5: improvement over Standard RAG by the number of aspects",
        _both_depths(STORIES),
        (STANDARD, MRAG, *BASELINES, DEFAULT),
        measures=TWICE,
        depth=BEST,
        baseline="Standard RAG",
        relative_to="Standard RAG",
        axis="parts",
        boxes=True,
        note='The figure has no numbers; the paper says "10-20 % on average".',
    ),
    "figure 6": Experiment(
        "MRAG, figure 6: Split RAG and Fusion RAG",
        _both_depths(STORIES),
        (
            STANDARD,
            SPLIT,
            MRAG,
            _system("Fusion RAG", _whole, "fusion"),
            _system("Fusion MRAG", _heads, "fusion"),
            *BASELINES,
            DEFAULT,
        ),
        measures=TWICE,
        depth=BEST,
        baseline="Standard RAG",
        relative_to="Standard RAG",
        axis="parts",
        boxes=True,
        note="The figure has no numbers; the paper says that Fusion RAG and Fusion MRAG gain 10 to 30 % on average, "
        "and that Fusion MRAG is consistently above Fusion RAG. The authors' recorded results agree for SFR; for e5, "
        "Fusion MRAG is below it with five to ten aspects and as many documents.",
    ),
    "figure 7": Experiment(
        "MRAG, figure 7: legal documents",
        _both_depths(LEGAL),
        (STANDARD, SPLIT, MRAG, *BASELINES, DEFAULT),
        measures={"success": partial(_success, k=BEST)},
        depth=BEST,
        baseline="Standard RAG",
        relative_to="Standard RAG",
        axis="parts",
        boxes=True,
        note="The figure has no numbers. Any document of a topic is a hit.",
    ),
    "figure 8": Experiment(
        "MRAG, figure 8: voting strategies",
        _stories(10),
        (
            STANDARD,
            MRAG,
            _system("MRAG (1), 2^-p", _heads, "decay"),
            _system("MRAG (2), 1 / distance", _heads, "distance"),
            _system("Split (1), 2^-p", _parts, "decay"),
            _system("Split (2), as MRAG", _parts, "mrag"),
            *BASELINES,
            DEFAULT,
        ),
        measures=_at(_weighted, "weighted", *FETCHED),
        depth=BEST,
        baseline="Standard RAG",
        relative_to="Standard RAG",
        axis="columns",
        boxes=True,
        note="The figure has no numbers; in the paper MRAG's strategy is the best, and Split's two are alike.",
    ),
    "table layers": Experiment(
        "MRAG, section 4.5: the layer whose heads are used",
        _stories(10),
        (
            STANDARD,
            _system("MRAG, first layer", _first_layer, "mrag"),
            _system("MRAG, middle layer", _middle_layer, "mrag"),
            _system("MRAG, last layer", _last_layer, "mrag"),
            *BASELINES,
            DEFAULT,
        ),
        measures=_at(_weighted, "weighted", *FETCHED),
        depth=BEST,
        baseline="Standard RAG",
        note="MiniLM's layers 1, 3 and 6, whatever model is named; the paper has 1, 16 and the last of 32, prints no "
        "numbers, and finds the last the best beside Standard RAG.",
    ),
}
