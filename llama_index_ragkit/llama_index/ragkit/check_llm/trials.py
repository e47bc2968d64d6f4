"""How each method is made to ask its language model: at a build, and at a question."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from llama_index.core.llms import LLM

from llama_index.ragkit.extraction.summarizers import LLMSummarizer
from llama_index.ragkit.llm.retry import RetryPolicy

__all__ = ["TRIALS", "Trial"]

Build = Callable[[ModuleType, RetryPolicy], Mapping[str, Any]]
Ask = Callable[[ModuleType, Any, LLM, str], object]


def _nothing(package: ModuleType, retry: RetryPolicy) -> Mapping[str, Any]:
    return {}


@dataclass(frozen=True)
class Trial:
    """The steps of a method.

    Attributes
    ----------
    build : package, retries -> keywords of the index with which each step of a build is asked
    retrievers : keywords of retrievers that ask
    further : package, index, model, question -> asks beyond a retriever
    """

    build: Build = _nothing
    retrievers: Sequence[Mapping[str, Any]] = ()
    further: Sequence[Ask] = ()


def _chain(package: ModuleType, index: Any, llm: LLM, question: str) -> object:
    once = RetryPolicy(max_attempts=1)
    return package.IRCoTRetriever(index.as_retriever(), llm=llm, max_steps=2, retry=once).retrieve(question)


def _relevant(package: ModuleType, index: Any, llm: LLM, question: str) -> object:
    once, options = RetryPolicy(max_attempts=1), package.PublishedOptions(relevance_budget=2)
    return index.as_retriever(mode="global", published=options, llm=llm, retry=once).retrieve(question)


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
