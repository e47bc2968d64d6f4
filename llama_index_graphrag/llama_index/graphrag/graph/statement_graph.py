"""The statements of a corpus by entity and by pair of entities, kept up to date as chunks come and go.

Every count is a sum over chunks, so removing a chunk is exact subtraction: after any inserts and deletes the graph
equals that of the remaining chunks (:func:`statement_graph`).
"""

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, MutableMapping, Set
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple, TypeVar

from llama_index.graphrag.graph.resolution import representatives, short_forms, types_in
from llama_index.graphrag.graph.statement import (
    AnyStatement,
    ChunkStatements,
    ClaimStatement,
    EntityStatement,
    RelationStatement,
    Statement,
    bare,
    majority,
    scope_of,
    scoped,
)
from llama_index.ragkit.errors import ConfigurationError
from llama_index.ragkit.text.characters import normalise
from llama_index.ragkit.text.layered_mapping import LayeredMapping

__all__ = [
    "GraphChange",
    "Occurrences",
    "StatementGraph",
    "Touched",
    "changed",
    "resolved",
    "resolved_graph",
    "statement_graph",
]

# Chunk id -> tokens of the chunk's statements about an entity or a pair, as :func:`resolved` estimates them.
Occurrences = Mapping[str, int]
T = TypeVar("T")
Pairs = frozenset[tuple[str, str]]

_BYTES_A_TOKEN = 4  # of UTF-8: an estimate that depends on no tokenizer


def resolved(chunk: ChunkStatements, short: Mapping[str, str]) -> Iterator[tuple[tuple[str, ...], AnyStatement]]:
    """The statements of a chunk, each after the distinct keys of its entities.

    A relation whose ends are one entity is only about that entity. A name without letters and digits is not an entity;
    a statement with such a name is left out. `short` has the name that stands for a normalised name in the document.
    """
    for names, statement in zip(chunk.normal_names, chunk.all_statements, strict=True):
        if all(names):
            yield tuple(dict.fromkeys(scoped(chunk.scope, short.get(name, name)) for name in names)), statement


@dataclass(frozen=True)
class StatementGraph:
    """Statements, and their entities and pairs of entities. A graph is immutable; a write makes a new one.

    The key of an entity is its normalised name after resolution (:mod:`llama_index.graphrag.graph.resolution`), within
    the scope of its chunks.
    """

    chunks: Mapping[str, ChunkStatements] = field(default_factory=dict)  # chunk id -> its statements
    documents: Mapping[str, frozenset[str]] = field(default_factory=dict)  # document -> ids of its chunks
    # document -> pairs of normalised names in it that a resolver judged to be one entity, each sorted
    same: Mapping[str, frozenset[tuple[str, str]]] = field(default_factory=dict)
    # document -> normalised name -> the name that stands for it there, by rules and by these pairs
    short: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    entities: Mapping[str, Occurrences] = field(default_factory=dict)  # key -> the chunks that name it
    # key -> key -> the chunks that state the pair; symmetric, without loops
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


class Touched(NamedTuple):
    """The parts of a graph that a write may have changed.

    Each entity that gained or lost chunks, with the entities whose pair with it changed; and chunks that were added or
    removed, or name other entities than before.
    """

    pairs: Mapping[str, Set[str]]
    chunks: frozenset[str]

    @classmethod
    def of(cls, changes: Iterable["Touched"]) -> "Touched":
        """All changes of several writes."""
        pairs: dict[str, set[str]] = {}
        chunks: set[str] = set()
        for change in changes:
            for key, others in change.pairs.items():
                pairs.setdefault(key, set()).update(others)
            chunks |= change.chunks
        return cls(pairs, frozenset(chunks))


@dataclass(frozen=True)
class GraphChange:
    """A graph after a write, and the parts that may differ from the old one.

    `rewritten` are other chunks that lost a description that was merged from a removed chunk, too; their records must
    be stored again.
    """

    graph: StatementGraph
    rewritten: tuple[ChunkStatements, ...] = ()
    touched: Touched = field(default_factory=lambda: Touched.of(()))


def statement_graph(chunks: Iterable[ChunkStatements], same: Mapping[str, Pairs] | None = None) -> StatementGraph:
    """The graph of these chunks, given in any order; `same` as for :func:`changed`."""
    return changed(StatementGraph(), added=chunks, same=same).graph


def resolved_graph(chunks: Iterable[ChunkStatements], short: Mapping[str, Mapping[str, str]]) -> StatementGraph:
    """The graph of some chunks of a corpus whose names are already resolved.

    `short` gives, for each document, the name for which a normalised name stands there.
    """
    given = {chunk.chunk_id: chunk for chunk in chunks}
    index = _Index(StatementGraph(), forget=False)
    documents: dict[str, set[str]] = {}
    for chunk in given.values():
        index.add(chunk, short.get(chunk.document, {}))
        documents.setdefault(chunk.document, set()).add(chunk.chunk_id)
    entities, links = index.finished()
    members = {document: frozenset(ids) for document, ids in documents.items()}
    return StatementGraph(given, members, {}, short, entities, links)


def changed(
    graph: StatementGraph,
    removed: Iterable[str] = (),
    added: Iterable[ChunkStatements] = (),
    same: Mapping[str, Pairs] | None = None,
) -> GraphChange:
    """The graph with some chunks removed and others added.

    This takes time for the change, for the documents that it touches, whose names are resolved again, and for a copy of
    the top level of the mappings. Removed ids may be unknown; an added chunk whose id is known replaces the old chunk.
    `same` has pairs of normalised names that are one entity in a document, which replace the known pairs of it; other
    documents keep the pairs whose names still exist.

    Raises
    ------
    ConfigurationError
        If two added chunks have one id.
    """
    new: dict[str, ChunkStatements] = {}
    removed = list(removed)
    for chunk in added:
        if chunk.chunk_id in new:
            raise ConfigurationError(f"Two added chunks have the id {chunk.chunk_id!r}; ids must differ.")
        new[chunk.chunk_id] = chunk
    if not removed and not new and not same:
        return GraphChange(graph)
    gone = {chunk_id for chunk_id in removed if chunk_id in graph.chunks and chunk_id not in new}
    out = gone | {chunk_id for chunk_id in new if chunk_id in graph.chunks}
    rewritten = _unmerged(graph, out, new)
    new |= rewritten
    out |= rewritten.keys()

    forget = bool(out)
    chunks = LayeredMapping.over(graph.chunks, forget)
    members: dict[str, set[str]] = {}  # of the documents that change
    for chunk_id in out:
        document = chunks.pop(chunk_id).document
        members.setdefault(document, set(graph.documents[document])).discard(chunk_id)
    for chunk in new.values():
        chunks[chunk.chunk_id] = chunk
        members.setdefault(chunk.document, set(graph.documents.get(chunk.document, ()))).add(chunk.chunk_id)

    for document in same or {}:
        if document in graph.documents:
            members.setdefault(document, set(graph.documents[document]))

    documents = LayeredMapping.over(graph.documents, forget)
    short = LayeredMapping.over(graph.short, forget)
    judged = LayeredMapping.over(graph.same, forget)
    again: set[str] = set()  # chunks that stay, with names that stand for other entities than before
    for document, ids in members.items():
        here = [chunks[chunk_id] for chunk_id in ids]
        types = types_in(here)
        pairs = (same or {}).get(document, graph.same.get(document, frozenset()))
        pairs = frozenset(pair for pair in pairs if types.keys() >= set(pair))
        before, after = graph.short.get(document, {}), short_forms(types)
        if pairs:
            after = representatives([*after.items(), *pairs])
        moved = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
        if moved:
            again.update(
                c.chunk_id for c in here if c.chunk_id not in new and not moved.isdisjoint(dict(c.typed_names))
            )
        _put(documents, document, frozenset(ids))
        _put(short, document, after)
        _put(judged, document, pairs)

    index = _Index(graph, forget)
    for chunk_id in out | again:
        old = graph.chunks[chunk_id]
        index.remove(old, graph.short.get(old.document, {}))
    for chunk_id in new.keys() | again:
        index.add(chunks[chunk_id], short.get(chunks[chunk_id].document, {}))
    entities, links = index.finished()
    after_write = StatementGraph(chunks, documents, judged, short, entities, links)
    vars(after_write)["relations"] = graph.relations + index.more_pairs
    touched = Touched(index.touched, frozenset(out | new.keys() | again))
    return GraphChange(after_write, tuple(rewritten[chunk_id] for chunk_id in sorted(rewritten)), touched)


def _unmerged(graph: StatementGraph, gone: set[str], new: Mapping[str, ChunkStatements]) -> dict[str, ChunkStatements]:
    """The remaining chunks that had descriptions merged from removed chunks, now without these."""
    partners = {
        partner
        for chunk_id in gone
        for statement in graph.chunks[chunk_id].all_statements
        for partner in statement.merged_from
        if partner in graph.chunks and partner not in gone and partner not in new
    }
    left = {chunk_id: graph.chunks[chunk_id].without_merged(gone) for chunk_id in partners}
    return {chunk_id: chunk for chunk_id, chunk in left.items() if chunk != graph.chunks[chunk_id]}


def _put(values: MutableMapping[str, T], key: str, value: T) -> None:
    """Put a value, or delete the key if the value is empty."""
    if value:
        values[key] = value
    else:
        values.pop(key, None)


class _Index:
    """Entities and links being edited; untouched ones are shared with the old graph."""

    def __init__(self, graph: StatementGraph, forget: bool) -> None:
        self._before = graph
        self._entities = LayeredMapping.over(graph.entities, forget)
        self._links = LayeredMapping.over(graph.links, forget)
        self._own_entities: dict[str, dict[str, int]] = {}
        self._own_rows: dict[str, dict[str, Occurrences]] = {}
        self._own_pairs: dict[tuple[str, str], dict[str, int]] = {}

    def add(self, chunk: ChunkStatements, short: Mapping[str, str]) -> None:
        """Add the counts of a chunk."""
        found = list(resolved(chunk, short))
        repeated = Counter(statement.description for _, statement in found)
        for keys, statement in found:
            tokens = _tokens(statement, repeated[statement.description] if statement.description else 1)
            for key in keys:
                _count(self._entity(key), chunk.chunk_id, tokens if len(keys) == 1 else 0)
            if len(keys) == 2:
                _count(self._pair(*sorted(keys)), chunk.chunk_id, tokens)

    def remove(self, chunk: ChunkStatements, short: Mapping[str, str]) -> None:
        """Subtract the counts of a chunk."""
        for keys, _ in resolved(chunk, short):
            for key in keys:
                self._entity(key).pop(chunk.chunk_id, None)
            if len(keys) == 2:
                self._pair(*sorted(keys)).pop(chunk.chunk_id, None)

    @property
    def touched(self) -> dict[str, frozenset[str]]:
        """The entities that were edited -> those whose pair with them was."""
        pairs: dict[str, set[str]] = {key: set() for key in self._own_entities}
        for one, other in self._own_pairs:
            pairs[one].add(other)
            pairs[other].add(one)
        return {key: frozenset(others) for key, others in pairs.items()}

    @property
    def more_pairs(self) -> int:
        """How many pairs there are more than before."""
        before = self._before.links
        return sum(bool(where) - (other in before.get(one, ())) for (one, other), where in self._own_pairs.items())

    def finished(self) -> tuple[Mapping[str, Occurrences], Mapping[str, Mapping[str, Occurrences]]]:
        """Entities and links, without those that no chunk states."""
        for (one, other), where in self._own_pairs.items():
            if not where:
                self._own_rows[one].pop(other, None)
                self._own_rows[other].pop(one, None)
        for key, row in self._own_rows.items():
            _put(self._links, key, row)
        for key, where in self._own_entities.items():
            _put(self._entities, key, where)
        return self._entities, self._links

    def _entity(self, key: str) -> dict[str, int]:
        if key not in self._own_entities:
            self._own_entities[key] = dict(self._entities.get(key, {}))
        return self._own_entities[key]

    def _row(self, key: str) -> dict[str, Occurrences]:
        if key not in self._own_rows:
            self._own_rows[key] = dict(self._links.get(key, {}))
        return self._own_rows[key]

    def _pair(self, one: str, other: str) -> dict[str, int]:
        if (one, other) not in self._own_pairs:
            where = dict(self._row(one).get(other, {}))
            self._own_pairs[one, other] = self._row(one)[other] = self._row(other)[one] = where
        return self._own_pairs[one, other]


def _count(where: dict[str, int], chunk_id: str, tokens: int) -> None:
    where[chunk_id] = where.get(chunk_id, 0) + tokens


def _tokens(statement: AnyStatement, sharing: int) -> int:
    """Tokens of a statement, at least 1; several statements of a chunk with one description share its tokens."""
    names = sum(len(name.encode()) for name in statement.names)
    return -(-names // _BYTES_A_TOKEN) + -(-len(statement.description.encode()) // (_BYTES_A_TOKEN * sharing))
