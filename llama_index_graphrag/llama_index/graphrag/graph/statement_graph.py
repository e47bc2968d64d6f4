"""The statements of a corpus by entity and by pair of entities, kept up to date as chunks come and go.

Every count is a sum over chunks, so removing a chunk is exact subtraction: after any inserts and deletes the graph
equals that of the remaining chunks (:func:`~llama_index.graphrag.graph.changes.statement_graph`).
"""

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from llama_index.graphrag.graph.statement import (
    AnyStatement,
    ChunkStatements,
    ClaimStatement,
    EntityStatement,
    RelationStatement,
    Statement,
    bare,
    scope_of,
    scoped,
)
from llama_index.ragkit.text.characters import normalise

__all__ = ["Occurrences", "StatementGraph", "majority", "resolved"]

# Chunk id -> tokens of the chunk's statements about an entity or a pair, as :func:`resolved` estimates them.
Occurrences = Mapping[str, int]


def majority(values: Iterable[str]) -> str:
    """The most frequent value, or the first in order of several; empty values do not count.

    >>> majority(["PERSON", "GEO", "", "PERSON", "", ""]), majority([])
    ('PERSON', '')
    """
    counts = Counter(value for value in values if value)
    return min(counts, key=lambda value: (-counts[value], value), default="")


def resolved(chunk: ChunkStatements, short: Mapping[str, str]) -> Iterator[tuple[tuple[str, ...], AnyStatement]]:
    """The statements of a chunk with their entities.

    A relation whose ends are one entity is only about that entity. A name without letters and digits is not an entity;
    a statement with such a name is left out.

    Parameters
    ----------
    short : normalised name -> the name that stands for it in the document of the chunk

    Yields
    ------
    keys of the entities, without repetition; the statement
    """
    for names, statement in zip(chunk.normal_names, chunk.all_statements, strict=True):
        if all(names):
            yield tuple(dict.fromkeys(scoped(chunk.scope, short.get(name, name)) for name in names)), statement


@dataclass(frozen=True)
class StatementGraph:
    """Statements, and their entities and pairs of entities. A graph is immutable; a write makes a new one.

    The key of an entity is its normalised name after resolution (:mod:`llama_index.graphrag.graph.resolution`), within
    the scope of its chunks.

    Attributes
    ----------
    chunks : chunk id -> its statements
    documents : document -> ids of its chunks
    same : document -> pairs of normalised names in it that a resolver judged to be one entity, each sorted
    short : document -> normalised name -> the name that stands for it there, by rules and by these pairs
    entities : key -> the chunks that name it
    links : key -> key -> the chunks that state the pair; symmetric, without loops
    """

    chunks: Mapping[str, ChunkStatements] = field(default_factory=dict)
    documents: Mapping[str, frozenset[str]] = field(default_factory=dict)
    same: Mapping[str, frozenset[tuple[str, str]]] = field(default_factory=dict)
    short: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    entities: Mapping[str, Occurrences] = field(default_factory=dict)
    links: Mapping[str, Mapping[str, Occurrences]] = field(default_factory=dict)
    _statements: dict[str, list[Statement]] = field(default_factory=dict, repr=False, compare=False)

    def key(self, name: str, document: str) -> str:
        """The entity that a name stands for in a document; empty for a name without letters and digits."""
        normal = normalise(name)
        full = self.short.get(document, {}).get(normal, normal)
        return full and scoped(scope_of(document), full)

    @cached_property
    def relations(self) -> int:
        """How many pairs of entities are stated; a write counts only those that it changed."""
        return sum(map(len, self.links.values())) // 2

    # -- statements ---------------------------------------------------------------------------------

    def statements(self, chunk_id: str) -> list[Statement]:
        """The statements of a chunk, in their order."""
        if chunk_id not in self._statements:
            chunk = self.chunks[chunk_id]
            about = resolved(chunk, self.short.get(chunk.document, {}))
            self._statements[chunk_id] = [
                Statement(
                    id=identity,
                    chunk_id=chunk_id,
                    entities=keys,
                    text=text,
                    strength=statement.strength if isinstance(statement, RelationStatement) else 0.0,
                    order=(*chunk.order, index),
                    is_claim=isinstance(statement, ClaimStatement),
                )
                for index, ((keys, statement), (identity, text)) in enumerate(zip(about, chunk.identified, strict=True))
            ]
        return self._statements[chunk_id]

    def statements_in(self, keys: Iterable[str]) -> list[Statement]:
        """The statements that are about these entities and no others, in canonical order."""
        inside = frozenset(keys)
        chunks = {chunk_id for key in inside for chunk_id in self.entities.get(key, ())}
        found = [
            statement
            for chunk_id in chunks
            for statement in self.statements(chunk_id)
            if inside.issuperset(statement.entities)
        ]
        return sorted(found, key=lambda statement: statement.order)

    def statements_about(self, key: str) -> list[Statement]:
        """The statements about an entity, by itself or with another, in canonical order."""
        found = [
            statement
            for chunk_id in self.entities.get(key, ())
            for statement in self.statements(chunk_id)
            if key in statement.entities
        ]
        return sorted(found, key=lambda statement: statement.order)

    # -- entities -----------------------------------------------------------------------------------

    def type_of(self, key: str) -> str:
        """The type that most statements give an entity; empty if none does."""
        return majority(entity.type for entity in self._given(key) if isinstance(entity, EntityStatement))

    def name_of(self, key: str, allowed: Container[str] | None = None) -> str:
        """The spelling of an entity in most statements; short forms count only if there is nothing else.

        Only the chunks in `allowed` count, for example those of a report; None for all.
        """
        spelled = [name for statement in self._given(key, allowed) for name in statement.names]
        return majority(name for name in spelled if normalise(name) == bare(key)) or bare(key)

    def descriptions(self, key: str) -> list[str]:
        """The different descriptions of an entity, in canonical order."""
        given = self._given(key)
        return list(dict.fromkeys(e.description for e in given if isinstance(e, EntityStatement) and e.description))

    def _given(self, key: str, allowed: Container[str] | None = None) -> Iterator[AnyStatement]:
        """The statements about an entity as extracted, in canonical order."""
        where = (self.chunks[c] for c in self.entities.get(key, ()) if allowed is None or c in allowed)
        for chunk in sorted(where, key=lambda chunk: chunk.order):
            for keys, statement in resolved(chunk, self.short.get(chunk.document, {})):
                if key in keys:
                    yield statement
