"""The parameters of an index: passed, stored with it, or the defaults of the method."""

from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from types import NoneType
from typing import Any, get_args

from llama_index.ragkit.errors import ConfigurationError

__all__ = ["choose_parameters", "field_defaults", "field_names"]


def field_names(config_cls: type[Any]) -> tuple[str, ...]:
    """The parameters of a config class, a dataclass."""
    return tuple(field.name for field in fields(config_cls))


def field_defaults(config_cls: type[Any]) -> dict[str, Any]:
    """The defaults of the parameters of a config class."""
    return {field.name: field.default for field in fields(config_cls) if field.default is not MISSING}


def choose_parameters(
    config_cls: type[Any], stored: Mapping[str, Any], given: Mapping[str, Any], *, fixed: bool
) -> Any:
    """The parameters of an index: those passed, else those it was built with, else the defaults.

    Parameters
    ----------
    config_cls : a dataclass with a default for every parameter
    stored : what the index was built with; empty for a new one
    given : the user's values; None stands for no value, unless the parameter can be None
    fixed : whether stored parameters cannot be changed

    Raises
    ------
    ConfigurationError
        If a fixed parameter is passed with a value other than that of the build, or a value is out of range.
    """
    names = field_names(config_cls)
    optional = {field.name for field in fields(config_cls) if NoneType in get_args(field.type)}
    before = {name: stored[name] for name in names if name in stored}
    for field in fields(config_cls):
        if is_dataclass(field.default):  # its values were parameters of their own in earlier versions
            kind: type[Any] = type(field.default)
            values = {**stored, **stored.get(field.name, {})}
            before[field.name] = kind(**{name: values[name] for name in field_names(kind) if name in values})
    chosen = {name: _plain(given[name]) for name in names if given.get(name) is not None}
    chosen.update({name: None for name in optional if name in given and given[name] is None})
    config = config_cls(**{**before, **chosen})
    changed = [name for name in chosen if fixed and name in before and before[name] != chosen[name]]
    if changed:
        differences = ", ".join(f"{name}={before[name]!r}, not {chosen[name]!r}" for name in changed)
        raise ConfigurationError(f"The index was built with {differences}. Leave it out, or build a new index.")
    return config


def _plain(value: Any) -> Any:
    """A NumPy number converted to Python, since parameters are stored as JSON."""
    return value.item() if hasattr(value, "item") else value
