"""Resolvers: judge which names of a document are the same entity, beyond the rules on names."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar

from llama_index.core.llms import LLM
from llama_index.core.prompts import BasePromptTemplate

from llama_index.graphrag.graph.candidates import CandidatePair
from llama_index.graphrag.prompts import RESOLVE_PROMPT
from llama_index.graphrag.replies import YesNo, read_yes_no
from llama_index.ragkit import ExtractionCache, ExtractionContext, RetryPolicy, Steps
from llama_index.ragkit.llm.completion import find_llm
from llama_index.ragkit.llm.context_window import PromptTexts
from llama_index.ragkit.llm.prompts import PromptHolder
from llama_index.ragkit.steps import immediate
from llama_index.ragkit.validation import check_number

__all__ = ["CosineResolver", "EntityResolver", "LLMResolver"]

_DEFAULT_RETRY = RetryPolicy()


class EntityResolver(PromptHolder, ABC):
    """Base of components that judge which names are the same entity.

    Candidates are names of one document with the same type and the same numbers, whose vectors are near enough
    (:mod:`llama_index.graphrag.graph.candidates`). A judgement depends only on the pair, so an index that grew equals
    one that was built at once.

    Attributes
    ----------
    needs_llm : whether it calls an LLM

    Parameters
    ----------
    threshold : least cosine of two names, in [-1, 1]; it depends on the embedding model

    Raises
    ------
    ConfigurationError
        If the threshold is out of range.
    """

    needs_llm: ClassVar[bool] = False
    method: ClassVar[str] = "graphrag"
    prompts: Mapping[str, BasePromptTemplate]

    def __init__(self, threshold: float) -> None:
        self.threshold = check_number("threshold", threshold, -1, 1)
        self.prompts = {}

    @property
    def fingerprint(self) -> dict[str, str]:
        """Class, threshold and prompts; the model is not included, so you can replace it with a better one."""
        return {"class": type(self).__name__, "threshold": str(self.threshold), **self.prompt_versions()}

    @abstractmethod
    def same(
        self, pair: CandidatePair, *, llm: LLM | None = None, cache: ExtractionCache | None = None, user: str = ""
    ) -> Steps[tuple[bool, list[str]]]:
        """Whether two names are the same entity.

        Parameters
        ----------
        llm : the LLM of the index, for a resolver that needs one and has none
        cache, user : the cache of replies, and the user of its entries

        Returns
        -------
        The judgement, and the keys of the used cache entries.

        Raises
        ------
        ExtractionError
            If the model gave no usable reply.
        """


class CosineResolver(EntityResolver):
    """Every candidate is the same entity.

    Parameters
    ----------
    threshold : see :class:`EntityResolver` [0.95]
    """

    def __init__(self, threshold: float = 0.95) -> None:
        super().__init__(threshold)

    @immediate
    def same(
        self, pair: CandidatePair, *, llm: LLM | None = None, cache: ExtractionCache | None = None, user: str = ""
    ) -> tuple[bool, list[str]]:
        """Always yes, without a call."""
        return True, []


class LLMResolver(EntityResolver):
    """A language model says yes or no to each candidate, from up to three statements about each name.

    Parameters
    ----------
    threshold : see :class:`EntityResolver` [0.8]
    llm : default the LLM of the index, else `Settings.llm`; resolved when first needed
    prompt : replaces `RESOLVE_PROMPT`; variables `kind`, `first`, `second`, `statements`
    retry : how calls are retried; a reply that is neither yes nor no counts as a failure
    """

    needs_llm: ClassVar[bool] = True
    default_prompts: ClassVar[Mapping[str, BasePromptTemplate]] = {"resolve": RESOLVE_PROMPT}

    def __init__(
        self,
        threshold: float = 0.8,
        llm: LLM | None = None,
        prompt: BasePromptTemplate | None = None,
        retry: RetryPolicy = _DEFAULT_RETRY,
    ) -> None:
        super().__init__(threshold)
        self._llm = llm
        self._retry = retry
        if prompt is not None:
            self.update_prompts({"resolve": prompt})

    def same(
        self, pair: CandidatePair, *, llm: LLM | None = None, cache: ExtractionCache | None = None, user: str = ""
    ) -> Steps[tuple[bool, list[str]]]:
        """One call."""
        model = find_llm(self._llm or llm, "resolver=CosineResolver()")
        context = ExtractionContext(model, cache, user, self._retry, prompts=self._get_prompts(), same_language=False)
        answer = yield from context.complete(
            self.prompt("resolve"),
            parse=read_yes_no,
            output_cls=YesNo,
            reply_tokens=64,
            kind=pair.kind or "thing",
            first=pair.spellings[0],
            second=pair.spellings[1],
            statements=PromptTexts(
                ["\n".join(lines) or "(nothing more is said)" for lines in pair.lines], "statements", evenly=True
            ),
        )
        return answer, context.cache_keys
