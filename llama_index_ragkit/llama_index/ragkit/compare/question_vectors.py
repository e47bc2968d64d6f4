"""The questions of a comparison are embedded once, and not again by every system."""

import logging
from collections.abc import Sequence
from typing import Any

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.storage.kvstore import SimpleKVStore
from llama_index.core.storage.kvstore.types import DEFAULT_COLLECTION
from tqdm.auto import tqdm

__all__ = ["knowing_questions"]

logger = logging.getLogger(__name__)
_COLLECTION = "embeddings"  # where LlamaIndex's embedding models look


class _QuestionVectors(SimpleKVStore):
    """Holds the vectors of questions and takes no others, so that no vector of a text becomes that of a question."""

    def put(self, key: str, val: dict[str, Any], collection: str = DEFAULT_COLLECTION) -> None:
        pass

    async def aput(self, key: str, val: dict[str, Any], collection: str = DEFAULT_COLLECTION) -> None:
        pass


def knowing_questions(model: BaseEmbedding, questions: Sequence[str], show_progress: bool = False) -> BaseEmbedding:
    """The model with the vectors of these questions in its cache; itself if it has a cache of its own.

    The model that is passed stays as it was. Questions that a system derives from these are embedded when asked for.
    """
    logger.info("Embedding %d questions.", len(questions))
    bar = tqdm(dict.fromkeys(questions), desc="Embedding questions", disable=not show_progress)
    vectors = {question: model.get_query_embedding(question) for question in bar}
    if model.embeddings_cache is not None:
        return model
    known = _QuestionVectors({_COLLECTION: {question: {"question": vector} for question, vector in vectors.items()}})
    return model.model_copy(update={"embeddings_cache": known})
