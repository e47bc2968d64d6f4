"""Evaluation of retrievers, readers and query engines on labelled questions, with confidence intervals."""

from llama_index.ragkit.evaluation.answering import aevaluate_answers, evaluate_answers
from llama_index.ragkit.evaluation.answers import answer_f1, answer_tokens, exact_match
from llama_index.ragkit.evaluation.bootstrap import Interval, bootstrap_interval, paired_bootstrap
from llama_index.ragkit.evaluation.citations import citation_precision, citation_recall, cited_places
from llama_index.ragkit.evaluation.containment import answer_containment, answer_recall, can_be_contained
from llama_index.ragkit.evaluation.contexts import Context, context_of
from llama_index.ragkit.evaluation.llm_step import LLMStep
from llama_index.ragkit.evaluation.metrics import (
    all_recall_at_k,
    as_labels,
    category_ratio,
    ndcg_at_k,
    recall_at_k,
    reciprocal_rank,
    success_ratio,
    weighted_ratio,
)
from llama_index.ragkit.evaluation.pairwise import CRITERIA, PairwiseJudge, Verdict, ajudge_answers, judge_answers
from llama_index.ragkit.evaluation.reader import Reader, ReaderAnswer, chosen_option
from llama_index.ragkit.evaluation.results import Evaluation, LabelledQuery, comparison_table, difference_table
from llama_index.ragkit.evaluation.runner import (
    aevaluate_query_engine,
    aevaluate_retriever,
    evaluate_query_engine,
    evaluate_retriever,
)
from llama_index.ragkit.evaluation.scoring import multi_aspect_metrics, retrieval_metrics, score_rankings

__all__ = [
    "CRITERIA",
    "Context",
    "Evaluation",
    "Interval",
    "LLMStep",
    "LabelledQuery",
    "PairwiseJudge",
    "Reader",
    "ReaderAnswer",
    "Verdict",
    "aevaluate_answers",
    "aevaluate_query_engine",
    "aevaluate_retriever",
    "ajudge_answers",
    "all_recall_at_k",
    "answer_containment",
    "answer_f1",
    "answer_recall",
    "answer_tokens",
    "as_labels",
    "bootstrap_interval",
    "can_be_contained",
    "category_ratio",
    "chosen_option",
    "citation_precision",
    "citation_recall",
    "cited_places",
    "comparison_table",
    "context_of",
    "difference_table",
    "evaluate_answers",
    "evaluate_query_engine",
    "evaluate_retriever",
    "exact_match",
    "judge_answers",
    "multi_aspect_metrics",
    "ndcg_at_k",
    "paired_bootstrap",
    "recall_at_k",
    "reciprocal_rank",
    "retrieval_metrics",
    "score_rankings",
    "success_ratio",
    "weighted_ratio",
]
