"""Graders of answers: the metrics of texts that the papers use, a judge of correctness, and a judge of pairs."""

import json
import re
from collections.abc import Callable, Sequence
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import Any

from llama_index.core.evaluation import CorrectnessEvaluator

from benchmarks.embedding import minilm_folder
from benchmarks.papers.experiment import Answered, Grader
from benchmarks.papers.unusable import CountingJudge, or_else
from llama_index.pgrag.evaluation import bert_scores, bleu, quest_eval, rouge_l
from llama_index.ragkit.evaluation import CRITERIA, Evaluation, LabelledQuery, judge_answers

__all__ = [
    "bert_score",
    "best_of",
    "correct",
    "has_wordnet",
    "meteor",
    "precisions",
    "preferred",
    "quest_f1",
    "text_metrics",
]


def best_of(metric: Callable[[str, str], float]) -> Grader:
    """A metric of (reference, answer): for each answer the best over the references."""

    def grade(given: Answered) -> list[float]:
        return [max(metric(answer, given.answers[query.id]) for answer in query.answers) for query in given.queries]

    return grade


def precisions(order: int) -> Callable[[str, str], float]:
    """BLEU of n-grams of up to `order` words by sacrebleu, in [0, 1]."""

    def score(reference: str, text: str) -> float:
        from sacrebleu.metrics.bleu import BLEU

        metric = BLEU(max_ngram_order=order, effective_order=True, lowercase=True)
        return float(metric.sentence_score(text, [reference]).score) / 100

    return score


def text_metrics() -> dict[str, Grader]:
    """BLEU and ROUGE-L, of characters in Chinese."""
    return {"BLEU": best_of(bleu), "ROUGE-L": best_of(rouge_l)}


@cache
def _wordnet() -> Any:
    """WordNet where NLTK has it on this machine, else None: nothing is fetched."""
    try:
        from nltk.corpus import wordnet

        wordnet.ensure_loaded()
    except (ImportError, LookupError):
        return None
    return wordnet


def has_wordnet() -> bool:
    """Whether :func:`meteor` can be computed."""
    return _wordnet() is not None


def meteor(reference: str, text: str) -> float:
    """METEOR by NLTK, of words in lower case: equal, of one stem, or synonyms in WordNet; NaN without WordNet."""
    wordnet = _wordnet()
    if wordnet is None:
        return float("nan")
    from nltk.translate.meteor_score import single_meteor_score

    words = [re.findall(r"\w+", each) for each in (reference, text)]
    return float(single_meteor_score(*words, wordnet=wordnet))


@lru_cache(maxsize=1)
def _bert_scorer(model: str) -> Any:
    """The scorer of a language, of "minilm", or of the model in a folder; of the latter two, their last layer."""
    try:
        from bert_score import BERTScorer
    except ImportError:
        raise SystemExit("BERTScore needs a package: pip install bert-score") from None
    folder = minilm_folder() if model == "minilm" else Path(model)
    if not folder.is_dir():
        return BERTScorer(lang=model)
    layers = json.loads((folder / "config.json").read_text(encoding="utf-8"))["num_hidden_layers"]
    return BERTScorer(model_type=str(folder), num_layers=layers)


def bert_score(given: Answered) -> Sequence[float]:
    """F1 of BERTScore with the model of `--bert-score`, 0 for no answer; NaN where it was not asked for."""
    model = given.lab.options.bert_score
    if not model:
        return [float("nan")] * len(given.queries)
    said = {query.id: query.answers[0] for query in given.queries if given.answers[query.id].strip()}
    scores = bert_scores(list(said.values()), [given.answers[name] for name in said], _bert_scorer(model))
    found = dict(zip(said, scores, strict=True))
    return [found.get(query.id, 0.0) for query in given.queries]


def quest_f1(given: Answered) -> list[float]:
    """F1 of RAGQuestEval, two calls an answer; 0 where their replies cannot be used."""
    llm = given.lab.llm

    def score(query: LabelledQuery) -> float:
        return quest_eval(query.answers[0], given.answers[query.id], llm).f1

    return [or_else(llm, partial(score, query), 0.0) for query in given.queries]


def correct(given: Answered) -> list[float]:
    """Whether LlamaIndex's `CorrectnessEvaluator` gives an answer at least four of five points, one call each."""
    judge = CorrectnessEvaluator(llm=given.lab.llm)
    return [
        float(bool(judge.evaluate(query.question, given.answers[query.id], reference=query.answers[0]).passing))
        for query in given.queries
    ]


def preferred() -> dict[str, Grader]:
    """By each criterion how often an answer is preferred to the baseline's, and how often both orders agree.

    Two calls each, with places swapped.
    """
    columns = {f"{name}{what}": (name, what) for name in CRITERIA for what in ("", ", agreement")}
    return {column: partial(_preferred, name, what) for column, (name, what) in columns.items()}


def _preferred(criterion: str, what: str, given: Answered) -> Sequence[float]:
    if given.base is None:
        return [1.0 if what else 0.5] * len(given.queries)
    ids = tuple(query.id for query in given.queries)
    first = Evaluation("own", ids, {}, answers=given.answers)
    second = Evaluation("base", ids, {}, answers=given.base)
    judge = CountingJudge(given.lab.llm, criteria={criterion: CRITERIA[criterion]})
    judged = partial(judge_answers, judge, given.queries, first, second, num_workers=given.lab.options.workers)
    found: Evaluation = given.lab.once(repr((criterion, given.answers)), judged)
    return found.scores[criterion + what]
