"""Every package that an installation brings along, however deep, may be used by anyone for anything."""

import importlib.metadata
import re
import sys
from collections.abc import Iterator
from email.message import Message
from pathlib import Path
from typing import cast

from packaging.requirements import Requirement

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[1]
OURS = [path.name.replace("_", "-") for path in ROOT.glob("llama_index_*")]

PERMISSIVE = re.compile(
    r"MIT(-0|-CMU)?|BSD(-[0-3]-Clause)?|0BSD|Apache-2\.0|ISC|Unlicense|PSF-2\.0|Python-2\.0|Zlib|CC0-1\.0|HPND"
    r"|LLVM-exception|BSL-1\.0|CNRI-Python"
)
# Weak copyleft that asks only for the sources of its own files, unchanged here; both are everywhere in Python.
ACCEPTED = {"certifi": "MPL-2.0", "tqdm": "MPL-2.0"}
# Where the metadata mislead; read in the projects' own licence files.
READ_BY_HAND = {"dirtyjson": "MIT"}  # MIT or the Academic Free License, as the user chooses


def test_every_runtime_dependency_is_permissive() -> None:
    wrong = {name: found for name in sorted(closure()) if (found := objection(name))}
    assert wrong == {}


def closure() -> set[str]:
    """Names of everything that our distributions need at run time, with all their extras."""
    found: set[tuple[str, str]] = set()
    todo = [Requirement(line) for path in ROOT.glob("llama_index_*/pyproject.toml") for line in declared(path)]
    while todo:
        requirement = todo.pop()
        for extra in ["", *requirement.extras]:
            if requirement.name in OURS or (requirement.name, extra) in found:
                continue
            found.add((requirement.name, extra))
            below = map(Requirement, importlib.metadata.requires(requirement.name) or [])
            todo += [need for need in below if need.marker is None or need.marker.evaluate({"extra": extra})]
    return {name for name, _ in found}


def declared(path: Path) -> list[str]:
    project = tomllib.loads(path.read_text(encoding="utf-8"))["project"]
    return [
        *project["dependencies"],
        *(line for extra in project.get("optional-dependencies", {}).values() for line in extra),
    ]


def objection(name: str) -> str | None:
    """What is wrong with the licence of a distribution; None when nothing is."""
    licences = list(stated(name))
    allowed = [PERMISSIVE.fullmatch(licence) or ACCEPTED.get(name.lower()) == licence for licence in licences]
    return None if licences and all(allowed) else ", ".join(licences) or "states no licence"


def stated(name: str) -> Iterator[str]:
    """The SPDX names of all licences that apply, from the expression, else the classifiers, else the free text."""
    if name.lower() in READ_BY_HAND:
        yield READ_BY_HAND[name.lower()]
        return
    metadata = cast(Message, importlib.metadata.metadata(name))
    expression = metadata.get("License-Expression")
    classifiers = [line for line in metadata.get_all("Classifier") or [] if line.startswith("License :: ")]
    if expression:
        yield from re.split(r"\s+(?:AND|OR|WITH)\s+|[()\s]+", expression.strip("() "))
    elif classifiers and classifiers != ["License :: OSI Approved"]:
        yield from (spdx(line.split(" :: ")[-1]) for line in classifiers if line != "License :: OSI Approved")
    else:
        text = (metadata.get("License") or "").strip().splitlines()
        yield from [spdx(text[0])] if text else []


def spdx(prose: str) -> str:
    for pattern, name in (
        (r"MPL|Mozilla", "MPL-2.0"),
        (r"GPL|GNU|Affero", "GPL"),
        (r"MIT", "MIT"),
        (r"Apache", "Apache-2.0"),
        (r"BSD|3-Clause", "BSD-3-Clause"),
        (r"ISC", "ISC"),
        (r"Python Software Foundation|PSF", "PSF-2.0"),
        (r"Unlicense", "Unlicense"),
    ):
        if re.search(pattern, prose, re.IGNORECASE):
            return name
    return prose
