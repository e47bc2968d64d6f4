"""`IRCoTRetriever`: retrieval interleaved with chain-of-thought reasoning, over any retriever."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.instrumentation import get_dispatcher  # type: ignore[attr-defined]
from llama_index.core.llms import LLM
from llama_index.core.prompts import BasePromptTemplate
from llama_index.core.schema import MetadataMode, NodeWithScore, QueryBundle
from llama_index.core.settings import Settings

from llama_index.hipporag.prompts import THOUGHT_PROMPT, thought_prompt
from llama_index.ragkit import RetryPolicy, Steps
from llama_index.ragkit.errors import ConfigurationError, ExtractionError
from llama_index.ragkit.index.query import report_fallback
from llama_index.ragkit.index.results import fresh
from llama_index.ragkit.llm.announcements import plain_answer
from llama_index.ragkit.llm.completion import complete
from llama_index.ragkit.llm.context_window import PromptTexts
from llama_index.ragkit.llm.prompts import PromptHolder, fence
from llama_index.ragkit.steps import arun_steps, call, run_steps
from llama_index.ragkit.validation import check_choice, check_count

__all__ = ["Demonstration", "IRCoTRetriever"]

logger = logging.getLogger(__name__)
dispatcher = get_dispatcher(__name__)
_PAPER_STEPS = {"musique": 4, "hotpotqa": 2, "2wiki": 2}
_STEP_TOKENS = 200  # of one step of a chain of thought


@dataclass(frozen=True)
class Demonstration:
    """A worked example of a chain of thought.

    Attributes
    ----------
    passages : the retrieved passages, including some that do not help
    question : the question
    thoughts : the steps, at least one, one sentence each; the last has the answer after the text that ends the loop

    Raises
    ------
    ConfigurationError
        If `thoughts` is empty, or one text.
    """

    passages: Sequence[str]
    question: str
    thoughts: Sequence[str]

    def __post_init__(self) -> None:
        if not self.thoughts or isinstance(self.thoughts, str):
            raise ConfigurationError(f"thoughts must be a list of at least one step, not {self.thoughts!r}.")


class IRCoTRetriever(PromptHolder, BaseRetriever):
    """Interleaves retrieval with a chain of thought (Trivedi et al., ACL 2023), over any LlamaIndex retriever.

    1. Passages are retrieved for the question.
    2. A language model reads the passages so far and writes the next reasoning step, one sentence.
    3. A step that contains `stop` ends the loop; otherwise the step is the next query, its passages are added, and 2
    is repeated, for at most `max_steps` retrievals. With one retrieval, no LLM is called.

    A passage that is retrieved several times has the highest of its scores, so the scores are on the retriever's
    scale. If the model fails, the passages so far are returned, and a `FallbackEvent` says why.

    Parameters
    ----------
    retriever : the retriever to call
    llm : writes the reasoning steps; default `Settings.llm`
    max_steps : maximum number of retrievals, at least 1 [4: the paper's for MuSiQue; 2 for HotpotQA and 2Wiki]
    similarity_top_k : maximum number of nodes, in the result and in each prompt
    stop : text that ends the loop, case-insensitive; as published
    demonstrations : worked examples of whole chains before the question, in place of the default one, which has one
        step; the paper uses one, for a question of the same data set
    prompts : {"thought": ...} replaces the default prompt; variables `passages`, `question` and `thoughts`
    """

    default_prompts = {"thought": THOUGHT_PROMPT}  # noqa: RUF012 - read only

    def __init__(
        self,
        retriever: BaseRetriever,
        *,
        llm: LLM | None = None,
        max_steps: int = 4,
        similarity_top_k: int = 10,
        stop: str = "so the answer is:",
        demonstrations: Sequence[Demonstration] = (),
        prompts: Mapping[str, BasePromptTemplate] | None = None,
        retry: RetryPolicy | None = None,
        **kwargs: Any,
    ) -> None:
        self.retriever = retriever
        self.max_steps = check_count("max_steps", max_steps, 1)
        self.similarity_top_k = check_count("similarity_top_k", similarity_top_k, 1)
        self.stop = stop
        shown = [(fence(each.passages), fence([each.question], "question"), each.thoughts) for each in demonstrations]
        self.prompts = {**({"thought": thought_prompt(shown)} if shown else {}), **(prompts or {})}
        self.check_prompts(self.prompts)
        self._llm = llm
        self._retry = retry or RetryPolicy()
        super().__init__(**kwargs)

    @staticmethod
    def paper(data: Literal["musique", "hotpotqa", "2wiki"] = "musique") -> dict[str, Any]:
        """The values of HippoRAG's paper (appendix H): `IRCoTRetriever(retriever, **IRCoTRetriever.paper())`.

        You must pass the demonstration yourself: the paper takes a question of the training data. The retriever must
        give ten nodes, as many as the paper retrieves at each step.

        Parameters
        ----------
        data : the data set of the questions; it determines the number of steps

        Raises
        ------
        ConfigurationError
            If there is no such data set.
        """
        return {"max_steps": _PAPER_STEPS[check_choice("data", data, tuple(_PAPER_STEPS))], "similarity_top_k": 10}

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return run_steps(self._steps(query_bundle))

    @dispatcher.span
    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return await arun_steps(self._steps(query_bundle))

    def _steps(self, bundle: QueryBundle) -> Steps[list[NodeWithScore]]:
        best: dict[str, NodeWithScore] = {}
        reasoning: list[str] = []
        query = bundle.query_str
        for step in range(1, self.max_steps + 1):
            step_bundle = QueryBundle(query_str=query)  # a new one: retrievers may modify their bundle
            found = yield from call(self.retriever.retrieve, self.retriever.aretrieve, step_bundle)
            for result in found:
                known = best.get(result.node.node_id)
                if known is None or result.get_score() > known.get_score():
                    best[result.node.node_id] = fresh(result.node, result.get_score())
            ranked = sorted(best.values(), key=lambda result: -result.get_score())[: self.similarity_top_k]
            if step == self.max_steps or not ranked:
                break
            sentence = yield from self._next_sentence(bundle.query_str, ranked, reasoning)
            if sentence is None or self.stop.casefold() in sentence.casefold():
                break
            reasoning.append(sentence)
            query = sentence
        return ranked

    def _next_sentence(
        self, question: str, ranked: Sequence[NodeWithScore], reasoning: Sequence[str]
    ) -> Steps[str | None]:
        try:
            return (
                yield from complete(
                    self._llm or Settings.llm,
                    self.prompt("thought"),
                    parse=_one_line,
                    retry=self._retry,
                    name="thought",
                    like=question,
                    reply_tokens=_STEP_TOKENS,
                    passages=PromptTexts([r.node.get_content(metadata_mode=MetadataMode.LLM) for r in ranked]),
                    question=fence([question], "question"),
                    thoughts="\n".join(reasoning) or "(none)",
                )
            )
        except ExtractionError as error:
            logger.warning("The chain of thought ends after %d steps: %s", len(reasoning), error)
            report_fallback("ircot", question, f"the chain of thought ended after {len(reasoning)} steps: {error}")
            return None


def _one_line(reply: str) -> str:
    """The model's reply on one line, without its internal reasoning and without an introduction."""
    return " ".join(plain_answer(reply).split())
