"""`check_llm`: tries each step that asks a language model on a few chunks, and `LLMCheck`: what it could do."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from types import ModuleType
from typing import Any, TypeVar

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.llms import LLM
from llama_index.core.schema import BaseNode, NodeRelationship, RelatedNodeInfo, TextNode

from llama_index.ragkit.compare.methods import Method, installed
from llama_index.ragkit.errors import ConfigurationError, ExtractionError, LanguageModelError
from llama_index.ragkit.extraction.summarizers import LLMSummarizer
from llama_index.ragkit.index.dry_run import HashedWords
from llama_index.ragkit.llm.completion import find_llm
from llama_index.ragkit.llm.retry import RetryPolicy, is_permanent, is_unreachable
from llama_index.ragkit.llm.usage import StepUsage, counted
from llama_index.ragkit.validation import check_count

__all__ = ["TEXTS", "TRIALS", "LLMCheck", "StepCheck", "Trial", "check_llm"]

Build = Callable[[ModuleType, RetryPolicy], Mapping[str, Any]]  # package, retries -> keywords of the index
Ask = Callable[[ModuleType, Any, LLM, str], object]  # of package, index, model, question

_MOST = 0.9  # share of what was asked for that is read of a model that can do a step

T = TypeVar("T")
_ONCE = RetryPolicy(max_attempts=1)

TEXTS = (
    "Tern Rock Lighthouse stands on a skerry nine miles west of Port Ellery. It was first lit in 1858 and was kept by "
    "Ada Hale from 1871 until 1893. Hale wrote a diary of every ship that passed, which is now in the museum of Port "
    "Ellery.",
    "The lamp of Tern Rock burned colza oil until 1880, when the engineer Tomas Berg had it changed to paraffin. Berg "
    "came from Ostby, where he had built the harbour crane. The new lamp was seen from eighteen miles instead of "
    "eleven.",
    "In the storm of January 1886 the schooner Marigold ran aground below the lighthouse. Ada Hale and her brother "
    "Silas rowed out three times and brought eleven people ashore. The Harbour Board of Port Ellery gave each of them "
    "a silver medal.",
)
_QUESTION = "Who kept the lighthouse when the Marigold ran aground?"


@dataclass(frozen=True)
class Trial:
    """How a method is made to ask: keywords of an index and of retrievers, and what asks beyond a retriever."""

    build: Build = lambda package, retry: {}
    retrievers: Sequence[Mapping[str, Any]] = ()
    further: Sequence[Ask] = ()


def _chain(package: ModuleType, index: Any, llm: LLM, question: str) -> object:
    return package.IRCoTRetriever(index.as_retriever(), llm=llm, max_steps=2, retry=_ONCE).retrieve(question)


def _relevant(package: ModuleType, index: Any, llm: LLM, question: str) -> object:
    options = package.PublishedOptions(relevance_budget=2)
    return index.as_retriever(mode="global", published=options, llm=llm, retry=_ONCE).retrieve(question)


def _engine(package: ModuleType, index: Any, llm: LLM, question: str) -> object:
    return package.GraphRAGQueryEngine.over(index, answer_llm=llm).query(question)


TRIALS: Mapping[str, Trial] = {
    "RAPTOR": Trial(lambda package, retry: {"summarizer": LLMSummarizer(retry=retry)}),
    "spRAG": Trial(
        lambda package, retry: {"extractor": package.AutoContext(retry=retry, sections="llm")}, [{"auto_query": True}]
    ),
    "GEM-RAG": Trial(
        lambda package, retry: {
            "extractor": package.UtilityQuestionExtractor(retry=retry),
            "summarizer": LLMSummarizer(retry=retry),
        }
    ),
    "HippoRAG": Trial(
        lambda package, retry: {"extractor": package.OpenIEExtractor(retry=retry)},
        [{"linking": "entities", "question_entities": "llm"}, {"linking": "facts", "filter_facts": True}],
        [_chain],
    ),
    "Graph RAG": Trial(
        lambda package, retry: {
            "extractor": package.EntityExtractor(retry=retry, gleanings=1, claims=True),
            "summarizer": package.ReportWriter(retry=retry),
            "reports": "eager",
            "report_tokens": 20,  # few chunks state no more, and what fits is not written by a model
        },
        [{"mode": "global", "rating_threshold": 3.0}, {"mode": "drift", "rounds": 1, "follow_ups": 1}],
        [_relevant, _engine],
    ),
    "PG-RAG": Trial(
        lambda package, retry: {"extractor": package.MindMapExtractor(retry=retry)}, [{"key_points": "llm"}]
    ),
    "MRAG": Trial(retrievers=[{"aspects": "llm"}]),
}


@dataclass(frozen=True)
class StepCheck:
    """A step that was tried.

    Attributes
    ----------
    method, step : the method, and the name of its prompt
    usage : what was asked, read, and failed, with reasons
    """

    method: str
    step: str
    usage: StepUsage

    @property
    def asked(self) -> int:
        """How often it was tried."""
        return self.usage.read + self.usage.failed

    @property
    def verdict(self) -> str:
        """Whether the model can do it: "yes", "partly" or "no"."""
        share = self.usage.read / max(1, self.asked)
        return "yes" if share >= _MOST else "partly" if share else "no"

    @property
    def reason(self) -> str:
        """The commonest reason of its failures; "" without any."""
        return self._commonest[0]

    @property
    def example(self) -> str:
        """How the reply of such a failure begins; "" without one."""
        return self._commonest[1]

    @property
    def _commonest(self) -> tuple[str, str]:
        kinds = self.usage.reasons.most_common(1)
        return self.usage.examples[kinds[0][0]] if kinds else ("", "")


@dataclass(frozen=True)
class LLMCheck:
    """The steps that were tried, in the order of the methods.

    Attributes
    ----------
    model : its name
    chunks : how many were read
    steps : those that were tried
    not_tried : methods that could not be built or ask anything, and why, by their names
    """

    model: str
    chunks: int
    steps: Sequence[StepCheck]
    not_tried: dict[str, str]

    def __str__(self) -> str:
        rows = [("method", "step", "can", "read", "failed", "tokens", "seconds")]
        for step in self.steps:
            use = step.usage
            tokens = f"{use.prompt_tokens:,} + {use.completion_tokens:,}"
            rows.append(
                (step.method, step.step, step.verdict, str(use.read), str(use.failed), tokens, f"{use.seconds:.1f}")
            )
        widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
        for step in self.steps:
            if step.reason:
                lines += ["", f"{step.method}, {step.step}: {step.reason}"]
                lines += [f"  replied: {step.example}"] if step.example else []
        lines += [f"{name} was not tried: {reason}" for name, reason in self.not_tried.items()]
        return "\n".join([f"{self.model}, {self.chunks} chunks", *lines])


def check_llm(
    llm: LLM | None = None,
    nodes: Sequence[BaseNode] | None = None,
    *,
    methods: Sequence[str] | None = None,
    embed_model: BaseEmbedding | None = None,
    question: str | None = None,
    chunks: int = 3,
    retry: RetryPolicy = _ONCE,
) -> LLMCheck:
    """Try each step of the installed methods that asks a language model, and count what can be used of its replies.

    Every method is built over the chunks in memory and asked one question in each way that calls the model. Nothing is
    stored, and what fails goes on without.

    Parameters
    ----------
    llm : default `Settings.llm`
    nodes : chunks of your own [three texts about a lighthouse]
    methods : names, such as "HippoRAG" [all that are installed]
    embed_model : finds the chunks for the question [hashed words, which need no model]
    question : about the chunks [about the lighthouse, or the beginning of the first chunk]
    chunks : how many of `nodes` are read, the first, at least 1 [3]
    retry : how often is asked [once]

    Raises
    ------
    ConfigurationError
        If there is no model, or a method is unknown.
    LanguageModelError
        For an error that every step would meet, such as a wrong key.
    """
    model = find_llm(llm)
    given = _own_chunks() if nodes is None else list(nodes)[: check_count("chunks", chunks, 1)]
    if not given:
        raise ConfigurationError("check_llm needs at least one chunk: pass nodes=, or leave it out.")
    asked = question or (_QUESTION if nodes is None else f"{given[0].get_content()[:100]}?")
    found: list[StepCheck] = []
    not_tried: dict[str, str] = {}
    for method in installed(methods):
        with counted() as usage:
            try:
                _try(method, model, given, embed_model or HashedWords(model_name="hashed words"), asked, retry)
            except (ImportError, ConfigurationError) as error:
                not_tried[method.name] = str(error)
        if usage.rules and not usage.steps:  # rules did all, since nothing could be asked
            not_tried[method.name] = next(iter(usage.rules.values())).first
        found += [StepCheck(method.name, step, count) for step, count in usage.steps.items()]
    return LLMCheck(model.metadata.model_name, len(given), found, not_tried)


def _try(
    method: Method, llm: LLM, nodes: Sequence[BaseNode], embed_model: BaseEmbedding, question: str, retry: RetryPolicy
) -> None:
    """Build an index and ask it; what a step fails at is counted where it is asked."""
    trial, package = TRIALS.get(method.name, Trial()), import_module(method.module)
    copies = [node.model_copy(deep=True) for node in nodes]
    build = partial(getattr(package, method.index), copies, llm=llm, embed_model=embed_model, num_workers=1)
    index: Any = _kept(partial(build, **trial.build(package, retry)))
    if index is None:
        return
    for keywords in trial.retrievers:
        retriever = index.as_retriever(llm=llm, retry=retry, **keywords)
        _kept(partial(retriever.retrieve, question))
    for ask in trial.further:
        _kept(partial(ask, package, index, llm, question))


def _kept(work: Callable[[], T]) -> T | None:
    """What work gives; None if a step failed that it cannot do without."""
    try:
        return work()
    except LanguageModelError as error:
        cause = error.__cause__
        if isinstance(cause, Exception) and (is_permanent(cause) or is_unreachable(cause)):
            raise
        return None
    except ExtractionError:
        return None


def _own_chunks() -> list[BaseNode]:
    source = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id="lighthouse")}
    return [TextNode(id_=f"lighthouse-{i}", text=text, relationships=source) for i, text in enumerate(TEXTS)]
