"""`NodeExtractor`: the base of extractors, with a language model or rules.

A subclass implements the extraction from one node, or from the nodes of one document together. The base runs many of
them concurrently, stores results as they arrive, and records which nodes failed and why.
"""

import json
import logging
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, ClassVar

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.llms import LLM
from llama_index.core.prompts import BasePromptTemplate
from llama_index.core.schema import BaseNode, TextNode, TransformComponent
from llama_index.core.storage.kvstore.types import BaseKVStore
from llama_index.core.utils import get_tokenizer
from pydantic import ConfigDict, Field, ValidationError, field_validator

from llama_index.ragkit.core_internals import without_step_spans
from llama_index.ragkit.extraction.context import DocumentLines, Estimate, Extraction, ExtractionContext, Record
from llama_index.ragkit.extraction.extraction_run import ExtractionRun, read_together
from llama_index.ragkit.extraction.failure_watch import FailureWatch
from llama_index.ragkit.llm.cache import ExtractionCache
from llama_index.ragkit.llm.completion import MODES, Mode, RetryPolicy, find_llm, known_llm, model_identity
from llama_index.ragkit.llm.context_window import LEAST_ROOM, prompt_room, window_of
from llama_index.ragkit.llm.prompts import PromptHolder
from llama_index.ragkit.short_repr import ReprText, changed_fields
from llama_index.ragkit.steps import Steps, arun_steps, offload, run_steps
from llama_index.ragkit.storage.nodes import plain_text
from llama_index.ragkit.text.tokens import count_tokens, pieces_of
from llama_index.ragkit.validation import ON_ERROR, Count, OnError, check_choice, choice, refusal

__all__ = ["Estimate", "Extraction", "ExtractionContext", "NodeExtractor", "Record", "merged_records", "node_pieces"]

logger = logging.getLogger(__name__)


class NodeExtractor(TransformComponent, PromptHolder):
    """Base of components that extract a record of JSON types from a node.

    A subclass implements :meth:`extract_node`, with its prompts in `default_prompts` and its parameters as pydantic
    fields, which are part of the fingerprint. It also works in an `IngestionPipeline`, where it stores the record in
    the node's metadata, from which an index takes it.

    Attributes
    ----------
    method : the `method` of the indexes that use its records; "" for any. Indexes of other methods refuse it
    needs_llm : whether it calls an LLM

    Parameters
    ----------
    llm : default that of the index, else `Settings.llm`; resolved when first needed
    prompts : replacements for some of `default_prompts`
    cache, num_workers, show_progress, on_error : for use without an index; see :meth:`extract`
    retry, mode : see :func:`llama_index.ragkit.llm.completion.complete` [mode: "auto"]
    same_language : whether replies that are clearly in another language than their text are refused; switch it off
        if a prompt asks for a translation [True]

    Raises
    ------
    ConfigurationError
        If a parameter is unknown or invalid.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    method: ClassVar[str] = ""
    needs_llm: ClassVar[bool] = True
    without_llm: ClassVar[str] = ""  # what to use if there is no LLM, for error messages
    completion_tokens: ClassVar[int] = 300  # expected tokens per reply, for estimates

    llm: LLM | None = Field(default=None, exclude=True)  # excluded: its serialised form holds the API key
    prompts: dict[str, BasePromptTemplate] = Field(default_factory=dict, exclude=True)
    cache: ExtractionCache | None = Field(default=None, exclude=True)
    retry: RetryPolicy = RetryPolicy()
    mode: Annotated[Mode, choice(MODES)] = "auto"
    num_workers: Count = 4
    same_language: bool = True
    show_progress: bool = False
    on_error: Annotated[OnError, choice(ON_ERROR)] = "record"

    @field_validator("cache", mode="before")
    @classmethod
    def _open_cache(cls, cache: Any) -> Any:
        return ExtractionCache(cache) if isinstance(cache, BaseKVStore | str | Path) else cache

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        super().__pydantic_init_subclass__(**kwargs)
        without_step_spans(cls)

    def __init__(self, **kwargs: Any) -> None:
        try:
            super().__init__(**kwargs)
        except ValidationError as error:
            raise refusal(type(self).__name__, type(self).model_fields, error) from error
        self.check_prompts(self.prompts)

    def __repr_args__(self) -> Iterator[tuple[str, ReprText]]:
        """What pydantic shows: the parameters that differ from their defaults."""
        return changed_fields(self)

    # -- hooks of a subclass ---------------------------------------------------------------------

    @property
    def reads_documents(self) -> bool:
        """Whether the nodes of a document are read together, by :meth:`extract_document`.

        If a write changes or deletes nodes of a document, an index then reads the unchanged ones again too, so that it
        equals an index built from the current document.
        """
        return False

    @abstractmethod
    def extract_node(self, node: BaseNode, context: ExtractionContext) -> Steps[Record]:
        """Extract from one node with text; the LLM is called by `context.complete`. Any exception marks the node as
        failed.
        """

    def extract_document(self, nodes: Sequence[BaseNode], context: ExtractionContext) -> Steps[list[Record]]:
        """Extract from the nodes of a document that are written together, all with text, in reading order.

        Without :attr:`reads_documents` it is called with one node at a time and reads it by :meth:`extract_node`, in
        pieces if it is longer than the model can read at once. A piece that fails is a failure of its node; the
        others are kept. Any exception marks all of the nodes as failed; the replies that arrived before it are cached.

        Returns
        -------
        One record per node.
        """
        pieces = yield from offload(self.pieces, nodes[0], context.llm)
        while True:
            if len(pieces) == 1:
                record: Record | None = yield from self.extract_node(pieces[0], context)
                read = [record]
            else:
                read = []
                for piece in pieces:
                    read.append((yield from context.keep(self.extract_node(piece, context), None)))
            # If the server takes less than the model declares, it may not have received a whole piece: read again.
            smaller = yield from offload(self.pieces, nodes[0], context.llm)
            if len(smaller) <= len(pieces):
                break
            pieces = smaller
            context.lost.clear()
        if read == [None] * len(read):
            raise context.lost[0]
        return [merged_records(each for each in read if each is not None) if len(read) > 1 else read[0] or {}]

    def pieces(self, node: BaseNode, llm: LLM | None) -> list[BaseNode]:
        """The node, or pieces of it if a prompt, its text and the reply do not fit into the window of the model."""
        window = None if llm is None else window_of(llm)
        if window is None or not self.needs_llm:
            return [node]
        tokens = most = count_tokens(plain_text(node))
        for name, prompt in self._get_prompts().items():
            room = prompt_room(llm, prompt, self.reply_tokens(name, tokens))
            while most > LEAST_ROOM and most + self.tokens_beside(name, most) > room:
                most = most * 9 // 10
        return node_pieces(node, max(LEAST_ROOM, most))

    def reply_tokens(self, prompt: str, tokens: int) -> int:
        """The most tokens that the reply to the prompt of this name can need, for a text of `tokens` tokens."""
        return 512 + 2 * tokens

    def tokens_beside(self, prompt: str, tokens: int) -> int:
        """Tokens of the other arguments of the prompt of this name, for a text of `tokens` tokens."""
        return 0

    def estimate_document(
        self, nodes: Sequence[BaseNode], count: Callable[[str], int], llm: LLM | None = None
    ) -> Estimate:
        """The work of :meth:`extract_document`; `count` counts the tokens of a text."""
        pieces = (piece for node in nodes for piece in self.pieces(node, llm))
        return sum((self.estimate_node(piece, count) for piece in pieces), Estimate())

    def estimate_node(self, node: BaseNode, count: Callable[[str], int]) -> Estimate:
        """The work for one node: one call per prompt, unless a subclass overrides it."""
        text = count(plain_text(node))
        prompts = self._get_prompts().values()
        each = (Estimate(1, count(prompt.get_template()) + text, self.completion_tokens) for prompt in prompts)
        return sum(each, Estimate())

    def check_llm(self, llm: LLM | None) -> None:
        """Raise a `ConfigurationError` if a language model is needed and there is none; `llm` is that of the index."""
        if self.needs_llm:
            find_llm(self.llm or llm, self.without_llm)

    # -- many nodes -----------------------------------------------------------------------------------

    def extract(
        self,
        nodes: Sequence[BaseNode],
        *,
        siblings: Sequence[BaseNode] = (),
        cache: ExtractionCache | None = None,
        user_prefix: str = "",
        llm: LLM | None = None,
        embed_model: Callable[[], BaseEmbedding] | None = None,
        num_workers: int | None = None,
        show_progress: bool | None = None,
        on_error: OnError | None = None,
        falls_back: bool = False,
    ) -> Steps[list[Extraction]]:
        """Extract from nodes, `num_workers` at once; parameters default to those of the constructor.

        Each reply of the LLM is cached as it arrives, so that a process that dies loses only the calls in flight. A
        node, or document, with the same text as another waits for it and uses its cached replies.

        Parameters
        ----------
        siblings : other chunks of the same documents, used only to find the lines that a document repeats
        cache : its entries get the user `user_prefix` + node id
        llm : for an extractor without an LLM of its own
        embed_model : returns the embedding model, for an extractor that needs one and has none of its own
        on_error : "record" returns an :class:`Extraction` with the reason for a failed node; "raise" starts no further
            node after a failure, waits for running ones, and raises it
        falls_back : whether the caller reads failed nodes in another way and logs that; then they are not logged here
            [False]

        Returns
        -------
        One :class:`Extraction` per node, in their order.

        Raises
        ------
        ConfigurationError, StorageError, LanguageModelError
            Regardless of `on_error`, since they do not concern a single node; `LanguageModelError` also if the server
            fails in the same way at several nodes in a row.
        """
        handling: OnError = self.on_error if on_error is None else check_choice("on_error", on_error, ON_ERROR)
        nodes = list(nodes)
        groups = read_together(nodes, self.reads_documents)
        model = find_llm(self.llm or llm, self.without_llm) if self.needs_llm and groups else None
        prompts, lines = self._get_prompts(), DocumentLines([*siblings, *nodes])
        contexts = [
            ExtractionContext(
                model,
                self.cache if cache is None else cache,
                [user_prefix + nodes[i].node_id for i in group],
                self.retry,
                self.mode,
                embed_model,
                lines,
                prompts,
                self.same_language,
            )
            for group in groups
        ]
        run = ExtractionRun(nodes, groups, contexts)
        yield from run.read(
            self.extract_document,
            FailureWatch("documents" if self.reads_documents else "nodes", handling),
            self.num_workers if num_workers is None else num_workers,
            type(self).__name__,
            self.show_progress if show_progress is None else show_progress,
        )
        owners = [model, self.llm, getattr(self, "embed_model", None)]
        if run.has_failed:
            with suppress(Exception):  # the error may be that there is no model
                owners.append(embed_model() if embed_model is not None else None)
        name = None if model is None else model.metadata.model_name
        run.log(logger, type(self).__name__, name, falls_back, owners)
        return run.extractions(owners)

    def estimate(self, nodes: Sequence[BaseNode], llm: LLM | None = None) -> Estimate:
        """The LLM work for nodes, by LlamaIndex's tokenizer: without retries and with an empty cache.

        Parameters
        ----------
        llm : its system prompt counts too, and its context window; default that of `Settings`, if one is set
        """
        if not self.needs_llm:
            return Estimate()
        tokenizer = get_tokenizer()
        count = lru_cache(maxsize=16)(lambda text: len(tokenizer(text)))
        groups = [[nodes[i] for i in group] for group in read_together(nodes, self.reads_documents)]
        model = known_llm(self.llm or llm)
        work = sum((self.estimate_document(group, count, model) for group in groups), Estimate())
        system = count(getattr(model, "system_prompt", None) or "")
        return work + Estimate(0, work.calls * system, 0)

    # -- in an ingestion pipeline -----------------------------------------------------------------------

    @property
    def record_key(self) -> str:
        """The metadata key of the record, hidden from the embedding model and the LLM."""
        return f"{type(self).__name__}_record"

    def __call__(self, nodes: Sequence[BaseNode], **kwargs: Any) -> Sequence[BaseNode]:
        """Put each node's record into its metadata.

        A failed node gets none, and an index tries it again. The user of the cache entries is the node id. Keywords
        other than `show_progress`, which a pipeline passes to all its steps, are ignored.
        """
        return run_steps(self._transform(nodes, kwargs.get("show_progress")))

    async def acall(self, nodes: Sequence[BaseNode], **kwargs: Any) -> Sequence[BaseNode]:
        """As :meth:`__call__`, on the event loop."""
        return await arun_steps(self._transform(nodes, kwargs.get("show_progress")))

    def _transform(self, nodes: Sequence[BaseNode], show_progress: bool | None) -> Steps[Sequence[BaseNode]]:
        for node in nodes:
            self.take_record(node)
        found = yield from self.extract(nodes, show_progress=show_progress)
        key = self.record_key
        for node, extraction in zip(nodes, found, strict=True):
            if extraction.record is not None:
                # New containers, since the nodes of one document share these lists.
                node.metadata = {**node.metadata, key: extraction.record}
                node.excluded_embed_metadata_keys = [*node.excluded_embed_metadata_keys, key]
                node.excluded_llm_metadata_keys = [*node.excluded_llm_metadata_keys, key]
        return nodes

    def take_record(self, node: BaseNode) -> Record | None:
        """Remove the record and every trace of it from a node, and return it; None if there is none."""
        key = self.record_key
        if key not in node.metadata:
            return None
        record = node.metadata[key]
        node.metadata = {name: value for name, value in node.metadata.items() if name != key}
        node.excluded_embed_metadata_keys = [name for name in node.excluded_embed_metadata_keys if name != key]
        node.excluded_llm_metadata_keys = [name for name in node.excluded_llm_metadata_keys if name != key]
        return record if isinstance(record, dict) else None

    # -- identity -------------------------------------------------------------------------------------

    @property
    def fingerprint(self) -> dict[str, str]:
        """The properties that must stay the same for later records to fit earlier ones: class, parameters, prompts.

        The model is not included, so that it can be replaced by a better one.
        """
        parameters = {
            name: _readable(getattr(self, name))
            for name in type(self).model_fields
            if name not in NodeExtractor.model_fields
        }
        return {"class": type(self).__name__, **parameters, **self.prompt_versions()}

    @classmethod
    def class_name(cls) -> str:
        """The name in serialised pipelines."""
        return cls.__name__

    def to_dict(self, **kwargs: Any) -> dict[str, Any]:
        """The parameters, with prompts and model, since they are the cache key of an ingestion pipeline."""
        model = {} if self.llm is None else {"model": model_identity(self.llm)}
        return {**super().to_dict(**kwargs), "fingerprint": self.fingerprint, **model}

    @classmethod
    def from_dict(cls, data: dict[str, Any], **kwargs: Any) -> "NodeExtractor":
        """The extractor of :meth:`to_dict`, with default prompts and no LLM of its own."""
        added = {"fingerprint", "model"} - set(cls.model_fields)
        own = {name: value for name, value in data.items() if name not in added}
        return super().from_dict(own, **kwargs)


def _readable(value: Any) -> str:
    if isinstance(value, str):
        return value
    if hasattr(value, "__qualname__"):
        return f"{value.__module__}.{value.__qualname__}"
    return json.dumps(value, sort_keys=True, default=lambda other: type(other).__name__)


def node_pieces(node: BaseNode, room: int) -> list[BaseNode]:
    """The node itself, or, if it has more than `room` tokens, pieces of whole sentences with its id and metadata."""
    text = plain_text(node)
    if len(text.encode(errors="replace")) <= room or count_tokens(text) <= room:
        return [node]
    kept = {"id_": node.node_id, "metadata": node.metadata, "relationships": node.relationships}
    return [TextNode(text=piece, **kept) for piece in pieces_of(text, room, count_tokens)]


def merged_records(records: Iterable[Record]) -> Record:
    """One record: lists are joined, each item once; counts are added; of other values the first is kept.

    >>> merged_records([{"names": ["a", "b"], "dropped": {"names": 1}}, {"names": ["b", "c"], "dropped": {"names": 2}}])
    {'names': ['a', 'b', 'c'], 'dropped': {'names': 3}}
    """
    merged: dict[str, Any] = {}
    for record in records:
        for name, value in record.items():
            known = merged.setdefault(
                name, [] if isinstance(value, list) else {} if isinstance(value, Mapping) else value
            )
            if isinstance(value, list) and isinstance(known, list):
                known += [item for item in value if item not in known]
            elif isinstance(value, Mapping) and isinstance(known, dict):
                for key, count in value.items():
                    known[key] = known.get(key, 0) + count if isinstance(count, int) else known.get(key, count)
    return merged
