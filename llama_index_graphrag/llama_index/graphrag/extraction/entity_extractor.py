"""`EntityExtractor`: entities and relations of a text by a language model (arXiv 2404.16130, section 3.1).

Each extraction is checked against its text. A text has a name if it has its words, up to their endings: "the nephew of
old Scrooge" has "Scrooge's nephew", "в Москве" has "Москва". An entity is kept if the text has a share of the words of
its name. The share is small, since models complete names that texts do not repeat. A relation is kept if both its ends
are entities; an end that is not an entity becomes one if the text has all words of its name. A clause is not a name,
and a name has no relation with itself. The same holds for the subject and object of a claim, and the text must have its
quotation word for word. The rest is dropped and counted.

The published pipeline drops every relation with an unknown end: 84 of 978 in its recorded run.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any, ClassVar

from llama_index.core.prompts import BasePromptTemplate
from llama_index.core.schema import BaseNode
from pydantic import Field, field_validator

from llama_index.graphrag.graph.statement import ChunkStatements, ClaimStatement, EntityStatement, RelationStatement
from llama_index.graphrag.prompts import CLAIMS_PROMPT, EXTRACT_PROMPT, GLEAN_PROMPT, MISSED_PROMPT
from llama_index.graphrag.replies import YesNo, read_score, read_yes_no
from llama_index.ragkit import Estimate, ExtractionContext, NodeExtractor, Steps
from llama_index.ragkit.errors import ParseError
from llama_index.ragkit.llm.context_window import PromptTexts
from llama_index.ragkit.llm.json.shapes import Reply, read_reply, triples_of
from llama_index.ragkit.llm.prompts import fence
from llama_index.ragkit.storage.nodes import plain_text
from llama_index.ragkit.storage.records import Record
from llama_index.ragkit.text.characters import normalise
from llama_index.ragkit.text.held import TextWords, is_name
from llama_index.ragkit.text.tokens import count_tokens
from llama_index.ragkit.validation import Share
from llama_index.ragkit.validation import count as checked_count

__all__ = ["Checked", "ClaimReading", "EntityExtractor", "Reading", "checked"]

_MOST_STRENGTH = 10.0
_SOURCES = ("source", "source_entity", "head", "from", "subject", "entity1")
_TARGETS = ("target", "target_entity", "tail", "to", "object", "entity2")
_CLAIMS = "Any claims or facts that could be relevant to information discovery."  # as published
_TYPES = ("organization", "person", "geo", "event")  # as published
_NOTHING = frozenset(("none", "null", "n/a", "unknown", "-"))  # as models write an empty field
_FIELDS = {
    "subject": ("subject", "subject_id", "entity"),
    "object": ("object", "object_id"),
    "type": ("type", "claim_type"),
    "status": ("status", "claim_status"),
    "start": ("start", "start_date", "from", "date"),
    "end": ("end", "end_date", "to"),
    "said": ("description", "claim", "claim_description", "text"),
    "quotation": ("quotation", "quote", "source_text", "source"),
}


class ClaimReading(Reply):
    """A reply: claims about entities."""

    other_names: ClassVar[Mapping[str, Sequence[str]]] = {"claims": ("claim", "covariates", "facts")}
    items: ClassVar[str] = "claims"

    claims: list[Any] = Field(
        description="objects with subject, object, type, status, start, end, description and quotation"
    )

    @field_validator("claims")
    @classmethod
    def _claims(cls, values: list[Any]) -> list[ClaimStatement]:
        """Objects with a subject and a description; others are dropped. It is an error if they all are."""
        read = [_claim(value) for value in values if isinstance(value, Mapping)]
        found = list(dict.fromkeys(claim for claim in read if claim.subject and claim.said))
        if values and not found:
            raise ValueError("none of the claims has a subject and a description")
        return found


def _claim(value: Mapping[str, Any]) -> ClaimStatement:
    fields = {name: next((_filled(value[key]) for key in keys if key in value), "") for name, keys in _FIELDS.items()}
    return ClaimStatement(**{**fields, "status": fields["status"].casefold()})


def _filled(value: Any) -> str:
    """A text, number or truth value on one line; empty for other values and for words such as "unknown"."""
    plain = str(value) if isinstance(value, bool) else _text(value)
    return "" if plain.casefold() in _NOTHING else plain


def _object(*texts: str, **others: Any) -> dict[str, Any]:
    """The JSON schema of an object with these fields, most of which are texts."""
    fields = {**{text: {"type": "string", "maxLength": 300} for text in texts}, **others}
    return {"type": "object", "properties": fields, "required": list(fields)}


class Reading(Reply):
    """A reply: entities, and relations between them."""

    other_names: ClassVar[Mapping[str, Sequence[str]]] = {
        "entities": ("entity", "namedentities", "nodes", "names"),
        "relations": ("relation", "relationships", "relationship", "edges", "links", "triples"),
    }
    items: ClassVar[str] = "entities"
    bounds: ClassVar[Mapping[str, Any]] = {
        "entities": {"items": _object("name", "type", "description")},
        "relations": {"items": _object("source", "target", "description", strength={"type": "number"})},
    }

    entities: list[Any] = Field(description="objects with name, type and description")
    relations: list[Any] = Field(
        default_factory=list, description="objects with source, target, description and strength from 1 to 10"
    )

    @field_validator("entities", "relations", mode="before")
    @classmethod
    def _as_list(cls, values: Any) -> Any:
        """Lists by type as one list."""
        if not isinstance(values, Mapping):
            return values
        if all(isinstance(inner, Mapping | str) for inner in values.values()):  # by name, or by number
            return [_with_name(name, inner) for name, inner in values.items()]
        lists = {kind: inner if isinstance(inner, list) else [inner] for kind, inner in values.items()}
        return [_with_type(item, kind) for kind, items in lists.items() for item in items]

    @field_validator("entities")
    @classmethod
    def _entities(cls, values: list[Any]) -> list[EntityStatement]:
        """Objects, lists and plain names; others are dropped. It is an error if they all are."""
        found = list(dict.fromkeys(entity for entity in map(_entity, values) if entity.name))
        if values and not found:
            raise ValueError("none of the entities has a name")
        return found

    @field_validator("relations")
    @classmethod
    def _relations(cls, values: list[Any]) -> list[RelationStatement]:
        """Objects and lists with two names, and lines such as "a | b | c"; others are dropped."""
        read = (_relation(value) for value in values)
        return list(dict.fromkeys(relation for relation in read if relation.source and relation.target))


def _with_type(item: Any, kind: str) -> Any:
    if isinstance(item, Mapping):
        return {"type": kind, **item}
    return {"name": item, "type": kind} if isinstance(item, str) else item


def _with_name(name: str, value: Any) -> Any:
    if name.isdigit():
        return value
    if isinstance(value, str):
        return {"name": name, "description": value}
    return {"name": name, **value}


def _entity(value: Any) -> EntityStatement:
    if isinstance(value, Mapping):
        name = _first(value, "name", "entity_name", "entity", "title", "text", "label", "id")
        return EntityStatement(name, _first(value, "type", "entity_type"), _first(value, "description"))
    if isinstance(value, list):
        name, kind, description = (_text(part) for part in [*value, "", "", ""][:3])
        return EntityStatement(name, kind, description)
    return EntityStatement(_text(value))


def _relation(value: Any) -> RelationStatement:
    if isinstance(value, Mapping):
        strength = next((value[key] for key in ("strength", "weight", "score") if key in value), 1)
        ends = _first(value, *_SOURCES), _first(value, *_TARGETS)
        return RelationStatement(
            *ends, _first(value, "description", "relation", "predicate", "label", "type"), _strength(strength)
        )
    if isinstance(value, list) and 3 <= len(value) <= 4:
        source, target, description = (_text(part) for part in value[:3])
        return RelationStatement(source, target, description, _strength(value[3] if len(value) == 4 else 1))
    if isinstance(value, str) or (isinstance(value, list) and len(value) == 2):
        source, relation, target = triples_of(value)[0] if isinstance(value, str) else [value[0], "", value[1]]
        return RelationStatement(_text(source), _text(target), _text(relation))
    return RelationStatement("", "")


def _first(value: Mapping[str, Any], *keys: str) -> str:
    return next((_text(value[key]) for key in keys if key in value), "")


def _text(value: Any) -> str:
    """A text or number on one line; empty for other values."""
    plain = isinstance(value, str | int | float) and not isinstance(value, bool)
    return " ".join(str(value).split()) if plain else ""


def _strength(value: Any) -> float:
    found = read_score(value, _MOST_STRENGTH)
    return 1.0 if found is None else found


class EntityExtractor(NodeExtractor):
    """Extracts entities and the relations between them with one call of a language model per chunk.

    Each reply is checked against the text. Entities are dropped if the text has too few of their words, and so are
    relations with such ends. A name that only a relation has becomes an entity. The record counts what was dropped,
    under `dropped`. A reply that is not such an object, or has nothing that is in the text, is retried, and then the
    node fails: an empty result is stored only if the model says that there is nothing. If a further call fails, the
    results of the first call stay; if no relation can be read, the entities stay.

    Deviations from the published pipeline: JSON instead of delimited tuples; each reply is parsed by itself (joined
    without a delimiter, the published ones lose the first entity of each gleaning); answers are in the language of the
    text.

    Parameters
    ----------
    entity_types : types that the prompt names [organization, person, geo, event, as published]
    gleanings : further calls that ask for missed entities and relations, at least 0 [0; published 1]
    gleaning_test : whether a separate call before each gleaning asks the model if something was missed, and a "no" ends
        the gleanings, as in the paper [False; the published code asks between gleanings]
    claims : whether one more call per chunk asks for claims about the entities found: subject, object, type, status,
        dates, and a quotation; a claim whose quotation is not in the text is dropped. Claims are statements like all
        others, and stand together in reports [False, as published]
    claim_description : description in the prompt of what counts as a claim
    min_in_text : least share of the words of a name that the text must have, in [0, 1]; 0 for no check, for example for
        translated entities [0.3: models complete names that a text does not repeat]
    kwargs : see :class:`~llama_index.ragkit.NodeExtractor`; prompts "extract", "missed", "glean"
        and "claims"
    """

    method: ClassVar[str] = "graphrag"
    default_prompts: ClassVar[Mapping[str, BasePromptTemplate]] = {
        "extract": EXTRACT_PROMPT,
        "missed": MISSED_PROMPT,
        "glean": GLEAN_PROMPT,
        "claims": CLAIMS_PROMPT,
    }
    completion_tokens: ClassVar[int] = 600
    without_llm: ClassVar[str] = "extractor=CooccurrenceExtractor()"

    entity_types: Sequence[str] = _TYPES
    gleanings: Annotated[int, checked_count(0)] = 0
    gleaning_test: bool = False
    claims: bool = False
    claim_description: str = _CLAIMS
    min_in_text: Share = 0.3

    @property
    def fingerprint(self) -> dict[str, str]:
        """As for every extractor, but without an unused test, so indexes of earlier versions accept the extractor."""
        unused = () if self.gleaning_test else ("gleaning_test", "prompt missed")
        return {name: value for name, value in super().fingerprint.items() if name not in unused}

    def extract_node(self, node: BaseNode, context: ExtractionContext) -> Steps[Record]:
        """Extract from one node: one call, and one or two for each gleaning."""
        text = plain_text(node)
        given: dict[str, Any] = {
            "text": PromptTexts([text], "text"),
            "entity_types": ", ".join(self.entity_types),
            "reply_tokens": self.reply_tokens("extract", count_tokens(text)),
        }
        first = yield from context.complete(
            self.prompt("extract"),
            parse=partial(_read, text, self.min_in_text),
            output_cls=Reading,
            **given,
        )
        entities, relations = list(first.entities), list(first.relations)
        for gleaning in range(self.gleanings):
            known = [part.text for part in (*entities, *relations)]
            if self.gleaning_test:
                missed = context.complete(
                    self.prompt("missed"),
                    parse=read_yes_no,
                    output_cls=YesNo,
                    reply_tokens=64,
                    sample=gleaning,
                    text=given["text"],
                    known=_known(known),
                )
                if not (yield from context.keep(missed, False)):
                    break
            asked = context.complete(
                self.prompt("glean"),
                parse=partial(read_reply, model=Reading),
                output_cls=Reading,
                sample=gleaning,
                **given,
                known=_known(known),
            )
            more = yield from context.keep(asked, Reading(entities=[]))
            entities += [entity for entity in more.entities if entity not in entities]
            relations += [relation for relation in more.relations if relation not in relations]
        claims: list[ClaimStatement] = []
        if self.claims and entities:
            claims = yield from context.keep(self._claims(context, text, entities), [])
        found = checked(_statements(entities, relations, claims), text, self.min_in_text)
        dropped = {"entities": found.dropped_entities, "relations": found.dropped_relations}
        dropped |= {"claims": found.dropped_claims} if self.claims else {}
        return {**found.statements.record(), "dropped": dropped}

    def _claims(
        self, context: ExtractionContext, text: str, entities: Sequence[EntityStatement]
    ) -> Steps[list[ClaimStatement]]:
        reading = yield from context.complete(
            self.prompt("claims"),
            parse=partial(_read_claims, text),
            output_cls=ClaimReading,
            reply_tokens=self.reply_tokens("claims", count_tokens(text)),
            text=PromptTexts([text], "text"),
            known=_known(list(dict.fromkeys(entity.name for entity in entities))),
            claim_description=self.claim_description,
        )
        return list(reading.claims)

    def reply_tokens(self, prompt: str, tokens: int) -> int:
        """Descriptions repeat several times what a text says, as JSON."""
        return 512 + 4 * tokens

    def tokens_beside(self, prompt: str, tokens: int) -> int:
        """The earlier results in the prompts of further calls, which are not made by default."""
        gleans = self.gleanings > 0
        is_made = {"extract": False, "glean": gleans, "missed": gleans and self.gleaning_test, "claims": self.claims}
        return min(tokens, self.completion_tokens) if is_made[prompt] else 0

    def estimate_node(self, node: BaseNode, count: Callable[[str], int]) -> Estimate:
        """One call, one for each gleaning and its test, which also read the results so far, and one for claims."""
        text, reply = count(plain_text(node)), self.completion_tokens
        work = Estimate(1, count(self.prompt("extract").get_template()) + text, reply)
        glean = count(self.prompt("glean").get_template()) + text
        work = sum((Estimate(1, glean + reply * (i + 1), reply) for i in range(self.gleanings)), work)
        if self.gleaning_test:
            test = count(self.prompt("missed").get_template()) + text
            work = sum((Estimate(1, test + reply * (i + 1), 1) for i in range(self.gleanings)), work)
        claims = Estimate(1, count(self.prompt("claims").get_template()) + text + reply // 2, reply)
        return work + claims if self.claims else work


def _known(lines: Sequence[str]) -> PromptTexts:
    """The results so far, line by line."""
    return PromptTexts(lines, shown=lambda kept: fence(["\n".join(kept)], "known"))


def _statements(
    entities: Sequence[EntityStatement], relations: Sequence[RelationStatement], claims: Sequence[ClaimStatement] = ()
) -> ChunkStatements:
    return ChunkStatements("", "", entities=tuple(entities), relations=tuple(relations), claims=tuple(claims))


def _read_claims(text: str, reply: str) -> ClaimReading:
    """The claims about a text; unless there are none, the text must have the quotation of at least one."""
    reading = read_reply(reply, ClaimReading)
    if reading.claims and not checked(_statements((), (), reading.claims), text, 0).statements.claims:
        raise ParseError("None of the quotations in the reply is in the text.")
    return reading


def _read(text: str, least: float, reply: str) -> Reading:
    """The first reply about a text; unless it is empty, something in it must be in the text."""
    reading = read_reply(reply, Reading)
    kept = checked(_statements(reading.entities, reading.relations), text, least).statements
    if (reading.entities or reading.relations) and not kept.entities:
        raise ParseError("None of the entities in the reply is in the text.")
    return reading


@dataclass(frozen=True)
class Checked:
    """The statements that a text confirms, names of relations that became entities, and the numbers of dropped ones."""

    statements: ChunkStatements
    completed: tuple[str, ...] = ()
    dropped_entities: int = 0
    dropped_relations: int = 0
    dropped_claims: int = 0


def checked(statements: ChunkStatements, text: str, least: float = 0.3) -> Checked:
    """The part of an extraction that its text confirms.

    `least` is the share of the words of an entity's name that the text must have, in [0, 1]; 0 for no check.

    >>> from llama_index.graphrag.graph.statement import RelationStatement
    >>> relations = (RelationStatement("Scrooge", "Fred"), RelationStatement("Fred", "X"))
    >>> found = checked(ChunkStatements("n", "h", relations=relations), "Scrooge sent Fred away.")
    >>> found.completed, found.dropped_relations
    (('Scrooge', 'Fred'), 1)
    """
    words = TextWords(text)
    named = [entity for entity in statements.entities if is_name(entity.name)]
    entities = [entity for entity in named if not least or words.share(entity.name) >= least]
    known = {normalise(entity.name) for entity in entities}
    completed: dict[str, str] = {}

    def held(names: Iterable[str]) -> bool:
        unknown = [name for name in names if normalise(name) not in known]
        if not all(map(is_name, unknown)) or (least and not all(map(words.has_all, unknown))):
            return False
        for name in unknown:
            completed.setdefault(normalise(name), name)
        return True

    joining = (relation for relation in statements.relations if len(set(map(normalise, relation.names))) > 1)
    relations = [relation for relation in joining if held(relation.names)]
    plain = normalise(text)
    quoted = [claim for claim in statements.claims if (words_of := normalise(claim.quotation)) and words_of in plain]
    claims = [claim for claim in quoted if held(claim.names)]
    entities += [EntityStatement(name) for name in completed.values()]
    return Checked(
        replace(statements, entities=tuple(entities), relations=tuple(relations), claims=tuple(claims)),
        tuple(completed.values()),
        len(statements.entities) + len(completed) - len(entities),
        len(statements.relations) - len(relations),
        len(statements.claims) - len(claims),
    )
