"""Steps: work described once and run synchronously or asynchronously.

A *steps* generator describes work with stores, embedding models and LLMs. It never calls them itself: it yields
requests, and a driver answers them. :func:`run_steps` answers with synchronous calls, :func:`arun_steps` with
asynchronous ones; neither is built on the other, so a synchronous method works inside a running event loop and an
asynchronous one never blocks it: what a generator computes between its requests runs in a thread there too.

    def retrieve(bundle: QueryBundle) -> Steps[list[NodeWithScore]]:
        vector = yield from call(model.get_query_embedding, model.aget_query_embedding, bundle.query_str)
        return (yield from offload(rank, vector))

    run_steps(retrieve(bundle))             # blocking
    await arun_steps(retrieve(bundle))      # on the event loop
"""

import asyncio
import contextvars
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass
from functools import partial, wraps
from inspect import signature
from itertools import islice
from threading import Event
from typing import Any, Generic, ParamSpec, TypeVar, get_args

from tqdm.auto import tqdm

from llama_index.ragkit.validation import check_count

__all__ = [
    "Call",
    "Outcome",
    "Request",
    "Steps",
    "arun_steps",
    "asynchronous",
    "call",
    "gather",
    "immediate",
    "offload",
    "run_steps",
    "synchronous",
]

T = TypeVar("T")
P = ParamSpec("P")

Steps = Generator["Request", Any, T]


def immediate(fn: Callable[P, T]) -> Callable[P, Steps[T]]:
    """Steps that request nothing: the decorated function runs when they do."""

    @wraps(fn)
    def steps(*args: P.args, **kwargs: P.kwargs) -> Steps[T]:
        return fn(*args, **kwargs)
        yield

    return steps


class Request(ABC):
    """An operation that a driver runs for a steps generator, synchronously or asynchronously."""

    @abstractmethod
    def run(self) -> Any:
        """Do it with synchronous calls."""

    @abstractmethod
    async def arun(self) -> Any:
        """Do it with asynchronous calls."""


@dataclass(frozen=True)
class Call(Request):
    """One call: `fn` synchronously, or `afn` asynchronously."""

    fn: Callable[[], Any]
    afn: Callable[[], Awaitable[Any]]

    def run(self) -> Any:
        """Call `fn`."""
        return self.fn()

    async def arun(self) -> Any:
        """Await `afn`."""
        return await self.afn()


@dataclass(frozen=True)
class _Computation(Request):
    """What needs a thread under an event loop."""

    fn: Callable[[], Any]

    def run(self) -> Any:
        return self.fn()

    async def arun(self) -> Any:
        return await _in_thread(self.fn)


@dataclass(frozen=True)
class Outcome(Generic[T]):
    """The result of one job of :func:`gather`: a value, or the error that ended it."""

    value: T | None = None
    error: Exception | None = None

    def unwrap(self) -> T:
        """The value; raises the error if there is one."""
        if self.error is not None:
            raise self.error
        return self.value  # type: ignore[return-value]


@dataclass(frozen=True)
class _Gather(Request):
    jobs: Sequence[Callable[[], "Steps[Any]"]]
    num_workers: int
    description: str
    show_progress: bool
    status: Callable[[], str]

    def _bar(self) -> "tqdm[Any]":
        return tqdm(total=len(self.jobs), desc=self.description, disable=not self.show_progress)

    def _update(self, bar: "tqdm[Any]") -> None:
        bar.update()
        if self.show_progress:
            bar.set_postfix_str(self.status())

    def run(self) -> list[Outcome[Any]]:
        outcomes: list[Outcome[Any]] = [Outcome()] * len(self.jobs)
        with self._bar() as bar:
            if self.num_workers == 1:
                for i, job in enumerate(self.jobs):
                    outcomes[i] = _attempt(job)
                    self._update(bar)
                return outcomes
            todo = iter(enumerate(self.jobs))
            pool = ThreadPoolExecutor(self.num_workers)
            try:
                # A bounded window: jobs are submitted as workers become free, so that an interrupt leaves at most
                # `num_workers` calls in flight.
                running: dict[Future[Outcome[Any]], int] = {}
                while True:
                    for i, job in islice(todo, self.num_workers - len(running)):
                        running[pool.submit(contextvars.copy_context().run, _attempt, job)] = i
                    if not running:
                        return outcomes
                    for future in wait(running, return_when=FIRST_COMPLETED).done:
                        outcomes[running.pop(future)] = future.result()
                        self._update(bar)
            finally:
                pool.shutdown(wait=False, cancel_futures=True)

    async def arun(self) -> list[Outcome[Any]]:
        outcomes: list[Outcome[Any]] = [Outcome()] * len(self.jobs)
        todo = iter(enumerate(self.jobs))
        with self._bar() as bar:

            async def worker() -> None:
                for i, job in todo:
                    outcomes[i] = await _aattempt(job)
                    self._update(bar)

            workers = [asyncio.ensure_future(worker()) for _ in range(min(self.num_workers, len(self.jobs)))]
            try:
                await asyncio.gather(*workers)
            finally:
                for task in workers:
                    task.cancel()
        return outcomes


def _attempt(job: Callable[[], "Steps[Any]"]) -> Outcome[Any]:
    try:
        return Outcome(run_steps(job()))
    except Exception as error:  # the caller decides what a failed job means
        return Outcome(error=error)


async def _aattempt(job: Callable[[], "Steps[Any]"]) -> Outcome[Any]:
    try:
        return Outcome(await arun_steps(job()))
    except Exception as error:
        return Outcome(error=error)


def call(fn: Callable[P, T], afn: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> Steps[T]:
    """Call `fn(*args, **kwargs)`, or await its asynchronous equivalent `afn(*args, **kwargs)`."""
    result: T = yield Call(lambda: fn(*args, **kwargs), lambda: afn(*args, **kwargs))
    return result


def offload(fn: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> Steps[T]:
    """Run a computation: directly when synchronous, in a thread under an event loop.

    A cancelled task waits for its thread, which cannot be stopped: otherwise a computation that changes something would
    go on beside whatever comes next.
    """
    result: T = yield _Computation(lambda: fn(*args, **kwargs))
    return result


def gather(
    jobs: Iterable[Callable[[], Steps[T]]],
    num_workers: int = 1,
    description: str = "",
    show_progress: bool = False,
    status: Callable[[], str] = str,
) -> Steps[list[Outcome[T]]]:
    """Run many jobs, at most `num_workers` at once, and return their outcomes in the order of the jobs.

    A job that fails does not stop the others: its error is in its outcome.

    Parameters
    ----------
    jobs : functions that each return the steps of one job
    num_workers : how many run at once (threads, or tasks of the event loop), at least 1
    description, show_progress : the progress bar, one step per job
    status : what the bar shows beside, after each job

    Raises
    ------
    ConfigurationError
        If `num_workers` is below 1.
    """
    check_count("num_workers", num_workers, 1)
    result: list[Outcome[T]] = yield _Gather(list(jobs), num_workers, description, show_progress, status)
    return result


def run_steps(steps: Steps[T]) -> T:
    """Drive the steps with synchronous calls and return what they return."""
    try:
        _, returned = _run(steps, partial(next, steps), lambda _: True)
        result: T = returned
        return result
    finally:
        steps.close()


async def arun_steps(steps: Steps[T]) -> T:
    """Drive the steps with asynchronous calls and return what they return.

    Requests are awaited on the event loop. The steps between them run in threads, one at a time, with the context
    variables of the task: what they compute may take seconds, and would stop every other task of the loop.
    """
    cancelled = Event()
    advance = partial(next, steps)
    try:
        while True:
            context = contextvars.copy_context()
            here = partial(context.run, _run, steps, advance, partial(_needs_no_loop, cancelled))
            try:
                request, returned = await _in_thread(here, cancelled)
            finally:
                _take_up(context)
            if request is None:
                result: T = returned
                return result
            try:
                answer = await request.arun()
            except Exception as error:
                advance = partial(steps.throw, error)
            else:
                advance = partial(steps.send, answer)
    finally:
        steps.close()


def synchronous(steps: Callable[P, Steps[T]]) -> Callable[P, T]:
    """A decorator that makes a function of steps one that runs them; :func:`asynchronous` gives its twin."""

    @wraps(steps)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        return run_steps(steps(*args, **kwargs))

    _sign(run, steps)
    return run


def asynchronous(run: Callable[P, T]) -> Callable[P, Coroutine[Any, Any, T]]:
    """The twin of a :func:`synchronous` function, which runs the same steps with asynchronous calls."""
    steps: Callable[P, Steps[T]] = run.__wrapped__  # type: ignore[attr-defined]

    @wraps(steps)
    async def arun(*args: P.args, **kwargs: P.kwargs) -> T:
        return await arun_steps(steps(*args, **kwargs))

    _sign(arun, steps)
    arun.__name__ = f"a{steps.__name__}"
    arun.__qualname__ = f"{steps.__qualname__.removesuffix(steps.__name__)}{arun.__name__}"
    return arun


def _sign(run: Any, steps: Callable[..., Steps[Any]]) -> None:
    """Let `help()` show the return type of the steps, not the steps."""
    shown = signature(steps)
    run.__signature__ = shown.replace(return_annotation=get_args(shown.return_annotation)[2])


def _run(
    steps: Steps[Any], advance: Callable[[], Request], runs_here: Callable[[Request], bool]
) -> tuple[Request | None, Any]:
    """Run steps until a request that does not run here, and return it, or else None and what the steps return."""
    try:
        while runs_here(request := advance()):
            try:
                answer = request.run()
            except Exception as error:
                advance = partial(steps.throw, error)
            else:
                advance = partial(steps.send, answer)
        return request, None
    except StopIteration as stop:
        return None, stop.value


def _needs_no_loop(cancelled: Event, request: Request) -> bool:
    return isinstance(request, _Computation) and not cancelled.is_set()


async def _in_thread(fn: Callable[[], T], cancelled: Event | None = None) -> T:
    """What a function returns that runs in a thread; a task that is cancelled sets the event and waits for the end."""
    running = asyncio.ensure_future(asyncio.to_thread(fn))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        if cancelled is not None:
            cancelled.set()
        while not running.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait([running])
        running.exception()  # retrieved, so that the event loop does not log it
        raise


def _take_up(context: contextvars.Context) -> None:
    """Give the task the variables that were set in another context."""
    for variable, value in context.items():
        if variable.get(None) is not value:
            variable.set(value)
