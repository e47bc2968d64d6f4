"""What a build embeds, counted by building over a sample of the nodes with a model that only counts.

Every method derives its own texts from chunks (phrases, facts, questions, summaries), so they are counted where they
arise, and a method needs nothing for it. Steps with an LLM are replaced by steps without one. Vectors are hashed words:
texts that share words are near, as for a real model, so that clusters have sizes of the right order.
"""

import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.callbacks.base import CallbackManager
from llama_index.core.schema import BaseNode

from llama_index.ragkit.extraction.context import Estimate
from llama_index.ragkit.extraction.node_extractor import NodeExtractor
from llama_index.ragkit.extraction.summarizers import Summarizer
from llama_index.ragkit.index.advantage import taken_out
from llama_index.ragkit.llm.embeddings import PROBE_TEXT, cut_windows
from llama_index.ragkit.steps import immediate
from llama_index.ragkit.storage.nodes import embed_text, sort_key
from llama_index.ragkit.text.tokens import count_tokens
from llama_index.ragkit.vectors.self_retrieval import can_measure

__all__ = ["HashedWords", "components_without_llm", "embedding_work", "sample_of"]

_DIMENSION = 384
_PROBE = 1  # text that tells models apart, once an index


def components_without_llm(
    extractor: NodeExtractor | None,
    rules: Callable[[], NodeExtractor] | None,
    summarizer: Summarizer | None,
    parameters: Mapping[str, Any],
) -> dict[str, Any] | None:
    """The keywords of a build that needs no LLM, in place of those of one that may; None if there are none.

    `rules` makes the extractor that stands in for one with an LLM. Of `parameters`, components that need one are left
    out.
    """
    parts = {name: part for name, part in parameters.items() if not getattr(part, "needs_llm", False)}
    if extractor is not None:
        if extractor.needs_llm and rules is None:
            return None
        parts["extractor"] = rules() if extractor.needs_llm and rules else extractor
    if summarizer is not None:
        parts["summarizer"] = _Beginnings() if summarizer.needs_llm else summarizer
    return parts


def embedding_work(
    nodes: Sequence[BaseNode], build: Callable[..., Any] | None, is_exact: bool, sample: int, limit: int | None = None
) -> Estimate:
    """The texts and tokens that a build over nodes embeds.

    Chunks are counted exactly. What is derived from them is counted over at most `sample` nodes, and multiplied by
    the share of these: an upper bound where texts repeat, as names do.

    Parameters
    ----------
    build : makes an index of nodes without an LLM; None to count nothing but chunks
    is_exact : whether what is embedded depends on nothing but the texts
    limit : tokens of a text that the model reads, see :func:`~llama_index.ragkit.llm.embeddings.most_tokens`: longer
        chunks count as their windows
    """
    own, asked = _embedded(nodes, limit)
    if not own:
        return Estimate()
    tokens = sum(map(count_tokens, [PROBE_TEXT, *own, *asked]))
    work = Estimate(embedded_texts=_PROBE + len(own) + len(asked), embedded_tokens=tokens, embedding_is_exact=is_exact)
    if build is None:
        return work
    sampled = sample_of(nodes, sample)
    model = HashedWords(model_name="no model (estimate)", max_length=limit)
    copies = [node.model_copy(update={"embedding": None}) for node in sampled]
    build(copies, embed_model=model, callback_manager=CallbackManager([]))
    of_sample, asked_of_sample = _embedded(sampled, limit)
    share = len(own) / max(1, len(of_sample))
    known = [PROBE_TEXT, *of_sample, *asked_of_sample]
    texts = model.texts - len(known)
    derived = model.tokens - sum(map(count_tokens, known))
    return work + Estimate(
        embedded_texts=round(texts * share),
        embedded_tokens=round(derived * share),
        embedding_is_exact=len(sampled) == len(nodes),
    )


def _embedded(nodes: Sequence[BaseNode], limit: int | None) -> tuple[list[str], list[str]]:
    """What is embedded of chunks, and of sentences that are taken out of them, as windows that the model reads."""
    with_text = sorted((node for node in nodes if embed_text(node)), key=sort_key)
    texts = [embed_text(node) for node in with_text]
    asked = taken_out(with_text, texts).texts if can_measure(len(texts), 0) else []
    own, taken = ([window for text in some for window in cut_windows(text, limit)] for some in (texts, asked))
    return own, taken


def sample_of(nodes: Sequence[BaseNode], size: int) -> list[BaseNode]:
    """At most `size` nodes: those of whole documents, spread evenly over all; the last may be cut."""
    if len(nodes) <= size:
        return list(nodes)
    documents: dict[str, list[BaseNode]] = {}
    for node in nodes:
        documents.setdefault(node.ref_doc_id or node.node_id, []).append(node)
    groups = list(documents.values())
    step = max(1, len(nodes) // size)
    order = [group for start in range(step) for group in groups[start::step]]
    return [node for group in order for node in group][:size]


class HashedWords(BaseEmbedding):
    """An embedding model without weights, which counts texts and tokens, and gives vectors of hashed words."""

    max_length: int | None = None
    texts: int = 0  # how many it was given
    tokens: int = 0  # of these

    # The public methods, so that nobody's callbacks and events hear of texts that no model has read.

    def get_text_embedding_batch(self, texts: list[str], show_progress: bool = False, **kwargs: Any) -> list[Any]:
        """The vectors of texts."""
        return [self._vector(text) for text in texts]

    async def aget_text_embedding_batch(
        self, texts: list[str], show_progress: bool = False, **kwargs: Any
    ) -> list[Any]:
        """As :meth:`get_text_embedding_batch`."""
        return self.get_text_embedding_batch(texts)

    def get_query_embedding(self, query: str) -> list[float]:
        """The vector of a question."""
        return self._vector(query)

    def _vector(self, text: str) -> list[float]:
        self.texts += 1
        self.tokens += count_tokens(text)
        vector = np.full(_DIMENSION, 1e-3)
        for word in text.casefold().split():
            vector[zlib.crc32(word.encode()) % _DIMENSION] += 1
        found: list[float] = (vector / np.linalg.norm(vector)).tolist()
        return found

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._vector(text)

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._vector(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._vector(query)


class _Beginnings(Summarizer):
    """Summaries of the requested length: the beginnings of the texts."""

    needs_llm = False

    @property
    def fingerprint(self) -> dict[str, str]:
        return {"class": type(self).__name__}

    @immediate
    def summarize(self, texts: Sequence[str], *, max_tokens: int, **others: Any) -> tuple[str, list[str]]:
        each = max(1, 3 * max_tokens // (4 * max(1, len(texts))))  # words; about 3 for 4 tokens
        return "\n".join(" ".join(text.split()[:each]) for text in texts), []
