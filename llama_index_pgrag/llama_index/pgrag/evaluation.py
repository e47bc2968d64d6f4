"""The metrics of the paper for generated texts (section 3.2): BLEU, ROUGE-L, BERTScore, RAGQuestEval.

BLEU comes from `sacrebleu` (the extra `evaluation`), ROUGE-L from `rouge-score`, BERTScore from a scorer that you pass.
RAGQuestEval (Lyu et al. 2024, CRUD-RAG) uses a language model: questions are generated from the reference and answered
from the text. With the answers a of the reference and b of the text,

    precision = mean F1(b, a)        recall = share of questions that the text answers

(Eq. 10 and 11); F1_QE is their harmonic mean. A question that the text does not answer has an F1 of 0.
"""

import re
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from llama_index.pgrag.maps.verification import bert_scores, rouge_l
from llama_index.pgrag.prompts import QUESTIONS_PROMPT, QUIZ_PROMPT
from llama_index.ragkit import RetryPolicy, Steps
from llama_index.ragkit.errors import ParseError
from llama_index.ragkit.evaluation import answer_f1
from llama_index.ragkit.llm.completion import complete
from llama_index.ragkit.llm.context_window import PromptTexts
from llama_index.ragkit.llm.json.output import find_values, to_plain
from llama_index.ragkit.steps import arun_steps, run_steps
from llama_index.ragkit.text.characters import HAN
from llama_index.ragkit.validation import check_count

__all__ = ["QuestEval", "aquest_eval", "bert_scores", "bleu", "quest_eval", "rouge_l"]

UNANSWERABLE = "<Unanswerable>"
_RETRY = RetryPolicy()

_HAN = re.compile(f"[{HAN}]")


def bleu(reference: str, text: str) -> float:
    """Sentence BLEU-4 with exponential smoothing, in [0, 1]; Chinese is tokenized by characters, as in sacrebleu.

    Raises
    ------
    ImportError
        Without the extra `evaluation`.
    """
    try:
        from sacrebleu.metrics.bleu import BLEU
    except ImportError as error:
        raise ImportError('bleu() needs sacrebleu: pip install "llama-index-pgrag[evaluation]"') from error
    chinese = len(_HAN.findall(reference))
    tokenize = "zh" if 2 * chinese > len(reference.replace(" ", "")) else "13a"
    return float(BLEU(effective_order=True, tokenize=tokenize).sentence_score(text, [reference]).score) / 100


@dataclass(frozen=True)
class QuestEval:
    """The result of RAGQuestEval.

    Attributes
    ----------
    questions, answers, replies : questions generated from the reference, its answers, and the answers of the text (""
        if it has none)
    precision, recall, f1 : in [0, 1]
    """

    questions: list[str]
    answers: list[str]
    replies: list[str]
    precision: float
    recall: float
    f1: float


def quest_eval(
    reference: str, text: str, llm: Any, *, max_questions: int = 10, retry: RetryPolicy = _RETRY
) -> QuestEval:
    """RAGQuestEval of a text against a reference, with two LLM calls.

    Raises
    ------
    ExtractionError
        If the model returned no usable reply.
    """
    return run_steps(_quest(reference, text, llm, max_questions, retry))


async def aquest_eval(
    reference: str, text: str, llm: Any, *, max_questions: int = 10, retry: RetryPolicy = _RETRY
) -> QuestEval:
    """As :func:`quest_eval`, with asynchronous calls."""
    return await arun_steps(_quest(reference, text, llm, max_questions, retry))


class _Pair(BaseModel):
    question: str
    answer: str


def _quest(reference: str, text: str, llm: Any, max_questions: int, retry: RetryPolicy) -> Steps[QuestEval]:
    check_count("max_questions", max_questions, 1)
    pairs = yield from complete(
        llm,
        QUESTIONS_PROMPT,
        parse=_read_pairs,
        reply_tokens=64 + 80 * max_questions,
        retry=retry,
        text=PromptTexts([reference], "text"),
        max_questions=max_questions,
    )
    pairs = pairs[:max_questions]
    replies = [""] * len(pairs)
    if text.strip():
        questions = "\n".join(f"{i}. {pair.question}" for i, pair in enumerate(pairs, start=1))
        replies = yield from complete(
            llm,
            QUIZ_PROMPT,
            parse=lambda reply: _read_replies(reply, len(pairs)),
            reply_tokens=64 + 60 * len(pairs),
            retry=retry,
            text=PromptTexts([text], "text"),
            questions=questions,
            unanswerable=UNANSWERABLE,
        )
    scores = [answer_f1(reply, pair.answer) if reply else 0.0 for reply, pair in zip(replies, pairs, strict=True)]
    precision = sum(scores) / len(scores)
    recall = sum(map(bool, replies)) / len(replies)
    f1 = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
    return QuestEval([p.question for p in pairs], [p.answer for p in pairs], replies, precision, recall, f1)


def _read_pairs(reply: str) -> list[_Pair]:
    for value in find_values(reply):
        plain = to_plain(value)
        found = plain if isinstance(plain, list) else [plain]
        pairs = [
            _Pair(**{key: str(entry[key]) for key in ("question", "answer")}) for entry in found if _is_pair(entry)
        ]
        if pairs:
            return pairs
    raise ParseError("The reply contains no question with an answer.")


def _is_pair(entry: Any) -> bool:
    return isinstance(entry, dict) and all(str(entry.get(key) or "").strip() for key in ("question", "answer"))


def _read_replies(reply: str, count: int) -> list[str]:
    for value in find_values(reply):
        plain = to_plain(value)
        if isinstance(plain, list) and len(plain) == count:
            return ["" if "unanswerable" in str(entry).casefold() else str(entry).strip() for entry in plain]
    raise ParseError(f"The reply is not a list of {count} answers.")
