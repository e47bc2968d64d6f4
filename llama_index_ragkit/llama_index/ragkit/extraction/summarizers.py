"""`Summarizer`, the base of summarizers, and `LLMSummarizer`."""

import math
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, ClassVar

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.llms import LLM
from llama_index.core.prompts import BasePromptTemplate

from llama_index.ragkit.extraction.context import Estimate, ExtractionContext
from llama_index.ragkit.llm.announcements import plain_answer, whole_sentences
from llama_index.ragkit.llm.cache import ExtractionCache
from llama_index.ragkit.llm.completion import RetryPolicy, find_llm
from llama_index.ragkit.llm.context_window import TAG_TOKENS, PromptTexts, prompt_room, within
from llama_index.ragkit.llm.prompts import SUMMARY_PROMPT, PromptHolder
from llama_index.ragkit.steps import Steps, offload
from llama_index.ragkit.text.held import LEAST_IN_TEXT, TextWords, held_prose
from llama_index.ragkit.text.sentences import sentence_spans
from llama_index.ragkit.text.tokens import count_tokens
from llama_index.ragkit.validation import check_count, check_number

__all__ = ["LLMSummarizer", "Summarizer"]

_DEFAULT_RETRY = RetryPolicy()
_FAR_OVER = 1.5  # times the budget; longer summaries are truncated
_CHATTER = 64  # tokens of an introduction before a summary
_MOST_CHARACTERS = 100  # per token of the budget; truncates runaway replies
_WORDS_PER_TOKEN = 0.75  # in English; the prompt also states the budget in words, since models cannot count tokens


class Summarizer(PromptHolder, ABC):
    """Base of components that summarise several texts in one."""

    needs_llm: ClassVar[bool] = True
    without_llm: ClassVar[str] = "summarizer=ExtractiveSummarizer()"  # what to use if there is no LLM
    prompts: Mapping[str, BasePromptTemplate] = MappingProxyType({})

    @property
    @abstractmethod
    def fingerprint(self) -> dict[str, str]:
        """The properties that all summaries of an index must share."""

    def check_llm(self, llm: LLM | None) -> None:
        """Raise a `ConfigurationError` if a language model is needed and there is none; `llm` is that of the index."""

    @staticmethod
    def lengths(max_tokens: int) -> dict[str, Any]:
        """The variables of a prompt for the requested length."""
        return {"max_tokens": max_tokens, "max_words": max(1, round(max_tokens * _WORDS_PER_TOKEN))}

    def estimate(self, tokens: float, texts: float, max_tokens: int, llm: LLM | None = None) -> Estimate:
        """The LLM work for a summary of some texts with so many tokens together: one call, unless a subclass overrides
        it.
        """
        return Estimate(1, round(tokens), max_tokens)

    @abstractmethod
    def summarize(
        self,
        texts: Sequence[str],
        *,
        max_tokens: int,
        embed_model: BaseEmbedding,
        llm: LLM | None = None,
        cache: ExtractionCache | None = None,
        user: str = "",
    ) -> Steps[tuple[str, list[str]]]:
        """Summarise texts, given in reading order.

        Parameters
        ----------
        max_tokens : the requested length, at least 1
        embed_model, llm : the index's, for summarizers that need one and have none of their own
        cache, user : the cache of replies, and the user of its entries

        Returns
        -------
        summary : "" if the texts are empty
        cache_keys : entries of the cache that were used, to be released with the summary

        Raises
        ------
        ConfigurationError
            If `max_tokens` is below 1.
        ExtractionError
            If no summary could be written.
        """


class LLMSummarizer(Summarizer):
    """Summaries by a language model, of approximately the requested length.

    Texts that do not fit the model's context window together are summarised in parts, and then the summaries are
    summarised. The prompt states the budget. Only a reply of more than one and a half times the budget is truncated to
    it, at the end of a sentence, or after 100 characters per token if there is none.

    Parameters
    ----------
    llm : default that of the index, else `Settings.llm`; resolved when first needed
    prompt : replaces :data:`~llama_index.ragkit.llm.prompts.SUMMARY_PROMPT`; variables `passages` (the texts
        between tags), `max_tokens`, `max_words`
    retry : an empty reply counts as a failure
    same_language : whether a summary that is clearly in another language than the texts is refused; switch it off if
        the prompt asks for a translation [True]
    min_in_text : least share of a summary's words, not counting those of the prompt, that the texts must have, in
        [0, 1]. A summary below it is a failure; sentences in which the model speaks of itself are left out. 0 for no
        check; without `same_language` there is none either [0.2]
    """

    default_prompts: ClassVar[Mapping[str, BasePromptTemplate]] = {"summary": SUMMARY_PROMPT}

    def __init__(
        self,
        llm: LLM | None = None,
        prompt: BasePromptTemplate | None = None,
        retry: RetryPolicy = _DEFAULT_RETRY,
        same_language: bool = True,
        min_in_text: float = LEAST_IN_TEXT,
    ) -> None:
        self._llm = llm
        self._same_language = same_language
        self._min_in_text = check_number("min_in_text", min_in_text, 0, 1) if same_language else 0.0
        self._retry = retry
        if prompt is not None:
            self.update_prompts({next(iter(self.default_prompts)): prompt})

    @property
    def fingerprint(self) -> dict[str, str]:
        """Class and prompt, without the model, so that it can be replaced by a better one."""
        return {"class": type(self).__name__, **self.prompt_versions()}

    def check_llm(self, llm: LLM | None) -> None:
        """See :meth:`Summarizer.check_llm`."""
        find_llm(self._llm or llm, self.without_llm)

    def summarize(
        self,
        texts: Sequence[str],
        *,
        max_tokens: int,
        embed_model: BaseEmbedding | None = None,
        llm: LLM | None = None,
        cache: ExtractionCache | None = None,
        user: str = "",
    ) -> Steps[tuple[str, list[str]]]:
        """One call, or more for texts that are longer than the model reads; see :meth:`Summarizer.summarize`."""
        check_count("max_tokens", max_tokens, 1)
        passages = [text.strip() for text in texts if text.strip()]
        if not passages:
            return "", []
        model = find_llm(self._llm or llm, self.without_llm)
        context = ExtractionContext(
            model, cache, user, self._retry, prompts=self._get_prompts(), same_language=self._same_language
        )
        while True:
            room = self._room(model, max_tokens)
            summary = yield from self._of_parts(context, passages, max_tokens, room)
            # If the server takes less than the model declares, it did not receive the whole texts: ask again.
            if self._room(model, max_tokens) >= room:
                return summary, context.cache_keys

    def _of_parts(self, context: ExtractionContext, texts: Sequence[str], max_tokens: int, room: int) -> Steps[str]:
        """The summary of texts if there is room for them, else of the summaries of as few parts as possible."""
        parts = yield from offload(within, texts, room)
        if len(parts) == 1:
            return (yield from self._summary(context, texts, max_tokens))
        summaries = []
        for part in parts:
            each = _part_tokens(max_tokens, room)
            summaries.append((yield from self._summary(context, [text for _, text in part], each)))
        if len((yield from offload(within, summaries, room))) >= len(parts):  # summaries that are too long to get fewer
            return (yield from self._summary(context, summaries, max_tokens))
        return (yield from self._of_parts(context, summaries, max_tokens, room))

    def _summary(self, context: ExtractionContext, passages: Sequence[str], max_tokens: int) -> Steps[str]:
        prompt = self.prompt("summary")
        words, task = TextWords("\n".join(passages)), TextWords(prompt.get_template())
        summary = yield from context.complete(
            prompt,
            parse=partial(_read, words=words, task=task, least=self._min_in_text),
            like="\n".join(passages),
            reply_tokens=_reply_tokens(max_tokens),
            passages=PromptTexts(passages, evenly=True),
            **self.lengths(max_tokens),
        )
        return _cut_back(summary, max_tokens)

    def _room(self, llm: LLM | None, max_tokens: int) -> int:
        return prompt_room(llm, self.prompt("summary"), _reply_tokens(max_tokens), **self.lengths(max_tokens))

    def estimate(self, tokens: float, texts: float, max_tokens: int, llm: LLM | None = None) -> Estimate:
        """As for every summarizer, with the instructions, and with the summaries of parts."""
        room = self._room(self._llm or llm, max_tokens)
        instructions, each = count_tokens(self.prompt("summary").get_template()), _part_tokens(max_tokens, room)
        size = tokens + TAG_TOKENS * texts
        work = Estimate(1, round(size) + instructions, max_tokens)
        while size > room:
            parts = math.ceil(size / room)
            size = parts * (each + TAG_TOKENS)
            work += Estimate(parts, round(size) + parts * instructions, parts * each)
        return work


def _reply_tokens(max_tokens: int) -> int:
    return round(_FAR_OVER * max_tokens) + _CHATTER


def _part_tokens(max_tokens: int, room: int) -> int:
    """The length of the summary of a part; a prompt has room for at least two such summaries."""
    return max(1, min(max_tokens, room // 4))


def _read(reply: str, words: TextWords, task: TextWords, least: float) -> str:
    return held_prose(whole_sentences(plain_answer(reply)), words, task, least)


def _cut_back(text: str, max_tokens: int) -> str:
    text = text[: _MOST_CHARACTERS * max_tokens]
    if count_tokens(text) <= _FAR_OVER * max_tokens:
        return text
    ends = [end for _, end in sentence_spans(text)] or [len(text)]
    fitting = bisect_right(ends, max_tokens, key=lambda end: count_tokens(text[:end]))
    return text[: ends[max(fitting, 1) - 1]]
