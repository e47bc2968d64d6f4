"""What releases rest on: sdists that build, workflows that call what exists, citations that name every paper."""

import re
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[1]
NAMES = sorted(path.name.removeprefix("llama_index_") for path in ROOT.glob("llama_index_*"))
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def loaded(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def commands(path: Path) -> list[str]:
    jobs = loaded(path)["jobs"].values()
    return [step["run"] for job in jobs for step in job["steps"] if "run" in step]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_call_what_the_makefile_has(path: Path) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z]+):", makefile, re.MULTILINE))
    called = {target for command in commands(path) for target in re.findall(r"\bmake ([a-z]+)", command)}
    assert called
    assert called <= targets


def test_every_supported_python_is_tested() -> None:
    tested = set(loaded(ROOT / ".github" / "workflows" / "ci.yml")["jobs"]["test"]["strategy"]["matrix"]["python"])
    for name in NAMES:
        text = (ROOT / f"llama_index_{name}" / "pyproject.toml").read_text(encoding="utf-8")
        assert set(re.findall(r"Python :: (3\.\d+)", text)) <= tested


def test_only_publishing_may_ask_for_an_identity() -> None:
    for path in WORKFLOWS:
        workflow = loaded(path)
        assert workflow["permissions"] == {"contents": "read"}
        asking = [name for name, job in workflow["jobs"].items() if "id-token" in job.get("permissions", {})]
        assert asking == (["publish"] if path.name == "release.yml" else [])


def test_citations_name_the_papers_of_the_packages() -> None:
    cited = {reference["url"] for reference in loaded(ROOT / "CITATION.cff")["references"]}
    implemented = set()
    for name in NAMES:
        readme = (ROOT / f"llama_index_{name}" / "README.md").read_text(encoding="utf-8")
        implemented |= set(re.findall(r"\(https://arxiv\.org/abs/[\d.]+\)", readme)[:1])
    assert {url.strip("()") for url in implemented} == cited


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_an_sdist_holds_what_a_wheel_is_built_from(name: str, tmp_path: Path) -> None:
    source = ROOT / f"llama_index_{name}"
    build = [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", str(tmp_path)]
    done = subprocess.run(build, cwd=source, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    with tarfile.open(next(tmp_path.glob("*.tar.gz"))) as sdist:
        held = {"/".join(Path(member).parts[1:]) for member in sdist.getnames()}
    wanted = {
        path.relative_to(source).as_posix()
        for path in source.glob("llama_index/**/*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert wanted | {"README.md", "CHANGELOG.md", "LICENSE", "pyproject.toml", "PKG-INFO"} <= held
