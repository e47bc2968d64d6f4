"""`MRAGIndex`: an index with one embedding space per attention head (Besta et al. 2024, arXiv 2406.05085)."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.schema import BaseNode, Document, IndexNode
from numpy.typing import NDArray
from typing_extensions import Self, Unpack

from llama_index.mrag.builder import MRAGBuilder
from llama_index.mrag.config import MRAGConfig
from llama_index.mrag.embedding import HeadEmbedding, with_heads
from llama_index.mrag.heads.importance import importance
from llama_index.mrag.keywords import MRAGKeywords, MRAGRetrieverKeywords
from llama_index.mrag.multi_head_embedding import MultiHeadEmbedding
from llama_index.mrag.page import nodes_to_show, page_of
from llama_index.mrag.retriever import MRAGRetriever
from llama_index.mrag.state import MRAGState
from llama_index.ragkit import DerivedIndex, DerivedStruct, LastQuery, Selection, register_index
from llama_index.ragkit.html import Page
from llama_index.ragkit.steps import run_steps
from llama_index.ragkit.storage.derived_nodes import texts_of

__all__ = ["MRAGIndex", "MRAGStruct"]


class MRAGStruct(DerivedStruct):
    """The struct of a :class:`MRAGIndex`."""

    type_name = "llama_index.mrag"


class MRAGIndex(DerivedIndex[MRAGConfig, MRAGState]):
    """An index of nodes in the embedding spaces of a model's attention heads, one space per head.

    A question is first split into its aspects; then every space is searched and the heads vote
    (:class:`MRAGRetriever`). Indexing needs no LLM.

    Parameters
    ----------
    embed_model : a :class:`MultiHeadEmbedding` or :class:`SplitEmbedding`. Any other model, including the default of
        `Settings`, is wrapped in a :class:`SplitEmbedding`, with a warning
    head_stores : vector stores, one per head, that are searched instead of the exact search, for questions without
        filters. They only speed up the search; pass the same stores again when the index is loaded. In an
        index that is served from stores they add the nodes that single heads find to those near to an aspect as a whole
    dtype : "float32" keeps vectors unchanged; "float16" keeps about three significant digits in half the memory, but
        cannot be used in an index that is served from stores
    kwargs : see :class:`~llama_index.ragkit.DerivedIndex`

    Raises
    ------
    ConfigurationError
        If `dtype` is unknown or differs from that of the loaded index, or if there are not as many `head_stores` as
        heads.
    """

    index_struct_cls = MRAGStruct
    method: ClassVar[str] = "mrag"
    config_cls = MRAGConfig
    config_is_fixed = True
    builder_cls = MRAGBuilder
    builder: MRAGBuilder
    retriever_cls = MRAGRetriever
    keywords = MRAGKeywords

    if TYPE_CHECKING:  # the keywords, for editors and type checkers

        def __init__(
            self,
            nodes: Sequence[BaseNode] | None = None,
            objects: Sequence[IndexNode] | None = None,
            index_struct: DerivedStruct | None = None,
            **kwargs: Unpack[MRAGKeywords],
        ) -> None: ...

        @classmethod
        def from_documents(cls, documents: Sequence[Document], **kwargs: Unpack[MRAGKeywords]) -> Self: ...  # type: ignore[override]  # noqa: D102

        @classmethod
        async def afrom_documents(cls, documents: Sequence[Document], **kwargs: Unpack[MRAGKeywords]) -> Self: ...  # type: ignore[override]  # noqa: D102

        def as_retriever(self, **kwargs: Unpack[MRAGRetrieverKeywords]) -> MRAGRetriever: ...  # type: ignore[override]  # noqa: D102

        @property
        def embed_model(self) -> HeadEmbedding:
            """The embedding model, wrapped in a :class:`SplitEmbedding` if it has no heads."""

    @staticmethod
    def paper() -> dict[str, Any]:
        """The published index as keywords: `MRAGIndex(nodes, embed_model=heads, **MRAGIndex.paper())`.

        For the paper's embeddings, use :class:`MultiHeadEmbedding` with its defaults over a decoder: the heads of the
        last layer at the last token.
        """
        return {"dtype": "float32"}

    def _adapt_embed_model(self, model: BaseEmbedding) -> HeadEmbedding:
        described = self.storage.struct.parameters_of("mrag", {"heads": int, "model": dict})
        if described["heads"] and "own" not in described and isinstance(model, MultiHeadEmbedding):
            model = model.heads_alone()  # as in indexes of version 0.1
        return with_heads(model, described["heads"])

    def _new_struct(self) -> MRAGStruct:
        dtype = self.config.dtype
        stores = self._builder_keywords.get("head_stores") is not None
        # Number of heads and fingerprint of the model are determined from the first vector.
        return MRAGStruct(params={"dtype": dtype, "mrag": {"dtype": dtype, "heads": 0, "model": {}, "stores": stores}})

    @property
    def num_heads(self) -> int:
        """Number of embedding spaces; 0 while the index has no vectors."""
        return int(self.storage.struct.parameters_of("mrag", {"heads": int})["heads"])

    @property
    def importance(self) -> NDArray[np.float64]:
        """The paper's importance score of each head over all nodes, shape (num_heads,), at least 0.

        It grows with the length of the vectors, which :class:`~llama_index.mrag.MultiHeadEmbedding` divides by 1,024.
        """
        return importance(run_steps(self.builder.sums(run_steps(self.writer.recovered()).state)))

    def _page(self, query: LastQuery | None, selection: Selection) -> Page:
        state = self.state if query is None else query.found.state
        allowed = selection.allowed(state.chunks)
        nodes: int | None = state.sums.count if allowed is None else int(np.count_nonzero(allowed))
        if selection.filters is not None and not self.storage.is_whole:  # only some of the nodes are in memory
            nodes = None
        state = state.only(allowed) if query is None else state
        texts = run_steps(texts_of(nodes_to_show(state, query), self.storage.get_node))
        return page_of(state, texts, query, nodes)


register_index(MRAGIndex)
