"""Processes for tests, which begin with the modules of all indexes imported: that saves seconds of work for each."""

import os
import signal
import sys
from collections.abc import Mapping
from multiprocessing import get_context
from multiprocessing.reduction import DupFd
from typing import Any

__all__ = ["Worker"]

_IMPORTED = ["tests.cases", "llama_index.llms.openai_like", "lance_namespace"]  # the last is most of LanceDB's imports


class Worker:
    """A program in a process of its own, that may be killed; it is used like a `subprocess.Popen` with text pipes.

    It is forked from a server that has only one thread, and none of the state of the tests.

    Parameters
    ----------
    program : Python code, which finds the arguments in `sys.argv`
    arguments : texts
    environment : variables beside those of this process
    """

    def __init__(self, program: str, *arguments: str, environment: Mapping[str, str] | None = None) -> None:
        context: Any = get_context("forkserver")
        context.set_forkserver_preload(_IMPORTED)
        its_input, told = os.pipe()
        heard, its_output = os.pipe()
        variables = {**os.environ, **(environment or {})}
        self._process = context.Process(
            target=_run, args=(program, arguments, variables, os.getcwd(), DupFd(its_input), DupFd(its_output))
        )
        try:
            self._process.start()
        finally:
            os.close(its_input)
            os.close(its_output)
        self.stdin, self.stdout = os.fdopen(told, "w"), os.fdopen(heard)

    @property
    def returncode(self) -> int | None:
        """The exit status, negative for a signal; None while it runs."""
        code: int | None = self._process.exitcode
        return code

    def kill(self) -> None:
        """End it at once."""
        self._process.kill()

    def wait(self) -> int | None:
        """Wait for its end; returns the exit status."""
        self._process.join()
        return self.returncode

    def communicate(self) -> str:
        """What it writes until its end."""
        written = self.stdout.read()
        self.wait()
        return written

    def __enter__(self) -> "Worker":
        return self

    def __exit__(self, *_: object) -> None:
        self.stdin.close()
        self.wait()
        self.stdout.close()


def _run(
    program: str, arguments: tuple[str, ...], variables: Mapping[str, str], folder: str, given: Any, written: Any
) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.dup2(given.detach(), 0)
    os.dup2(written.detach(), 1)
    sys.stdin, sys.stdout = os.fdopen(0), os.fdopen(1, "w")
    os.environ.clear()
    os.environ.update(variables)
    os.chdir(folder)
    sys.argv = ["-c", *arguments]
    try:
        exec(compile(program, "<worker>", "exec"), {"__name__": "__main__"})
    finally:
        sys.stdout.flush()
