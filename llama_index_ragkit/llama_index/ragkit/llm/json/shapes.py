"""The shapes in which models write lists of texts and of triples, the names that they give to keys, and bounds.

A model that is asked for `{"named_entities": ["Marie Curie"]}` may well write `[{"name": "Marie Curie"}]`,
`{"Entities": {"person": ["Marie Curie"]}}` or "1. Marie Curie". All of these are read here, for all packages. What is
none of them raises `ValueError`, so that a reply without readable content is a failure and no empty success.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from typing import Annotated, Any, ClassVar, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    model_validator,
)

from llama_index.ragkit.errors import ParseError
from llama_index.ragkit.llm.json.output import parse_model
from llama_index.ragkit.llm.reasoning import strip_reasoning

__all__ = [
    "ITEMS",
    "NumberList",
    "Reply",
    "Sources",
    "TextList",
    "TextReply",
    "TripleList",
    "bounded",
    "item_texts",
    "numbers_of",
    "read_reply",
    "squeezed",
    "texts_of",
    "triples_of",
]

# Keys under which objects hold their text, the most specific first.
_TEXT_KEYS = (
    "name", "text", "question", "query", "statement", "fact", "point", "keypoint", "topic", "title", "entity",
    "entityname", "namedentity", "value", "content", "description", "label", "mention", "item",
)  # fmt: skip
_HEADS = ("subject", "head", "source", "from", "subj", "s", "entity1", "node1")
_RELATIONS = ("relation", "predicate", "relationship", "verb", "type", "label", "rel", "p", "property", "edge")
_TAILS = ("object", "tail", "target", "to", "obj", "o", "entity2", "node2", "value")
_KIND_NAMES = """
person people place location organization organisation company date time event work product term concept other number
misc geo gpe loc org norp facility language name entity topic group
"""
_KINDS = frozenset(_KIND_NAMES.split())
_PARTS = re.compile(r"(?:(?<!\s)\s+)?(?:\||;|\t|->|→|—>|,(?=\s))\s*")
_BULLET = re.compile(r"^\s*(?:[-*•·–—]+\s+|\(?\d{1,3}\s*[.):、]\s*|\(?[a-zA-Z][.)]\s+)(?=\S)")
_EMPHASIS = re.compile(r"^([*_`\"“”'「『]{1,9})(.*?)([*_`\"“”'」』]+)")
_REMARK = re.compile(r"(?<!\s)\s+(?:[-–—:]\s+.*|\([^()]*\))$|:\s+.*$", re.DOTALL)

_INTEGER, _BESIDE_NUMBERS = re.compile(r"-?\d+"), re.compile(r"[^\d\s,;\[\]-]")
_BRACE = re.compile("[{}]")

M = TypeVar("M", bound=BaseModel)
T = TypeVar("T")


# -- texts ----------------------------------------------------------------------------------------------

_MOST_ITEMS, _MOST_CHARACTERS = 100, 1_000  # of lists and texts without bounds of their own


def texts_of(value: Any) -> list[str]:
    """A list of texts in any common shape, each text once and on one line.

    Shapes are lists of texts, numbers, or objects with a text, and objects of such lists by type, by number or by name.
    A `ValueError` is raised if there is something, but no text in it.

    >>> texts_of([{"name": "Marie Curie", "type": "person"}, 1903, ["Paris", "place"], None])
    ['Marie Curie', '1903', 'Paris']
    >>> texts_of({"person": ["Marie Curie"], "place": "Paris"}), texts_of({"Marie Curie": "a physicist"})
    (['Marie Curie', 'Paris'], ['Marie Curie'])
    """
    return _found(filter(None, map(_line, _texts(value))), value, "text")


def _found(items: Iterable[T], value: Any, what: str) -> list[T]:
    """Each item once; a `ValueError` is raised if a value that is not empty has none."""
    found = list(dict.fromkeys(items))
    if not found and value not in ([], {}):
        raise ValueError(f"there is no {what} in this list")
    return found


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        yield from _texts_of_object(value)
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for item in value:
            yield from _item(item)
    elif _is_scalar(value):
        items = item_texts(str(value))
        yield from items if len(items) > 1 else [str(value)]


def _item(item: Any) -> Iterator[str]:
    if isinstance(item, Mapping):
        text = _text_in(item)
        if text is None:
            yield from _texts_of_object(item)
        else:
            yield text
    elif isinstance(item, Sequence) and not isinstance(item, str):
        if item and _is_scalar(item[0]):  # [name, type]
            yield str(item[0])
    elif _is_scalar(item):
        yield str(item)


def _texts_of_object(value: Mapping[str, Any]) -> Iterator[str]:
    """Texts by type or number; names with what is said about them."""
    own = _text_in(value)
    if own is not None:
        yield own
    elif all(_is_scalar(inner) for inner in value.values()) and not any(map(_is_label, value)):
        yield from value
    else:
        for inner in value.values():
            yield from _texts(inner)


def _text_in(value: Mapping[str, Any]) -> str | None:
    """The text of an object that stands for one text."""
    plain = {squeezed(key): inner for key, inner in value.items()}
    return next((str(plain[key]) for key in _TEXT_KEYS if key in plain and _is_scalar(plain[key])), None)


def _is_label(key: str) -> bool:
    """Whether a key is a type or a number, so that its value is the text."""
    word = squeezed(key).rstrip("0123456789")
    return not word or word in _KINDS or word.removesuffix("s") in _KINDS


def _is_scalar(value: Any) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool)


def _line(text: str) -> str:
    return " ".join(text.split())


def squeezed(key: str) -> str:
    """A key without case and punctuation.

    >>> squeezed("Named Entities"), squeezed("named_entities")
    ('namedentities', 'namedentities')
    """
    return "".join(character for character in key.casefold() if character.isalnum())


# -- triples --------------------------------------------------------------------------------------------


def triples_of(value: Any) -> list[list[str]]:
    """Triples in any common shape: lists, objects, and lines such as "a | b | c".

    A `ValueError` is raised if there is something, but no triple in it.

    >>> triples_of([["Ada", "met", "Babbage"], {"subject": "Ada", "predicate": "born", "object": 1815}, "a | b | c"])
    [['Ada', 'met', 'Babbage'], ['Ada', 'born', '1815'], ['a', 'b', 'c']]
    """
    return list(map(list, _found(map(tuple, _triples(value)), value, "triple [subject, relation, object]")))


def _triples(value: Any) -> Iterator[list[str]]:
    if isinstance(value, Mapping):
        triple = _triple_in(value)
        if triple:
            yield triple
        else:
            for inner in value.values():
                yield from _triples(inner)
    elif isinstance(value, str):
        for line in item_texts(value) or [value]:
            parts = [part.strip(" \"'“”") for part in _PARTS.split(line.strip(" ()[]<>"))]
            if len(parts) == 3 and all(parts):
                yield parts
    elif isinstance(value, Sequence):
        if len(value) == 3 and all(map(_is_scalar, value)):
            texts = [_line(str(part)) for part in value]
            if all(texts):
                yield texts
                return
        for item in value:
            if isinstance(item, Mapping | Sequence):
                yield from _triples(item)


def _triple_in(value: Mapping[str, Any]) -> list[str]:
    plain = {squeezed(key): _line(str(inner)) for key, inner in value.items() if _is_scalar(inner)}
    if set(plain) <= {"0", "1", "2"}:
        parts = [plain.get(key, "") for key in ("0", "1", "2")]
    else:
        parts = [next((plain[key] for key in keys if plain.get(key)), "") for keys in (_HEADS, _RELATIONS, _TAILS)]
    return parts if all(parts) else []


# -- numbers --------------------------------------------------------------------------------------------


def numbers_of(value: Any) -> list[int]:
    """Whole numbers in any common shape, in order, each once: numbers, texts with one, objects with one.

    A `ValueError` is raised if there is something, but no number in it.

    >>> numbers_of([2, "1", {"number": 4}, "Fact 7", 2])
    [2, 1, 4, 7]
    """
    return _found(_numbers(value), value, "number")


def _numbers(value: Any) -> Iterator[int]:
    if isinstance(value, Mapping):
        numbers = [number for inner in value.values() for number in _numbers(inner)]
        yield from numbers[:1] if all(map(_is_scalar, value.values())) else numbers
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for item in value:
            yield from _numbers(item)
    elif isinstance(value, str):
        within = _INTEGER.findall(value)
        yield from map(int, within if len(within) == 1 or not _BESIDE_NUMBERS.search(value) else [])
    elif _is_scalar(value) and value == int(value):
        yield int(value)


# -- whole replies --------------------------------------------------------------------------------------

TextList = Annotated[list[str], BeforeValidator(texts_of)]
"""A field of texts in any shape that :func:`texts_of` reads."""
NumberList = Annotated[list[int], BeforeValidator(numbers_of)]
"""A field of whole numbers in any shape that :func:`numbers_of` reads."""
TripleList = Annotated[list[list[str]], BeforeValidator(triples_of)]
"""A field of triples in any shape that :func:`triples_of` reads."""


def _as_list(value: Any) -> Any:
    return value if isinstance(value, list) else [] if value is None else [value]


Sources = Annotated[list[Any], BeforeValidator(_as_list)]
"""A field of what a statement rests on; a single value is a list of one."""


def _items(value: Any, read: ValidatorFunctionWrapHandler) -> Any:
    items = list(value.values()) if isinstance(value, Mapping) and all(map(str.isdigit, value)) else value
    if not isinstance(items, list):
        return read(items)
    found = []
    for item in items:
        with suppress(ValidationError):
            found += read([item])
    return found or read(items)


ITEMS = WrapValidator(_items)
"""Around a field of objects: an object by number is the list of its values, and items that cannot be read are left out,
unless all are.
"""


class Reply(BaseModel):
    """Base of what replies must hold: fields are found under other names, one level deeper, and without any key.

    Attributes
    ----------
    other_names : field -> names that models also give to it, without case and punctuation
    bounds : field -> keywords of JSON Schema, for servers that hold a model to a schema; what is read may exceed them
    by_type : whether an object without a known key holds the texts of the first field by their type
    items : the field that a reply without JSON may give as a list of lines with numbers or bullets; "" for none
    """

    other_names: ClassVar[Mapping[str, Sequence[str]]] = {}
    bounds: ClassVar[Mapping[str, Any]] = {}
    by_type: ClassVar[bool] = False
    items: ClassVar[str] = ""

    @model_validator(mode="before")
    @classmethod
    def _named(cls, value: Any) -> Any:
        return cls._fields_in(value, 0)

    @classmethod
    def _fields_in(cls, value: Any, depth: int) -> Any:
        fields = list(cls.model_fields)
        needed = [name for name, field in cls.model_fields.items() if field.is_required()]
        if isinstance(value, list):
            if len(value) == 1 and isinstance(value[0], Mapping):
                inner = cls._fields_in(value[0], depth)
                if isinstance(inner, Mapping) and set(needed) <= set(inner):
                    return inner
            return {needed[0]: value} if len(needed) == 1 else value
        if not isinstance(value, Mapping):
            return value
        given = {squeezed(key): inner for key, inner in value.items()}
        found = {}
        for name in fields:
            names = (squeezed(name), *cls.other_names.get(name, ()))
            key = next((key for key in names if key in given), None)
            if key is not None:
                found[name] = given[key]
        if set(needed) <= set(found):
            return found
        inside = [inner for inner in value.values() if isinstance(inner, list | Mapping)]
        if len(inside) == 1 and depth < 3 and not found:
            deeper = cls._fields_in(inside[0], depth + 1)
            if isinstance(deeper, Mapping) and set(needed) <= set(deeper):
                return deeper
        if cls.by_type and len(needed) == 1 and value and all(map(_is_label, value)):
            return {needed[0]: value}
        return found or value


class TextReply(Reply):
    """Base of objects with a text, in lists whose items may be bare texts."""

    @model_validator(mode="before")
    @classmethod
    def _bare(cls, value: Any) -> Any:
        return {next(iter(cls.model_fields)): str(value)} if _is_scalar(value) else value


def item_texts(text: str) -> list[str]:
    """The items of a list of lines with numbers or bullets, without what marks them; none if there is no such line.

    >>> item_texts("Here they are:\\n1. **Marie Curie**\\n2) Paris\\n\\nAnything else?")
    ['Marie Curie', 'Paris']
    """
    items = []
    for line in text.splitlines():
        match = _BULLET.match(line)
        item = _EMPHASIS.sub(r"\2", line[match.end() :].strip()).strip() if match else ""
        if any(character.isalnum() for character in item):
            items.append(item)
    return items


def without_remarks(names: Iterable[str]) -> list[str]:
    """Names without what a list says about each: "Marie Curie (person)", "Paris - a city".

    >>> without_remarks(["Marie Curie (person)", "Paris - a city", "Jean-Luc", "Ada: born 1815"])
    ['Marie Curie', 'Paris', 'Jean-Luc', 'Ada']
    """
    return [_REMARK.sub("", name) or name for name in names]


def read_reply(text: str, model: type[M]) -> M:
    """The reply as a pydantic model, read as :func:`~llama_index.ragkit.llm.json.output.parse_model` does.

    If it contains no JSON but a list of lines with numbers or bullets, and the model is a :class:`Reply` that may be
    given so, these are the items. A `ParseError` is raised if there is neither.
    """
    try:
        return parse_model(text, model)
    except ParseError:
        field = model.items if issubclass(model, Reply) else ""
        items = item_texts(strip_reasoning(text)) if field else []
        if not items or _BRACE.search(text):
            raise
        given = without_remarks(items) if getattr(model, "by_type", False) else items
        try:
            return model.model_validate({field: given})
        except ValueError as error:
            raise ParseError(f"The lines of the reply are not {field}: {items[0]!r}") from error


@cache
def bounded(model: type[BaseModel]) -> type[BaseModel]:
    """The model with bounds in its JSON schema, which do not hold when a reply is read.

    Without bounds a small model that a server holds to a schema fills a list without end. A model without an attribute
    `bounds` is returned as it is; see :class:`Reply`. Lists and texts that it does not name get general bounds.
    """
    given: Mapping[str, Any] | None = getattr(model, "bounds", None)
    if given is None:
        return model

    def schema(cls: type[BaseModel], *args: Any, **kwargs: Any) -> dict[str, Any]:
        plain = model.model_json_schema(*args, **kwargs)
        _merge(plain.get("properties", {}), given)
        _bound(plain)
        return plain

    own = {"__doc__": model.__doc__, "__module__": model.__module__, "model_json_schema": classmethod(schema)}
    metaclass: Any = type(model)
    twin: type[BaseModel] = metaclass(model.__name__, (model,), own)
    return twin


def _merge(schema: dict[str, Any], given: Mapping[str, Any]) -> None:
    for key, value in given.items():
        if isinstance(value, Mapping) and isinstance(schema.get(key), dict):
            _merge(schema[key], value)
        else:
            schema[key] = value


def _bound(schema: Any) -> None:
    """Bound the lists and texts of a schema that have no bounds."""
    if isinstance(schema, list):
        for inner in schema:
            _bound(inner)
    elif isinstance(schema, dict):
        if schema.get("type") == "array":
            schema.setdefault("maxItems", _MOST_ITEMS)
        elif schema.get("type") == "string" and "enum" not in schema:
            schema.setdefault("maxLength", _MOST_CHARACTERS)
        for inner in list(schema.values()):
            _bound(inner)
