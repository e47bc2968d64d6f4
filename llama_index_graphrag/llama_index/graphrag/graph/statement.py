"""Statements of chunks about entities: as extracted, and with their entities resolved.

The statement is the unit of the package. An entity or a pair of entities consists only of its statements: its weight is
the number of chunks that state it, its type and spelling are those of most statements, its description is their texts.
What a chunk adds can therefore be subtracted exactly.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from typing import Any, NamedTuple

from llama_index.ragkit.text.characters import normalise

__all__ = [
    "AnyStatement",
    "ChunkStatements",
    "ClaimStatement",
    "EntityStatement",
    "RelationStatement",
    "Statement",
    "bare",
    "digest",
    "majority",
    "scope_of",
    "scoped",
]

_DIGEST_LENGTH = 32  # hexadecimal digits: 128 bits
_SCOPE_END = "\x1f"  # below every printable character, so that the keys of one scope are consecutive when sorted


def scoped(scope: str, name: str) -> str:
    """A name within a scope; the name itself without one."""
    return f"{scope}{_SCOPE_END}{name}" if scope else name


def scope_of(key: str) -> str:
    """The scope of a scoped name; empty if it has none."""
    scope, end, _ = key.partition(_SCOPE_END)
    return scope if end else ""


def bare(key: str) -> str:
    """A scoped name without its scope."""
    return key.partition(_SCOPE_END)[2] or key


def majority(values: Iterable[str]) -> str:
    """The most frequent value, or the first in order of several; empty values do not count.

    >>> majority(["PERSON", "GEO", "", "PERSON", "", ""]), majority([])
    ('PERSON', '')
    """
    counts = Counter(value for value in values if value)
    return min(counts, key=lambda value: (-counts[value], value), default="")


class EntityStatement(NamedTuple):
    """An entity as a chunk describes it; type and description may be empty.

    If its description was merged from other chunks, too, `merged_from` has the ids of all of them, each of which has
    the statement.
    """

    name: str
    type: str = ""
    description: str = ""
    merged_from: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The name of the entity."""
        return (self.name,)

    @property
    def text(self) -> str:
        """The statement as a line of text."""
        return f"{self.name}: {self.description}" if self.description else self.name


class RelationStatement(NamedTuple):
    """A relation between two entities as a chunk describes it; the description may be empty.

    `strength` is as rated by the extractor, at least 0; only the published weights use it.
    """

    source: str
    target: str
    description: str = ""
    strength: float = 1.0
    merged_from: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the two entities."""
        return self.source, self.target

    @property
    def text(self) -> str:
        """The statement as a line of text: the description, after the names if it does not contain both.

        >>> RelationStatement("Scrooge", "Marley", "Marley was Scrooge's partner.").text
        "Marley was Scrooge's partner."
        >>> RelationStatement("Scrooge", "Marley", "former partners").text
        'Scrooge - Marley: former partners'
        """
        return _line(self.names, self.description, _spaced(self.description))


class ClaimStatement(NamedTuple):
    """A claim that a chunk makes about an entity; all but the subject may be empty.

    `status` is "true", "false" or "suspected", according to the chunk; `start` and `end` are the period, as written.
    `said` is the claim in a sentence, and `quotation` the words of the chunk.
    """

    subject: str
    object: str = ""
    type: str = ""
    status: str = ""
    start: str = ""
    end: str = ""
    said: str = ""
    quotation: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of subject and object, if any."""
        return (self.subject, self.object) if self.object else (self.subject,)

    @property
    def merged_from(self) -> tuple[str, ...]:
        """Always empty: a claim comes from one chunk."""
        return ()

    @property
    def description(self) -> str:
        """Type, status and dates, the claim, and the quotation.

        >>> ClaimStatement("A", "", "fraud", "suspected", "2015", "", "A hid it.", "it was hidden").description
        'Claim (fraud, suspected, from 2015): A hid it. "it was hidden"'
        """
        dates = [f"{word} {date}" for word, date in (("from", self.start), ("to", self.end)) if date]
        about = ", ".join(filter(None, (self.type, self.status, " ".join(dates))))
        quoted = f'"{self.quotation}"' if self.quotation else ""
        return f"Claim{f' ({about})' if about else ''}: " + " ".join(filter(None, (self.said, quoted)))

    @property
    def text(self) -> str:
        """The statement as a line of text: the description, after the names if it does not contain them."""
        return _line(self.names, self.description, _spaced(self.description))


def _spaced(description: str) -> str:
    """A description, normalised, between spaces."""
    return f" {normalise(description)} "


def _line(names: Sequence[str], description: str, spaced: str) -> str:
    """A description, after the names if it does not contain all of them."""
    if description and all(_spaced(name) in spaced for name in names):
        return description
    return ": ".join(filter(None, (" - ".join(names), description)))


AnyStatement = EntityStatement | RelationStatement | ClaimStatement


@dataclass(frozen=True)
class ChunkStatements:
    """Everything that one chunk states, in the order of the extraction.

    The hash of its text identifies its statements by content. A chunk without a source document has no `document_id`
    and counts as its own document. Chunks of different scopes share no entity; a scope is printable.
    """

    chunk_id: str
    text_hash: str
    document_id: str = ""
    position: int = 0
    entities: tuple[EntityStatement, ...] = ()
    relations: tuple[RelationStatement, ...] = ()
    scope: str = ""
    claims: tuple[ClaimStatement, ...] = ()

    @property
    def order(self) -> tuple[str, str, int, str]:
        """The canonical order of chunks: (text hash, document id, position), then id."""
        return self.text_hash, self.document_id, self.position, self.chunk_id

    @property
    def document(self) -> str:
        """The document within which names are resolved; the chunk itself if it has none."""
        return scoped(self.scope, self.document_id or self.chunk_id)

    @property
    def all_statements(self) -> tuple[AnyStatement, ...]:
        """Entities, then relations, then claims."""
        return *self.entities, *self.relations, *self.claims

    @cached_property
    def normal_names(self) -> tuple[tuple[str, ...], ...]:
        """The normalised names of each statement; empty ones for names without letters and digits."""
        return tuple(tuple(map(normalise, statement.names)) for statement in self.all_statements)

    @cached_property
    def identified(self) -> tuple[tuple[str, str], ...]:
        """The id and the text of each statement whose names have letters or digits; see :class:`Statement`."""
        words = {relation.description: _spaced(relation.description) for relation in self.relations}
        found = []
        for names, statement in zip(self.normal_names, self.all_statements, strict=True):
            if not all(names):
                continue
            if isinstance(statement, RelationStatement):
                text = _line(statement.names, statement.description, words[statement.description])
            else:
                text = statement.text
            found.append((digest(self.text_hash, len(statement.names), *statement.names, text), text))
        return tuple(found)

    @property
    def typed_names(self) -> Iterator[tuple[str, str]]:
        """Normalised name and type of each entity, once for each time it is stated; relations and claims give no type,
        and statements with a name without letters and digits give no entity.
        """
        for names, statement in zip(self.normal_names, self.all_statements, strict=True):
            for name in names if all(names) else ():
                yield name, statement.type if isinstance(statement, EntityStatement) else ""

    def without_merged(self, removed: Iterable[str]) -> "ChunkStatements":
        """The statements without descriptions that were merged from any of these chunks."""
        gone = frozenset(removed)
        entities = tuple(
            entity if gone.isdisjoint(entity.merged_from) else entity._replace(description="", merged_from=())
            for entity in self.entities
        )
        relations = tuple(
            relation if gone.isdisjoint(relation.merged_from) else relation._replace(description="", merged_from=())
            for relation in self.relations
        )
        return replace(self, entities=entities, relations=relations)

    def record(self) -> dict[str, Any]:
        """Entities, relations and claims, if any, as plain lists, for storage; :meth:`from_record` reads it back."""
        plain = {"entities": list(map(_row, self.entities)), "relations": list(map(_row, self.relations))}
        return {**plain, "claims": list(map(list, self.claims))} if self.claims else plain

    @classmethod
    def from_record(
        cls,
        record: Mapping[str, Sequence[Sequence[Any]]],
        chunk_id: str,
        text_hash: str,
        document_id: str = "",
        position: int = 0,
        scope: str = "",
    ) -> "ChunkStatements":
        """Read the data of :meth:`record`; trailing fields may be missing."""
        entities = [EntityStatement(*row[:3], *(tuple(merged) for merged in row[3:])) for row in record["entities"]]
        relations = [RelationStatement(*row[:4], *(tuple(merged) for merged in row[4:])) for row in record["relations"]]
        claims = tuple(ClaimStatement(*row) for row in record.get("claims", ()))
        return cls(chunk_id, text_hash, document_id, position, tuple(entities), tuple(relations), scope, claims)


def _row(statement: EntityStatement | RelationStatement) -> list[Any]:
    """A statement as JSON values, without `merged_from` if it is empty."""
    *values, merged = statement
    return [*values, list(merged)] if merged else values


class Statement(NamedTuple):
    """A statement with its entities resolved.

    The id is a hash of the text of the chunk and of what was extracted from it. It does not depend on ids of nodes, so
    a corpus that is indexed again has the same statements. `entities` are the keys of its entity, or of the two ends of
    a relation, `text` is one line, and `strength` that of a relation, else 0.
    """

    id: str
    chunk_id: str
    entities: tuple[str, ...]
    text: str
    strength: float
    order: tuple[str, str, int, str, int]
    is_claim: bool = False


def digest(*parts: Any) -> str:
    """Hash of values that JSON can hold, 32 hexadecimal digits."""
    encoded = json.dumps(parts, ensure_ascii=True, separators=(",", ":")).encode()
    return sha256(encoded).hexdigest()[:_DIGEST_LENGTH]
