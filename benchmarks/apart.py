"""One call in a fresh Python: its memory is its own, and nothing that ran before it helps or hinders it."""

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["ONE_THREAD", "answer", "apart"]

T = TypeVar("T")

# Waiting threads would be counted as work on a machine that others share. The libraries read this when they are loaded.
ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "NUMBA")}


def apart(function: Callable[..., T], *arguments: Any, **environment: str) -> T:
    """What a function of a module returns when a process of its own calls it.

    Parameters
    ----------
    function : what is called; it is found there by its module and name
    arguments : JSON values, as is what the function returns
    environment : variables of the process, beside and before those of this one

    Raises
    ------
    RuntimeError
        If the process fails; the message ends with what it wrote to stderr.
    """
    call = json.dumps([function.__module__, function.__qualname__, arguments])
    done = subprocess.run(
        [sys.executable, "-c", "from benchmarks.apart import answer; answer()", call],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment},
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise RuntimeError(f"The process for {call} ended with {done.returncode}:\n{done.stderr}")
    result: T = json.loads(done.stdout.splitlines()[-1])
    return result


def answer() -> None:
    """The other end of `apart`: make the call that the command line names; its result is the last line of stdout."""
    module, name, arguments = json.loads(sys.argv[1])
    print(json.dumps(getattr(importlib.import_module(module), name)(*arguments)))
