"""What a table or figure of a paper is: its data, its measures, the figures as printed, and our systems."""

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.schema import NodeWithScore, QueryBundle

from benchmarks.cost import Counting
from benchmarks.data import Corpus, Task
from benchmarks.papers.kept_llm import KeptLLM
from benchmarks.papers.measured import Measured
from benchmarks.papers.unusable import or_else
from benchmarks.systems import Ranking
from llama_index.ragkit import DerivedIndex, ExtractiveSummarizer, HybridRetriever, LLMSummarizer, NodeExtractor
from llama_index.ragkit.evaluation import LabelledQuery
from llama_index.ragkit.evaluation.reader import Style

__all__ = [
    "PLAIN",
    "Answered",
    "Axis",
    "Experiment",
    "First",
    "Found",
    "Grader",
    "Lab",
    "Measure",
    "Number",
    "Part",
    "Points",
    "System",
    "plain",
]

PLAIN = {"dense": 0.0, "BM25": 1.0, "hybrid": 0.5}


@dataclass
class Lab:
    """A corpus with the models: what a system is built with.

    Attributes
    ----------
    folder : the data folder, by name
    task : the corpus and all its questions
    embed_model : counts the texts that it embeds
    plain_model : the same without counting
    llm : None where none was named
    depth : how many passages are asked for
    """

    folder: str
    task: Task
    embed_model: Counting
    plain_model: BaseEmbedding
    llm: KeptLLM | None
    depth: int
    options: argparse.Namespace
    _built: dict[str, Any] = field(default_factory=dict)

    @property
    def corpus(self) -> Corpus:
        """What is searched."""
        return self.task.corpus

    def has(self, field: str) -> bool:
        """Whether a passage has something recorded under this name."""
        return any(field in record for record in self.corpus.records.values())

    def models(self, published: bool = False) -> dict[str, Any]:
        """Keywords of an index with summaries: the embedding model, and the LLM or what stands in for it.

        The published summaries are not held against what they summarise.
        """
        written: dict[str, Any] = {"llm": self.llm}
        if self.llm is None:
            written = {"summarizer": ExtractiveSummarizer()}
        elif published:
            written["summarizer"] = LLMSummarizer(min_in_text=0)
        return {"nodes": self.corpus.fresh_nodes(), "embed_model": self.embed_model, **written}

    def once(self, name: str, build: Callable[[], Any]) -> Any:
        """What several systems share, such as an index; the first of them has its cost."""
        if name not in self._built:
            self._built[name] = build()
        return self._built[name]


@dataclass(frozen=True)
class Found:
    """What a system found for a question.

    Attributes
    ----------
    nodes : as the retriever gives them
    ranking : the passages of these, or their labels where any passage of a label is a hit
    """

    lab: Lab
    query: LabelledQuery
    nodes: Sequence[NodeWithScore]
    ranking: Ranking


@dataclass(frozen=True)
class Answered:
    """What a system answered.

    Attributes
    ----------
    answers : by the id of the question
    base : those of the baseline; None where the system is the baseline
    """

    lab: Lab
    queries: Sequence[LabelledQuery]
    answers: Mapping[str, str]
    base: Mapping[str, str] | None


Measure = Callable[[Found], float]
Grader = Callable[[Answered], Sequence[float]]
Number = Callable[[Lab, Any], float]
Points = Callable[[Lab, Any], Sequence[Sequence[float]]]
Axis = Literal["", "columns", "parts", "systems", "scores", "points", "shades"]


@dataclass(frozen=True)
class Part:
    """Columns of a table: the questions of a data folder, or those of one kind, such as "n = 5".

    Attributes
    ----------
    within : whether each question is asked of its document alone
    chunk_tokens : of whole documents; None for those of the stock splitter
    depth : passages of a ranking; None for that of the experiment
    """

    heading: str
    folder: str
    group: str = ""
    within: bool = False
    chunk_tokens: int | None = None
    depth: int | None = None


@dataclass(frozen=True)
class System:
    """A row of ours.

    Attributes
    ----------
    build : gives the retriever, or a query engine; None for no passages at all; where no question is asked, what the
        numbers are of
    extractor : the extractor of its index, for estimates
    index : the class of an index that writes texts, such as summaries, for estimates
    sizes : keywords of its `estimate`
    calls : of the LLM for a question at most, the reader apart
    batches : whether an answer reads the whole corpus, in batches of the experiment's `context_tokens`
    needs_llm : whether it is left out without one
    needs_field : what a passage must have recorded; it is left out of the parts whose corpus does not
    at : the place on the horizontal axis of a figure over systems, and the name of its line
    """

    name: str
    build: Callable[[Lab], Any]
    extractor: Callable[[Lab], NodeExtractor | None] = lambda lab: None
    calls: int = 0
    index: type[DerivedIndex[Any, Any]] | None = None
    sizes: Mapping[str, float] = field(default_factory=dict)
    batches: bool = False
    needs_llm: bool = False
    needs_field: str = ""
    at: tuple[str, float] | None = None


@dataclass(frozen=True)
class Experiment:
    """A table or figure.

    Attributes
    ----------
    measures : of what was found, by the head of their column; empty where answers are wanted
    columns : of answers, where `reader` is set
    graders : further columns of answers: a score in [0, 1] for each, which may cost calls of the LLM
    grading_calls : for an answer, at most
    bound : without an LLM, what is said of the context that a reader would have got
    numbers : columns of one number a system, of what it builds
    costs : columns of one number a system, of what it took
    printed : row of the paper -> its figures, part by part and column by column, scores in percent; a text as it
        stands, None for a gap
    depth : passages of a ranking
    passages, context_tokens : how many of them the reader reads at most, and their tokens; None for no limit
    reader : how an LLM answers; without an LLM contexts are scored alone, by whether they hold the answer
    baseline : the system that the differences are to
    relative_to : the system that improvements in percent are relative to, as figures have it
    axis : what a figure has on its horizontal axis: the numbers in the heads of the columns ("success@10") or of the
        parts ("n = 5"), what systems are `at`, the scores of single questions, a plane, or the columns with means as
        shades; "" for no figure
    points : the places in the plane
    boxes : whether a figure has a box plot over the questions at each place, rather than means with intervals
    histograms : columns whose distribution stands beside the figure
    note : what to know when reading it
    """

    title: str
    parts: Sequence[Part]
    systems: Sequence[System]
    measures: Mapping[str, Measure] = field(default_factory=dict)
    columns: Sequence[str] = ()
    graders: Mapping[str, Grader] = field(default_factory=dict)
    grading_calls: int = 0
    bound: str = "contained"
    numbers: Mapping[str, Number] = field(default_factory=dict)
    costs: Mapping[str, Callable[[Measured], float]] = field(default_factory=dict)
    printed: Mapping[str, Sequence[float | str | None]] = field(default_factory=dict)
    depth: int = 100
    passages: int = 5
    context_tokens: int | None = None
    reader: Style | None = None
    baseline: str = "hybrid"
    relative_to: str = ""
    axis: Axis = ""
    points: Points | None = None
    boxes: bool = False
    histograms: Sequence[str] = ()
    note: str = ""

    @property
    def answers(self) -> bool:
        """Whether answers are wanted, not only what was found."""
        return self.reader is not None or bool(self.graders)

    @property
    def asks(self) -> bool:
        """Whether questions are asked."""
        return self.answers or bool(self.measures)

    @property
    def heads(self) -> list[str]:
        """The heads of all columns of a part, with an LLM."""
        return [*self.measures, *self.columns, *self.graders, *self.numbers, *self.costs]

    def of(self, parts: Sequence[Part]) -> "Experiment":
        """The same with some of its parts."""
        width = len(self.heads)
        places = [i for i, part in enumerate(self.parts) if part in parts]
        printed = {
            name: [figure for i in places for figure in row[i * width : (i + 1) * width]]
            for name, row in self.printed.items()
        }
        return replace(self, parts=tuple(self.parts[i] for i in places), printed=printed)


def plain(name: str) -> System:
    """Plain search over the same passages: dense, BM25, hybrid."""

    def build(lab: Lab) -> BaseRetriever:
        def nodes() -> HybridRetriever:
            return HybridRetriever(lab.corpus.fresh_nodes(), lab.embed_model)

        shared: HybridRetriever = lab.once("plain", nodes)
        return WithWeight(shared, PLAIN[name], lab.depth)

    return System(name, build)


class First(BaseRetriever):
    """The first results of a retriever; none if replies of its LLM cannot be used."""

    def __init__(self, retriever: BaseRetriever, count: int, llm: KeptLLM | None) -> None:
        self._retriever, self._count, self._llm = retriever, count, llm
        super().__init__()

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return or_else(self._llm, partial(self._retriever.retrieve, query_bundle), [])[: self._count]


class WithWeight(BaseRetriever):
    """A hybrid retriever at a weight of the words and a depth of its own, over nodes that several share."""

    def __init__(self, shared: HybridRetriever, lexical_weight: float, depth: int) -> None:
        self._shared, self._weight, self._depth = shared, lexical_weight, depth
        super().__init__()

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        self._shared.lexical_weight, self._shared.similarity_top_k = self._weight, self._depth
        return self._shared.retrieve(query_bundle)
