"""`DerivedPostprocessor`: a method applied to the nodes of any retriever."""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain
from typing import Any, ClassVar

import numpy as np
from llama_index.core.bridge.pydantic import ConfigDict, Field, PrivateAttr, ValidationError
from llama_index.core.instrumentation import get_dispatcher  # type: ignore[attr-defined]
from llama_index.core.instrumentation.events.rerank import ReRankEndEvent, ReRankStartEvent
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import NodeWithScore, QueryBundle
from llama_index.core.vector_stores.types import MetadataFilters

from llama_index.ragkit.core_internals import without_step_spans
from llama_index.ragkit.index.derived_index import DerivedIndex, check_method
from llama_index.ragkit.index.keywords import PostprocessorKeywords, show_keywords
from llama_index.ragkit.index.matching import match_nodes
from llama_index.ragkit.index.query import as_bundle
from llama_index.ragkit.index.results import fit_tokens
from llama_index.ragkit.short_repr import changed_fields
from llama_index.ragkit.steps import Steps, arun_steps, immediate, run_steps
from llama_index.ragkit.storage.selection import Selection
from llama_index.ragkit.validation import CountOrNone, refusal

__all__ = ["DerivedPostprocessor"]

dispatcher = get_dispatcher(__name__)


class DerivedPostprocessor(BaseNodePostprocessor):
    """Applies a method to the nodes of any retriever.

    Nodes are matched with those of the index by id, then by hash (text and metadata). Nodes that the index does not
    contain are kept. The input nodes are not changed: results are new objects.

    An index that is served from stores is asked for the given nodes alone. A postprocessor that needs all of it refuses
    such an index.

    Attributes
    ----------
    method : the `method` of the index class
    keywords : the keywords of the constructor, a `TypedDict`
    needs_index : whether it cannot do without an index

    Parameters
    ----------
    index : the index to use; not part of the serialised postprocessor; None where `needs_index` is False
    top_n : maximum number of nodes to return; None for all [None]
    token_budget : maximum number of tokens of all nodes, with the metadata that the LLM sees; a node that does not fit
        is skipped; None for no limit [None]
    filters : metadata filters that chunks of the index must pass, those that are given, those that are added, and those
        that a given node was derived from; pass the retriever's filters here too, otherwise nodes that the retriever
        excludes may be returned [None]

    Raises
    ------
    ConfigurationError
        If a parameter is unknown or invalid, or the index is of another method.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    method: ClassVar[str]
    keywords: ClassVar[type] = PostprocessorKeywords
    needs_index: ClassVar[bool] = True

    top_n: CountOrNone = Field(default=None, description="Maximum number of nodes.")
    token_budget: CountOrNone = Field(default=None, description="Maximum number of tokens of all nodes.")
    filters: MetadataFilters | None = Field(default=None, description="Filters that nodes of the index must pass.")

    _index: Any = PrivateAttr()

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        """Show the keywords of the constructor, and their defaults, in its signature; take the spans from its steps."""
        super().__pydantic_init_subclass__(**kwargs)
        without_step_spans(cls)
        show_keywords(cls, {"__init__": cls.keywords}, {n: field.default for n, field in cls.model_fields.items()})

    def __init__(self, index: DerivedIndex[Any, Any] | None = None, **kwargs: Any) -> None:
        if index is not None or self.needs_index:
            check_method(type(self).__name__, self.method, index)
        try:
            super().__init__(**kwargs)
        except ValidationError as error:
            raise refusal(type(self).__name__, type(self).model_fields, error) from error
        self._index = index

    @classmethod
    def class_name(cls) -> str:
        """The name in serialised pipelines."""
        return cls.__name__

    def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:
        """What Pydantic shows: the index, and the parameters that differ from their defaults."""
        if self._index is not None:
            yield "index", self._index
        yield from changed_fields(self)

    @immediate
    def _vectors(self, nodes: Sequence[NodeWithScore], bundle: QueryBundle | None) -> Any:
        """What is embedded for a question, before the index is read; nothing by default."""
        return None

    @abstractmethod
    def _results(
        self, nodes: Sequence[NodeWithScore], bundle: QueryBundle | None, vectors: Any
    ) -> Steps[list[NodeWithScore]]:
        """The results for one or more nodes, from one generation of the index; they are cut afterwards.

        Parameters
        ----------
        vectors : what :meth:`_vectors` returned
        """

    @property
    def _selection(self) -> Selection:
        """Which chunks may be used."""
        return Selection(self.filters)

    def _of_passing(
        self, nodes: Sequence[NodeWithScore], bundle: QueryBundle | None, vectors: Any
    ) -> Steps[list[NodeWithScore]]:
        """The results for the nodes without those of the index that do not pass the filters."""
        if self.filters is not None and self._index is not None:
            chunks = yield from self._index.storage.rows_matching([each.node for each in nodes])
            names, passing = match_nodes(nodes, chunks), self._selection.mask(chunks)
            rows = chunks.rows_of([name or "" for name in names])
            nodes = [nodes[i] for i, name in enumerate(names) if name is None or passing[rows[i]]]
            # What was derived from chunks passes if all of these do.
            sources = [[source.node_id for source in each.node.child_nodes or ()] for each in nodes]
            read = yield from self._index.storage.space().described(dict.fromkeys(chain.from_iterable(sources)))
            hidden = {read.ids[row] for row in np.flatnonzero(~self._selection.mask(read))}
            nodes = [each for each, below in zip(nodes, sources, strict=True) if hidden.isdisjoint(below)]
        return (yield from self._results(nodes, bundle, vectors)) if nodes else []

    def _cut(self, results: list[NodeWithScore]) -> list[NodeWithScore]:
        return fit_tokens(results, self.token_budget)[: self.top_n]

    def _steps(self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None) -> Steps[list[NodeWithScore]]:
        if not nodes:
            return []
        dispatcher.event(
            ReRankStartEvent(query=query_bundle, nodes=nodes, top_n=len(nodes), model_name=self.class_name())
        )
        bundle = None if query_bundle is None else as_bundle(query_bundle)
        work = partial(self._of_passing, nodes, bundle, (yield from self._vectors(nodes, bundle)))
        results = yield from work() if self._index is None else self._index.reader.in_one_generation(work)
        results = self._cut(results)
        dispatcher.event(ReRankEndEvent(nodes=results))
        return results

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        return run_steps(self._steps(nodes, query_bundle))

    @dispatcher.span
    async def _apostprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        return await arun_steps(self._steps(nodes, query_bundle))
