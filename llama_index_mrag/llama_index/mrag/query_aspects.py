"""The aspects of a question, as texts and as vectors."""

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from llama_index.mrag.config import SearchConfig
from llama_index.mrag.embedding import with_heads
from llama_index.mrag.text.aspects import cut_aspects
from llama_index.ragkit import Steps
from llama_index.ragkit.errors import ExtractionError
from llama_index.ragkit.index.resources import Resources
from llama_index.ragkit.llm.embeddings import query_matrix
from llama_index.ragkit.llm.json.shapes import Reply, TextList, read_reply
from llama_index.ragkit.llm.prompts import fence
from llama_index.ragkit.steps import call

__all__ = ["AspectQueries", "aspects_of", "embed_aspects"]

logger = logging.getLogger(__name__)


class AspectQueries(Reply):
    """The schema of the LLM's reply."""

    other_names: ClassVar[Mapping[str, Sequence[str]]] = {
        "queries": ("query", "searchqueries", "subqueries", "questions", "searches", "aspects")
    }
    items: ClassVar[str] = "queries"

    queries: TextList = Field(min_length=1, description="search queries")


def aspects_of(
    question: str, config: SearchConfig, complete: Callable[..., Steps[Any]]
) -> Steps[tuple[list[str], str]]:
    """The aspects of a question, and, if the LLM call failed, why they lack its queries.

    Parameters
    ----------
    complete : (how to parse the reply, variables of the prompt "aspects") -> steps of the parsed reply; called only for
        aspects="llm" and "queries"
    """
    if config.aspects == "none":
        return [question], ""
    aspects = [] if config.aspects == "queries" else cut_aspects(question)
    fallback = ""
    if config.aspects != "sentences":
        try:
            reply: AspectQueries = yield from complete(
                parse=partial(read_reply, model=AspectQueries),
                output_cls=AspectQueries,
                reply_tokens=64 + 60 * config.num_queries,
                like=question,
                question=fence([question], "question"),
                num_queries=config.num_queries,
            )
            aspects += [query.strip() for query in reply.queries[: config.num_queries] if query.strip()]
        except ExtractionError as error:
            fallback = str(error)
            logger.warning("The LLM returned no queries (%s); only the question's own sentences are used.", error)
            aspects = cut_aspects(question)
    return list(dict.fromkeys(aspects)), fallback


def embed_aspects(resources: Resources, aspects: Sequence[str], dimension: int | None) -> Steps[NDArray[np.float32]]:
    """Flat vectors of aspects, shape (n, dimension), embedded as questions."""
    if not aspects:
        return np.empty((0, dimension or 0), np.float32)
    model = with_heads(resources.embed_model)
    vectors = yield from call(model.get_query_embedding_batch, model.aget_query_embedding_batch, list(aspects))
    return query_matrix(model, vectors, aspects, dimension)
