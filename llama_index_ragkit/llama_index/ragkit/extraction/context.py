"""The context and the result of an extraction, the lines that documents repeat, and cost estimates."""

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, TypeVar

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.llms import LLM
from llama_index.core.prompts import BasePromptTemplate
from llama_index.core.schema import BaseNode, NodeRelationship, TextNode
from llama_index.core.settings import Settings
from pydantic import BaseModel

from llama_index.ragkit.errors import ConfigurationError, ExtractionError, LanguageModelError
from llama_index.ragkit.llm.cache import ExtractionCache, cache_key
from llama_index.ragkit.llm.completion import Asking, Mode, Rejected, RetryPolicy, check_llm, model_identity, parsed
from llama_index.ragkit.llm.context_window import declared_window, fitted
from llama_index.ragkit.llm.prices import PER_TOKENS, Prices, check_prices
from llama_index.ragkit.llm.prompts import first_wording
from llama_index.ragkit.steps import Steps, offload
from llama_index.ragkit.storage.nodes import plain_text, title_of
from llama_index.ragkit.storage.records import Record
from llama_index.ragkit.text.passages import PassageText, read_passage, repeated_lines

__all__ = ["DocumentLines", "Estimate", "Extraction", "ExtractionContext", "Record", "passages_of"]

T = TypeVar("T")


class DocumentLines:
    """The repeated lines of documents, computed on the first request for each document.

    Parameters
    ----------
    nodes : the chunks of the documents; nodes without a source document have no repeated lines. Documents with the same
        `file_path` in their metadata are one, since readers of PDF files return each page as a document
    """

    def __init__(self, nodes: Iterable[BaseNode]) -> None:
        self._chunks: defaultdict[str, dict[str, BaseNode]] = defaultdict(dict)
        self._found: dict[str, frozenset[str]] = {}
        for node in nodes:
            document = _document_of(node)
            if document:
                self._chunks[document][node.node_id] = node

    def of(self, node: BaseNode) -> frozenset[str]:
        """The keys of the repeated lines of a node's document."""
        document = _document_of(node)
        if document not in self._chunks:
            return frozenset()
        if document not in self._found:  # two threads may both compute it, with the same result
            chunks = self._chunks[document].values()
            self._found[document] = repeated_lines([(plain_text(chunk), _position(chunk)) for chunk in chunks])
        return self._found[document]


def _document_of(node: BaseNode) -> str:
    path = node.metadata.get("file_path")
    return path if isinstance(path, str) and path else node.ref_doc_id or ""


def _position(chunk: BaseNode) -> tuple[str, int] | None:
    start = chunk.start_char_idx if isinstance(chunk, TextNode) else None
    return None if start is None else (chunk.ref_doc_id or "", start)


class ExtractionContext:
    """The model and the cache for one node, document or summary, and the cache entries that it used.

    Parameters
    ----------
    llm : None for steps without an LLM
    cache : None for no cache
    users : the users of the cache entries: one, or one for each node that is read together with others
    retry, mode : see :func:`llama_index.ragkit.llm.completion.complete`
    same_language : whether replies must be in the language of their texts
    prompts : the prompts by name, for error messages
    embed_model : returns the embedding model; default that of `Settings`
    lines : the repeated lines of the documents

    Attributes
    ----------
    cache_keys : the entries used so far, to be released when the result is deleted
    repeated : how often replies repeated their ends, which were cut
    lost : failures of parts, by the place of a node among those that are read together; see :meth:`keep`
    """

    def __init__(
        self,
        llm: LLM | None,
        cache: ExtractionCache | None,
        users: str | Sequence[str],
        retry: RetryPolicy,
        mode: Mode = "auto",
        embed_model: Callable[[], BaseEmbedding] | None = None,
        lines: DocumentLines | None = None,
        prompts: Mapping[str, BasePromptTemplate] = MappingProxyType({}),
        same_language: bool = True,
    ) -> None:
        self.llm = llm
        self._cache = cache
        self._users = [users] if isinstance(users, str) else list(users)
        self._retry = retry
        self._mode = mode
        self._embed_model = embed_model
        self._prompts = prompts
        self._same_language = same_language
        self._lines = DocumentLines(()) if lines is None else lines
        self.cache_keys: list[str] = []
        self.repeated = 0
        self.lost: dict[int, ExtractionError] = {}

    @property
    def embed_model(self) -> BaseEmbedding:
        """The embedding model of the index, or else that of `Settings`."""
        return Settings.embed_model if self._embed_model is None else self._embed_model()

    def passage(self, node: BaseNode, title_key: str | None) -> Steps[PassageText]:
        """The title of a node, and its text without hard line breaks and without the repeated lines of its document.

        Parameters
        ----------
        title_key : the metadata key of a title; for a node without one, a heading at the beginning of its text is the
            title (:mod:`llama_index.ragkit.text.headings`). None for no title at all
        """
        return (yield from offload(_passage, node, title_key, self._lines))

    def complete(
        self,
        prompt: BasePromptTemplate,
        *,
        parse: Callable[[str], T],
        output_cls: type[BaseModel] | None = None,
        sample: int = 0,
        rejected: Rejected | None = None,
        like: str = "",
        reply_tokens: int | None = None,
        **prompt_args: Any,
    ) -> Steps[T]:
        """Call the model, or read its cached reply.

        The text of a reply is cached as soon as `parse` has accepted it, under the formatted prompt and the model. It
        is parsed again when it is read, so `parse` may return any type.

        Parameters
        ----------
        prompt, parse, output_cls, rejected, like, reply_tokens, prompt_args : see
            :func:`llama_index.ragkit.llm.completion.complete`
        sample : different numbers give different replies to the same prompt

        Raises
        ------
        ExtractionError
            If the model returned no usable reply.
        """
        llm, cache = self.llm, self._cache
        if llm is None:
            raise ConfigurationError("This step has no llm. Pass llm=, or set Settings.llm.")
        check_llm(llm)
        key = ""
        if cache is not None:
            schema = "" if output_cls is None else json.dumps(output_cls.model_json_schema(), sort_keys=True)
            # Uses the window that the model declares: keys stay the same after a server has turned out to take less.
            sent = fitted(llm, prompt, prompt_args, reply_tokens, window=declared_window(llm)).given
            wording = first_wording(prompt).format(llm=llm, **sent)
            again = "" if rejected is None else json.dumps([rejected.reply, rejected.reason])
            key = cache_key(wording, model_identity(llm), self._mode, schema, str(sample), again)
            kept = yield from cache.get(key, self._users[0])
            if kept is not None:
                yield from self._join(cache, key)
                try:
                    value, repeated = parsed(kept, parse)
                    self.repeated += repeated
                    return value
                except ValueError:  # cached by a version with a more lenient parser
                    pass
        name = next((name for name, own in self._prompts.items() if own is prompt), "")
        like = like if self._same_language else ""
        asking = Asking(
            llm, prompt, prompt_args, parse, self._retry, self._mode, output_cls, name, rejected, like, reply_tokens
        )
        reply = yield from asking.answer()
        self.repeated += reply.repeated
        if cache is not None:
            yield from cache.put(key, reply.text, self._users[0])
            yield from self._join(cache, key)
        return reply.value

    def keep(self, work: Steps[T], otherwise: T, places: Iterable[int] = (0,)) -> Steps[T]:
        """The result of a part of an extraction, or `otherwise` if it fails, so that the other parts are kept.

        Parameters
        ----------
        places : the places, among the nodes that are read together, of those that an index lists with this failure

        Raises
        ------
        LanguageModelError
            If the other parts would fail too.
        """
        try:
            return (yield from work)
        except LanguageModelError:
            raise
        except ExtractionError as error:
            for place in places:
                self.lost.setdefault(place, error)
            return otherwise

    def _join(self, cache: ExtractionCache, key: str) -> Steps[None]:
        """Note that an entry is used, by the other users too."""
        if key not in self.cache_keys:
            self.cache_keys.append(key)
        for user in self._users[1:]:
            yield from cache.get(key, user)


@dataclass(frozen=True)
class Extraction:
    """The result of an extractor for one node.

    Attributes
    ----------
    record : the extracted data, of JSON types; {} for a node without text; None after a failure
    error : the reason of a failure; None after a success. With a record, a part of the extraction failed
    cache_keys : entries of the cache that were used, to be released with the node (after a failure too)
    step : the prompt at which the extraction failed, if it was one
    read_with : id of the first of the nodes that were read together; "" where no node was read
    unreadable : whether it failed because a reply could not be used, which shows that the model can be reached
    by : the class of the extractor without an LLM that made the record after another failed; "" if none did
    """

    node_id: str
    record: Record | None = None
    error: str | None = None
    cache_keys: list[str] = field(default_factory=list)
    step: str = ""
    read_with: str = ""
    unreadable: bool = False
    by: str = ""


@dataclass(frozen=True)
class Estimate:
    """The expected work of a build; estimates can be added, also by `sum`.

    Attributes
    ----------
    calls, prompt_tokens, completion_tokens : of the LLM: what a build asks if every reply can be used
    more_calls : the most calls beside these that a build makes because a readable reply fails a check of its method,
        such as the verification of PG-RAG. Retries of replies that cannot be read are not among them
    embedded_texts, embedded_tokens : of the embedding model, by LlamaIndex's tokenizer
    embedding_is_exact : whether the embedded texts were counted and not estimated
    cost : in the currency of the prices; None without prices
    """

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    embedded_texts: int = 0
    embedded_tokens: int = 0
    embedding_is_exact: bool = True
    cost: float | None = None
    more_calls: int = 0

    def priced(self, prices: Prices | None) -> "Estimate":
        """The same estimate with its cost, if there are prices; `ConfigurationError` if one is unknown or negative."""
        if prices is None:
            return self
        given = check_prices(prices)
        tokens = {"prompt": self.prompt_tokens, "completion": self.completion_tokens, "embedding": self.embedded_tokens}
        return replace(self, cost=sum(tokens[name] * price for name, price in given.items()) / PER_TOKENS)

    def __add__(self, other: "Estimate | int") -> "Estimate":
        if isinstance(other, int):  # sum() begins with 0
            return self
        return Estimate(
            self.calls + other.calls,
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            self.embedded_texts + other.embedded_texts,
            self.embedded_tokens + other.embedded_tokens,
            self.embedding_is_exact and other.embedding_is_exact,
            None if self.cost is None or other.cost is None else self.cost + other.cost,
            self.more_calls + other.more_calls,
        )

    __radd__ = __add__


def passages_of(
    nodes: Sequence[BaseNode], siblings: Sequence[BaseNode], title_key: str | None
) -> Steps[list[PassageText]]:
    """The :meth:`ExtractionContext.passage` of each node in an extraction with these siblings."""
    lines = DocumentLines([*siblings, *nodes])
    return (yield from offload(lambda: [_passage(node, title_key, lines) for node in nodes]))


def _passage(node: BaseNode, title_key: str | None, lines: DocumentLines) -> PassageText:
    return read_passage(
        plain_text(node),
        title_of(node, title_key),
        headings=title_key is not None,
        repeated=lines.of(node),
        is_chunk=NodeRelationship.PREVIOUS in node.relationships,
    )
