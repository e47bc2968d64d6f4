"""HippoRAG (Jiménez Gutiérrez et al. 2024), numbered as in the third version of the paper.

Passages are read by an LLM as in the paper, or else by what the corpus has recorded, or by rules.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from operator import attrgetter
from typing import Any

from llama_index.core.base.base_retriever import BaseRetriever

from benchmarks import quality_hipporag
from benchmarks.papers.carb import Agreement, Triple, agreement
from benchmarks.papers.demonstrations import demonstration
from benchmarks.papers.experiment import Experiment, Lab, Measure, Number, Part, System, plain
from benchmarks.papers.measured import Measured
from benchmarks.papers.token_model import token_model
from llama_index.hipporag import (
    HippoRAGIndex,
    HippoRAGRetriever,
    IRCoTRetriever,
    LateInteractionRetriever,
    NounPhraseExtractor,
    OpenIEExtractor,
)
from llama_index.hipporag.config import Version
from llama_index.hipporag.prompts import PUBLISHED_PROMPTS
from llama_index.hipporag.text.late_interaction import TokenEncoder
from llama_index.ragkit import NodeExtractor
from llama_index.ragkit.evaluation import all_recall_at_k, recall_at_k, reciprocal_rank
from llama_index.ragkit.steps import run_steps

__all__ = ["EXPERIMENTS"]

PARTS = (Part("MuSiQue", "musique"), Part("2Wiki", "2wiki"), Part("HotpotQA", "hotpotqa"))
MOST_STEPS = {"musique": 4}  # appendix H: of the chain of thought; 2 elsewhere
STEP, READ = 10, 5  # passages of a step and of the reader, appendix H


def _extractor(lab: Lab, published: bool = True, field: str = "triples") -> NodeExtractor:
    if lab.llm is None or lab.has(field):
        return quality_hipporag.extractor_of(lab.corpus, field=field)
    return OpenIEExtractor.paper() if published else OpenIEExtractor()


def _index(lab: Lab, published: bool, field: str = "triples", **changed: Any) -> HippoRAGIndex:
    def build() -> HippoRAGIndex:
        given: dict[str, Any] = {**(HippoRAGIndex.paper() if published else {}), **changed}
        given |= {} if lab.llm is None else {"llm": lab.llm}
        return HippoRAGIndex(
            nodes=lab.corpus.fresh_nodes(),
            embed_model=lab.embed_model,
            extractor=_extractor(lab, published, field),
            **given,
        )

    index: HippoRAGIndex = lab.once(f"published {published}, {field}, {changed}", build)
    return index


def _published(lab: Lab, version: Version = "v1", field: str = "triples", **changed: Any) -> BaseRetriever:
    """`paper()`; without an LLM the entities of a question are read by rules."""
    search = {**HippoRAGRetriever.paper(version), **changed}
    if lab.llm is None:
        search["question_entities"] = "rules"
    else:
        search["prompts"] = {"question": PUBLISHED_PROMPTS["question"]}
    return _index(lab, True, field).as_retriever(**{**search, "similarity_top_k": lab.depth})


def _default(lab: Lab) -> BaseRetriever:
    return _index(lab, False).as_retriever(similarity_top_k=lab.depth)


def _token_model(lab: Lab) -> TokenEncoder:
    model: TokenEncoder = lab.once("token model", lambda: token_model(lab.options.tokens))
    return model


def _late(lab: Lab) -> BaseRetriever:
    found = LateInteractionRetriever(lab.corpus.fresh_nodes(), _token_model(lab), similarity_top_k=lab.depth)
    found.retrieve(lab.task.queries[0].question)  # the first question encodes the passages: that is the build
    return found


def _late_links(lab: Lab) -> BaseRetriever:
    return _published(lab, phrase_encoder=_token_model(lab))


def _interleaved(build: Any, lab: Lab) -> BaseRetriever:
    shown = demonstration(lab.options.data, lab.folder)
    return IRCoTRetriever(
        build(lab),
        llm=lab.llm,
        max_steps=MOST_STEPS.get(lab.folder, 2),
        similarity_top_k=lab.depth,
        demonstrations=[] if shown is None else [shown],
    )


def _interleaved_with(system: System) -> System:
    """IRCoT with a retriever; its chain of thought has an LLM write up to three sentences."""
    return System(
        f"IRCoT + {system.name}",
        partial(_interleaved, system.build),
        extractor=system.extractor,
        calls=(system.calls + 1) * max(MOST_STEPS.values()),
        needs_llm=True,
    )


def _recalls(*ks: int) -> dict[str, Measure]:
    return {f"R@{k}": lambda found, k=k: recall_at_k(found.ranking, found.query.gold, k) for k in ks}  # type: ignore[misc]


def _all_recalls(*ks: int) -> dict[str, Measure]:
    return {f"AR@{k}": lambda found, k=k: all_recall_at_k(found.ranking, found.query.gold, k) for k in ks}  # type: ignore[misc]


def _graph(published: bool, lab: Lab, field: str = "triples") -> HippoRAGIndex:
    return _index(lab, published, field, phrase_vectors=True)


def _statistics(lab: Lab, index: HippoRAGIndex) -> dict[str, int]:
    """The rows of tables 1 and 8; an edge is a name of a relation, and similar phrases count as pairs."""
    state = index.state
    relations = {relation for _, relation, _ in state.facts}
    synonyms = state.graph.synonym_edges.nnz // 2
    return {"nodes": len(state.phrases), "edges": len(relations), "triples": len(state.facts), "synonyms": synonyms}


def _statistic(name: str) -> Any:
    return lambda lab, index: float(_statistics(lab, index)[name])


def _extracted(make: Callable[[Lab], NodeExtractor], lab: Lab) -> list[tuple[Sequence[Triple], Sequence[Triple]]]:
    """The annotated triples of each passage and what an extractor reads: nothing where it fails. The shortest first."""
    nodes = sorted(lab.corpus.fresh_nodes(), key=lambda node: (len(node.text), node.node_id))
    found = run_steps(make(lab).extract(nodes, llm=lab.llm, on_error="record"))
    gold = [lab.corpus.records[lab.corpus.passage_of[node.node_id]]["triples"] for node in nodes]
    return [(own, (each.record or {}).get("triples", ())) for own, each in zip(gold, found, strict=True)]


def _reader_of(name: str, make: Callable[[Lab], NodeExtractor], needs_llm: bool = True, field: str = "") -> System:
    return System(name, partial(_extracted, make), extractor=make, needs_llm=needs_llm, needs_field=field)


def _carb(figure: Callable[[Agreement], float], passages: slice) -> Number:
    return lambda lab, found: 100 * figure(agreement(found[passages]))


def _carb_columns(passages: slice = slice(None), heading: str = "") -> dict[str, Number]:
    """Scores of CaRB in percent, of some of the passages by length."""
    names = {"AUC": "auc", "precision": "precision", "recall": "recall", "F1": "f1"}
    return {f"{heading}{name}": _carb(attrgetter(field), passages) for name, field in names.items()}


def _dollars(spent: Any) -> float:
    """At the prices of footnote 7: a dollar for a million tokens read, two for a million written."""
    return (spent.get("read", 0) + 2 * spent.get("written", 0)) / 1e6


def _online(figure: Any) -> Any:
    return lambda cell: 1000 * figure(cell) / max(1, len(cell.ids))


def _offline(figure: Any) -> Any:
    return lambda cell: 10_000 * figure(cell) / cell.numbers["passages"]


def _minutes_asked(cell: Measured) -> float:
    return cell.question_ms * len(cell.ids) / 60_000


OURS = partial(_extractor, published=False)
REBEL = partial(_extractor, field="rebel")
PUBLISHED = System("HippoRAG, paper()", _published, extractor=_extractor, calls=1)
DEFAULT = System("HippoRAG, default", _default, extractor=OURS)
ABLATIONS: dict[str, dict[str, Any]] = {
    "query nodes alone": {"version": "v1_nodes"},
    "query nodes and neighbours": {"version": "v1_neighbors"},
    "without node specificity": {"published": replace(HippoRAGRetriever.paper()["published"], node_specificity=False)},
    "without synonymy edges": {"synonyms": False},
}
LATE = System("HippoRAG, paper(), late interaction", _late_links, extractor=_extractor, calls=1)
BASELINES = tuple(map(plain, ("dense", "BM25", "hybrid")))
SINGLE = (
    *BASELINES,
    System("late interaction", _late),
    PUBLISHED,
    LATE,
    DEFAULT,
)
ENSEMBLE = System("HippoRAG, paper(), ensemble", partial(_published, version="v1_ensemble"), _extractor, calls=1)
GRAPHS = (
    System("HippoRAG, paper()", partial(_graph, True), extractor=_extractor),
    System("HippoRAG, default", partial(_graph, False), extractor=OURS),
    System("paper(), REBEL", partial(_graph, True, field="rebel"), extractor=REBEL, needs_field="rebel"),
)
READERS = (
    _reader_of("OpenIEExtractor.paper()", lambda lab: OpenIEExtractor.paper()),
    _reader_of("OpenIEExtractor", lambda lab: OpenIEExtractor()),
    _reader_of("NounPhraseExtractor", lambda lab: NounPhraseExtractor(), needs_llm=False),
    _reader_of("REBEL", REBEL, needs_llm=False, field="rebel"),
)
STATISTICS = ("nodes", "edges", "triples", "synonyms")
FIRST_VERSION = "The figures as printed are those of the first version of the paper, of its table {}."

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
            "RAPTOR (ColBERTv2)": (36.9, 46.5, 57.3, 64.7, 63.1, 75.6),
            "Proposition": (37.6, 49.3, 56.4, 63.1, 58.7, 71.1),
            "Proposition (ColBERTv2)": (37.8, 50.1, 55.9, 64.9, 63.9, 78.1),
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
            "IRCoT + BM25": (34.2, 44.7, 61.2, 75.6, 65.6, 79.0),
            "IRCoT + Contriever": (39.1, 52.2, 51.6, 63.8, 65.9, 81.6),
            "IRCoT + ColBERTv2": (41.7, 53.7, 64.1, 74.4, 67.9, 82.0),
            "IRCoT + HippoRAG (Contriever)": (43.9, 56.6, 75.3, 93.4, 65.8, 82.3),
            "IRCoT + HippoRAG (ColBERTv2)": (45.3, 57.6, 75.8, 93.9, 67.0, 83.0),
        },
        depth=STEP,
        note=FIRST_VERSION.format(3),
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
            "none": (12.5, 24.1, 31.0, 39.6, 30.4, 42.8),
            "ColBERTv2": (15.5, 26.4, 33.4, 43.3, 43.4, 57.7),
            "HippoRAG (ColBERTv2)": (19.2, 29.8, 46.6, 59.5, 41.8, 55.0),
            "IRCoT (ColBERTv2)": (19.1, 30.5, 35.4, 45.1, 45.5, 58.4),
            "IRCoT + HippoRAG (ColBERTv2)": (21.9, 33.3, 47.7, 62.7, 45.7, 59.2),
        },
        depth=STEP,
        passages=READ,
        reader="chain_of_thought",
        note="One call with a worked example and a chain of thought reads the first five passages. Without an LLM: "
        "whether these hold the answer, which bounds the exact match of a reader that copies. "
        + FIRST_VERSION.format(4),
    ),
    "table 5": Experiment(
        "HippoRAG, table 5: what makes it work",
        PARTS,
        (
            *BASELINES,
            PUBLISHED,
            *(
                System(f"paper(), {name}", partial(_published, **changed), extractor=_extractor, calls=1)
                for name, changed in ABLATIONS.items()
            ),
            System("paper(), REBEL", partial(_published, field="rebel"), extractor=REBEL, calls=1, needs_field="rebel"),
            DEFAULT,
        ),
        measures=_recalls(2, 5),
        printed={
            "HippoRAG": (40.9, 51.9, 70.7, 89.1, 60.5, 77.7),
            "REBEL": (31.7, 39.6, 63.1, 76.5, 43.9, 59.2),
            "Llama-3.1-8B-Instruct": (40.8, 51.9, 62.5, 77.5, 59.9, 75.1),
            "Llama-3.1-70B-Instruct": (41.8, 53.7, 68.8, 85.3, 60.8, 78.6),
            "query nodes alone": (37.1, 41.0, 59.1, 61.4, 55.9, 66.2),
            "query nodes and neighbours": (25.4, 38.5, 53.4, 74.7, 47.8, 64.5),
            "without node specificity": (37.6, 50.2, 70.1, 88.8, 56.3, 73.7),
            "without synonymy edges": (40.2, 50.2, 69.2, 85.6, 59.1, 75.7),
        },
        baseline=PUBLISHED.name,
        note="Llama as the model of extraction is a run with another --llm; REBEL needs its triples in the corpus.",
    ),
    "table 6": Experiment(
        "HippoRAG, table 6: all supporting passages",
        PARTS,
        SINGLE,
        measures=_all_recalls(2, 5),
        printed={
            "ColBERTv2": (6.8, 16.1, 25.1, 37.1, 33.3, 59.0),
            "HippoRAG (ColBERTv2)": (10.2, 22.4, 45.4, 75.7, 33.8, 57.9),
        },
        note=FIRST_VERSION.format(8),
    ),
    "table 8": Experiment(
        "HippoRAG, tables 1 and 8: the knowledge graph",
        PARTS,
        GRAPHS,
        numbers={name: _statistic(name) for name in STATISTICS},
        printed={
            "GPT-3.5 Turbo, ColBERTv2": (
                *(91_729, 21_714, 107_448, 191_636),
                *(42_694, 7_867, 50_671, 82_526),
                *(82_157, 17_523, 98_709, 171_856),
            ),
            "GPT-3.5 Turbo, Contriever": (
                *(91_729, 21_714, 107_448, 145_990),
                *(42_694, 7_867, 50_671, 146_020),
                *(82_157, 17_523, 98_709, 159_112),
            ),
            "REBEL, ColBERTv2": (
                *(36_653, 269, 52_102, 48_213),
                *(22_146, 211, 30_428, 33_072),
                *(30_426, 262, 42_038, 39_053),
            ),
        },
        note="An edge is a name of a relation; of similar phrases each pair counts once. The paper's corpora have "
        "11,656, 6,119 and 9,221 passages. " + FIRST_VERSION.format("1 and 7"),
    ),
    "table 9": Experiment(
        "HippoRAG, table 9: extracted triples beside annotated ones",
        (Part("annotated passages", "openie"),),
        READERS,
        numbers=_carb_columns(),
        printed={
            "GPT-3.5 Turbo (1106)": (46.5, 68.4, 55.2, 61.1),
            "Llama-3.1-8B-Instruct": (40.0, 66.4, 48.1, 55.8),
            "Llama-3.1-70B-Instruct": (42.3, 66.3, 50.9, 57.6),
            "REBEL": (1.0, 8.0, 1.8, 2.9),
        },
        note="Scores of CaRB in percent. The paper has 239 triples of 20 passages of MuSiQue's training questions.",
    ),
    "table 10": Experiment(
        "HippoRAG, tables 7 and 10: path-finding questions",
        (Part("case studies", "path_finding"),),
        SINGLE,
        measures={**_recalls(2, 5), "RR": lambda found: reciprocal_rank(found.ranking, found.query.gold)},
        note="The tables show rankings of four questions: HippoRAG has the answer at the first, third, fourth and "
        "first place, ColBERTv2 and IRCoT have none. RR is the reciprocal rank of the first gold passage.",
    ),
    "table 13": Experiment(
        "HippoRAG, table 13: the uncertainty ensemble",
        PARTS,
        (*SINGLE, ENSEMBLE),
        measures=_recalls(2, 5),
        printed={
            "HippoRAG (Contriever)": (41.0, 52.1, 71.5, 89.5, 59.0, 76.2),
            "HippoRAG (ColBERTv2)": (40.9, 51.9, 70.7, 89.1, 60.5, 77.7),
            "with ensemble (Contriever)": (42.3, 54.5, 71.3, 87.2, 60.6, 79.1),
            "with ensemble (ColBERTv2)": (42.5, 54.8, 71.9, 89.0, 62.5, 80.0),
        },
        note=FIRST_VERSION.format(12),
    ),
    "table 14": Experiment(
        "HippoRAG, table 14: the uncertainty ensemble in several steps",
        PARTS,
        (plain("hybrid"), *(_interleaved_with(system) for system in (*SINGLE, ENSEMBLE))),
        measures=_recalls(2, 5),
        printed={
            "IRCoT + Contriever": (39.1, 52.2, 51.6, 63.8, 65.9, 81.6),
            "IRCoT + ColBERTv2": (41.7, 53.7, 64.1, 74.4, 67.9, 82.0),
            "IRCoT + HippoRAG (Contriever)": (43.9, 56.6, 75.3, 93.4, 65.8, 82.3),
            "IRCoT + HippoRAG (ColBERTv2)": (45.3, 57.6, 75.8, 93.9, 67.0, 83.0),
            "with ensemble (Contriever)": (44.4, 58.5, 75.3, 91.5, 66.9, 85.0),
            "with ensemble (ColBERTv2)": (40.2, 53.4, 74.5, 91.2, 68.2, 85.3),
        },
        depth=STEP,
        note=FIRST_VERSION.format(13),
    ),
    "table 16": Experiment(
        "HippoRAG, table 16: extracted triples of short and of long passages",
        (Part("", "openie"),),
        READERS,
        numbers={**_carb_columns(slice(10), "10 shortest, "), **_carb_columns(slice(-10, None), "10 longest, ")},
        note="Scores of CaRB in percent. The text of the paper says that long passages are read much worse.",
    ),
    "table 17": Experiment(
        "HippoRAG, table 17: what 1,000 questions cost",
        PARTS,
        (*SINGLE, _interleaved_with(plain("dense")), _interleaved_with(PUBLISHED)),
        measures=_recalls(5),
        costs={"$": _online(lambda cell: _dollars(cell.questions)), "minutes": _online(_minutes_asked)},
        printed={
            "ColBERTv2": (None, 0, 1, *(None,) * 6),
            "IRCoT": (None, "1-3", "20-40", *(None,) * 6),
            "HippoRAG": (None, 0.1, 3, *(None,) * 6),
        },
        depth=STEP,
        note="The paper has one figure for all sets, here in the first. Prices are the paper's, whatever the model: a "
        "dollar for a million tokens read, two for a million written. Replies that were kept cost what they did, and "
        "take no time. " + FIRST_VERSION.format(15),
    ),
    "table 18": Experiment(
        "HippoRAG, table 18: what indexing 10,000 passages costs",
        PARTS,
        SINGLE,
        measures=_recalls(5),
        numbers={"passages": lambda lab, built: float(len(lab.corpus.nodes))},
        costs={
            "$": _offline(lambda cell: _dollars(cell.build)),
            "minutes": _offline(lambda cell: cell.build_s / 60),
        },
        printed={
            "ColBERTv2": (None, None, 0, 7, *(None,) * 8),
            "IRCoT": (None, None, 0, 7, *(None,) * 8),
            "HippoRAG, GPT-3.5 Turbo (1106)": (None, None, 15, 60, *(None,) * 8),
        },
        note="As table 17. " + FIRST_VERSION.format(16),
    ),
}
EXPERIMENTS |= {"table 1": EXPERIMENTS["table 8"], "table 7": EXPERIMENTS["table 10"]}
