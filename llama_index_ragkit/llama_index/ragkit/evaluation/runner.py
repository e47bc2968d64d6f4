"""Running a retriever or a query engine on labelled questions, and scoring the results."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Literal, TypeVar

from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.base_retriever import BaseRetriever

from llama_index.ragkit.evaluation.answers import answer_f1, exact_match
from llama_index.ragkit.evaluation.contexts import IdOf, ids_of
from llama_index.ragkit.evaluation.results import Evaluation, LabelledQuery
from llama_index.ragkit.evaluation.scoring import Metric, check_queries, score_rankings
from llama_index.ragkit.steps import Outcome, Steps, arun_steps, call, gather, run_steps
from llama_index.ragkit.validation import ON_ERROR, OnError, check_choice

__all__ = ["aevaluate_query_engine", "aevaluate_retriever", "evaluate_query_engine", "evaluate_retriever", "sort_out"]

T = TypeVar("T")


def evaluate_retriever(
    retriever: BaseRetriever,
    queries: Sequence[LabelledQuery],
    *,
    name: str = "",
    metrics: Mapping[str, Metric] | None = None,
    id_of: IdOf | None = None,
    num_workers: int = 1,
    show_progress: bool = False,
    on_error: OnError = "raise",
) -> Evaluation:
    """Retrieve for every question and score the rankings.

    The retriever determines the length of its rankings: with `similarity_top_k=2` recall at 10 equals recall at 2.

    Parameters
    ----------
    retriever : any LlamaIndex retriever
    queries : questions with `gold`
    name : name of the system in the result; the retriever's class by default
    metrics : name -> function of (ranking, gold); :func:`retrieval_metrics` by default
    id_of : returns what is compared with the gold for a retrieved node: its id by default; `lambda n:
        n.node.ref_doc_id` for the document. A sequence replaces the node by several ids (the sources of a summary); a
        node with None is skipped.
    num_workers : questions run at once
    on_error : "raise" the error of the first failed question after all have run, or "record" it in `failures`

    Raises
    ------
    ConfigurationError
        Before any call, if there are no questions, two have the same id, or one has no gold.
    """
    return run_steps(_retriever(retriever, queries, name, metrics, id_of, num_workers, show_progress, on_error))


async def aevaluate_retriever(
    retriever: BaseRetriever,
    queries: Sequence[LabelledQuery],
    *,
    name: str = "",
    metrics: Mapping[str, Metric] | None = None,
    id_of: IdOf | None = None,
    num_workers: int = 1,
    show_progress: bool = False,
    on_error: OnError = "raise",
) -> Evaluation:
    """:func:`evaluate_retriever` through the retriever's asynchronous methods."""
    return await arun_steps(_retriever(retriever, queries, name, metrics, id_of, num_workers, show_progress, on_error))


def evaluate_query_engine(
    engine: BaseQueryEngine,
    queries: Sequence[LabelledQuery],
    *,
    name: str = "",
    num_workers: int = 1,
    show_progress: bool = False,
    on_error: OnError = "raise",
) -> Evaluation:
    """Query an engine with every question and score the answers by exact match (`EM`) and token F1 (`F1`).

    Parameters and errors as in :func:`evaluate_retriever`, with `answers` instead of `gold`.
    """
    return run_steps(_engine(engine, queries, name, num_workers, show_progress, on_error))


async def aevaluate_query_engine(
    engine: BaseQueryEngine,
    queries: Sequence[LabelledQuery],
    *,
    name: str = "",
    num_workers: int = 1,
    show_progress: bool = False,
    on_error: OnError = "raise",
) -> Evaluation:
    """:func:`evaluate_query_engine` through the engine's asynchronous methods."""
    return await arun_steps(_engine(engine, queries, name, num_workers, show_progress, on_error))


def _retriever(
    retriever: BaseRetriever,
    queries: Sequence[LabelledQuery],
    name: str,
    metrics: Mapping[str, Metric] | None,
    id_of: IdOf | None,
    num_workers: int,
    show_progress: bool,
    on_error: OnError,
) -> Steps[Evaluation]:
    _check(queries, "gold", on_error)

    def ranking(query: LabelledQuery) -> Steps[list[str]]:
        nodes = yield from call(retriever.retrieve, retriever.aretrieve, query.question)
        return [item for node in nodes for item in ids_of(node, id_of)]

    jobs = [partial(ranking, query) for query in queries]
    outcomes = yield from gather(jobs, num_workers, "Retrieving", show_progress)
    rankings, failures = sort_out(queries, outcomes, on_error)
    left = [query for query in queries if query.id in rankings]
    title = name or type(retriever).__name__
    scores = score_rankings(title, rankings, left, metrics).scores if left else {}
    return Evaluation(title, tuple(query.id for query in left), scores, failures)


def _engine(
    engine: BaseQueryEngine,
    queries: Sequence[LabelledQuery],
    name: str,
    num_workers: int,
    show_progress: bool,
    on_error: OnError,
) -> Steps[Evaluation]:
    _check(queries, "answers", on_error)

    def answer(query: LabelledQuery) -> Steps[str]:
        return str((yield from call(engine.query, engine.aquery, query.question)))

    jobs = [partial(answer, query) for query in queries]
    outcomes = yield from gather(jobs, num_workers, "Answering", show_progress)
    replies, failures = sort_out(queries, outcomes, on_error)
    left = [query for query in queries if query.id in replies]
    scores = {
        "EM": tuple(exact_match(replies[query.id], query.answers) for query in left),
        "F1": tuple(answer_f1(replies[query.id], query.answers) for query in left),
    }
    return Evaluation(name or type(engine).__name__, tuple(query.id for query in left), scores, failures, replies)


def sort_out(
    queries: Sequence[LabelledQuery], outcomes: Sequence[Outcome[T]], on_error: OnError
) -> tuple[dict[str, T], dict[str, str]]:
    """The values by the id of their question, and the errors of the others; with "raise" the first error is raised."""
    values: dict[str, T] = {}
    failures: dict[str, str] = {}
    for query, outcome in zip(queries, outcomes, strict=True):
        if outcome.error is None or on_error == "raise":
            values[query.id] = outcome.unwrap()
        else:
            failures[query.id] = f"{type(outcome.error).__name__}: {outcome.error}"
    return values, failures


def _check(queries: Sequence[LabelledQuery], needed: Literal["gold", "answers"], on_error: OnError) -> None:
    check_choice("on_error", on_error, ON_ERROR)
    check_queries(queries, needed)
