"""Answers of a comparison: from contexts of the same size for all systems."""

from collections.abc import Sequence
from dataclasses import dataclass

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.llms import LLM

from llama_index.ragkit.compare.questions import Question
from llama_index.ragkit.evaluation import Evaluation, LabelledQuery, Reader, evaluate_answers
from llama_index.ragkit.extraction.context import Estimate
from llama_index.ragkit.llm.cache import ExtractionCache
from llama_index.ragkit.text.tokens import count_tokens

__all__ = ["Answering"]

_ANSWER_TOKENS = 20  # of a short answer


@dataclass(frozen=True)
class Answering:
    """How questions are answered from contexts of equal size; no question where neither can be told."""

    queries: Sequence[LabelledQuery]
    tokens: int
    reader: Reader | None

    @classmethod
    def of(
        cls, asked: Sequence[Question], tokens: int, llm: LLM | None, cache: ExtractionCache | None, read: bool
    ) -> "Answering":
        """The questions that have answers; if none has, all of them where they are to be read."""
        reader = None if llm is None else Reader(llm, cache=cache)
        queries = [LabelledQuery(str(i), each.text, answers=each.answers) for i, each in enumerate(asked)]
        known = [query for query in queries if query.answers]
        return cls(known or (queries if read and reader is not None else []), tokens, reader)

    def estimate(self, systems: int) -> dict[str, Estimate]:
        """The calls for all answers, if any."""
        calls = systems * len(self.queries)
        if self.reader is None or not calls:
            return {}
        prompt = self.tokens + count_tokens(self.reader.prompt(self.reader.style).get_template())
        return {"answers of all systems": Estimate(calls, calls * prompt, calls * _ANSWER_TOKENS)}

    def answers(self, name: str, retriever: BaseRetriever, show_progress: bool) -> Evaluation:
        """What a system's contexts hold, and what the LLM answers from them."""
        return evaluate_answers(
            retriever,
            self.queries,
            self.reader,
            name=name,
            token_budget=self.tokens,
            show_progress=show_progress,
            on_error="record",
        )
