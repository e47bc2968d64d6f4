"""Checks of the values of parameters, with uniform error messages.

What does not fit raises a `ConfigurationError`. Every message names the parameter, the allowed values, and the value.
Booleans and texts are not accepted as numbers; NumPy integers are accepted as integers.
"""

import math
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, fields
from difflib import get_close_matches
from functools import cache, partial
from numbers import Integral, Real
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin, overload

from pydantic import BeforeValidator, GetCoreSchemaHandler, ValidationError, ValidationInfo

from llama_index.ragkit.errors import ConfigurationError

__all__ = [
    "ON_ERROR",
    "CheckedFields",
    "Count",
    "CountOrNone",
    "Fallback",
    "FieldCheck",
    "OnError",
    "Share",
    "ShareOrNone",
    "check_choice",
    "check_component",
    "check_count",
    "check_ids",
    "check_number",
    "choice",
    "chosen",
    "count",
    "did_you_mean",
    "number",
    "refusal",
]

T = TypeVar("T")

Fallback = Literal["rules"] | None
OnError = Literal["record", "raise"]
ON_ERROR: tuple[str, ...] = get_args(OnError)


def check_choice(name: str, value: T, choices: Collection[str]) -> T:
    """The value, if it is one of the choices."""
    if not isinstance(value, str) or value not in choices:
        raise ConfigurationError(f"{name} must be one of {', '.join(map(repr, choices))}, not {value!r}.")
    return value


def chosen(name: str, value: str, choices: Mapping[Any, Mapping[str, Any]]) -> dict[str, Any]:
    """The keywords that a choice stands for, in a dictionary of the caller's own."""
    return dict(choices[check_choice(name, value, choices)])


@overload
def check_count(name: str, value: Any, least: int, *, none_ok: Literal[False] = False) -> int: ...
@overload
def check_count(name: str, value: Any, least: int, *, none_ok: bool) -> int | None: ...
def check_count(name: str, value: Any, least: int, *, none_ok: bool = False) -> int | None:
    """The value as an `int`, if it is a whole number of at least `least`, or None where that is allowed."""
    if value is None and none_ok:
        return None
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        what = f"a whole number of at least {least}" + (" or None" if none_ok else "")
        raise ConfigurationError(f"{name} must be {what}, not {value!r}.")
    return int(value)


def check_number(
    name: str, value: Any, low: float, high: float = math.inf, *, above: bool = False, below: bool = False
) -> float:
    """The value, if it is a finite number from `low` to `high`, or `above` the one or `below` the other."""
    fits = not isinstance(value, bool) and isinstance(value, Real) and low <= float(value) <= high
    if not fits or value == math.inf or (above and value == low) or (below and value == high):
        if high == math.inf:
            allowed = f"{'above' if above else 'of at least'} {low:g}, and finite"
        else:
            allowed = f"in {'(' if above else '['}{low:g}, {high:g}{')' if below else ']'}"
        raise ConfigurationError(f"{name} must be a number {allowed}, not {value!r}.")
    return float(value)


def check_ids(name: str, ids: Any) -> None:
    """Refuse what is no list of ids; an iterator would be used up by the first look at it."""
    if isinstance(ids, str) or not isinstance(ids, Collection):
        found = f"the text {ids!r}: write [{ids!r}]" if isinstance(ids, str) else type(ids).__name__
        raise ConfigurationError(f"{name} must be a list of ids, not {found}.")


def check_component(name: str, value: T, kind: type | tuple[str, ...], wanted: str, method: str = "") -> T:
    """The value, if it is an object of a kind, and of no other method.

    Parameters
    ----------
    kind : its class, or the attributes that it must have
    wanted : what is needed, with examples, for the message
    method : the method that uses it, if a component of this kind belongs to one; its attribute `method` must then be
        equal, or empty or absent for components of any method
    """
    fits = isinstance(value, kind) if isinstance(kind, type) else all(hasattr(value, part) for part in kind)
    own = getattr(value, "method", "")
    if fits and not isinstance(value, type) and not (method and own and own != method):
        return value
    if isinstance(value, type):
        found = f"the class {value.__name__}: pass an object"
    elif fits:
        found = f"{type(value).__name__}, which belongs to {own!r}"
    else:
        found = repr(value) if isinstance(value, (str, int, float)) else type(value).__name__
    raise ConfigurationError(f"{name} must be {wanted}, not {found}.")


# -- the same for the fields of pydantic models and of dataclasses ------------------------------------


@dataclass(frozen=True)
class FieldCheck:
    """A check of a field, by its name and value, for `Annotated`."""

    check: Callable[[str, Any], Any]

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> Any:
        def validate(value: Any, info: ValidationInfo) -> Any:
            return self.check(str(info.field_name), value)

        return BeforeValidator(validate).__get_pydantic_core_schema__(source, handler)


def choice(choices: Collection[str]) -> FieldCheck:
    """:func:`check_choice` for a field: `Annotated[Mode, choice(("a", "b"))]`."""
    return FieldCheck(partial(check_choice, choices=choices))


def count(least: int, *, none_ok: bool = False) -> FieldCheck:
    """:func:`check_count` for a field."""
    return FieldCheck(partial(check_count, least=least, none_ok=none_ok))


def number(
    low: float, high: float = math.inf, *, above: bool = False, below: bool = False, none_ok: bool = False
) -> FieldCheck:
    """:func:`check_number` for a field."""

    def check(name: str, value: Any) -> float | None:
        return None if none_ok and value is None else check_number(name, value, low, high, above=above, below=below)

    return FieldCheck(check)


Count = Annotated[int, count(1)]
CountOrNone = Annotated[int | None, count(1, none_ok=True)]
Share = Annotated[float, number(0, 1)]
ShareOrNone = Annotated[float | None, number(0, 1, none_ok=True)]


class CheckedFields:
    """Base of a dataclass whose fields are checked by their types: those of a `Literal`, or with a check as above.

    >>> @dataclass(frozen=True)
    ... class Options(CheckedFields):
    ...     weight: Share = 0.5
    >>> Options(2)
    Traceback (most recent call last):
    llama_index.ragkit.errors.ConfigurationError: weight must be a number in [0, 1], not 2.
    """

    def __post_init__(self) -> None:
        kind: Any = type(self)
        for name, check in _checks_of(kind):
            check(name, getattr(self, name))


@cache
def _checks_of(kind: type[Any]) -> list[tuple[str, Callable[[str, Any], Any]]]:
    """The checks of the fields of a dataclass, by their names."""
    checks: list[tuple[str, Callable[[str, Any], Any]]] = []
    for field in fields(kind):
        literal = [choice(get_args(field.type))] if get_origin(field.type) is Literal else []
        checks += [(field.name, each.check) for each in (*literal, *getattr(field.type, "__metadata__", ()))]
    return checks


def did_you_mean(unknown: Iterable[str], known: Iterable[str]) -> str:
    """A question that names the known words like unknown ones, or ending with them, after a blank; empty if none is.

    >>> did_you_mean(["top_k", "x"], ["similarity_top_k", "filters"]), did_you_mean(["x"], ["filters"])
    (' Did you mean similarity_top_k=?', '')
    """
    names = list(known)
    close = [
        [f"similarity_{name}"]
        if f"similarity_{name}" in names  # core's name for what others call top_k
        else get_close_matches(name, names, 1, 0.7) or [each for each in names if each.endswith(f"_{name}")]
        for name in unknown
    ]
    meant = [found[0] for found in close if found]
    return f" Did you mean {' and '.join(f'{name}=' for name in meant)}?" if meant else ""


def refusal(owner: str, known: Iterable[str], error: ValidationError) -> ConfigurationError:
    """An error of pydantic as one of this package; `owner` is the class that cannot be made, `known` its parameters."""
    flaws = []
    for flaw in error.errors():
        name, own = ".".join(map(str, flaw["loc"])), flaw.get("ctx", {}).get("error")
        if flaw["type"] == "extra_forbidden":
            meant = did_you_mean([name], known)
            flaws.append(f"It has no parameter {name!r}.{meant} It has {', '.join(sorted(known))}.")
        elif isinstance(own, ConfigurationError):
            flaws.append(str(own))
        else:
            flaws.append(f"{name}: {flaw['msg']}, not {flaw['input']!r}.")
    return ConfigurationError(f"{owner} cannot be made. {' '.join(flaws)}")
