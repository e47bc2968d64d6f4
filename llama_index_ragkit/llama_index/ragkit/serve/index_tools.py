"""`IndexTools`: what an agent can do with an index, as functions with JSON values."""

import asyncio
import json
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any

from llama_index.core import Document
from llama_index.core.schema import NodeWithScore
from llama_index.core.vector_stores.types import MetadataFilter, MetadataFilters

from llama_index.ragkit.errors import ToolArgumentError
from llama_index.ragkit.index.derived_index import DerivedIndex
from llama_index.ragkit.redaction import redact
from llama_index.ragkit.serve.limits import (
    MOST_QUESTION_CHARACTERS,
    MOST_TEXT_CHARACTERS,
    check_filters,
    check_id,
    check_text,
    check_top_k,
)
from llama_index.ragkit.storage.nodes import plain_text
from llama_index.ragkit.storage.persist import persist

__all__ = ["IndexTools"]

Filters = Mapping[str, str | int | float | bool]


class IndexTools:
    """Retrieve, explain, insert and forget; each call awaits the index's own asynchronous method.

    Arguments are checked before anything is done. An argument that is too long or too large is refused with its limit.

    Parameters
    ----------
    index : the index
    storage : the folder to which the index is persisted after each write; None to leave that to the stores

    Raises
    ------
    ToolArgumentError
        By a call, if an argument is invalid or too large.
    """

    def __init__(self, index: DerivedIndex[Any, Any], storage: Path | None = None) -> None:
        self._index = index
        self._storage = storage
        self._writing = asyncio.Lock()

    def describe(self) -> dict[str, Any]:
        """What the index is, and how much it holds."""
        return {"index": type(self._index).__name__, "holds": repr(self._index)}

    async def retrieve(self, question: str, top_k: int = 5, filters: Filters | None = None) -> list[dict[str, Any]]:
        """The results for a question, best first: text, score, document, metadata."""
        found = await self._retriever(question, top_k, filters).aretrieve(question)
        return await asyncio.to_thread(lambda: [_result(node) for node in found])

    async def explain(self, question: str, top_k: int = 5, filters: Filters | None = None) -> list[dict[str, Any]]:
        """Why each result for a question was found."""
        explanations = await self._retriever(question, top_k, filters).aexplain(question)
        return await asyncio.to_thread(_explained, explanations)

    async def insert(
        self, text: str, document_id: str | None = None, metadata: Filters | None = None
    ) -> dict[str, Any]:
        """Add a document, or replace the one of that id."""
        own = {} if document_id is None else {"id_": check_id(document_id)}
        values = check_filters("metadata", metadata)
        document = Document(text=check_text("text", text, MOST_TEXT_CHARACTERS), metadata=values, **own)
        async with self._writing:
            await self._index.arefresh_ref_docs([document])
            await self._persist()
        return {"document_id": document.id_, **self.describe()}

    async def forget(self, document_id: str) -> dict[str, Any]:
        """Delete a document and everything derived from it."""
        check_id(document_id)
        async with self._writing:
            if document_id not in await asyncio.to_thread(lambda: self._index.ref_doc_info):
                raise ToolArgumentError(f"The index has no document {document_id!r}.")
            await self._index.adelete_ref_doc(document_id, delete_from_docstore=True)
            await self._persist()
        return {"document_id": document_id, **self.describe()}

    async def _persist(self) -> None:
        if self._storage is not None:
            await asyncio.to_thread(persist, self._index.storage_context, self._storage)

    def told(self, error: Exception) -> str:
        """An error with its causes, as the log of the server shows it: without the keys of the models."""
        models = vars(self._index.resources).values()
        return "".join(redact(piece, *models) for piece in traceback.format_exception(error))

    def _retriever(self, question: str, top_k: int, filters: Filters | None) -> Any:
        check_text("question", question, MOST_QUESTION_CHARACTERS)
        check_top_k(top_k)
        wanted = check_filters("filters", filters)
        only: dict[str, Any] = {}
        if wanted:
            only["filters"] = MetadataFilters(filters=[MetadataFilter(key=k, value=v) for k, v in wanted.items()])
        return self._index.as_retriever(similarity_top_k=top_k, **only)


def _explained(explanations: Sequence[Any]) -> list[dict[str, Any]]:
    return [_json(asdict(each)) for each in explanations if is_dataclass(each) and not isinstance(each, type)]


def _result(found: NodeWithScore) -> dict[str, Any]:
    node = found.node
    return {
        "id": node.node_id,
        "text": plain_text(node),
        "score": found.score,
        "document_id": node.ref_doc_id,
        "metadata": _json(node.metadata),
    }


def _json(value: Any) -> Any:
    """The value as a JSON value; a value that JSON does not support becomes a text."""
    readable: Callable[[Any], str] = str
    return json.loads(json.dumps(value, default=readable))
