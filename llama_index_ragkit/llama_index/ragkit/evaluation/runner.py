"""Runs retrievers, query engines and readers over labelled questions, and scores what they return."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.schema import MetadataMode, NodeWithScore

from llama_index.ragkit.errors import ConfigurationError
from llama_index.ragkit.evaluation.answers import (
    answer_containment,
    answer_f1,
    answer_list,
    answer_recall,
    citation_precision,
    citation_recall,
    exact_match,
)
from llama_index.ragkit.evaluation.metrics import Metric, check_queries, score_rankings
from llama_index.ragkit.evaluation.reader import Reader, ReaderAnswer
from llama_index.ragkit.evaluation.results import Evaluation, LabelledQuery
from llama_index.ragkit.index.results import fit_tokens
from llama_index.ragkit.steps import Steps, asynchronous, call, gather, synchronous
from llama_index.ragkit.text.tokens import count_tokens
from llama_index.ragkit.validation import ON_ERROR, OnError, check_choice, check_count

__all__ = [
    "Context",
    "IdOf",
    "aevaluate_answers",
    "aevaluate_query_engine",
    "aevaluate_retriever",
    "ask_all",
    "context_of",
    "evaluate_answers",
    "evaluate_query_engine",
    "evaluate_retriever",
    "ids_of",
]

T = TypeVar("T")

IdOf = Callable[[NodeWithScore], "str | Sequence[str] | None"]


@synchronous
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
) -> Steps[Evaluation]:
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
    queries = check_queries(queries, "gold")

    def ranking(query: LabelledQuery) -> Steps[list[str]]:
        nodes = yield from call(retriever.retrieve, retriever.aretrieve, query.question)
        return [item for node in nodes for item in ids_of(node, id_of)]

    rankings, failures = yield from ask_all(queries, ranking, "Retrieving", num_workers, show_progress, on_error)
    left = [query for query in queries if query.id in rankings]
    title = name or type(retriever).__name__
    scores = score_rankings(title, rankings, left, metrics).scores if left else {}
    return Evaluation(title, tuple(rankings), scores, failures)


aevaluate_retriever = asynchronous(evaluate_retriever)
""":func:`evaluate_retriever` through the retriever's asynchronous methods."""


@synchronous
def evaluate_query_engine(
    engine: BaseQueryEngine,
    queries: Sequence[LabelledQuery],
    *,
    name: str = "",
    num_workers: int = 1,
    show_progress: bool = False,
    on_error: OnError = "raise",
) -> Steps[Evaluation]:
    """Query an engine with every question and score the answers by exact match (`EM`) and token F1 (`F1`).

    Parameters and errors as in :func:`evaluate_retriever`, with `answers` instead of `gold`.
    """
    queries = check_queries(queries, "answers")

    def answer(query: LabelledQuery) -> Steps[str]:
        return str((yield from call(engine.query, engine.aquery, query.question)))

    replies, failures = yield from ask_all(queries, answer, "Answering", num_workers, show_progress, on_error)
    right = {query.id: query.answers for query in queries}
    scores = {
        metric: tuple(score(reply, right[query_id]) for query_id, reply in replies.items())
        for metric, score in (("EM", exact_match), ("F1", answer_f1))
    }
    return Evaluation(name or type(engine).__name__, tuple(replies), scores, failures, replies)


aevaluate_query_engine = asynchronous(evaluate_query_engine)
""":func:`evaluate_query_engine` through the engine's asynchronous methods."""


def ask_all(
    queries: Sequence[LabelledQuery],
    ask: Callable[[LabelledQuery], Steps[T]],
    description: str,
    num_workers: int,
    show_progress: bool,
    on_error: OnError,
) -> Steps[tuple[dict[str, T], dict[str, str]]]:
    """What is found for each question by its id, and the errors of the others; with "raise" the first is raised."""
    check_choice("on_error", on_error, ON_ERROR)
    outcomes = yield from gather([partial(ask, query) for query in queries], num_workers, description, show_progress)
    values: dict[str, T] = {}
    failures: dict[str, str] = {}
    for query, outcome in zip(queries, outcomes, strict=True):
        if outcome.error is None or on_error == "raise":
            values[query.id] = outcome.unwrap()
        else:
            failures[query.id] = f"{type(outcome.error).__name__}: {outcome.error}"
    return values, failures


@dataclass(frozen=True)
class Context:
    """Passages for a question.

    Attributes
    ----------
    texts : of the passages, best first, with the metadata that an LLM sees
    ids : of each passage, those that are compared with the gold
    tokens : of all texts together
    """

    texts: tuple[str, ...] = ()
    ids: tuple[tuple[str, ...], ...] = ()
    tokens: int = 0


def context_of(results: Sequence[NodeWithScore], token_budget: int | None = None, id_of: IdOf | None = None) -> Context:
    """The best results that fit the budget; one that does not is skipped, and the next is tried.

    Parameters
    ----------
    token_budget : tokens of all texts together, by LlamaIndex's tokenizer; None for no limit
    id_of : see :func:`~llama_index.ragkit.evaluation.evaluate_retriever`
    """
    kept = fit_tokens(results, token_budget)
    texts = tuple(result.node.get_content(metadata_mode=MetadataMode.LLM) for result in kept)
    return Context(texts, tuple(ids_of(result, id_of) for result in kept), sum(map(count_tokens, texts)))


def ids_of(result: NodeWithScore, id_of: IdOf | None) -> tuple[str, ...]:
    """The ids of a result: that of its node, or what `id_of` says."""
    given = result.node.node_id if id_of is None else id_of(result)
    return (given,) if isinstance(given, str) else tuple(given or ())


@synchronous
def evaluate_answers(
    retriever: BaseRetriever | None,
    queries: Sequence[LabelledQuery],
    reader: Reader | None = None,
    *,
    name: str = "",
    token_budget: int | None = None,
    id_of: IdOf | None = None,
    num_workers: int = 1,
    show_progress: bool = False,
    on_error: OnError = "raise",
) -> Steps[Evaluation]:
    """Fill a context for every question, let a reader answer from it, and score both.

    Systems are compared at equal `token_budget`: a retriever of long passages would otherwise win by length alone.

    - Of the context: `contained` (:func:`answer_containment`), `answer recall` (:func:`answer_recall`) and its
      `tokens`.
    - With a reader: `EM` and `F1`; for the style "multiple_choice" `accuracy`, where an answer that chooses no option
      is wrong; for "citations" `F1`, `citation precision` and `citation recall` of the gold passages.

    If there is a reader and no question has `answers`, the reader's answers are returned but not scored.

    Parameters
    ----------
    retriever : any LlamaIndex retriever; it must find enough to fill the context. None for no context at all
    queries : questions with `answers`; with `options` for a reader of multiple choice, with `gold` for one that cites
    reader : None to score only contexts, which needs no LLM
    name : name of the system in the result; the retriever's class by default
    token_budget : tokens of a context; a passage that does not fit is skipped. None for all that is retrieved
    id_of, num_workers, on_error : see :func:`evaluate_retriever`

    Raises
    ------
    ConfigurationError
        Before any call, if there are no questions, two have the same id, one lacks what is needed, or neither a
        retriever nor a reader is given.
    """
    queries = list(queries)
    if reader is None or not queries or any(query.answers for query in queries):
        check_queries(queries, "answers")
    if reader is not None and reader.style == "citations":
        check_queries(queries, "gold")
    if reader is not None and reader.style == "multiple_choice":
        check_queries(queries, "options")
    if token_budget is not None:
        check_count("token_budget", token_budget, 1)
    if retriever is None and reader is None:
        raise ConfigurationError("Without a retriever and without a reader there is nothing to score: pass one.")

    def answer(query: LabelledQuery) -> Steps[tuple[Context, ReaderAnswer | None]]:
        context = Context()
        if retriever is not None:
            found = yield from call(retriever.retrieve, retriever.aretrieve, query.question)
            context = context_of(found, token_budget, id_of)
        if reader is None:
            return context, None
        return context, (yield from reader.steps(query.question, context.texts, query.options))

    done, failures = yield from ask_all(queries, answer, "Answering", num_workers, show_progress, on_error)
    rows = [_answer_scores(query, *done[query.id], reader) for query in queries if query.id in done]
    scores = {metric: tuple(row[metric] for row in rows) for metric in (rows[0] if rows else ())}
    title = name or ("no context" if retriever is None else type(retriever).__name__)
    replies = {query_id: reading.answer for query_id, (_, reading) in done.items() if reading is not None}
    return Evaluation(title, tuple(done), scores, failures, replies)


aevaluate_answers = asynchronous(evaluate_answers)
""":func:`evaluate_answers` through asynchronous methods."""


def _answer_scores(
    query: LabelledQuery, context: Context, reading: ReaderAnswer | None, reader: Reader | None
) -> dict[str, float]:
    """The scores of one context, and of a reader's answer from it; see :func:`evaluate_answers`."""
    scores = {"tokens": float(context.tokens)}
    if not query.answers:
        return scores
    scores["contained"] = answer_containment(context.texts, query.answers)
    scores["answer recall"] = answer_recall(context.texts, query.answers)
    if reading is None or reader is None:
        return scores
    if reader.style == "multiple_choice":
        chosen = None if reading.option is None else query.options[reading.option]
        return {**scores, "accuracy": float(chosen in answer_list(query.answers))}
    scores["F1"] = answer_f1(reading.answer, query.answers)
    if reader.style == "citations":
        cited = {name for place in reading.cited for name in context.ids[place]}
        precision, recall = citation_precision(cited, query.gold), citation_recall(cited, query.gold)
        return {**scores, "citation precision": precision, "citation recall": recall}
    return {**scores, "EM": exact_match(reading.answer, query.answers)}
