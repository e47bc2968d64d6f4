"""`DerivedIndex`: the base class of all indexes, which store chunks and the data that a method derives from them."""

import inspect
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Generic, NoReturn, TypeVar, overload

from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.callbacks.base import CallbackManager
from llama_index.core.chat_engine.types import BaseChatEngine, ChatMode
from llama_index.core.embeddings.utils import resolve_embed_model
from llama_index.core.indices.base import BaseIndex
from llama_index.core.ingestion import arun_transformations, run_transformations
from llama_index.core.llms import LLM
from llama_index.core.llms.utils import LLMType
from llama_index.core.prompts.mixin import PromptDictType, PromptMixin, PromptMixinType
from llama_index.core.schema import BaseNode, Document, IndexNode, TransformComponent
from llama_index.core.settings import Settings
from llama_index.core.storage.docstore.types import RefDocInfo
from llama_index.core.storage.index_store.simple_index_store import SimpleIndexStore
from llama_index.core.storage.storage_context import StorageContext
from llama_index.core.vector_stores.simple import SimpleVectorStore
from typing_extensions import Self

from llama_index.ragkit.errors import ConfigurationError
from llama_index.ragkit.extraction.context import Estimate
from llama_index.ragkit.extraction.node_extractor import NodeExtractor
from llama_index.ragkit.extraction.summarizers import Summarizer
from llama_index.ragkit.html import Facts, InlinePage, Page, write
from llama_index.ragkit.index.builder import Builder, Failure, stand_ins
from llama_index.ragkit.index.contents import Config, State
from llama_index.ragkit.index.description import describe_index
from llama_index.ragkit.index.dry_run import components_without_llm, embedding_work
from llama_index.ragkit.index.engines import NotAVectorStoreIndexError, engine_llm, llm_of_engine
from llama_index.ragkit.index.keywords import (
    IndexKeywords,
    check_components,
    check_keywords,
    choose_parameters,
    field_defaults,
    field_names,
    names_of,
    show_keywords,
    without_engine_keywords,
)
from llama_index.ragkit.index.query import LastQuery
from llama_index.ragkit.index.reader import PartReader, QueryReader
from llama_index.ragkit.index.resources import Resources
from llama_index.ragkit.index.serving import (
    check_place,
    check_resumed,
    hold,
    incomplete_struct,
    new_storage,
    no_collection,
    open_storage,
    reduced,
    resumable,
)
from llama_index.ragkit.index.write_plan import parts
from llama_index.ragkit.index.writer import IndexWriter
from llama_index.ragkit.llm.embeddings import most_tokens
from llama_index.ragkit.llm.prices import Prices
from llama_index.ragkit.steps import Steps, arun_steps, call, run_steps
from llama_index.ragkit.storage.index_storage import IndexStorage
from llama_index.ragkit.storage.nodes import check_nodes, refuse_unstorable, with_stable_ids
from llama_index.ragkit.storage.selection import Selection
from llama_index.ragkit.storage.struct import DerivedStruct, reading_struct
from llama_index.ragkit.validation import check_choice, check_count, check_ids

__all__ = ["DerivedIndex", "check_method", "nodes_of"]

NodeT = TypeVar("NodeT", bound=BaseNode)

# `load_indices_from_storage` passes its keywords to each index in the context, so a loaded index ignores those that
# another kind needs, and only those.
_OF_OTHER_KINDS = names_of(IndexKeywords) | {"summarizer", "clustering", "resolver"}
_OF_RESOURCES = frozenset(
    {"llm", "embed_model", "extractor", "summarizer", "num_workers", "on_error", "cache", "prices"}
)
_OF_BOTH = _OF_RESOURCES | {"fallback"}


class DerivedIndex(BaseIndex[DerivedStruct], PromptMixin, Generic[Config, State]):
    """An index over chunks and the data that a method derives from them, used like `VectorStoreIndex`.

    The index stores everything in the `StorageContext`: the unchanged nodes in the docstore, embeddings in its own
    vector spaces, records in the key-value store of the docstore, parameters in the index store. Every write has a
    synchronous and an asynchronous method, neither built on the other. Readers see the state before or after a write,
    never an intermediate one.

    A method derives its index from this class and sets its class attributes.

    Attributes
    ----------
    method : short name, the prefix of namespaces and records
    index_struct_cls : the struct, whose `type_name` is the import path of the package
    space_names : the vector spaces; "chunks" holds the embeddings of the nodes
    config_cls : the parameters, a frozen dataclass that checks their values
    config_is_fixed : whether the parameters of a stored index cannot be changed
    builder_cls : derives things from nodes; see :class:`~llama_index.ragkit.Builder`
    retriever_cls : the class of the retriever that `as_retriever` returns
    keywords : the keywords of the constructor, a `TypedDict`
    default_extractor, default_summarizer : used where none is passed; None where the method has none
    rule_extractor : an extractor without an LLM, which replaces one with an LLM in estimates, and for nodes that it
        failed at; None if there is none
    rule_summarizer : a summarizer without an LLM, which writes the summaries that one with an LLM failed at; None if
        there is none
    assumed : further keywords of :meth:`estimate` with their defaults, about what only a build shows
    config : the parameters of an index
    resources : models, extractor, summarizer and cache
    storage : the storage of the index in its storage context
    builder : an object of `builder_cls`
    writer : runs one write at a time
    reader : reads what questions are answered from

    Parameters
    ----------
    nodes, objects, index_struct, storage_context, callback_manager, transformations, show_progress :
        as in every LlamaIndex index. The storage context says where the index lives. If it was made with `vectors=`
        (:func:`llama_index.ragkit.sql.storage_context`), vectors stay in these stores and each question reads what it
        needs, for many processes or more than memory holds. Otherwise all of the index is in memory, and every answer
        is exact
    llm, embed_model : default to `Settings`; `llm` is resolved when it is first needed
    vector_store : a store to which complete chunks are also written, so a plain `VectorStoreIndex` over it works.
        Default: the store in the namespace `<method>_chunks` of the storage context, or else the one that the context
        was made with (`StorageContext.from_defaults(vector_store=...)`), unless another index writes to it
    extractor : the component that extracts records from nodes, for methods that have one; default `default_extractor`
    num_workers : maximum number of concurrent LLM calls, at least 1
    on_error : what happens when the LLM step of a node fails after all retries: "record" stores the failure for
        :meth:`retry_failed` and continues; "raise" ends the write with the error
    fallback : with "rules", `rule_extractor` reads the nodes and `rule_summarizer` writes the summaries that the LLM
        failed at, if the method has them. :meth:`failures` lists these, and :meth:`retry_failed` tries the LLM again.
        None leaves them without a record
    cache : a path (one SQLite file), a LlamaIndex `KVStore` or an `ExtractionCache`: LLM results are written there as
        they arrive, so that a build that was killed does not pay for them again
    prices : what a million tokens cost, as for :meth:`estimate`, so that progress bars and the line that a write logs
        at its end say what the LLM costs

    Raises
    ------
    ConfigurationError, StorageError, EmbeddingError
        See :mod:`llama_index.ragkit.errors`.
    TypeError
        If a keyword is unknown.
    """

    index_struct_cls: type[DerivedStruct]
    method: ClassVar[str]
    space_names: ClassVar[tuple[str, ...]] = ("chunks",)
    config_cls: ClassVar[type[Any]]
    config_is_fixed: ClassVar[bool] = False
    builder_cls: ClassVar[type[Builder[Any, Any]]]
    retriever_cls: ClassVar[Any]
    keywords: ClassVar[type] = IndexKeywords
    default_extractor: ClassVar[Callable[[], NodeExtractor] | None] = None
    default_summarizer: ClassVar[Callable[[], Summarizer] | None] = None
    rule_extractor: ClassVar[Callable[[], NodeExtractor] | None] = None
    rule_summarizer: ClassVar[Callable[[], Summarizer] | None] = None
    assumed: ClassVar[Mapping[str, float]] = MappingProxyType({})

    config: Config
    resources: Resources
    storage: IndexStorage
    builder: Builder[Config, State]
    writer: IndexWriter[State]
    reader: QueryReader[State]
    _adapt_embed_model: Callable[[BaseEmbedding], BaseEmbedding] | None = None  # a method may adapt it

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        defaults = {
            **dict.fromkeys(names_of(cls.keywords)),
            "num_workers": 4,
            "on_error": "record",
            "fallback": "rules",
        }
        defaults.update(field_defaults(cls.config_cls))
        show_keywords(cls, dict.fromkeys(("__init__", "from_documents", "afrom_documents"), cls.keywords), defaults)
        show_keywords(cls, {"as_retriever": cls.retriever_cls.keywords}, cls.retriever_cls.defaults())

    def __init__(
        self,
        nodes: Sequence[BaseNode] | None = None,
        objects: Sequence[IndexNode] | None = None,
        index_struct: DerivedStruct | None = None,
        storage_context: StorageContext | None = None,
        callback_manager: CallbackManager | None = None,
        transformations: list[TransformComponent] | None = None,
        show_progress: bool = False,
        **kwargs: Any,
    ) -> None:
        own = names_of(self.keywords)
        loading = index_struct is not None
        check_keywords(type(self).__name__, kwargs, own | (_OF_OTHER_KINDS if loading else frozenset()))
        given = self._checked({name: value for name, value in kwargs.items() if name in own}, loading)
        context = storage_context or StorageContext.from_defaults()
        with reading_struct(index_struct):
            in_stores = check_place(type(self).__name__, given, context, index_struct, self.builder_cls)
            stored = {} if index_struct is None else index_struct.parameters_of(self.method)
            config: Config = choose_parameters(
                self.config_cls, stored, self._parameters(given), fixed=self.config_is_fixed
            )
        # BaseIndex reads the default vector store, which a context with only named stores lacks.
        context.vector_stores.setdefault("default", SimpleVectorStore())
        resources = Resources(
            adapt_embed_model=self._adapt_embed_model,
            dimension=self._dimension,
            callback_manager=callback_manager,
            show_progress=show_progress,
            **self._components(given),
        )
        self._given = given
        self.config = config
        self.resources = resources
        self._chunk_store = given.get("vector_store")
        self._in_stores = in_stores
        self._builder_keywords = {
            name: value
            for name, value in given.items()
            if name not in {*_OF_BOTH, "vector_store", *field_names(self.config_cls)}
        }
        shown = context
        if index_struct is not None:
            with no_collection():
                self._load(context, index_struct)
            if self._is_stored(index_struct):
                # BaseIndex stores the struct again. A reader may not, and it might replace that of another process.
                shown = copy(context)
                shown.index_store = SimpleIndexStore()
        super().__init__(
            nodes=None if nodes is None else list(nodes),
            objects=objects,
            index_struct=index_struct,
            storage_context=shown,
            callback_manager=resources.callback_manager,
            transformations=transformations,
            show_progress=show_progress,
        )
        self._storage_context = context

    # -- hooks of a method beside its class attributes ---------------------------------------------

    @classmethod
    def _parameters(cls, given: Mapping[str, Any]) -> Mapping[str, Any]:
        """The parameters that the keywords set; one keyword may set several."""
        return given

    @classmethod
    def _components(cls, given: Mapping[str, Any]) -> dict[str, Any]:
        """The keywords of :class:`Resources`, with the defaults of the method."""
        chosen = {name: value for name, value in given.items() if name in _OF_RESOURCES and value is not None}
        extractor, summarizer = cls._of_a_build(chosen.get("extractor"), chosen.get("summarizer"))
        chosen.update(extractor=extractor, summarizer=summarizer)
        fallback = given.get("fallback", "rules")
        if fallback is not None:
            check_choice("fallback", fallback, ("rules",))
            chosen["falls_back"] = True
            if cls.rule_extractor is not None and extractor is not None and extractor.needs_llm:
                chosen["fallback"] = cls.rule_extractor()
            if cls.rule_summarizer is not None and summarizer is not None and summarizer.needs_llm:
                chosen["fallback_summarizer"] = cls.rule_summarizer()
        return chosen

    @classmethod
    def _checked(cls, given: Mapping[str, Any], loading: bool = False) -> dict[str, Any]:
        """The keywords, if their components are of the right kind.

        A loaded index ignores an extractor of another method, since `load_indices_from_storage` passes one to all.
        """
        extractor = given.get("extractor")
        if loading and isinstance(extractor, NodeExtractor) and extractor.method not in ("", cls.method):
            given = {name: value for name, value in given.items() if name != "extractor"}
        check_components(cls.method, given, cls.default_extractor, cls.rule_extractor)
        return dict(given)

    def _new_struct(self) -> DerivedStruct:
        """The struct of a new index, with the parameters that its spaces need."""
        return self.index_struct_cls()

    @abstractmethod
    def _page(self, query: LastQuery | None, selection: Selection) -> Page:
        """The page of the index; a method may take keywords of its own.

        Parameters
        ----------
        query : the question whose answer is highlighted; None for a page without one
        selection : which chunks may be shown, and what is derived from these alone: no text, name, number or edge of
            others
        """

    # -- parts of the index ------------------------------------------------------------------------

    @property
    def state(self) -> State:
        """The state that queries read: immutable, and replaced by each write.

        Raises
        ------
        ConfigurationError
            If the index is served from stores, where no state holds all of it.
        """
        self.storage.snapshot()
        return self.writer.state

    @property
    def llm(self) -> LLM:
        """The language model: the one passed, or else `Settings.llm`."""
        return self.resources.llm

    @property
    def embed_model(self) -> BaseEmbedding:
        """The embedding model: the one passed, or else `Settings.embed_model`."""
        return self.resources.embed_model

    @property
    def callback_manager(self) -> CallbackManager:
        """The callback manager."""
        return self._callback_manager

    @property
    def object_map(self) -> dict[str, Any]:
        """The objects of index nodes that cannot be stored, such as a query engine, by index id."""
        return self._object_map

    @property
    def last_query(self) -> LastQuery | None:
        """The last query of a retriever; None after nodes were removed."""
        return self.writer.last_query

    def _dimension(self) -> int | None:
        """The length of the vectors; None while there are none."""
        dimension: int | None = self.storage.struct.embedding.get("dimension")
        return dimension

    def _get_prompts(self) -> PromptDictType:
        return {}

    def _update_prompts(self, prompts: PromptDictType) -> None:
        own = sorted(name for name in prompts if ":" not in name)  # a component's begin with the name of its role
        if own:
            raise ConfigurationError(f"The index has no prompts {own}. Its prompts are {sorted(self.get_prompts())}.")

    def _get_prompt_modules(self) -> PromptMixinType:
        """Components whose prompts `get_prompts` returns as `<role>:<name>` and `update_prompts` replaces."""
        return self.resources.prompted

    def __reduce__(self) -> tuple[Any, ...]:
        of_core = {
            "callback_manager": self._callback_manager,
            "transformations": self._transformations,
            "show_progress": self._show_progress,
        }
        return reduced(self, self.writer.lock, {**of_core, **self._given})

    def __repr__(self) -> str:
        return str(describe_index(self))

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return describe_index(self).as_html()

    # -- building -------------------------------------------------------------------------------------------

    def _open(self, storage: IndexStorage) -> None:
        """Create builder and writer for a storage, and load its state."""
        self.storage = storage
        self.builder = self.builder_cls(storage, self.resources, self.config, **self._builder_keywords)
        parameters = asdict(self.config)  # type: ignore[call-overload]
        self.writer = IndexWriter(storage, self.resources, self.builder, parameters, self.method, self._llm_work_of)
        of_memory = self.writer, self.resources
        self.reader = QueryReader(*of_memory) if storage.is_whole else PartReader(*of_memory, storage, self.builder)

    def _llm_work_of(self, nodes: Sequence[BaseNode]) -> Estimate:
        resources = self.resources
        return self.llm_work(nodes, resources.extractor, resources.summarizer, resources.given_llm, self.config)

    def _load(self, context: StorageContext, struct: DerivedStruct) -> None:
        """Open a stored index."""
        with reading_struct(struct):
            self._open(run_steps(open_storage(context, self.method, struct, self._chunk_store)))

    def _is_stored(self, struct: DerivedStruct) -> bool:
        """Whether the index store holds a struct, beyond this process."""
        store = self.storage.context.index_store
        return self.storage.records.outlives_the_process and store.get_index_struct(struct.index_id) is not None

    def build_index_from_nodes(self, nodes: Sequence[BaseNode], **build_kwargs: Any) -> DerivedStruct:
        """Build the index; BaseIndex calls this from the constructor.

        An index of this kind in the storage context whose build ended early is resumed.

        Raises
        ------
        ConfigurationError
            If that index has other parameters, or holds other nodes than these.
        """
        context = self._storage_context
        parameters = asdict(self.config)  # type: ignore[call-overload]
        found = incomplete_struct(context, self.index_struct_cls, self.method, parameters)
        self._index_struct = self._new_struct() if found is None else found
        if found is not None:
            self._load(context, found)
        else:
            struct, spaces = self._index_struct, self.builder_cls.spaces if self._in_stores else self.space_names
            self._open(new_storage(context, self.method, spaces, struct, self._chunk_store, in_stores=self._in_stores))
        self._resumed = found is not None
        self.writer.checks.describe()
        hold(self._index_struct.uid, self)
        if nodes:
            run_steps(resumable(self._index_struct.uid, self._build(nodes)))
        return self._index_struct

    def _build(self, nodes: Sequence[BaseNode]) -> Steps[None]:
        if self._resumed:
            yield from check_resumed(self.storage, nodes={node.node_id for node in nodes})
        yield from self._insert_nodes(nodes)

    def _insert_nodes(self, nodes: Sequence[BaseNode]) -> Steps[None]:
        for some, more in self._parts(nodes):
            yield from self.writer.write(some, more=more)

    def _build_index_from_nodes(self, nodes: Sequence[BaseNode], **build_kwargs: Any) -> DerivedStruct:
        return self.build_index_from_nodes(nodes, **build_kwargs)

    @classmethod
    def from_documents(
        cls,
        documents: Sequence[Document],
        storage_context: StorageContext | None = None,
        show_progress: bool = False,
        callback_manager: CallbackManager | None = None,
        transformations: list[TransformComponent] | None = None,
        **kwargs: Any,
    ) -> Self:
        """Build an index from documents, as `VectorStoreIndex.from_documents` does.

        Random ids of the nodes are replaced by ids derived from their content, and document hashes are stored last:
        `refresh_ref_docs` recognises a build that was killed as incomplete and resumes it without duplicates, as does
        `from_documents` with the same documents and the same stores.
        """
        index = cls([], None, None, storage_context, callback_manager, transformations, show_progress, **kwargs)
        run_steps(resumable(index.index_struct.uid, index._build_from_documents(documents)))
        return index

    @classmethod
    async def afrom_documents(
        cls,
        documents: Sequence[Document],
        storage_context: StorageContext | None = None,
        show_progress: bool = False,
        callback_manager: CallbackManager | None = None,
        transformations: list[TransformComponent] | None = None,
        **kwargs: Any,
    ) -> Self:
        """As :meth:`from_documents`."""
        index = cls([], None, None, storage_context, callback_manager, transformations, show_progress, **kwargs)
        await arun_steps(resumable(index.index_struct.uid, index._build_from_documents(documents)))
        return index

    def _build_from_documents(self, documents: Sequence[Document]) -> Steps[None]:
        check_nodes(documents)
        if self._resumed:
            yield from check_resumed(self.storage, documents={document.id_ for document in documents})
            yield from self._update_documents(documents)
        else:
            yield from self._insert_documents(documents)

    # -- inserting ------------------------------------------------------------------------------------------

    def _transform(self, documents: Sequence[Document], **kwargs: Any) -> Steps[list[BaseNode]]:
        refuse_unstorable(documents)
        nodes = yield from call(
            run_transformations,
            arun_transformations,
            list(documents),
            self._transformations,
            show_progress=self._show_progress,
            **kwargs,
        )
        return with_stable_ids(nodes)

    def _insert_documents(self, documents: Sequence[Document], **kwargs: Any) -> Steps[None]:
        for some, more in self._parts(documents):
            yield from self.writer.write((yield from self._transform(some, **kwargs)), some, more=more)

    def _parts(self, given: Sequence[NodeT]) -> Iterable[tuple[Sequence[NodeT], bool]]:
        """What is written at once, and whether more follows: all, or, where the index is served from stores, a part."""
        check_nodes(given)
        return parts(given) if self._in_stores else [(given, False)]

    def insert(self, document: Document, **insert_kwargs: Any) -> None:
        """Insert a document; keywords go to the transformations."""
        with self._callback_manager.as_trace("insert"):
            run_steps(self._insert_documents([document], **insert_kwargs))

    async def ainsert(self, document: Document, **insert_kwargs: Any) -> None:
        """As :meth:`insert`."""
        with self._callback_manager.as_trace("ainsert"):
            await arun_steps(self._insert_documents([document], **insert_kwargs))

    def insert_nodes(self, nodes: Sequence[BaseNode], **insert_kwargs: Any) -> None:
        """Insert nodes; those already stored with the same content cost nothing."""
        with self._callback_manager.as_trace("insert_nodes"):
            run_steps(self._insert_nodes(self._take_objects(nodes)))

    async def ainsert_nodes(self, nodes: Sequence[BaseNode], **insert_kwargs: Any) -> None:
        """As :meth:`insert_nodes`."""
        with self._callback_manager.as_trace("ainsert_nodes"):
            await arun_steps(self._insert_nodes(self._take_objects(nodes)))

    def _insert(self, nodes: Sequence[BaseNode], **insert_kwargs: Any) -> None:
        run_steps(self._insert_nodes(nodes))

    def _take_objects(self, nodes: Sequence[BaseNode]) -> Sequence[BaseNode]:
        """Keep objects that cannot be stored (a query engine in an IndexNode) in memory, as core does."""
        check_nodes(nodes)
        for node in nodes:
            if isinstance(node, IndexNode):
                try:
                    node.dict()
                except ValueError:
                    self._object_map[node.index_id] = node.obj
                    node.obj = None
        return nodes

    # -- deleting -------------------------------------------------------------------------------------------

    def delete_nodes(self, node_ids: list[str], delete_from_docstore: bool = False, **delete_kwargs: Any) -> None:
        """Delete nodes and everything derived from them; needs no LLM."""
        run_steps(self._delete_nodes(node_ids, delete_from_docstore))

    async def adelete_nodes(
        self, node_ids: list[str], delete_from_docstore: bool = False, **delete_kwargs: Any
    ) -> None:
        """As :meth:`delete_nodes`."""
        await arun_steps(self._delete_nodes(node_ids, delete_from_docstore))

    def _delete_nodes(self, node_ids: Sequence[str], from_docstore: bool) -> Steps[None]:
        check_ids("node_ids", node_ids)
        yield from self.writer.delete(node_ids, from_docstore=from_docstore)

    def _delete_node(self, node_id: str, **delete_kwargs: Any) -> None:
        run_steps(self.writer.delete([node_id], from_docstore=False))

    def delete_ref_doc(self, ref_doc_id: str, delete_from_docstore: bool = False, **delete_kwargs: Any) -> None:
        """Delete a document and everything derived from it; needs no LLM.

        The index uses its own manifest, so the delete is complete even if another index on the same storage context
        has already deleted the document from the docstore.
        """
        run_steps(self.writer.delete_document(ref_doc_id, from_docstore=delete_from_docstore))

    async def adelete_ref_doc(self, ref_doc_id: str, delete_from_docstore: bool = False, **delete_kwargs: Any) -> None:
        """As :meth:`delete_ref_doc`."""
        await arun_steps(self.writer.delete_document(ref_doc_id, from_docstore=delete_from_docstore))

    # -- updating -------------------------------------------------------------------------------------------

    def _update_documents(self, documents: Sequence[Document], **kwargs: Any) -> Steps[None]:
        for some, more in self._parts(documents):
            nodes = yield from self._transform(some, **kwargs.get("insert_kwargs", {}))
            yield from self.writer.write(nodes, some, replace=True, more=more)

    def _refresh(self, documents: Sequence[Document], kwargs: dict[str, Any]) -> Steps[list[bool]]:
        check_nodes(documents)
        refuse_unstorable(documents)
        stored = yield from self.storage.manifest.hashes(document.id_ for document in documents)
        unfinished = set((yield from self.storage.commits.unfinished()).documents)
        latest = {document.id_: document for document in documents}
        stale = {i: document for i, document in latest.items() if i in unfinished or stored.get(i) != document.hash}
        if stale:
            yield from self._update_documents([*stale.values()], **{**kwargs, **kwargs.get("update_kwargs", {})})
        return [document.id_ in stale for document in documents]

    def update_ref_doc(self, document: Document, **update_kwargs: Any) -> None:
        """Replace a document. Unchanged chunks keep their ids and cost nothing."""
        with self._callback_manager.as_trace("update_ref_doc"):
            run_steps(self._update_documents([document], **update_kwargs))

    async def aupdate_ref_doc(self, document: Document, **update_kwargs: Any) -> None:
        """As :meth:`update_ref_doc`."""
        with self._callback_manager.as_trace("aupdate_ref_doc"):
            await arun_steps(self._update_documents([document], **update_kwargs))

    def refresh_ref_docs(self, documents: Sequence[Document], **update_kwargs: Any) -> list[bool]:
        """Insert new documents and replace changed ones, in one write; unchanged ones are skipped.

        Changes are detected by this index's own hash of the document, since another index on the same docstore may
        have refreshed it already. Of documents with the same id, the last is kept.

        Returns
        -------
        list of bool
            For each document, whether the one of its id was written.
        """
        with self._callback_manager.as_trace("refresh_ref_docs"):
            return run_steps(self._refresh(documents, update_kwargs))

    async def arefresh_ref_docs(self, documents: Sequence[Document], **update_kwargs: Any) -> list[bool]:
        """As :meth:`refresh_ref_docs`."""
        with self._callback_manager.as_trace("arefresh_ref_docs"):
            return await arun_steps(self._refresh(documents, update_kwargs))

    def retry_failed(self) -> int:
        """Retry failed LLM steps, and return the number of remaining failures."""
        return run_steps(self.writer.retry_failed())

    async def aretry_failed(self) -> int:
        """As :meth:`retry_failed`."""
        return await arun_steps(self.writer.retry_failed())

    def failures(self) -> list[Failure]:
        """The LLM steps that failed, what each was for and why it failed; nodes first, then summaries and other steps.

        :meth:`retry_failed` tries them again.
        """
        return run_steps(self.writer.failures())

    def forget_cache(self) -> None:
        """Declare that the extraction cache of the build no longer exists, so deletes stop requiring it."""
        run_steps(self.writer.forget_cache())

    # -- reading --------------------------------------------------------------------------------------------

    @property
    def ref_doc_info(self) -> dict[str, RefDocInfo]:
        """The documents of this index: their nodes and metadata."""
        return run_steps(self.storage.manifest.documents())

    @property
    def unfinished(self) -> list[str]:
        """The ids of the documents whose last write ended early: insert, refresh or delete these again.

        Nodes that were inserted without their documents are named by their own ids.
        """
        left = run_steps(self.storage.commits.unfinished())
        return [*left.documents, *left.nodes]

    def set_index_id(self, index_id: str) -> None:
        """Give the index another id in its storage context.

        Raises
        ------
        ConfigurationError
            If another index of the context has it: that index could no longer be opened, and its documents could no
            longer be deleted.
        """
        store, old_id = self._storage_context.index_store, self.index_id
        if index_id == old_id:
            return
        try:
            taken = store.get_index_struct(index_id) is not None
        except KeyError:  # of a kind whose package is not imported
            taken = True
        if taken:
            raise ConfigurationError(
                f"The storage context has another index with the id {index_id!r}, which would be lost. Choose an id "
                f"that is free, or keep {old_id!r}. Nothing was changed."
            )
        self._index_struct.index_id = index_id
        store.add_index_struct(self._index_struct)
        store.delete_index_struct(old_id)

    def as_retriever(self, **kwargs: Any) -> BaseRetriever:
        """A retriever of the method over this index.

        `as_query_engine` and `as_chat_engine` also pass their keywords to this method, so keywords of core's query and
        chat engines are ignored. The retriever rejects other unknown ones.
        """
        own = names_of(self.retriever_cls.keywords)
        given = {**llm_of_engine(own), **without_engine_keywords(kwargs, own)}
        retriever: BaseRetriever = self.retriever_cls(self, **given)
        return retriever

    def as_query_engine(self, llm: LLMType | None = None, **kwargs: Any) -> BaseQueryEngine:
        """A query engine of core over :meth:`as_retriever`; retrieval steps with a language model use `llm` too."""
        with engine_llm(llm):
            return super().as_query_engine(llm, **kwargs)

    def as_chat_engine(
        self, chat_mode: ChatMode = ChatMode.BEST, llm: LLMType | None = None, **kwargs: Any
    ) -> BaseChatEngine:
        """A chat engine of core over :meth:`as_query_engine` or :meth:`as_retriever`."""
        with engine_llm(llm):
            return super().as_chat_engine(chat_mode, llm, **kwargs)

    @classmethod
    def from_vector_store(cls, *args: Any, **kwargs: Any) -> NoReturn:
        """No index: a vector store has the chunks, but not what a method derives from them.

        Raises
        ------
        NotAVectorStoreIndexError
        """
        raise NotAVectorStoreIndexError(
            f"A vector store does not hold a {cls.__name__}: open one with "
            "llama_index.core.load_index_from_storage(storage_context), and make one of nodes or documents."
        )

    @property
    def vector_store(self) -> NoReturn:
        """No store that core's own retrievers could search.

        Raises
        ------
        NotAVectorStoreIndexError
        """
        raise NotAVectorStoreIndexError(
            f"{type(self).__name__} is searched by its own retriever: call as_retriever() where core makes a "
            "VectorIndexRetriever, and llama_index.ragkit.AutoRetriever(index, vector_store_info) in place of "
            "VectorIndexAutoRetriever."
        )

    @overload
    def visualize(self, path: str | Path, query: str | None = None, **kwargs: Any) -> Path: ...

    @overload
    def visualize(self, path: None = None, query: str | None = None, **kwargs: Any) -> InlinePage: ...

    def visualize(self, path: str | Path | None = None, query: str | None = None, **kwargs: Any) -> Path | InlinePage:
        """Draw an interactive HTML page with the answer to a question highlighted; it needs no network.

        Parameters
        ----------
        path : where to write it; None for a page that a notebook shows
        query : a question to retrieve for first; default the last query of a retriever, if any
        kwargs : of the retriever that answers `query`, and of the method's own page. `filters`, `node_ids` and
            `doc_ids` also restrict the page, with or without a question: it shows nothing of other nodes. If the page
            shows the last query, the restrictions of that query apply too

        Returns
        -------
        The path of the page, or without one the page itself.
        """
        of_page = inspect.signature(self._page).parameters.keys() - {"query", "selection"}
        own = {name: kwargs.pop(name) for name in list(kwargs) if name in of_page}
        asked, selection = self._asked(query, kwargs)
        draw: Callable[..., Page] = self._page
        page = draw(query=asked, selection=selection, **own)
        if self.storage.is_whole and selection.is_whole and (rows := stand_ins(self.failures())):
            page = replace(page, panels=[*page.panels, Facts("Done by rules, since the LLM failed", rows)])
        return InlinePage(page) if path is None else write(page, path)

    def _asked(self, question: str | None, kwargs: Mapping[str, Any]) -> tuple[LastQuery | None, Selection]:
        """What a page shows: the answer to a question, else the last one, and which chunks."""
        retriever: Any = self.as_retriever(**kwargs)
        if question is not None:
            return retriever.ask(question), retriever.selection
        last = self.last_query
        if last is None or not retriever.selection.is_whole:
            return None, retriever.selection
        return last, last.selection

    @classmethod
    def estimate(
        cls,
        documents: Sequence[Document],
        *,
        extractor: NodeExtractor | None = None,
        summarizer: Summarizer | None = None,
        transformations: list[TransformComponent] | None = None,
        llm: LLM | None = None,
        sample: int = 500,
        prices: Prices | None = None,
        **parameters: Any,
    ) -> Estimate:
        """Estimate the work of the LLM and of the embedding model in a build over documents, without calling either.

        Chunks are counted. To count the texts that the method derives from them, a sample is built, with
        `rule_extractor` in place of an extractor with an LLM. These counts are exact if the index is built without an
        LLM and without summaries, and if the sample is the whole corpus.

        Parameters
        ----------
        documents : the documents of the index
        extractor, summarizer, transformations : as passed to the index
        llm : its system prompt counts too, and its context window decides how many calls there are. Default: the LLM of
            `Settings`, if one is set
        sample : maximum number of chunks that are built over; more take longer
        prices : what a million tokens cost, such as `{"prompt": 0.15, "completion": 0.6, "embedding": 0.02}`, for
            `cost` of the estimate; None for no cost
        parameters : of the method, as passed to the index; those that decide what is embedded count. With
            `embed_model=`, a chunk that is longer than the model reads counts as its windows; the model is not called

        Returns
        -------
        Calls, prompt tokens and reply tokens, with an empty cache and without retries; the most calls that a check of
        the method may add (`more_calls`); embedded texts and tokens.

        Raises
        ------
        ConfigurationError
            If a price is unknown or negative.
        TypeError
            If the method has no parameter of a name.
        """
        cls._checked({"extractor": extractor, "summarizer": summarizer, "llm": llm})
        nodes = nodes_of(documents, transformations)
        assumed = {name: parameters.pop(name, default) for name, default in cls.assumed.items()}
        work = cls.embedding_work(nodes, extractor, summarizer, sample, parameters)
        config = choose_parameters(cls.config_cls, {}, cls._parameters(parameters), fixed=False)
        work += cls.llm_work(nodes, extractor, summarizer, llm, cls._with_all_texts(config), assumed)
        return work.priced(prices)

    @classmethod
    def llm_work(
        cls,
        nodes: Sequence[BaseNode],
        extractor: NodeExtractor | None,
        summarizer: Summarizer | None,
        llm: LLM | None,
        config: Config | None = None,
        assumed: Mapping[str, float] | None = None,
    ) -> Estimate:
        """What a build over nodes asks of the LLM; see :meth:`estimate`.

        Parameters
        ----------
        extractor, summarizer : those of the index; None for its defaults
        llm : its system prompt counts too
        config : the parameters of the index [their defaults]
        assumed : what only a build shows [see the attribute]
        """
        extractor, summarizer = cls._of_a_build(extractor, summarizer)
        given = config or cls.config_cls(), assumed or cls.assumed
        writing = cls._writing_work(nodes, extractor, summarizer, llm, *given)
        return writing if extractor is None else writing + extractor.estimate(nodes, llm)

    @classmethod
    def _writing_work(
        cls,
        nodes: Sequence[BaseNode],
        extractor: NodeExtractor | None,
        summarizer: Summarizer | None,
        llm: LLM | None,
        config: Config,
        assumed: Mapping[str, float],
    ) -> Estimate:
        """What the texts that a build writes, such as summaries, ask of the LLM; none by default."""
        return Estimate()

    @classmethod
    def _with_all_texts(cls, config: Config) -> Config:
        """The parameters of a build that writes every text that the method knows."""
        return config

    @classmethod
    def _of_a_build(
        cls, extractor: NodeExtractor | None, summarizer: Summarizer | None
    ) -> tuple[NodeExtractor | None, Summarizer | None]:
        """The components of a build for which these are passed, defaults in place of None."""
        return (
            extractor or (None if cls.default_extractor is None else cls.default_extractor()),
            summarizer or (None if cls.default_summarizer is None else cls.default_summarizer()),
        )

    @classmethod
    def embedding_work(
        cls,
        nodes: Sequence[BaseNode],
        extractor: NodeExtractor | None,
        summarizer: Summarizer | None,
        sample: int,
        parameters: Mapping[str, Any],
    ) -> Estimate:
        """What a build over nodes embeds; methods that estimate their LLM work themselves add it.

        Parameters
        ----------
        extractor, summarizer : those of the index; None for its defaults
        sample : see :meth:`estimate`
        parameters : further keywords of the index
        """
        parameters = dict(parameters)
        model = parameters.pop("embed_model", None)
        limit = None if model is None else most_tokens(resolve_embed_model(model))
        known = names_of(cls.keywords) - names_of(IndexKeywords) - {"summarizer"}
        check_keywords(f"{cls.__name__}.estimate", parameters, known)
        reads, writes = cls._of_a_build(extractor, summarizer)
        check_count("sample", sample, 1)
        if len(cls.space_names) == 1:  # nothing is derived from chunks
            return embedding_work(nodes, None, True, sample, limit)
        parts = components_without_llm(reads, cls.rule_extractor, writes, parameters)
        build = None if parts is None else partial(cls, **parts)
        is_exact = writes is None and (reads is None or not reads.needs_llm)
        return embedding_work(nodes, build, is_exact, sample, limit)


def check_method(owner: str, method: str, index: Any) -> None:
    """Refuse an object that is no index of a method; `owner` is the name of the class that received it."""
    if not isinstance(index, DerivedIndex) or index.method != method:
        found = type(index).__name__ if not isinstance(index, type) else f"the class {index.__name__} itself"
        raise ConfigurationError(f"{owner} needs an index of the method {method!r}, not {found}.")


def nodes_of(documents: Sequence[Document], transformations: list[TransformComponent] | None) -> Sequence[BaseNode]:
    """The nodes of an index over documents."""
    check_nodes(documents)
    return run_transformations(list(documents), transformations or Settings.transformations)
