"""The rules of the repository: every package has the same parts, and imports point one way.

Packages are found by walking `llama_index_*`, so that a new one is held to the rules without being listed here. Each
rule about the structure is also held against a small package that breaks it.
"""

import ast
import dataclasses
import importlib
import importlib.metadata
import re
import subprocess
import sys
import typing
from functools import cache
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from tests.house import (
    circles,
    class_names,
    file_graph,
    imports,
    modules,
    parse,
    private_access,
    reaches_core,
    room_graph,
    upward,
)

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[1]
DISTRIBUTIONS = sorted(path for path in ROOT.glob("llama_index_*") if path.is_dir())
NAMES = [path.name.removeprefix("llama_index_") for path in DISTRIBUTIONS]
PLUGINS = [name for name in NAMES if name != "ragkit"]

each_package = pytest.mark.parametrize("name", NAMES)
each_plugin = pytest.mark.parametrize("name", PLUGINS)

# ragkit's folders: each imports only those before it, and the files above all folders.
RAGKIT_ORDER = (
    "text",
    "vectors",
    "llm",
    "storage",
    "sql",
    "extraction",
    "html",
    "index",
    "ray",
    "evaluation",
    "compare",
    "check_llm",
    "serve",
    "testing",
)
# Modules of ragkit that are public beside its root. The root imports LlamaIndex, so steps take theirs from these.
PUBLIC = (
    "blas", "errors", "evaluation", "extraction.context", "extraction.failure_watch", "extras", "html", "ids",
    "index.builder", "index.chunk_scores", "index.contents", "index.derived_index", "index.matching", "index.query",
    "index.resources", "index.results", "index.summaries", "llm.announcements", "llm.completion",
    "llm.context_window", "llm.embeddings", "llm.json", "llm.prompts", "llm.reasoning",
    "masks", "nested_arrays", "short_repr", "sql",
    "steps", "storage.derived_nodes", "storage.external_store", "storage.graph", "storage.index_storage",
    "storage.interface", "storage.nodes", "storage.records", "storage.stored_chunks", "testing", "text",
    "validation", "vectors",
)  # fmt: skip
# The folder of a method that holds LlamaIndex classes; the others hold steps, which do not know LlamaIndex.
LLAMA_INDEX_FOLDERS = ("extraction",)
# What belongs to the machine of whoever wrote it. Spelled in halves, since this file is searched too.
MACHINE_WORDS = (*("/" + word + "/" for word in ("work", "root", "home", "tmp")), "../" + "shared")


def distribution(name: str) -> Path:
    return ROOT / f"llama_index_{name}"


def package(name: str) -> Path:
    return distribution(name) / "llama_index" / name


def files(name: str) -> list[Path]:
    return list(modules(package(name)).values())


def assigns(node: ast.stmt, name: str) -> bool:
    if isinstance(node, ast.AnnAssign):
        return ast.unparse(node.target) == name
    return isinstance(node, ast.Assign) and [ast.unparse(target) for target in node.targets] == [name]


def declared_all(path: Path) -> list[str] | None:
    values = [
        node.value
        for node in parse(path).body
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and assigns(node, "__all__")
    ]
    return list(ast.literal_eval(values[0])) if len(values) == 1 and values[0] is not None else None


def project(name: str) -> dict[str, object]:
    loaded: dict[str, dict[str, object]] = tomllib.loads(
        (distribution(name) / "pyproject.toml").read_text(encoding="utf-8")
    )
    return loaded["project"]


def requirements(name: str) -> set[str]:
    """Distributions that the package declares, extras included."""
    given = project(name)
    extras = given.get("optional-dependencies", {})
    assert isinstance(extras, dict)
    lines = [*given["dependencies"], *(line for extra in extras.values() for line in extra)]  # type: ignore[misc]
    return {normal(Requirement(line).name) for line in lines}


@cache
def owners() -> dict[str, set[str]]:
    """Importable name -> distributions that bring it. The standard library's own function misses most on 3.10."""
    found: dict[str, set[str]] = {}
    for installed in importlib.metadata.distributions():
        tops = {Path(file.parts[0]) for file in installed.files or ()}
        for top in tops:
            if top.suffix in ("", ".py", ".so", ".pyd"):
                found.setdefault(top.name.split(".")[0], set()).add(normal(installed.metadata["Name"]))
    return found


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def project_files() -> list[Path]:
    """What git knows or would add; without git, every file outside hidden folders."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"], cwd=ROOT, capture_output=True
    )
    if listed.returncode == 0:
        return [path for line in listed.stdout.decode().split("\0") if line and (path := ROOT / line).is_file()]
    inside = (path for path in ROOT.rglob("*") if not any(part[0] == "." for part in path.relative_to(ROOT).parts))
    return [path for path in inside if path.is_file()]


def test_there_are_packages_to_check() -> None:
    assert "ragkit" in NAMES
    assert PLUGINS


@each_package
@pytest.mark.parametrize("part", ["pyproject.toml", "README.md", "CHANGELOG.md", "LICENSE"])
def test_distribution_has_every_part(name: str, part: str) -> None:
    assert (distribution(name) / part).stat().st_size > 100


@each_package
def test_package_has_code_types_and_a_docs_page(name: str) -> None:
    assert (package(name) / "__init__.py").is_file()
    assert (package(name) / "py.typed").is_file()
    parts = ("guide", "evaluation", "differences")
    pages = ["ragkit.md"] if name == "ragkit" else [f"{name}/{part}.md" for part in parts]
    assert not [page for page in pages if not (ROOT / "docs" / page).is_file()]


@each_package
def test_namespace_stays_a_namespace(name: str) -> None:
    namespace = distribution(name) / "llama_index"
    assert [path.name for path in namespace.iterdir() if path.name != "__pycache__"] == [name]


@each_package
def test_project_table_follows_the_family(name: str) -> None:
    given = project(name)
    assert given["name"] == f"llama-index-{name}"
    assert given["requires-python"] == ">=3.10,<4.0"
    assert given["license"] == "MIT"
    license_text = (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert (distribution(name) / "LICENSE").read_text(encoding="utf-8") == license_text


@each_package
def test_init_holds_the_public_names_and_nothing_else(name: str) -> None:
    for node in parse(package(name) / "__init__.py").body:
        docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        named = assigns(node, "__all__") or assigns(node, "__version__")
        allowed = docstring or named or isinstance(node, (ast.Import, ast.ImportFrom))
        assert allowed, f"line {node.lineno} of {name}/__init__.py does more than export"


@each_package
def test_version_is_stated_once_and_is_that_of_the_changelog(name: str) -> None:
    version = importlib.import_module(f"llama_index.{name}").__version__
    assert "version" in project(name)["dynamic"], "the build takes it from the package"  # type: ignore[operator]
    changelog = (distribution(name) / "CHANGELOG.md").read_text(encoding="utf-8")
    released = re.findall(r"^## \[(\d\S*)\]", changelog, re.MULTILINE)
    assert not released or released[0] == version
    assert importlib.metadata.version(f"llama-index-{name}") == version


@each_package
def test_exported_names_exist_and_are_sorted(name: str) -> None:
    for path in files(name):
        names = declared_all(path)
        assert names is not None, f"{path.relative_to(ROOT)} must have one __all__"
        assert len(set(names)) == len(names)
        parts = path.relative_to(distribution(name)).with_suffix("").parts
        module = importlib.import_module(".".join(part for part in parts if part != "__init__"))
        missing = [public for public in names if not hasattr(module, public)]
        assert missing == [], f"{path.relative_to(ROOT)} exports names that it does not have"
        if path.name == "__init__.py":
            assert names == sorted(names), f"__all__ of {path.relative_to(ROOT)} is not sorted"


# -- structure ------------------------------------------------------------------------------------------------


def test_ragkit_folders_import_only_folders_above_them() -> None:
    assert upward(package("ragkit"), RAGKIT_ORDER) == []
    folders = {path.name for path in package("ragkit").iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert folders <= set(RAGKIT_ORDER)


def test_no_circle_of_imports() -> None:
    """Deferred and type-only imports count."""
    assert circles(file_graph(*map(package, NAMES))) == []


@each_plugin
def test_no_circle_between_folders_and_top_level_files(name: str) -> None:
    assert circles(room_graph(package(name))) == []


def steps(name: str) -> list[str]:
    """The modules of a method that are steps: those in folders, save the folders of LlamaIndex classes."""
    return [
        module
        for module, path in modules(package(name)).items()
        if path.parent != package(name) and path.relative_to(package(name)).parts[0] not in LLAMA_INDEX_FOLDERS
    ]


@each_plugin
def test_steps_import_no_llama_index(name: str) -> None:
    """Directly, or through others."""
    known = {module: path for each in ("ragkit", name) for module, path in modules(package(each)).items()}
    chains = reaches_core(file_graph(package("ragkit"), package(name)), known)
    assert {module: chains[module] for module in steps(name) if module in chains} == {}


@each_plugin
def test_methods_use_what_the_root_of_ragkit_exports(name: str) -> None:
    """Or one of the public modules beside it."""
    known = modules(package("ragkit"))
    wrong = [
        (path.name, module)
        for path in files(name)
        for module in imports(path)
        if module in known
        and module != "llama_index.ragkit"
        and not any(f"{module}.".startswith(f"llama_index.ragkit.{public}.") for public in PUBLIC)
    ]
    assert wrong == []


@each_package
def test_private_parts_of_others_are_left_alone(name: str) -> None:
    """Private parts of llama-index-core are touched in one file, those of adapters and their clients in another."""
    allowed = ("core_internals.py", "adapter_internals.py")
    assert [line for path in files(name) if path.name not in allowed for line in private_access(path)] == []


@each_plugin
def test_an_index_has_one_path_wherever_it_lives(name: str) -> None:
    """No file, class or attribute of a method is for an index in stores alone."""
    assert [path.name for path in files(name) if "stored" in path.name] == []
    assert [found for found in class_names([package(name)]) if found.startswith("Stored")] == []
    sources = "".join(path.read_text(encoding="utf-8") for path in files(name))
    assert re.findall(r"storage\.stored\b|serve_from|isinstance\(\w+, (?:StoredSpace|VectorSpace)\)", sources) == []


@each_plugin
def test_no_two_classes_of_one_name(name: str) -> None:
    """Within a method, and beside ragkit."""
    found = class_names([package("ragkit"), package(name)])
    assert {name: found_in for name, found_in in found.items() if len(found_in) > 1} == {}


def public_classes(name: str, base: type) -> list[type]:
    root = importlib.import_module(f"llama_index.{name}")
    found = [getattr(root, public) for public in root.__all__]
    return [each for each in found if isinstance(each, type) and issubclass(each, base)]


@each_plugin
def test_classes_are_at_most_two_below_those_of_core(name: str) -> None:
    from llama_index.core.base.base_retriever import BaseRetriever
    from llama_index.core.indices.base import BaseIndex
    from llama_index.core.postprocessor.types import BaseNodePostprocessor

    for base in (BaseIndex, BaseRetriever, BaseNodePostprocessor):
        for cls in public_classes(name, base):
            between = [each for each in cls.__mro__ if issubclass(each, base) and each is not base]
            assert len(between) <= 2, f"{cls.__name__}: {between}"


@each_plugin
def test_keywords_are_the_parameters_with_their_types(name: str) -> None:
    """What editors and type checkers see is what the config classes have."""
    from llama_index.ragkit import DerivedIndex, DerivedRetriever

    for cls in public_classes(name, DerivedIndex):
        held(cls.keywords, cls.config_cls)
    for cls in public_classes(name, DerivedRetriever):
        if cls.options_cls is not None:
            held(cls.keywords, cls.options_cls)


def held(keywords: type, config_cls: type) -> None:
    hints = typing.get_type_hints(config_cls)
    fields = {field.name: hints[field.name] for field in dataclasses.fields(config_cls)}
    shown = {name: hint for name, hint in keywords.__annotations__.items() if name in fields}
    assert shown == fields, f"{keywords.__name__} and {config_cls.__name__}"


def made(root: Path, sources: dict[str, str]) -> Path:
    """A package `llama_index/sample` with these files."""
    folder = root / "llama_index" / "sample"
    for name, source in {"__init__.py": "", **sources}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source, encoding="utf-8")
        parse.cache_clear()
    return folder


LOW, HIGH = "from llama_index.sample.low.a import A\n", "from llama_index.sample.high.b import B\n"


def test_a_folder_that_imports_one_below_it_is_caught(tmp_path: Path) -> None:
    right = made(tmp_path / "right", {"low/a.py": "A = 1\n", "high/b.py": LOW + "B = A\n"})
    wrong = made(tmp_path / "wrong", {"low/a.py": "def f():\n    " + HIGH, "high/b.py": "B = 1\n"})
    assert upward(right, ("low", "high")) == []
    assert upward(wrong, ("low", "high")) == [("llama_index.sample.low.a", "llama_index.sample.high.b")]


@pytest.mark.parametrize(
    "how", ["{}", "def f():\n    {}", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    {}"]
)
def test_a_circle_is_caught_however_it_is_imported(tmp_path: Path, how: str) -> None:
    found = made(tmp_path, {"low/a.py": how.format(HIGH), "high/b.py": LOW})
    assert len(circles(file_graph(found))) == 1
    assert len(circles(room_graph(found))) == 1


def test_a_circle_through_the_face_of_a_package_is_caught(tmp_path: Path) -> None:
    face = {"__init__.py": "from llama_index.sample.a import A\n", "b.py": "from llama_index.sample import A\n"}
    found = made(tmp_path, {**face, "a.py": "from llama_index.sample.b import B\n"})
    assert len(circles(file_graph(found))) == 1


def test_two_folders_that_import_each_other_by_different_files_are_caught(tmp_path: Path) -> None:
    more = {"low/c.py": "from llama_index.sample.high.d import D\n", "high/d.py": "D = 1\n"}
    found = made(tmp_path, {"low/a.py": "A = 1\n", "high/b.py": LOW, **more})
    assert circles(file_graph(found)) == []
    assert len(circles(room_graph(found))) == 1


def test_a_step_that_reaches_core_through_another_is_caught(tmp_path: Path) -> None:
    sources = {
        "low/a.py": "from llama_index.sample.top import T\n",
        "top.py": "from llama_index.core import Settings\n",
    }
    found = made(tmp_path, {**sources, "low/b.py": "import math\n"})
    chains = reaches_core(file_graph(found), modules(found))
    assert chains["llama_index.sample.low.a"] == [
        "llama_index.sample.low.a", "llama_index.sample.top", "llama_index.core",
    ]  # fmt: skip
    assert "llama_index.sample.low.b" not in chains


def test_a_private_part_of_another_object_is_caught(tmp_path: Path) -> None:
    source = "class A:\n    def __init__(self):\n        self._x = 1\n    def f(self, other, index):\n        "
    found = made(tmp_path, {"a.py": source + "return self._x + other._x + index._state\n"})
    assert private_access(found / "a.py") == ["a.py:5: index._state"]


def test_two_classes_of_one_name_are_caught(tmp_path: Path) -> None:
    found = made(tmp_path, {"a.py": "class Record: ...\n", "b.py": "class Record: ...\nclass _Record: ...\n"})
    assert class_names([found]) == {"Record": ["llama_index.sample.a", "llama_index.sample.b"]}


@each_package
def test_arrows_point_to_the_ground_floor_and_to_core(name: str) -> None:
    others = [plugin for plugin in PLUGINS if plugin != name]
    wrong = [
        (path.name, module)
        for path in files(name)
        for module in imports(path)
        if module.startswith("llama_index.") and module.split(".")[1] in others
    ]
    assert wrong == []


@each_package
def test_every_import_is_declared(name: str) -> None:
    declared = requirements(name)
    for path in files(name):
        for module in imports(path):
            top, *rest = module.split(".")
            if top in sys.stdlib_module_names or (top == "llama_index" and rest[0] == name):
                continue
            wanted = {f"llama-index-{rest[0]}"} if top == "llama_index" else owners().get(top, set())
            assert wanted & declared, f"{path.relative_to(ROOT)} imports {module}, which pyproject.toml does not name"


@each_package
def test_package_code_has_no_shortcuts(name: str) -> None:
    """No assert (it vanishes under -O), no print, nothing that executes or unpickles data, no loose ends.

    The conformance kit asserts: it is tests, and pytest rewrites its assertions so that they hold under -O too.
    """
    for path in files(name):
        kit = path.is_relative_to(package("ragkit") / "testing")
        where = path.relative_to(ROOT)
        for node in ast.walk(parse(path)):
            assert kit or not isinstance(node, ast.Assert), f"{where}:{node.lineno} asserts"  # type: ignore[attr-defined]
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id not in ("eval", "exec", "print"), f"{where}:{node.lineno} calls {node.func.id}"
        assert "pickle" not in set(imports(path)), where
        assert not re.search(r"\b(TODO|FIXME|XXX)\b", path.read_text(encoding="utf-8")), where


def test_nothing_names_the_machine_it_was_written_on() -> None:
    found = []
    for path in project_files():
        if path.relative_to(ROOT).parts[0] == ".ci" or ".min." in path.name:
            continue
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        found += [f"{path.relative_to(ROOT)}: {word}" for word in MACHINE_WORDS if word in text]
    assert found == []


def test_every_distribution_is_installed_and_every_requirement_is_pinned() -> None:
    wanted = [(ROOT / f"requirements-{kind}.txt").read_text(encoding="utf-8") for kind in ("dev", "oldest")]
    pins = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pinned = {normal(line.split("==")[0]) for line in pins if "==" in line}
    ours = {f"llama-index-{name}" for name in NAMES}
    for name in NAMES:
        assert all(re.search(rf"^-e \./llama_index_{name}\b", lines, re.MULTILINE) for lines in wanted), name
        assert requirements(name) - ours - pinned == set()


def test_tools_know_every_distribution() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    folders = [path.name for path in DISTRIBUTIONS]
    assert sorted(settings["ruff"]["src"]) == folders
    assert sorted(settings["mypy"]["mypy_path"]) == folders
    assert sorted(settings["ruff"]["lint"]["isort"]["known-first-party"]) == [f"llama_index.{name}" for name in NAMES]
