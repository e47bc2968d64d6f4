"""`DerivedRetriever`: the base of all retrievers."""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from types import MappingProxyType
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.instrumentation import get_dispatcher  # type: ignore[attr-defined]
from llama_index.core.llms import LLM
from llama_index.core.llms.utils import LLMType, resolve_llm
from llama_index.core.schema import BaseNode, NodeWithScore, QueryBundle, QueryType
from numpy.typing import NDArray

from llama_index.ragkit.core_internals import without_step_spans
from llama_index.ragkit.index.chunk_scores import ChunkScores, SharedQuestion
from llama_index.ragkit.index.contents import State
from llama_index.ragkit.index.derived_index import DerivedIndex, check_method
from llama_index.ragkit.index.description import describe_retriever
from llama_index.ragkit.index.keywords import (
    RetrieverKeywords,
    check_keywords,
    field_defaults,
    field_names,
    names_of,
    show_keywords,
)
from llama_index.ragkit.index.query import LastQuery, Query, SearchOutcome, as_bundle, report_fallback
from llama_index.ragkit.index.reader import ReadRequest
from llama_index.ragkit.index.results import LOOKED_AT_PER_RESULT, Scored, result_fields, take_nodes
from llama_index.ragkit.llm.completion import MODES, Mode, complete
from llama_index.ragkit.llm.context_window import prompt_room
from llama_index.ragkit.llm.prompts import PromptHolder
from llama_index.ragkit.llm.retry import RetryPolicy
from llama_index.ragkit.steps import Steps, arun_steps, immediate, run_steps
from llama_index.ragkit.storage.derived_nodes import NodeFetch, fetch_derived
from llama_index.ragkit.storage.records import Record
from llama_index.ragkit.storage.selection import Selection
from llama_index.ragkit.validation import check_choice, check_count

__all__ = ["DerivedRetriever", "Explanation"]

dispatcher = get_dispatcher(__name__)
T = TypeVar("T")
FoundType = TypeVar("FoundType", bound=SearchOutcome)
ExplanationType = TypeVar("ExplanationType")
Answered = tuple[list[NodeWithScore], LastQuery | None]
"""The nodes of an answer, and what the page of the index shows of it; None if a write has changed it since."""


_DEFAULTS: Mapping[str, Any] = {
    "similarity_top_k": 10,
    "token_budget": None,
    "filters": None,
    "node_ids": None,
    "doc_ids": None,
    "callback_manager": None,
    "object_map": None,
    "verbose": False,
    "llm": None,
    "prompts": None,
    "retry": None,
    "llm_mode": "auto",
    "same_language": True,
}


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """Why a node was retrieved. A method may add details of its own.

    Attributes
    ----------
    node_id, text : the node
    score : the retriever's score
    by : the class that read or wrote the node without an LLM in place of the one that failed; empty if none did
    fallback : which part of the method was not used, and why; empty otherwise
    """

    node_id: str
    text: str
    score: float
    by: str = ""
    fallback: str = ""


class DerivedRetriever(PromptHolder, BaseRetriever, Generic[State, FoundType, ExplanationType]):
    """Retrieves from a :class:`~llama_index.ragkit.DerivedIndex`, always in its current state.

    Results are new `NodeWithScore` objects with float scores, higher is better. Nothing is added to their metadata, and
    the `QueryBundle` is not changed. Cosines use its `embedding`, or else the mean of the vectors of its
    `custom_embedding_strs` (:func:`~llama_index.ragkit.llm.embeddings.embed_query`); words come from its `query_str`.

    A method derives its retriever from this class and implements the search (`_search`) and explanations
    (`_explanations`), and overrides `_results` if the results are not the best chunks of the ranking.

    Attributes
    ----------
    method : the `method` of the index class
    keywords : the keywords of the constructor, a `TypedDict`
    options_cls : the options of the search, a frozen dataclass that checks their values; None for none
    options : the options of this retriever

    Parameters
    ----------
    index : the index to search
    similarity_top_k : maximum number of nodes, at least 1 [10]
    token_budget : maximum number of tokens of all nodes, with the metadata that the LLM sees. A node that does not fit
        is skipped. None for no limit [None]
    filters, node_ids, doc_ids : restrict the source nodes; a derived node passes only if all its sources do [None]
    callback_manager, object_map, verbose : as in every LlamaIndex retriever
    llm : for methods that call an LLM at query time; resolved when first needed [the LLM of the index, else
        `Settings.llm`]
    prompts : for such methods, replacements of some of `default_prompts`
    retry : for such methods, how to retry calls [3 attempts]
    llm_mode : for such methods, whether functions or JSON schemas are used; see
        :func:`~llama_index.ragkit.llm.completion.complete` ["auto"]
    same_language : for such methods, whether to reject replies that are clearly in another language than the question;
        switch it off if a prompt asks for a translation [True]

    Raises
    ------
    ConfigurationError
        If a parameter is invalid, the index is of another method, or a prompt has none of its variables.
    TypeError
        If a keyword is unknown.
    """

    method: ClassVar[str]
    keywords: ClassVar[type] = RetrieverKeywords
    options_cls: ClassVar[type[Any] | None] = None
    options: Any

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        without_step_spans(cls)
        show_keywords(cls, {"__init__": cls.keywords}, cls.defaults())

    @classmethod
    def defaults(cls) -> dict[str, Any]:
        """The defaults of the keywords."""
        return {**_DEFAULTS, **({} if cls.options_cls is None else field_defaults(cls.options_cls))}

    def __init__(self, index: DerivedIndex[Any, State], **kwargs: Any) -> None:
        check_keywords(type(self).__name__, kwargs, names_of(self.keywords))
        check_method(type(self).__name__, self.method, index)
        self._index = index
        given = {**_DEFAULTS, **kwargs}
        self.similarity_top_k = check_count("similarity_top_k", given["similarity_top_k"], 1)
        self.token_budget = check_count("token_budget", given["token_budget"], 1, none_ok=True)
        self.filters, self.node_ids, self.doc_ids = given["filters"], given["node_ids"], given["doc_ids"]
        Selection(self.filters, self.node_ids, self.doc_ids)  # refuses what none can be made of
        if self.options_cls is not None:
            names = field_names(self.options_cls)
            self.options = self.options_cls(**{name: value for name, value in kwargs.items() if name in names})
        self.prompts = dict(given["prompts"] or {})
        self.check_prompts(self.prompts)
        self._llm: LLMType | None = given["llm"]
        self._retry: RetryPolicy = given["retry"] or RetryPolicy()
        self._mode: Mode = check_choice("llm_mode", given["llm_mode"], MODES)
        self._same_language: bool = given["same_language"]
        super().__init__(callback_manager=given["callback_manager"] or index.callback_manager, verbose=given["verbose"])
        # Not passed to BaseRetriever, which replaces an empty map: it may be filled later.
        self.object_map = index.object_map if given["object_map"] is None else given["object_map"]

    def __repr__(self) -> str:
        return str(describe_retriever(self, self._index))

    # -- hooks of a method -----------------------------------------------------------------------------

    @abstractmethod
    def _search(self, query: Query[State]) -> Steps[FoundType]:
        """Search the index for a question."""

    @immediate
    def _prepare(self) -> None:
        """Write what questions need and the index lacks, before one is asked; nothing by default."""

    def _results(self, found: FoundType) -> Steps[list[NodeWithScore]]:
        """The nodes of the answer: the best chunks of the ranking."""
        return (yield from self._take_best(found.ranking))

    def _explanations(self, found: FoundType, nodes: Sequence[NodeWithScore]) -> Steps[list[ExplanationType]]:
        """One explanation per result, in order; :class:`Explanation` unless the method has its own."""
        by = yield from self._read_by(n.node.node_id for n in nodes)
        explained: list[Any] = [
            Explanation(**result_fields(each), by=by.get(each.node.node_id, ""), fallback=found.fallback)
            for each in nodes
        ]
        return explained

    @immediate
    def chunk_scores(self, query: Query[State], found: FoundType) -> ChunkScores | None:
        """What the method says about chunks, for a :class:`~llama_index.ragkit.CombinedRetriever`; None for nothing."""
        return None

    def _on_page(self, found: FoundType) -> Any:
        """What the page of the index shows beside the nodes of the answer."""
        return found

    # -- helpers for methods -----------------------------------------------------------------------------------

    @property
    def _builder(self) -> Any:
        """The builder of the index, of the class that the annotation of a method says."""
        return self._index.builder

    @property
    def llm(self) -> LLM:
        """The language model: the one passed, or else that of the index."""
        if self._llm is None:
            return self._index.llm
        self._llm = resolve_llm(self._llm, callback_manager=self.callback_manager)
        return self._llm

    def _complete(self, prompt: str, parse: Callable[[str], T], like: str = "", **variables: Any) -> Steps[T]:
        """The reply to a prompt of this name; see :func:`~llama_index.ragkit.llm.completion.complete`."""
        return (
            yield from complete(
                self.llm,
                self.prompt(prompt),
                parse=parse,
                retry=self._retry,
                mode=self._mode,
                name=prompt,
                like=like if self._same_language else "",
                **variables,
            )
        )

    def _room(self, prompt: str, reply_tokens: int, **variables: Any) -> int:
        """Tokens of text that a prompt of this name has room for; see :mod:`llama_index.ragkit.llm.context_window`."""
        return prompt_room(self.llm, self.prompt(prompt), reply_tokens, **variables)

    def _take_best(
        self,
        ranking: Iterable[Scored],
        fetch: NodeFetch | None = None,
        derived: Mapping[str, Record] = MappingProxyType({}),
    ) -> Steps[list[NodeWithScore]]:
        """See :func:`~llama_index.ragkit.index.results.take_nodes`.

        Parameters
        ----------
        fetch : default: chunks, and the nodes of `derived`
        derived : see :func:`~llama_index.ragkit.storage.derived_nodes.fetch_derived`
        """
        if fetch is None:
            further = iter(ranking)
            first = list(islice(further, self._wanted))
            ranking = chain(first, further)
            fetch = yield from self._fetch_of([node_id for node_id, _ in first if node_id not in derived])
        if derived:
            fetch = fetch_derived(derived, fetch)
        return (yield from take_nodes(ranking, fetch, self.similarity_top_k, self.token_budget))

    def _fetch_of(self, node_ids: Sequence[str]) -> Steps[NodeFetch]:
        """What fetches nodes one by one, of which these are read at once now."""
        storage = self._index.storage
        return partial(_fetched, (yield from storage.get_nodes(node_ids)), storage.get_node)

    def _read_by(self, node_ids: Iterable[str]) -> Steps[dict[str, str]]:
        """Of the chunks that were read without an LLM in place of the extractor that failed: the class that did it."""
        entries = yield from self._index.storage.manifest.entries_of(node_ids)
        return {node_id: entry.by for node_id, entry in entries.items() if entry.by}

    @property
    def selection(self) -> Selection:
        """Which chunks may be shown."""
        return Selection(self.filters, self.node_ids, self.doc_ids)

    # -- retrieving -------------------------------------------------------------------------------------------

    @property
    def _wanted(self) -> int:
        """How many top nodes of a ranking must be in the right order."""
        return self.similarity_top_k * (1 if self.token_budget is None else LOOKED_AT_PER_RESULT)

    @property
    def _candidates(self) -> int:
        """How many of the nearest chunks a search needs, where the index is served from stores."""
        return self._wanted

    def _query(self, bundle: QueryBundle, vector: NDArray[np.float32] | None) -> Steps[Query[State] | None]:
        """A question to the current state; None where there is nothing to search."""
        asked = ReadRequest(bundle, vector, self.selection, self._wanted, self._candidates, self._selection)
        return (yield from self._index.reader.query(asked))

    def _selection(self) -> Steps[Selection]:
        """Which chunks of an index that is served from stores count."""
        return (yield from self._index.builder.select(self.selection))

    def _report(self, query: Query[State], found: FoundType) -> None:
        """Send an event if a part of the method was not used."""
        report_fallback(self.method, query.text, found.fallback)

    def ask(self, query: QueryType) -> LastQuery | None:
        """Retrieve for the page of the index: the question, its answer and what was found; None if that is gone.

        The page of a question is drawn from this result, since the last query of the index may be that of another user.
        """
        return run_steps(self._ask_steps(as_bundle(query)))[1]

    def _about(
        self,
        bundle: QueryBundle,
        work: Callable[[Query[State], FoundType], Steps[T]],
        nothing: T,
        shared: SharedQuestion | None = None,
    ) -> Steps[T]:
        """Search for a question and work on what was found, over one generation of the index.

        Parameters
        ----------
        nothing : the result where there is nothing to search
        shared : what other indexes of the question have computed
        """
        bundle = as_bundle(bundle)
        yield from self._prepare()
        vector = yield from self._index.reader.vector(bundle)

        def answered() -> Steps[T]:
            query = yield from self._query(bundle, vector)
            if query is None:
                return nothing
            query.shared = shared
            found = yield from self._search(query)
            self._report(query, found)
            return (yield from work(query, found))

        return (yield from self._index.reader.in_one_generation(answered))

    def _ask_steps(self, bundle: QueryBundle) -> Steps[Answered]:
        nothing: Answered = [], None
        return (yield from self._about(bundle, self._answer, nothing))

    def _answer(self, query: Query[State], found: FoundType) -> Steps[Answered]:
        nodes = yield from self._results(found)
        if not self._index.reader.is_current(query):  # a write since then may have deleted what was found
            return nodes, None
        answer = [(result.node.node_id, result.get_score()) for result in nodes]
        asked = LastQuery(query.text, answer, self._on_page(found), self.selection)
        self._index.writer.last_query = asked
        return nodes, asked

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return run_steps(self._ask_steps(query_bundle))[0]

    @dispatcher.span
    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return (await arun_steps(self._ask_steps(query_bundle)))[0]

    def scored(self, bundle: QueryBundle, shared: SharedQuestion) -> Steps[ChunkScores | None]:
        """What the method says about chunks for a question that other indexes are asked too.

        None where there is nothing to search, or where the method has no scores of chunks of its own.
        """
        return (yield from self._about(bundle, self.chunk_scores, None, shared))

    # -- explaining -------------------------------------------------------------------------------------------

    def explain(self, query: QueryType) -> list[ExplanationType]:
        """Why each result for a question was retrieved, in the order of the results."""
        return run_steps(self._explain_steps(query))

    async def aexplain(self, query: QueryType) -> list[ExplanationType]:
        """As :meth:`explain`."""
        return await arun_steps(self._explain_steps(query))

    def _explain_steps(self, question: QueryType) -> Steps[list[ExplanationType]]:
        nothing: list[ExplanationType] = []
        return (yield from self._about(as_bundle(question), self._explain_found, nothing))

    def _explain_found(self, query: Query[State], found: FoundType) -> Steps[list[ExplanationType]]:
        nodes = yield from self._results(found)
        return (yield from self._explanations(found, nodes)) if nodes else []


def _fetched(read: Mapping[str, BaseNode], fetch: NodeFetch, node_id: str) -> Steps[BaseNode | None]:
    """A node that was read already, or else from where it is."""
    return read[node_id] if node_id in read else (yield from fetch(node_id))
