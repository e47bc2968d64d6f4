"""The asynchronous driver: what steps compute leaves the event loop to others."""

import asyncio
import contextvars
import threading
from collections.abc import Callable
from typing import Any

import pytest

from llama_index.ragkit.steps import Steps, arun_steps, call, run_steps

NAME: contextvars.ContextVar[str] = contextvars.ContextVar("name", default="outside")


async def where() -> tuple[int, str]:
    return threading.get_ident(), NAME.get()


def computing(work: Callable[[], Any]) -> Steps[list[Any]]:
    """Computes before, between and after two requests."""
    found = [work()]
    for _ in range(2):
        found.append((yield from call(where, where)))
        found.append(work())
    return found


def test_what_steps_compute_runs_off_the_loop_and_their_requests_on_it():
    async def run() -> None:
        loop = threading.get_ident()
        first, request, second, again, last = await arun_steps(computing(threading.get_ident))
        assert request[0] == again[0] == loop
        assert loop not in (first, second, last)

    asyncio.run(run())


def test_other_tasks_have_turns_while_steps_compute():
    turn = threading.Event()

    async def run() -> list[Any]:
        asyncio.get_running_loop().call_soon(turn.set)
        return await arun_steps(computing(lambda: turn.wait(60)))

    assert asyncio.run(run())[0] is True


def test_requests_and_later_steps_have_the_context_that_steps_set():
    def named() -> Steps[list[str]]:
        before = NAME.get()
        token = NAME.set("inside")
        seen = (yield from call(where, where))[1]
        after = NAME.get()
        NAME.set(before)
        return [before, seen, after, token.old_value is contextvars.Token.MISSING]

    async def run() -> None:
        assert await arun_steps(named()) == ["outside", "inside", "inside", True]
        assert NAME.get() == "outside"

    asyncio.run(run())


def test_steps_that_are_cancelled_are_closed_after_what_they_compute():
    computes, ended = threading.Event(), threading.Event()
    told = []

    def slow() -> Steps[None]:
        try:
            yield from call(lambda: None, lambda: asyncio.sleep(0))
            computes.set()
            told.append(ended.wait(60))
            yield from call(lambda: told.append("asked"), where)
        finally:
            told.append("closed")

    async def run() -> None:
        task = asyncio.ensure_future(arun_steps(slow()))
        await asyncio.to_thread(computes.wait)
        task.cancel()
        await asyncio.sleep(0)
        ended.set()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())
    assert told == [True, "closed"]


def test_errors_reach_steps_and_whoever_awaits_them():
    async def fails() -> None:
        raise OSError("no network")

    def fall_back() -> Steps[str]:
        try:
            yield from call(lambda: None, fails)
        except OSError as error:
            return str(error)
        return ""

    def gives_up() -> Steps[None]:
        yield from call(lambda: None, fails)

    assert asyncio.run(arun_steps(fall_back())) == "no network"
    with pytest.raises(OSError, match="no network"):
        asyncio.run(arun_steps(gives_up()))
    assert run_steps(fall_back()) == ""
