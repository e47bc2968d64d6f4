"""What every retriever of these packages shares: parameters, both drivers, fresh results."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.callbacks.base import CallbackManager
from llama_index.core.instrumentation import get_dispatcher  # type: ignore[attr-defined]
from llama_index.core.schema import NodeWithScore, QueryBundle
from llama_index.core.vector_stores.types import MetadataFilters

from llama_index.ragkit.checks import check_count
from llama_index.ragkit.driver import Steps, arun_steps, run_steps

if TYPE_CHECKING:
    from llama_index.ragkit.index import DerivedIndex

__all__ = ["DerivedRetriever"]

dispatcher = get_dispatcher(__name__)
I = TypeVar("I", bound="DerivedIndex[Any, Any]")  # noqa: E741


class DerivedRetriever(BaseRetriever, Generic[I]):
    """Retrieves from a :class:`~llama_index.ragkit.DerivedIndex`, always in its present state.

    Results are fresh `NodeWithScore` objects with float scores, higher is better; nothing is added to
    their metadata, and the `QueryBundle` is neither changed nor trusted for its embedding.

    Parameters
    ----------
    index : the index to ask
    similarity_top_k : how many nodes at most, at least 1
    token_budget : how many tokens at most, all nodes together as the LLM sees them; a node that does not
        fit is passed over
    filters, node_ids, doc_ids : restrict the source nodes; a derived node passes only if all its sources do
    callback_manager, object_map, verbose : as in every LlamaIndex retriever
    kwargs : passed over, since `as_query_engine` hands its own keywords to the retriever too

    Raises
    ------
    ConfigurationError
        If a parameter has a value that it cannot have.
    """

    def __init__(
        self,
        index: I,
        *,
        similarity_top_k: int = 10,
        token_budget: int | None = None,
        filters: MetadataFilters | None = None,
        node_ids: Sequence[str] | None = None,
        doc_ids: Sequence[str] | None = None,
        callback_manager: CallbackManager | None = None,
        object_map: dict[str, Any] | None = None,
        verbose: bool = False,
        **kwargs: Any,
    ) -> None:
        self._index = index
        self.similarity_top_k = check_count("similarity_top_k", similarity_top_k, 1)
        self.token_budget = check_count("token_budget", token_budget, 1, none_ok=True)
        self.filters = filters
        self.node_ids = node_ids
        self.doc_ids = doc_ids
        super().__init__(
            callback_manager=callback_manager or index._callback_manager,
            object_map=index._object_map if object_map is None else object_map,
            verbose=verbose,
        )

    @abstractmethod
    def _retrieve_steps(self, query_bundle: QueryBundle) -> Steps[list[NodeWithScore]]:
        """The retrieval, described once for both drivers."""

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return run_steps(self._retrieve_steps(query_bundle))

    @dispatcher.span
    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return await arun_steps(self._retrieve_steps(query_bundle))
