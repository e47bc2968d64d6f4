"""Each wheel works alone: built, installed into a clean environment with nothing but ragkit's, and put to use there.

Dependencies come at the pins of constraints.txt, so that a failure is a missing requirement and not a new release.
"""

import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from tests.preamble import PREAMBLE

ROOT = Path(__file__).parents[1]
NAMES = sorted(path.name.removeprefix("llama_index_") for path in ROOT.glob("llama_index_*"))
UV = [sys.executable, "-m", "uv"]

pytestmark = pytest.mark.slow


def run(*command: str | Path, cwd: Path) -> str:
    done = subprocess.run([str(part) for part in command], cwd=cwd, capture_output=True, text=True)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("wheels")
    for name in NAMES:
        # In this environment, which has hatchling: the build itself needs no network.
        run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder, cwd=ROOT / f"llama_index_{name}")
    return {name: next(folder.glob(f"llama_index_{name}-*.whl")) for name in NAMES}


@pytest.mark.parametrize("name", NAMES)
def test_wheel_holds_the_package_and_nothing_else(wheels: dict[str, Path], name: str) -> None:
    files = zipfile.ZipFile(wheels[name]).namelist()
    inside = [file for file in files if ".dist-info/" not in file]
    assert all(file.startswith(f"llama_index/{name}/") for file in inside)
    source = ROOT / f"llama_index_{name}"
    kept = [path for path in source.glob("llama_index/**/*") if path.is_file() and "__pycache__" not in path.parts]
    assert sorted(inside) == sorted(path.relative_to(source).as_posix() for path in kept)
    assert any(file.endswith("licenses/LICENSE") for file in files)


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment that is empty at first."""
    folder = tmp_path_factory.mktemp("environment")
    run(*UV, "venv", "--quiet", "--python", sys.executable, folder / "venv", cwd=folder)
    return folder / "venv" / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")


@pytest.mark.parametrize("name", NAMES)
def test_wheel_runs_its_readme_in_a_clean_environment(
    wheels: dict[str, Path], python: Path, name: str, tmp_path: Path
) -> None:
    """The environment is cleaned by `--exact`: what the wheel does not ask for is removed."""
    example = re.search(r"```python\n(.*?)```", (ROOT / f"llama_index_{name}" / "README.md").read_text("utf-8"), re.S)
    assert example
    (tmp_path / "example.py").write_text(PREAMBLE + example[1], encoding="utf-8")
    wanted = {wheels[name], wheels["ragkit"]}
    constraints = ["--constraint", ROOT / "constraints.txt"]
    # Copies, as pip makes them: NLTK refuses to read data through the hard links that uv prefers.
    run(
        *UV,
        "pip",
        "install",
        "--quiet",
        "--exact",
        "--link-mode",
        "copy",
        "--python",
        python,
        *constraints,
        *sorted(wanted),
        cwd=tmp_path,
    )
    # Isolated: neither this folder nor the user's own packages are on the path.
    run(python, "-I", "example.py", cwd=tmp_path)
    ours = run(*UV, "pip", "freeze", "--python", python, cwd=tmp_path)
    assert {line.split(" ")[0] for line in ours.splitlines() if "file:" in line} == {
        f"llama-index-{part}" for part in {name, "ragkit"}
    }
