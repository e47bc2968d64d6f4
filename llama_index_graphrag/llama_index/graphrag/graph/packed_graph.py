"""A graph of statements as arrays of a file; objects are made from them on demand.

The arrays of a search are available at once. Chunks are read one by one. Entities and links with their chunks, which
only writes, communities and reports need, are computed from all chunks.
"""

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from llama_index.graphrag.graph.changes import statement_graph
from llama_index.graphrag.graph.entity_graph import EntityGraph
from llama_index.graphrag.graph.graph_arrays import GraphArrays, short_names
from llama_index.graphrag.graph.naming import Naming
from llama_index.graphrag.graph.statement import ChunkStatements
from llama_index.graphrag.graph.statement_graph import StatementGraph
from llama_index.ragkit.nested_arrays import Arrays, nested, part_of
from llama_index.ragkit.text.layered_mapping import LaterMapping
from llama_index.ragkit.text.packed_mapping import PackedMapping
from llama_index.ragkit.text.packed_words import PackedWords

__all__ = ["pack_graph", "unpack_graph"]

_COLUMNS = ("indptr", "indices", "weights", "tokens", "node_tokens")  # of the entities
_NAMING = ("starts", "where")
_COMPUTED = ("documents", "entities", "links")


class _WholeGraph:
    """The graph of all chunks, made on demand."""

    def __init__(self, chunks: Mapping[str, ChunkStatements]) -> None:
        self._chunks = chunks

    @cached_property
    def graph(self) -> StatementGraph:
        return statement_graph(self._chunks.values())


def pack_graph(graph: StatementGraph, arrays: GraphArrays) -> Arrays:
    """The arrays of a graph without judgements of a resolver.

    Parameters
    ----------
    arrays : the arrays of the graph for a search
    """
    entities, naming, _ = arrays
    return nested(
        {
            "names": _packed(entities.names),
            "ids": _packed(naming.chunks),
            "entities": {name: getattr(entities, name) for name in _COLUMNS},
            "naming": {name: getattr(naming, name) for name in _NAMING},
            "short": PackedMapping.to_arrays(graph.short),
            "chunks": PackedMapping.to_arrays(graph.chunks, _values),
        }
    )


def unpack_graph(arrays: Arrays) -> tuple[StatementGraph, GraphArrays]:
    """The graph of :func:`pack_graph`, over the same memory."""
    names, ids = _unpacked(part_of(arrays, "names")), _unpacked(part_of(arrays, "ids"))
    chunks: PackedMapping[ChunkStatements] = PackedMapping.of_arrays(part_of(arrays, "chunks"), _chunk)
    short: PackedMapping[dict[str, str]] = PackedMapping.of_arrays(part_of(arrays, "short"))
    whole = _WholeGraph(chunks)
    documents, entities, links = (LaterMapping[Any](whole, f"graph.{part}") for part in _COMPUTED)
    graph = StatementGraph(chunks, documents, {}, short, entities, links)
    return graph, GraphArrays(
        EntityGraph(names, **part_of(arrays, "entities")),
        Naming(names, ids, **part_of(arrays, "naming")),
        short_names(graph),
    )


def _packed(words: tuple[str, ...]) -> Arrays:
    letters, ends = PackedWords(words).arrays
    return {"letters": letters, "ends": ends}


def _unpacked(arrays: Arrays) -> tuple[str, ...]:
    return tuple(PackedWords.of_arrays(arrays["letters"], arrays["ends"]))


def _values(chunk: ChunkStatements) -> list[Any]:
    return [chunk.text_hash, chunk.document_id, chunk.position, chunk.scope, chunk.record()]


def _chunk(chunk_id: str, values: list[Any]) -> ChunkStatements:
    text_hash, document_id, position, scope, record = values
    return ChunkStatements.from_record(record, chunk_id, text_hash, document_id, position, scope)
