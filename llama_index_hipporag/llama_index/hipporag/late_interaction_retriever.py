"""`LateInteractionRetriever`: nodes by the vectors of their tokens, like the baseline ColBERTv2 of HippoRAG's paper."""

from collections.abc import Iterable
from functools import cached_property

import numpy as np
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.schema import BaseNode, MetadataMode, NodeWithScore, QueryBundle

from llama_index.hipporag.text.late_interaction import TokenEncoder, TokenVectors
from llama_index.ragkit import offload
from llama_index.ragkit.index.results import fresh
from llama_index.ragkit.short_repr import ShortRepr
from llama_index.ragkit.steps import arun_steps
from llama_index.ragkit.validation import check_component, check_count

__all__ = ["LateInteractionRetriever"]


class LateInteractionRetriever(ShortRepr, BaseRetriever):
    """Ranks given nodes by late interaction, in memory (:mod:`llama_index.hipporag.text.late_interaction`).

    The first question encodes the texts, with the metadata that embedding models see.

    Parameters
    ----------
    nodes : such as `index.docstore.docs.values()`
    encoder : the model: a `MultiVectorEncoder` of sentence-transformers, or any object whose `encode_query(text)` and
        `encode_document(texts)` return vectors of tokens
    similarity_top_k : maximum number of nodes, at least 1 [10]

    Raises
    ------
    ConfigurationError
        If `encoder` lacks one of these methods, or `similarity_top_k` is below 1.
    """

    def __init__(self, nodes: Iterable[BaseNode], encoder: TokenEncoder, similarity_top_k: int = 10) -> None:
        self._nodes = list(nodes)
        wanted = "an object with encode_query(text) and encode_document(texts)"
        methods = ("encode_query", "encode_document")
        self._encoder: TokenEncoder = check_component("encoder", encoder, methods, wanted, "")
        self.similarity_top_k = check_count("similarity_top_k", similarity_top_k, 1)
        super().__init__()

    @cached_property
    def _tokens(self) -> TokenVectors:
        texts = [node.get_content(metadata_mode=MetadataMode.EMBED) for node in self._nodes]
        return TokenVectors(self._encoder.encode_document(texts) if texts else ())

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return self._ranked(query_bundle.query_str)

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return await arun_steps(offload(self._ranked, query_bundle.query_str))

    def _ranked(self, question: str) -> list[NodeWithScore]:
        scores = self._tokens.similarities(self._encoder.encode_query(question))
        best = np.argsort(-scores, kind="stable")[: self.similarity_top_k]
        return [fresh(self._nodes[row], float(scores[row])) for row in best]
