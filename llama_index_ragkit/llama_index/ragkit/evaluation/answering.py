"""Scores contexts of a retriever by the answers that they hold, and the answers that a reader gives from them."""

from collections.abc import Sequence
from functools import partial

from llama_index.core.base.base_retriever import BaseRetriever

from llama_index.ragkit.errors import ConfigurationError
from llama_index.ragkit.evaluation.answers import answer_f1, exact_match
from llama_index.ragkit.evaluation.citations import citation_precision, citation_recall
from llama_index.ragkit.evaluation.containment import answer_containment, answer_recall
from llama_index.ragkit.evaluation.contexts import Context, IdOf, context_of
from llama_index.ragkit.evaluation.reader import Reader, ReaderAnswer
from llama_index.ragkit.evaluation.results import Evaluation, LabelledQuery
from llama_index.ragkit.evaluation.runner import sort_out
from llama_index.ragkit.evaluation.scoring import check_queries
from llama_index.ragkit.steps import Steps, arun_steps, call, gather, run_steps
from llama_index.ragkit.validation import ON_ERROR, OnError, check_choice, check_count

__all__ = ["aevaluate_answers", "answer_scores", "evaluate_answers"]


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
) -> Evaluation:
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
    return run_steps(
        _answers(retriever, queries, reader, name, token_budget, id_of, num_workers, show_progress, on_error)
    )


async def aevaluate_answers(
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
) -> Evaluation:
    """:func:`evaluate_answers` through asynchronous methods."""
    return await arun_steps(
        _answers(retriever, queries, reader, name, token_budget, id_of, num_workers, show_progress, on_error)
    )


def _answers(
    retriever: BaseRetriever | None,
    queries: Sequence[LabelledQuery],
    reader: Reader | None,
    name: str,
    token_budget: int | None,
    id_of: IdOf | None,
    num_workers: int,
    show_progress: bool,
    on_error: OnError,
) -> Steps[Evaluation]:
    check_choice("on_error", on_error, ON_ERROR)
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

    outcomes = yield from gather([partial(answer, query) for query in queries], num_workers, "Answering", show_progress)
    done, failures = sort_out(queries, outcomes, on_error)
    left = [query for query in queries if query.id in done]
    rows = [answer_scores(query, *done[query.id], reader) for query in left]
    scores = {metric: tuple(row[metric] for row in rows) for metric in (rows[0] if rows else ())}
    title = name or ("no context" if retriever is None else type(retriever).__name__)
    replies = {query.id: reading.answer for query in left if (reading := done[query.id][1]) is not None}
    return Evaluation(title, tuple(query.id for query in left), scores, failures, replies)


def answer_scores(
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
        return {**scores, "accuracy": float(chosen in query.answers)}
    scores["F1"] = answer_f1(reading.answer, query.answers)
    if reader.style == "citations":
        cited = {name for place in reading.cited for name in context.ids[place]}
        precision, recall = citation_precision(cited, query.gold), citation_recall(cited, query.gold)
        return {**scores, "citation precision": precision, "citation recall": recall}
    return {**scores, "EM": exact_match(reading.answer, query.answers)}
