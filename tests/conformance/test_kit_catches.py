"""Each test of the kit can fail: indexes and stores that break one promise are caught by the tests that state it."""

import os
import re
import subprocess
import sys
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any
from xml.etree import ElementTree

import pytest
from tests.conformance.broken import (
    constructors,
    document_stores,
    key_value_stores,
    postprocessors,
    retrievers,
    vector_stores,
    writes,
)

from llama_index.ragkit.testing import index_kit, store_kit

ROOT = Path(__file__).parents[2]
CAUGHT_ELSEWHERE = ("FaultTests",)  # tests/conformance/test_faults_catch.py


@dataclass(frozen=True)
class Part:
    """A part of the kit, and the modules of what must not pass it."""

    name: str
    kit: ModuleType
    prefixes: tuple[str, ...]
    modules: tuple[ModuleType, ...]

    @property
    def classes(self) -> list[type]:
        names = [name for name in self.kit.__all__ if name.startswith(self.prefixes)]
        return [getattr(self.kit, name) for name in names if name not in CAUGHT_ELSEWHERE]

    @property
    def broken(self) -> list[Any]:
        return [held for module in self.modules for held in vars(module).values() if hasattr(held, "caught_by")]


PARTS = [
    Part("indexes", index_kit, ("",), (writes, constructors, retrievers, postprocessors)),
    Part("vector stores", store_kit, ("Vector",), (vector_stores,)),
    Part("document stores", store_kit, ("Document", "Reference"), (document_stores,)),
    Part("key-value stores", store_kit, ("KeyValue",), (key_value_stores,)),
]
BROKEN = [held for part in PARTS for held in part.broken]
each_part = pytest.mark.parametrize("part", PARTS, ids=lambda part: part.name)


@pytest.fixture(scope="module")
def failures(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], list[str]]:
    """What each named test said of each broken class: (class, test) -> message of every case, "" if there is none."""
    report = tmp_path_factory.mktemp("report") / "report.xml"
    chosen = [
        f"{Path(str(sys.modules[held.__module__].__file__)).relative_to(ROOT)}::{held.__name__}::{test}"
        for held in BROKEN
        for test in held.caught_by
    ]
    run = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "--tb=native",
            "-p",
            "no:cacheprovider",
            f"--junitxml={report}",
            *chosen,
        ],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 1, run.stdout[-2000:] + run.stderr
    found = defaultdict(list)
    for case in ElementTree.parse(report).iter("testcase"):
        outcome = next((child.attrib["message"] for child in case if child.tag == "failure"), "")
        found[case.attrib["classname"], case.attrib["name"].partition("[")[0]].append(outcome)
    return found


def is_caught(message: str) -> bool:
    """Whether the kit objected; a broken thing that does not even run proves nothing."""
    return bool(message) and not re.match(r"NameError|AttributeError|UnboundLocalError|ImportError", message)


@pytest.mark.slow
@pytest.mark.parametrize("broken", BROKEN, ids=lambda held: f"{held.__module__.rpartition('.')[2]}-{held.__name__[4:]}")
def test_a_broken_promise_is_caught(broken, failures):
    for test in broken.caught_by:
        assert any(map(is_caught, failures[f"{broken.__module__}.{broken.__name__}", test])), test


@each_part
def test_every_test_of_the_kit_has_caught_something(part: Part):
    tests = {name for held in part.classes for name in dir(held) if name.startswith("test_")}
    assert tests == {test for held in part.broken for test in held.caught_by}


@each_part
def test_no_test_hides_another_of_the_same_name(part: Part):
    """Classes of the kit are inherited together: of two tests with one name only one would run."""
    owners = defaultdict(set)
    for base in {base for held in part.classes for base in held.__mro__}:
        for name in vars(base):
            if name.startswith("test_"):
                owners[name].add(base.__qualname__)
    assert {name: found for name, found in owners.items() if len(found) > 1} == {}


def test_a_real_adapter_that_gives_away_the_place_of_a_row_is_caught(tmp_path):
    """FaissMapVectorStore counts rows to number them: after `delete_nodes` a new row takes the number of an old one."""
    faiss = pytest.importorskip("faiss")
    adapter = pytest.importorskip("llama_index.vector_stores.faiss")
    held = store_kit.VectorDeleteNodesTests()
    held.test_these_rows_go_and_no_others(adapter.FaissMapVectorStore(faiss.IndexIDMap2(faiss.IndexFlatIP(held.dim))))
    store = adapter.FaissMapVectorStore(faiss.IndexIDMap2(faiss.IndexFlatIP(held.dim)))
    with pytest.raises((AssertionError, KeyError)):
        held.test_rows_may_be_added_after_a_delete(store)
