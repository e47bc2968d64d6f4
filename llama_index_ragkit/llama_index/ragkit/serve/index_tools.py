"""`IndexTools`: what an agent can do with an index, as functions with JSON values.

Limits on what it may send in one call, checked before any work, keep it from occupying the server.
"""

import asyncio
import json
import math
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
from llama_index.ragkit.storage.nodes import plain_text
from llama_index.ragkit.storage.persist import persist

__all__ = [
    "MOST_FILTERS",
    "MOST_ID_CHARACTERS",
    "MOST_QUESTION_CHARACTERS",
    "MOST_RESULTS",
    "MOST_TEXT_CHARACTERS",
    "MOST_VALUE_CHARACTERS",
    "IndexTools",
    "check_filters",
    "check_id",
    "check_text",
    "check_top_k",
]

MOST_QUESTION_CHARACTERS = 4_000
MOST_RESULTS = 100
MOST_FILTERS = 50  # also of the metadata of a document
MOST_VALUE_CHARACTERS = 1_000  # of a name or a value of a filter or of metadata
MOST_ID_CHARACTERS = 1_000
MOST_TEXT_CHARACTERS = 1_000_000  # of a document
_LARGEST_INTEGER = 2**63  # databases hold no larger integers

Filters = Mapping[str, str | int | float | bool]


def check_text(name: str, text: Any, most: int) -> str:
    """A text that is not empty, has at most `most` characters, and can be stored."""
    if not isinstance(text, str):
        raise ToolArgumentError(f"The {name} must be a text, not a {type(text).__name__}.")
    if len(text) > most:
        raise ToolArgumentError(f"The {name} has {len(text):,} characters; at most {most:,} are allowed. Shorten it.")
    if not text.strip():
        raise ToolArgumentError(f"The {name} is empty.")
    _check_storable(name, text)
    return text


def check_id(document_id: Any) -> str:
    """The id of a document."""
    return check_text("document_id", document_id, MOST_ID_CHARACTERS)


def check_top_k(top_k: Any) -> int:
    """A number of results."""
    if type(top_k) is not int or not 1 <= top_k <= MOST_RESULTS:
        raise ToolArgumentError(f"top_k must be from 1 to {MOST_RESULTS}, not {_short(top_k)}.")
    return top_k


def check_filters(name: str, values: Any) -> dict[str, Any]:
    """Names with texts, numbers or booleans; None for none."""
    if values is None:
        return {}
    if not isinstance(values, Mapping):
        raise ToolArgumentError(f"{name} must be an object of names and values, not a {type(values).__name__}.")
    if len(values) > MOST_FILTERS:
        raise ToolArgumentError(f"{name} has {len(values):,} entries; at most {MOST_FILTERS} are allowed.")
    for key, value in values.items():
        for part in (key, value):
            if isinstance(part, str):
                if len(part) > MOST_VALUE_CHARACTERS:
                    raise ToolArgumentError(
                        f"{name} has a name or a value of {len(part):,} characters; at most {MOST_VALUE_CHARACTERS:,} "
                        "are allowed."
                    )
                _check_storable(name, part)
        if not isinstance(key, str) or not _is_plain(value):
            raise ToolArgumentError(
                f"The values of {name} must be texts, booleans or finite numbers below 2**63, not {_short(value)}."
            )
    return dict(values)


def _is_plain(value: Any) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, str | bool) or (isinstance(value, int) and abs(value) < _LARGEST_INTEGER)


def _check_storable(name: str, text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        bad = text[error.start]
        raise ToolArgumentError(f"The {name} contains a lone surrogate, {bad!r}, which is not a character.") from None


def _short(value: Any) -> str:
    kind = type(value)
    small = kind in (bool, float) or (kind is int and abs(value) < _LARGEST_INTEGER)
    return repr(value) if small else f"a {kind.__name__}"


class IndexTools:
    """Retrieve, explain, insert and forget; each call awaits the index's own asynchronous method.

    Agents are shown the docstrings of these methods. Arguments are checked before anything is done: one that is too
    long or too large is refused with its limit.

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
        """Passages that answer a question, best first, with text, score, document and metadata.

        `filters` keeps the passages whose metadata have these values.
        """
        found = await self._retriever(question, top_k, filters).aretrieve(question)
        return await asyncio.to_thread(lambda: [_result(node) for node in found])

    async def explain(self, question: str, top_k: int = 5, filters: Filters | None = None) -> list[dict[str, Any]]:
        """Why each passage for a question was found."""
        explanations = await self._retriever(question, top_k, filters).aexplain(question)
        return await asyncio.to_thread(_explained, explanations)

    async def insert(
        self, text: str, document_id: str | None = None, metadata: Filters | None = None
    ) -> dict[str, Any]:
        """Add a document, or replace the one with this id."""
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
