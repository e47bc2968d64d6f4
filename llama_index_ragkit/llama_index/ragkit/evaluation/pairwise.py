"""Pairwise judging of answers by a language model, each pair in both orders."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from llama_index.core.llms import LLM
from llama_index.core.prompts import BasePromptTemplate

from llama_index.ragkit.errors import ConfigurationError, ParseError
from llama_index.ragkit.evaluation.llm_step import LLMStep
from llama_index.ragkit.evaluation.results import Evaluation, LabelledQuery
from llama_index.ragkit.evaluation.runner import ask_all
from llama_index.ragkit.llm.cache import ExtractionCache
from llama_index.ragkit.llm.prompts import fence, with_example
from llama_index.ragkit.llm.reasoning import strip_reasoning
from llama_index.ragkit.llm.retry import RetryPolicy
from llama_index.ragkit.steps import Steps, arun_steps, asynchronous, run_steps, synchronous
from llama_index.ragkit.validation import OnError

__all__ = ["CRITERIA", "PairwiseJudge", "Verdict", "ajudge_answers", "judge_answers"]

CRITERIA = MappingProxyType(
    {
        "comprehensiveness": "How much detail does the answer give to cover all aspects of the question?",
        "diversity": "How varied and rich are the perspectives and insights that the answer gives on the question?",
        "empowerment": "How well does the answer help the reader to understand the topic and judge it soundly?",
        "directness": "How specifically and clearly does the answer address the question?",
    }
)
"""The criteria of Edge et al. 2024 ("From Local to Global"), in our words: name -> what is asked."""

_WINNER = re.compile(r"\b(?:winner|better)\W*(?:is\W*)?(?:answer\W*)?(1|2|0|tie|both|neither)\b", re.IGNORECASE)
_ALONE = re.compile(r"\W*(?:answer\W*)?(1|2|0|tie|both|neither)\W*", re.IGNORECASE)
_REPLY_TOKENS = 300

JUDGE_PROMPT = with_example(
    "Two answers to a question stand between tags. Compare them by the criterion alone, whatever their order, and not "
    'by their length. Give a reason of one sentence, then a last line "Winner: 1", "Winner: 2" or "Winner: tie".',
    "Criterion: How specifically and clearly does the answer address the question?\nQuestion: When did the glassworks "
    'of Bergslund close?\n\n<answer number="1">\nIt closed in 1904, after a fire.\n</answer>\n\n<answer number="2">\n'
    "Glassworks closed in many places in those years.\n</answer>",
    "Only the first answer names the year.\nWinner: 1",
    "Now the same for another question.\n\nCriterion: {criterion}\nQuestion: {question}\n\n{answers}",
)


@dataclass(frozen=True)
class Verdict:
    """A judge's verdict on two answers, asked in both orders.

    Attributes
    ----------
    score : of the first answer: the mean over both orders of 1 (better), 0.5 (tie) and 0
    agrees : whether both orders have the same outcome
    """

    score: float
    agrees: bool


class PairwiseJudge(LLMStep):
    """Compares two answers by some criteria, with two calls a criterion: the second with the answers swapped.

    Language models favour the answer in one of the two places. Asked in both orders, a judge that only looks at the
    place gives 0.5. How often both orders agree shows how far a judge can be trusted.

    Parameters
    ----------
    criteria : name -> the question by which answers are compared
    llm, cache, retry : see :class:`LLMStep`
    prompts : {"judge": ...} replaces the default prompt; variables `criterion`, `question` and `answers`

    Raises
    ------
    ConfigurationError
        If there are no criteria, or a prompt has none of its variables.
    """

    default_prompts = {"judge": JUDGE_PROMPT}  # noqa: RUF012 - read only

    def __init__(
        self,
        llm: LLM | None = None,
        *,
        criteria: Mapping[str, str] = CRITERIA,
        prompts: Mapping[str, BasePromptTemplate] | None = None,
        cache: ExtractionCache | str | Path | None = None,
        retry: RetryPolicy | None = None,
    ) -> None:
        if not criteria:
            raise ConfigurationError("criteria is empty: there is nothing to compare answers by.")
        self.criteria = dict(criteria)
        super().__init__(llm, prompts=prompts, cache=cache, retry=retry)

    def compare(self, question: str, first: str, second: str) -> dict[str, Verdict]:
        """The verdict on two answers to a question, by each criterion."""
        return run_steps(self.steps(question, first, second))

    async def acompare(self, question: str, first: str, second: str) -> dict[str, Verdict]:
        """:meth:`compare` through the model's asynchronous methods."""
        return await arun_steps(self.steps(question, first, second))

    def steps(self, question: str, first: str, second: str) -> Steps[dict[str, Verdict]]:
        """:meth:`compare` as steps."""
        verdicts = {}
        for name, criterion in self.criteria.items():
            shown = yield from self._outcome(criterion, question, first, second)
            swapped = 1 - (yield from self._outcome(criterion, question, second, first))
            verdicts[name] = Verdict((shown + swapped) / 2, shown == swapped)
        return verdicts

    def _outcome(self, criterion: str, question: str, first: str, second: str) -> Steps[float]:
        """1.0 if the answer that is shown first is better, 0.0 if the other is, 0.5 for a tie."""
        return (
            yield from self.context().complete(
                self.prompt("judge"),
                parse=_winner,
                reply_tokens=_REPLY_TOKENS,
                criterion=criterion,
                question=question,
                answers=fence([first, second], "answer"),
            )
        )


def _winner(reply: str) -> float:
    text = strip_reasoning(reply)
    found = _WINNER.findall(text)
    alone = _ALONE.fullmatch(text)
    said = found[-1] if found else alone[1] if alone else ""
    if not said:
        raise ParseError('The reply names no winner: end with "Winner: 1", "Winner: 2" or "Winner: tie".')
    return {"1": 1.0, "2": 0.0}.get(said, 0.5)


@synchronous
def judge_answers(
    judge: PairwiseJudge,
    queries: Sequence[LabelledQuery],
    first: Evaluation,
    second: Evaluation,
    *,
    num_workers: int = 1,
    show_progress: bool = False,
    on_error: OnError = "raise",
) -> Steps[Evaluation]:
    """Judge the answers of two systems to the same questions.

    The metrics of the result are, for each criterion, the score of `first` (0.5 where both are as good) and
    `<criterion>, agreement`: the share of the questions on which both orders have the same outcome.

    Parameters
    ----------
    first, second : with their answers, as :func:`evaluate_answers` and :func:`evaluate_query_engine` return them

    Raises
    ------
    ConfigurationError
        Before any call, if a question has no answer of one of the systems.
    """
    queries = list(queries)
    if not queries:
        raise ConfigurationError("There are no questions to judge.")
    for system in (first, second):
        missing = [query.id for query in queries if query.id not in system.answers]
        if missing:
            raise ConfigurationError(
                f"{system.name!r} has no answer to {len(missing)} questions, such as {missing[:3]}: evaluate it with "
                "a reader, and leave out the questions that failed."
            )

    def ask(query: LabelledQuery) -> Steps[dict[str, Verdict]]:
        return judge.steps(query.question, first.answers[query.id], second.answers[query.id])

    verdicts, failures = yield from ask_all(queries, ask, "Judging", num_workers, show_progress, on_error)
    scores: dict[str, tuple[float, ...]] = {}
    for name in judge.criteria:
        scores[name] = tuple(verdict[name].score for verdict in verdicts.values())
        scores[f"{name}, agreement"] = tuple(float(verdict[name].agrees) for verdict in verdicts.values())
    return Evaluation(f"{first.name} against {second.name}", tuple(verdicts), scores, failures)


ajudge_answers = asynchronous(judge_answers)
""":func:`judge_answers` through the model's asynchronous methods."""
