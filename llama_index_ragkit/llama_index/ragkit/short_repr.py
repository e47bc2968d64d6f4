"""A short `repr` for components: the class, and its parameters that differ from the defaults.

Models appear by class and name and dictionaries by their keys, so that no credential is shown, and no address.
"""

import inspect
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import is_dataclass
from enum import Enum
from os import PathLike
from reprlib import Repr
from typing import Any

from llama_index.ragkit.redaction import redact

__all__ = ["ReprText", "ShortRepr", "changed", "changed_fields", "parameter_text", "shortened"]

_PLAIN = (str, int, float, bool, type(None), list, tuple, set, frozenset, Enum, PathLike)
_INNER = frozenset({"callback_manager", "object_map", "verbose", "retry", "cache", "rate_limiter", "embeddings_cache"})


class ShortRepr:
    """Gives a class whose instances keep the parameters of their constructor, as `name` or `_name`, a short `repr`."""

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={parameter_text(value)}" for name, value in self._described().items())
        return f"{type(self).__name__}({shown})"

    def _described(self) -> Mapping[str, Any]:
        """Names and values that are shown."""
        parameters = inspect.signature(type(self).__init__).parameters.values()
        defaults = {each.name: each.default for each in parameters if each.name not in _INNER}
        kept = vars(self)
        held = ((name, kept.get(name, kept.get(f"_{name}", default))) for name, default in defaults.items())
        empty = inspect.Parameter.empty
        values = {name: value for name, value in held if value is not empty and not _is_empty(value)}
        return changed(values, defaults)


class ReprText(str):
    """A text whose `repr` is the text."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def changed(values: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """The values that differ from their defaults."""
    missing = object()
    return {name: value for name, value in values.items() if repr(defaults.get(name, missing)) != repr(value)}


def changed_fields(model: Any) -> Iterator[tuple[str, ReprText]]:
    """The fields of a pydantic component that differ from their defaults, for its `__repr_args__`."""
    fields = {name: field for name, field in type(model).model_fields.items() if name not in _INNER}
    defaults = {name: field.get_default(call_default_factory=True) for name, field in fields.items()}
    for name, value in changed({name: getattr(model, name) for name in fields}, defaults).items():
        yield name, ReprText(parameter_text(value))


class _Shown(Repr):
    """Cuts long values, and shows no secret in a text."""

    def repr_str(self, x: str, level: int) -> str:
        return super().repr_str(redact(x), level)

    def repr_instance(self, x: Any, level: int) -> str:
        return super().repr_instance(ReprText(redact(repr(x))), level)


_SHORT = _Shown()
_SHORT.maxstring = _SHORT.maxother = 120


def shortened(value: Any) -> str:
    """The `repr` of a value, cut where it is long, without passwords and keys in its texts."""
    return _SHORT.repr(value)


def parameter_text(value: Any) -> str:
    """A parameter in short: models by class and name, dictionaries by their keys, other objects by their class."""
    if isinstance(value, Mapping):
        return f"{{{_SHORT.repr(sorted(map(str, value)))[1:-1]}}}"
    if isinstance(value, _PLAIN) and not _holds_objects(value):
        return shortened(value)
    if isinstance(value, ShortRepr) or is_dataclass(value):
        return shortened(value)
    if callable(value) and hasattr(value, "__name__"):
        return str(value.__name__)
    name = next((held for key in ("model_name", "model") if isinstance(held := getattr(value, key, None), str)), "")
    return f"{type(value).__name__}({name!r})" if name else f"{type(value).__name__}(...)"


def _is_empty(value: Any) -> bool:
    return isinstance(value, dict | list) and not value


def _holds_objects(value: Any) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, str) and any(not isinstance(x, _PLAIN) for x in value)
