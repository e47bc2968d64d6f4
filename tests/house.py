"""The structure of a package, read from its source: who imports whom, and which rules that breaks.

Every function takes the folder of a package, so that `test_house.py` can hold the rules against the packages of this
repository and against small packages with one deliberate violation each.
"""

import ast
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path

Graph = Mapping[str, set[str]]
NAMED_TUPLE = {"_replace", "_asdict", "_fields"}  # public, whatever their names look like


@cache
def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


@cache
def import_nodes(path: Path) -> list[ast.Import | ast.ImportFrom]:
    """Every import of a file: at its top, inside a function, or for type checkers alone."""
    return [node for node in ast.walk(parse(path)) if isinstance(node, ast.Import | ast.ImportFrom)]


@cache
def imports(path: Path) -> list[str]:
    """Every module that a file imports."""
    found = []
    for node in import_nodes(path):
        names = [alias.name for alias in node.names]
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            module = node.module or ""
            # A name may be a module itself.
            names = [module, *(f"{module}.{name}" for name in names)]
        found += names
    return found


def modules(package: Path) -> dict[str, Path]:
    """Dotted name -> file of every module of a package, whose folder is `.../llama_index/<name>`."""
    found = {}
    for path in sorted(package.rglob("*.py")):
        parts = ("llama_index", package.name, *path.relative_to(package).with_suffix("").parts)
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def file_graph(*packages: Path) -> dict[str, set[str]]:
    """Module -> modules of the same packages that it imports.

    An import from a package's face (its `__init__`) counts as one of the files that the names come from.
    """
    known = {name: path for package in packages for name, path in modules(package).items()}
    faces = {name: _face(path) for name, path in known.items() if path.name == "__init__.py"}
    graph: dict[str, set[str]] = {}
    for name, path in known.items():
        if path.name == "__init__.py":
            continue
        targets = {target for target in imports(path) if target in known and target not in faces}
        for node in import_nodes(path):
            if isinstance(node, ast.ImportFrom) and node.module in faces:
                targets |= {faces[node.module][a.name] for a in node.names if a.name in faces[node.module]}
        graph[name] = targets - {name}
    return graph


def _face(path: Path) -> dict[str, str]:
    """Name -> module that an `__init__` takes it from."""
    return {
        alias.asname or alias.name: node.module
        for node in parse(path).body
        if isinstance(node, ast.ImportFrom) and node.module is not None
        for alias in node.names
    }


def circles(graph: Graph) -> list[list[str]]:
    """Circles of a graph, one for each edge that closes one in a walk in the order of names."""
    found: list[list[str]] = []
    done: set[str] = set()

    def visit(node: str, path: list[str]) -> None:
        if node in path:
            found.append([*path[path.index(node) :], node])
            return
        if node in done:
            return
        for target in sorted(graph.get(node, ())):
            visit(target, [*path, node])
        done.add(node)

    for node in sorted(graph):
        visit(node, [])
    return found


def room(module: str) -> str:
    """The first part of a module's path below its package: a folder, or a file at the top level."""
    return module.split(".")[2]


def room_graph(package: Path) -> dict[str, set[str]]:
    """The imports of a package between its folders and top-level files."""
    graph: dict[str, set[str]] = {}
    for module, targets in file_graph(package).items():
        graph.setdefault(room(module), set()).update(room(target) for target in targets if room(target) != room(module))
    return graph


def upward(package: Path, order: Sequence[str]) -> list[tuple[str, str]]:
    """Imports of a folder below in `order`, by a module of a folder above; top-level files stand above all folders."""
    place = {folder: i for i, folder in enumerate(order, start=1)}
    return [
        (module, target)
        for module, targets in file_graph(package).items()
        for target in sorted(targets)
        if place.get(room(module), 0) < place.get(room(target), 0)
    ]


def reaches_core(graph: Graph, files: Mapping[str, Path]) -> dict[str, list[str]]:
    """Module -> a chain of imports from it to `llama_index.core`, for the modules that reach it."""
    found: dict[str, list[str]] = {}

    def chain(module: str, seen: frozenset[str]) -> list[str]:
        if module not in found:
            direct = [target for target in imports(files[module]) if target.split(".")[:2] == ["llama_index", "core"]]
            if direct:
                found[module] = [module, direct[0]]
            else:
                ways = (chain(t, seen | {module}) for t in sorted(graph.get(module, ())) if t not in seen)
                found[module] = next(([module, *way] for way in ways if way), [])
        return found[module]

    for module in sorted(graph):
        chain(module, frozenset())
    return {module: way for module, way in found.items() if way}


def private_access(path: Path) -> list[str]:
    """Uses of a private attribute of another object that the file does not define itself."""
    tree = parse(path)
    own = {node.name for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))}
    own |= {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and _is_self(node.value)
    }
    own |= {n.target.id for n in ast.walk(tree) if isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name)}
    return [
        f"{path.name}:{node.lineno}: {ast.unparse(node)}"
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and node.attr.startswith("_")
        and not node.attr.endswith("__")
        and not _is_self(node.value)
        and node.attr not in own | NAMED_TUPLE
    ]


def _is_self(node: ast.expr) -> bool:
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id == "super"
    return isinstance(node, ast.Name) and node.id in ("self", "cls")


def class_names(packages: Iterable[Path]) -> dict[str, list[str]]:
    """Public class name -> the modules that define a class of that name."""
    found: dict[str, list[str]] = {}
    for package in packages:
        for module, path in modules(package).items():
            for node in parse(path).body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    found.setdefault(node.name, []).append(module)
    return found
