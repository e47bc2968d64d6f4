"""How the documentation site reads the docstrings of this repository: a Griffe extension.

mkdocstrings runs it (`mkdocs.yml`), and so does `tests/test_docstrings.py`, which needs no site. It goes through every
docstring of the packages here, those of modules that no page shows included. What is wrong in one is a warning, and
a warning fails `mkdocs build --strict`.

References
----------
A role becomes a link of mkdocs-autorefs. It says what its target is (`:class:`, `:func:`, ...) and where: by a name
that is looked up in the class, the module and the packages around the docstring, in this order, or by the full path. A
leading `~` shortens the text of the link to the last part of the path. Names of other libraries are written in plain
backticks, since nothing here could link to them. mkdocs-autorefs warns of a target that no page shows.

Sections
--------
What follows `name :` says what a parameter, an attribute or a result is; its type stands in the signature:

    theme_size, min_component : at most so many members, each with at least this share
        of the largest component

A parser of numpydoc would take that text for the type. So each name becomes an item of its own with the text as its
description. A result may do without a name, and doctests without a heading.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from textwrap import indent
from typing import Any

import griffe

__all__ = ["DocstringReader", "docstrings", "find", "numpydoc"]

ROOT = Path(__file__).parents[2]
# Any role, known or not, also where it wraps to the next line.
ROLE = re.compile(r"(?<![`\w]):(?P<role>[a-z]+(?::[a-z]+)?):`(?P<short>~?)(?P<name>[^`]*)`")
KINDS = {
    "attr": "attribute",
    "class": "class",
    "data": "attribute",
    "exc": "class",
    "func": "function",
    "meth": "function",
    "mod": "module",
}
HEADING = re.compile(r"^(?P<title>[A-Z][A-Za-z ]*)\n-{3,}\n", re.MULTILINE)
ITEM = re.compile(r"(?P<names>\*{0,2}\w+(?:, \*{0,2}\w+)*) :(?: +(?P<text>.*))?")

Scope = griffe.Object | griffe.Alias


class DocstringReader(griffe.Extension):
    """Rewrite roles and sections of all docstrings.

    Attributes
    ----------
    problems : one for each fault, as "path:line: what is wrong"
    """

    def __init__(self) -> None:
        self.problems: list[str] = []

    def on_package(self, *, pkg: griffe.Module, **kwargs: Any) -> None:
        """Rewrite the docstrings of the packages of this repository in the namespace `pkg`."""
        for package in filter(in_repository, pkg.members.values()):
            for scope, docstring in docstrings(package):
                if in_repository(scope):
                    self._rewrite(scope, docstring)
                if isinstance(scope, griffe.Function) and any(str(d.value) == "synchronous" for d in scope.decorators):
                    assert isinstance(scope.returns, griffe.ExprSubscript)
                    scope.returns = scope.returns.slice  # of `Steps`, which the decorator runs

    def _rewrite(self, scope: Scope, docstring: griffe.Docstring) -> None:
        text = docstring.value

        def warn(position: int, problem: str) -> None:
            line = (docstring.lineno or 1) + text.count("\n", 0, position)
            self.problems.append(f"{scope.relative_filepath}:{line}: {problem}")
            griffe.logger.warning(self.problems[-1])

        def link(match: re.Match[str]) -> str:
            kind, name = KINDS.get(match["role"]), match["name"]
            target = find(scope, name, kind) if kind else None
            if target is None:
                reason = f"no {kind} of that name is found" if kind else f"the roles are {', '.join(KINDS)}"
                warn(match.start(), f"{match[0]}: {reason}")
                return match[0]
            shown = name.rsplit(".", 1)[-1] if match["short"] else name
            return f"[`{shown}`][{target.path}]"

        for line in strays(text):
            warn(text.index(line), f"{line!r} is neither `name : description` nor the indented rest of one")
        docstring.value = numpydoc(ROLE.sub(link, text), attribute_types(scope))


def in_repository(scope: Scope) -> bool:
    """Whether the file of `scope` is in a package of this repository, and not installed."""
    path = scope.filepath
    return (
        isinstance(path, Path)
        and path.is_relative_to(ROOT)
        and path.relative_to(ROOT).parts[0].startswith("llama_index_")
    )


def docstrings(scope: Scope) -> Iterator[tuple[Scope, griffe.Docstring]]:
    """The docstrings of `scope` and of all that is defined in it, imported names left out, each with its object."""
    if scope.docstring:
        yield scope, scope.docstring
    for member in scope.members.values():
        if not member.is_alias:
            yield from docstrings(member)


# -- references -----------------------------------------------------------------------------------------


def find(scope: Scope, name: str, kind: str) -> griffe.Object | None:
    """What a docstring of `scope` calls `name`.

    Parameters
    ----------
    scope : the object that the docstring belongs to
    name : a full path (`llama_index.ragkit.DerivedIndex`) or one from a scope (`retrieve`, `RaptorIndex.delete`)
    kind : objects of another kind are passed over

    Returns
    -------
    The object where it is defined; None where there is none, or it belongs to another library.
    """
    root = scope.package
    scopes = [scope]
    while (around := scopes[-1].parent) is not None:
        scopes.append(around)
    paths = [*((around, name) for around in scopes), (root, name.removeprefix(f"{root.name}."))]
    targets = (follow(start, path.split(".")) for start, path in paths)
    return next((target for target in targets if target is not None and target.kind.value == kind), None)


def follow(scope: Scope, path: list[str]) -> griffe.Object | None:
    """What a path leads to from `scope`, through imports and base classes; None outside this repository."""
    try:
        for part in path:
            scope = scope.all_members[part]
        target = scope.final_target if isinstance(scope, griffe.Alias) else scope
    except (KeyError, griffe.AliasResolutionError):
        return None
    return target if in_repository(target) else None


# -- sections -------------------------------------------------------------------------------------------


def sections(text: str) -> Iterator[tuple[str, str]]:
    """Titles and bodies, the opening with an empty title; doctests under a title of their own."""
    opening, *rest = HEADING.split(text)
    for title, body in [("", opening), *zip(rest[::2], rest[1::2], strict=True)]:
        before, mark, doctest = body.partition("\n\n>>> ") if title != "Examples" else (body, "", "")
        yield title, before
        if mark:
            yield "Examples", f">>> {doctest}"


def strays(text: str) -> list[str]:
    """The lines of sections with items that belong to none."""
    bodies = [body for title, body in sections(text) if title in ("Parameters", "Attributes")]
    return [line for body in bodies for line in body.splitlines() if line[:1].strip() and not ITEM.fullmatch(line)]


def numpydoc(text: str, types: Mapping[str, str]) -> str:
    """A docstring with its sections in the form of numpydoc; `types` are those that stand in no signature."""
    pieces = []
    for title, body in sections(text):
        if title in ("Parameters", "Attributes"):
            body = items(body, types, mark="")
        elif title in ("Returns", "Yields"):
            named = ITEM.match(body) is not None
            body = items(body, {}, mark=" :") if named else ":\n" + indent(body, "    ")
        pieces.append(f"{title}\n{'-' * len(title)}\n{body}" if title else body)
    return "\n\n".join(piece.rstrip() for piece in pieces)


def items(body: str, types: Mapping[str, str], mark: str) -> str:
    """The items of a section, one for each name; `mark` follows a name without a type."""
    groups: list[tuple[list[str], list[str]]] = []
    for line in body.strip("\n").splitlines():
        if match := ITEM.fullmatch(line):
            groups.append((match["names"].split(", "), [f"    {match['text'] or ''}"]))
        elif groups:
            groups[-1][1].append(line)
    written: list[str] = []
    for names, lines in groups:
        # Two pairs of brackets in a row, such as a range and a default, would be a link of Markdown.
        description = re.sub(r"\](\s)\[", r"]\1\[", "\n".join(lines)).split("\n")
        for name in names:
            written += [f"{name} : {types[name]}" if name in types else f"{name}{mark}", *description]
    return "\n".join(written)


def attribute_types(scope: Scope) -> dict[str, str]:
    """Types of the attributes of a class that its constructor does not name, as in classes of Pydantic."""
    types: dict[str, str] = {}
    if isinstance(scope, griffe.Class):
        for name, member in scope.all_members.items():
            with suppress(griffe.AliasResolutionError):
                attribute = member.final_target if isinstance(member, griffe.Alias) else member
                if isinstance(attribute, griffe.Attribute) and attribute.annotation and name not in scope.parameters:
                    types[name] = str(plain(attribute.annotation))
    return types


def plain(annotation: str | griffe.Expr) -> str | griffe.Expr:
    """`int` for `Annotated[int, ...]`."""
    if isinstance(annotation, griffe.ExprSubscript) and annotation.canonical_name == "Annotated":
        arguments = annotation.slice
        return arguments.elements[0] if isinstance(arguments, griffe.ExprTuple) else annotation
    return annotation
