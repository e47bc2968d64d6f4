"""Schemas with bounds, for servers that hold a model to them: without, a small model fills a list without end."""

from collections.abc import Mapping
from functools import cache
from typing import Any

from pydantic import BaseModel

__all__ = ["bounded"]

_MOST_ITEMS, _MOST_CHARACTERS = 100, 1_000  # of lists and texts without bounds of their own


@cache
def bounded(model: type[BaseModel]) -> type[BaseModel]:
    """The model with bounds in its JSON schema, which do not hold when a reply is read.

    A model without an attribute `bounds` is returned as it is. The attribute has keywords of JSON Schema by field,
    which are merged into those of the field. Other lists and texts get general bounds.
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
