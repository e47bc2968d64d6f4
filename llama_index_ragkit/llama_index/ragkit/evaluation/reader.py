"""`Reader`: a language model answers a question from a context."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from llama_index.core.llms import LLM
from llama_index.core.prompts import BasePromptTemplate

from llama_index.ragkit.errors import ParseError
from llama_index.ragkit.evaluation.choices import chosen_option, lettered
from llama_index.ragkit.evaluation.citations import cited_places, without_citations
from llama_index.ragkit.evaluation.llm_step import LLMStep
from llama_index.ragkit.evaluation.reader_prompts import (
    CHAIN_OF_THOUGHT_PROMPT,
    CITATIONS_PROMPT,
    MULTIPLE_CHOICE_PROMPT,
    PLAIN_PROMPT,
)
from llama_index.ragkit.llm.cache import ExtractionCache
from llama_index.ragkit.llm.prompts import fence
from llama_index.ragkit.llm.reasoning import strip_reasoning
from llama_index.ragkit.llm.retry import RetryPolicy
from llama_index.ragkit.steps import Steps, arun_steps, run_steps
from llama_index.ragkit.validation import check_choice

__all__ = ["STYLES", "Reader", "ReaderAnswer", "Style"]

Style = Literal["plain", "chain_of_thought", "multiple_choice", "citations"]
STYLES: tuple[str, ...] = get_args(Style)
_REPLY_TOKENS = {"plain": 128, "chain_of_thought": 512, "multiple_choice": 256, "citations": 512}
_ANSWER = re.compile(r"\banswer(?:\s+is)?\s*[:：]", re.IGNORECASE)


@dataclass(frozen=True)
class ReaderAnswer:
    """A reader's answer to a question from its passages.

    Attributes
    ----------
    reply : what the model wrote
    answer : the answer alone, without the thoughts before it and without citations
    option : for a multiple-choice question, the place of the chosen option, from 0; None if it is unclear
    cited : places of the cited passages, from 0
    """

    reply: str
    answer: str
    option: int | None = None
    cited: tuple[int, ...] = ()


class Reader(LLMStep):
    """Answers questions from passages, with one call each, as the last step of an experiment.

    Parameters
    ----------
    style : "plain" asks for the answer alone; "chain_of_thought" for thoughts and then the answer, with one worked
        example; "multiple_choice" for the letter of an option; "citations" for sentences that cite passages by number
    llm, cache, retry : see :class:`LLMStep`
    prompts : {style: prompt} replaces the default prompt; variables `passages` and `question`, and `options` for
        "multiple_choice"

    Raises
    ------
    ConfigurationError
        If the style is unknown, or a prompt has none of its variables.
    """

    default_prompts = {  # noqa: RUF012 - read only
        "plain": PLAIN_PROMPT,
        "chain_of_thought": CHAIN_OF_THOUGHT_PROMPT,
        "multiple_choice": MULTIPLE_CHOICE_PROMPT,
        "citations": CITATIONS_PROMPT,
    }

    def __init__(
        self,
        llm: LLM | None = None,
        *,
        style: Style = "plain",
        prompts: Mapping[str, BasePromptTemplate] | None = None,
        cache: ExtractionCache | str | Path | None = None,
        retry: RetryPolicy | None = None,
    ) -> None:
        check_choice("style", style, STYLES)
        self.style = style
        super().__init__(llm, prompts=prompts, cache=cache, retry=retry)

    def read(self, question: str, passages: Sequence[str], options: Sequence[str] = ()) -> ReaderAnswer:
        """Answer a question.

        Parameters
        ----------
        passages : the context, best first; none at all asks what the model knows by itself
        options : for the style "multiple_choice", 2 to 26

        Raises
        ------
        ExtractionError
            If the model gave no reply.
        """
        return run_steps(self.steps(question, passages, options))

    async def aread(self, question: str, passages: Sequence[str], options: Sequence[str] = ()) -> ReaderAnswer:
        """:meth:`read` through the model's asynchronous methods."""
        return await arun_steps(self.steps(question, passages, options))

    def steps(self, question: str, passages: Sequence[str], options: Sequence[str] = ()) -> Steps[ReaderAnswer]:
        """:meth:`read` as steps."""
        given: dict[str, Any] = {"options": lettered(options)} if self.style == "multiple_choice" else {}
        reply = yield from self.context().complete(
            self.prompt(self.style),
            parse=_text,
            reply_tokens=_REPLY_TOKENS[self.style],
            passages=fence(passages) if passages else "(no passages)",
            question=question,
            **given,
        )
        return self._reading(reply, len(passages), options)

    def _reading(self, reply: str, count: int, options: Sequence[str]) -> ReaderAnswer:
        if self.style == "citations":
            return ReaderAnswer(reply, without_citations(reply), cited=cited_places(reply, count))
        answer = _last_answer(reply, thinks=self.style == "chain_of_thought")
        return ReaderAnswer(reply, answer, chosen_option(answer, options) if self.style == "multiple_choice" else None)


def _text(reply: str) -> str:
    text = strip_reasoning(reply).strip()
    if not text:
        raise ParseError("The reply is empty.")
    return text


def _last_answer(reply: str, thinks: bool) -> str:
    """The text after the last "Answer:"; without one the whole reply, or its last line after thoughts."""
    pieces = _ANSWER.split(reply)
    if len(pieces) > 1 and pieces[-1].strip():
        return pieces[-1].strip().splitlines()[0].strip()
    return reply.splitlines()[-1].strip() if thinks else reply
