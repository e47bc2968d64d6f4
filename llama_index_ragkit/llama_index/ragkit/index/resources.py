"""`Resources`: models, extractor, summarizer and cache of an index, and the number of concurrent calls."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Protocol, TypeVar, runtime_checkable

import numpy as np
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.callbacks.base import CallbackManager
from llama_index.core.embeddings.utils import EmbedType, resolve_embed_model
from llama_index.core.llms import LLM
from llama_index.core.llms.utils import LLMType, resolve_llm
from llama_index.core.prompts.mixin import PromptMixin
from llama_index.core.schema import BaseNode, QueryBundle, QueryType
from llama_index.core.settings import Settings
from llama_index.core.storage.kvstore.types import BaseKVStore
from numpy.typing import NDArray

from llama_index.ragkit.errors import ConfigurationError
from llama_index.ragkit.extraction.context import Extraction
from llama_index.ragkit.extraction.failure_watch import FailureWatch
from llama_index.ragkit.extraction.node_extractor import NodeExtractor
from llama_index.ragkit.extraction.summarizers import Summarizer
from llama_index.ragkit.llm.cache import Claims, ExtractionCache
from llama_index.ragkit.llm.completion import find_llm
from llama_index.ragkit.llm.embeddings import check_length, embed_query, embed_texts, given_vector, strings_to_embed
from llama_index.ragkit.llm.prices import Prices, check_prices
from llama_index.ragkit.llm.usage import note_rules, status
from llama_index.ragkit.redaction import redact
from llama_index.ragkit.short_repr import ShortRepr
from llama_index.ragkit.steps import Outcome, Steps, gather
from llama_index.ragkit.validation import ON_ERROR, OnError, check_choice, check_count

__all__ = ["CacheType", "Component", "Resources"]

T = TypeVar("T")
CacheType = ExtractionCache | BaseKVStore | str | Path


@runtime_checkable
class Component(Protocol):
    """An exchangeable part of a method that later writes must share: extractor, summarizer, clustering."""

    @property
    def fingerprint(self) -> dict[str, str]:
        """The properties that later writes must share."""


class Resources(ShortRepr):
    """The models and components of an index; those from `Settings` are resolved when first needed.

    Parameters
    ----------
    llm, embed_model : default to `Settings`
    adapt_embed_model : adapts the embedding model to the method [no change]
    dimension : the length of the index's vectors, None while it has none [unknown]
    extractor : extracts records from nodes, for methods that have one
    fallback : an extractor without an LLM, which reads the nodes at which `extractor` fails
    summarizer : writes summaries, for methods that have them
    fallback_summarizer : a summarizer without an LLM, which writes the summaries at which `summarizer` fails
    falls_back : whether rules write what a model fails at, in methods that have rules of their own for it
    num_workers : maximum number of concurrent LLM calls, at least 1
    on_error : what happens when the LLM step of a node fails after all retries: "record" or "raise"
    cache : stores replies of the LLM; None keeps them in memory
    prices : what a million tokens cost; None to tell no cost
    callback_manager : default that of `Settings`
    show_progress : whether to show progress bars

    Raises
    ------
    ConfigurationError
        If a parameter is invalid.
    """

    def __init__(
        self,
        *,
        llm: LLMType | None = None,
        embed_model: EmbedType | None = None,
        adapt_embed_model: Callable[[BaseEmbedding], BaseEmbedding] | None = None,
        dimension: Callable[[], int | None] = lambda: None,
        extractor: NodeExtractor | None = None,
        fallback: NodeExtractor | None = None,
        summarizer: Summarizer | None = None,
        fallback_summarizer: Summarizer | None = None,
        falls_back: bool = False,
        num_workers: int = 4,
        on_error: OnError = "record",
        cache: CacheType | None = None,
        prices: Prices | None = None,
        callback_manager: CallbackManager | None = None,
        show_progress: bool = False,
    ) -> None:
        self.callback_manager = callback_manager or Settings.callback_manager
        self.extractor = extractor
        self.fallback = fallback
        self.summarizer = summarizer
        self.fallback_summarizer = fallback_summarizer
        self.falls_back = falls_back and on_error == "record"
        self.num_workers = check_count("num_workers", num_workers, 1)
        self.on_error: OnError = check_choice("on_error", on_error, ON_ERROR)
        self.show_progress = show_progress
        if prices is not None:
            check_prices(prices)
        self.prices = prices
        self.cache = cache if isinstance(cache, ExtractionCache) else ExtractionCache(cache)
        self.cache_given = cache is not None
        self._llm = llm
        self._embed_model = None if embed_model is None else resolve_embed_model(embed_model, self.callback_manager)
        self._adapt_embed_model = adapt_embed_model
        self._dimension = dimension

    @property
    def llm(self) -> LLM:
        """The language model: the one passed, or else `Settings.llm`."""
        resolved = resolve_llm(self._llm, callback_manager=self.callback_manager) if self._llm else Settings.llm
        self._llm = resolved
        return resolved

    @property
    def given_llm(self) -> LLM | None:
        """The language model passed to the index; components have their own, or use that of `Settings`."""
        return None if self._llm is None else self.llm

    @property
    def embed_model(self) -> BaseEmbedding:
        """The embedding model: the one passed, or else `Settings.embed_model`, adapted to the method."""
        if self._embed_model is None:
            self._embed_model = Settings.embed_model
        if self._adapt_embed_model is not None:
            self._embed_model = self._adapt_embed_model(self._embed_model)
        return self._embed_model

    @property
    def components(self) -> dict[str, Component]:
        """Extractor and summarizer by role, if any."""
        parts = {"extractor": self.extractor, "summarizer": self.summarizer}
        return {role: part for role, part in parts.items() if part is not None}

    @property
    def prompted(self) -> dict[str, PromptMixin]:
        """Components with prompts, by role."""
        return {role: part for role, part in self.components.items() if isinstance(part, PromptMixin)}

    def check_llms(self, *, summarizer: bool) -> None:
        """Check that the extractor, and the `summarizer` if it is called, have a language model if they need one.

        Raises
        ------
        ConfigurationError
        """
        for part in (self.extractor, self.summarizer if summarizer else None):
            if part is not None:
                part.check_llm(self.given_llm)

    # -- work -----------------------------------------------------------------------------------------

    def embed(self, texts: Sequence[str], name: str = "texts") -> Steps[NDArray[np.float32]]:
        """Vectors of texts, shape (len(texts), d); see :func:`~llama_index.ragkit.llm.embeddings.embed_texts`.

        Parameters
        ----------
        name : what the texts are, for the progress bar

        Raises
        ------
        EmbeddingError
            Also if the vectors are not as long as those of the index, so that none of another length is stored.
        """
        vectors = yield from embed_texts(self.embed_model, texts, self.show_progress, name)
        if len(vectors):
            check_length(vectors.shape[1], self._dimension())
        return vectors

    def embed_query(self, query: QueryType, dimension: int | None) -> Steps[NDArray[np.float32]]:
        """The vector of a question; see :func:`~llama_index.ragkit.llm.embeddings.embed_query`."""
        return (yield from embed_query(self.embed_model, query, dimension))

    def embed_strings(self, query: QueryBundle, dimension: int | None) -> Steps[list[NDArray[np.float32]]]:
        """The vectors of several strings to embed that came with a question, or else its own."""
        texts = strings_to_embed(query)
        if len(texts) > 1 and given_vector(query, dimension) is None:
            return list((yield from self.embed(texts)))
        return [(yield from self.embed_query(query, dimension))]

    def extract(
        self, nodes: Sequence[BaseNode], cache_user: Callable[[str], str], siblings: Sequence[BaseNode] = ()
    ) -> Steps[list[Extraction]]:
        """The results of the extractor for nodes, in their order; empty ones without an extractor.

        Parameters
        ----------
        cache_user : node id -> the node's user name in the cache
        siblings : see :meth:`NodeExtractor.extract`
        """
        if self.extractor is None:
            return [Extraction(node.node_id, {}) for node in nodes]
        found = yield from self.extractor.extract(
            nodes,
            siblings=siblings,
            cache=self.cache,
            user_prefix=cache_user(""),
            llm=self.given_llm,
            embed_model=lambda: self.embed_model,
            num_workers=self.num_workers,
            show_progress=self.show_progress,
            on_error=self.on_error,
            falls_back=self.fallback is not None,
        )
        found = yield from self._with_fallback(nodes, found, siblings)
        return found if self.cache_given else [replace(extraction, cache_keys=[]) for extraction in found]

    def _with_fallback(
        self, nodes: Sequence[BaseNode], found: list[Extraction], siblings: Sequence[BaseNode]
    ) -> Steps[list[Extraction]]:
        """Extractions, with those of the fallback in place of the records that are missing."""
        failed = [node for node, each in zip(nodes, found, strict=True) if each.record is None]
        if self.fallback is None or not failed:
            return found
        read = yield from self.fallback.extract(
            failed, siblings=[*siblings, *nodes], embed_model=lambda: self.embed_model, on_error="record"
        )
        by = type(self.fallback).__name__
        records = {each.node_id: each.record for each in read if each.record is not None}
        first = next(each.error or "" for each in found if each.record is None)
        self.note_fallback(by, self.extractor, (len(records), len(nodes)), "nodes", first)
        return [
            replace(each, record=records[each.node_id], by=by) if each.node_id in records else each for each in found
        ]

    def summarize(
        self, texts: Sequence[str], max_tokens: int, user: str, by: Summarizer | None = None
    ) -> Steps[tuple[str, list[str]]]:
        """One summary of texts, and the keys of the cache entries that it used.

        Parameters
        ----------
        by : who writes it; default `summarizer`
        """
        writer = by or self.summarizer
        if writer is None:
            raise TypeError("This index has no summarizer.")
        text, keys = yield from writer.summarize(
            texts,
            max_tokens=max_tokens,
            embed_model=self.embed_model,
            llm=self.given_llm,
            cache=self.cache,
            user=user,
        )
        return text, keys if self.cache_given else []

    def note_fallback(self, by: str, instead_of: object, counts: tuple[int, int], what: str, reason: str) -> None:
        """Note that rules stand in for a model, which the log tells at the end of the write.

        Parameters
        ----------
        by : the class that stands in
        instead_of : the component that failed
        counts : how many it did, of how many
        what : these are, in the plural
        reason : why the first failed
        """
        own = getattr(instead_of, "llm", None) or getattr(instead_of, "_llm", None) or self.given_llm
        try:
            model = find_llm(own).metadata.model_name
        except ConfigurationError:  # a component may have a client of its own
            model = "unknown"
        done = f"{what}: {by} for {type(instead_of).__name__}, which failed with the model {model!r}"
        note_rules(done, *counts, reason)

    def reason(self, error: Exception) -> str:
        """Why a step failed, without secrets, as it is stored and logged."""
        return redact(str(error), self._llm, getattr(self.summarizer, "_llm", None))

    def run(
        self,
        jobs: Mapping[str, Callable[[], Steps[T]]],
        watch: FailureWatch,
        name: str,
        description: str,
        *,
        needs_llm: bool = True,
    ) -> Steps[dict[str, Outcome[T]]]:
        """Run jobs that call a model, with a progress bar that says how it does, until `watch` ends the run.

        Parameters
        ----------
        name : of a job in messages, a format of its key
        description : of the bar
        needs_llm : whether `num_workers` run at once, or one
        """
        if not jobs:
            return {}
        watched = [partial(watch.run, job) for job in jobs.values()]
        workers = self.num_workers if needs_llm else 1
        found = yield from gather(watched, workers, description, self.show_progress, status)
        outcomes = dict(zip(jobs, found, strict=True))
        watch.check({name.format(key): outcome for key, outcome in outcomes.items()})
        return outcomes

    def claims(self, prefix: str) -> Claims:
        """The claims of one write in the cache; see :class:`~llama_index.ragkit.llm.cache.Claims`."""
        return Claims(self.cache if self.cache_given else None, prefix)

    def release(self, uses: Mapping[str, Sequence[str]]) -> Steps[None]:
        """Release entries of the cache: keys by user."""
        yield from self.cache.release_many(uses)
