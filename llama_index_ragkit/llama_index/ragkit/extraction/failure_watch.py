"""`FailureWatch`: ends a run of many LLM calls whose failures will not go away."""

import re
import threading
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TypeVar

from llama_index.ragkit.errors import ConfigurationError, ExtractionError, LanguageModelError, ParseError, StorageError
from llama_index.ragkit.llm.retry import is_timeout, is_transient
from llama_index.ragkit.steps import Outcome, Steps
from llama_index.ragkit.validation import OnError

__all__ = ["FailureWatch", "NotTriedError", "all_failed"]

T = TypeVar("T")

_MOST_EQUAL = 5  # equal failures in a row after which every further call would fail too
_PARTICULARS = re.compile(r"\d+|0x[0-9a-f]+")


class NotTriedError(Exception):
    """A failure ended the run before this job was tried."""


class FailureWatch:
    """Runs jobs until a failure shows that the others would fail too.

    Such a failure is an error that does not concern a single job (a configuration, a store, a wrong API key, an unknown
    model), the same failure of the server five times in a row, or, with `on_error="raise"`, any failure. A
    time-out counts only while nothing has been read. A reply that cannot be used, or a refused request, such as a
    prompt that is too long, concerns only one job.

    Parameters
    ----------
    what : a name for the jobs, in the plural, for messages
    on_error : "record" or "raise"
    """

    def __init__(self, what: str, on_error: OnError) -> None:
        self._what = what
        self._ends_all = Exception if on_error == "raise" else (ConfigurationError, StorageError, LanguageModelError)
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._last = ""
        self._equal = 0
        self._replied = False
        self._repeated: Exception | None = None

    def run(self, job: Callable[[], Steps[T]], lost: Mapping[int, Exception] = MappingProxyType({})) -> Steps[T]:
        """Run a job, or raise a :class:`NotTriedError` if the run has ended.

        The job adds failures of its parts to `lost`; they count as failures of the job.
        """
        if self._ended.is_set():
            raise NotTriedError
        try:
            result = yield from job()
        except Exception as error:
            self._note(error)
            raise
        for part in lost.values():
            self._note(part)
            if isinstance(part, self._ends_all) or part is self._repeated:
                raise part
        if not lost:
            with self._lock:
                self._replied, self._equal = True, 0
        return result

    def _note(self, error: Exception) -> None:
        reason = _PARTICULARS.sub("#", f"{type(error).__name__}: {error}")
        cause = error.__cause__ or error
        with self._lock:
            if isinstance(error, ParseError):
                self._replied, reason = True, ""
            self._equal = self._equal + 1 if reason and reason == self._last else 1
            self._last = reason
            lasts = not self._replied if is_timeout(cause) else is_transient(cause)
            if self._equal >= _MOST_EQUAL and isinstance(error, ExtractionError) and lasts:
                self._repeated = self._repeated or error
                self._ended.set()
        if isinstance(error, self._ends_all):
            self._ended.set()

    def check(self, outcomes: Mapping[str, Outcome[T]]) -> None:
        """Raise the error that ended the run, if there is one: a `ConfigurationError`, `StorageError` or
        `ExtractionError`. Outcomes are given by the names of the jobs, for messages.
        """
        tried = {n: o.error for n, o in outcomes.items() if o.error and not isinstance(o.error, NotTriedError)}
        for name, error in tried.items():
            if isinstance(error, self._ends_all):
                raise _named(error, name) from error.__cause__ or error
        if self._repeated is not None:
            name = next(name for name, error in tried.items() if error is self._repeated)
            raise LanguageModelError(
                f"{_MOST_EQUAL} {self._what} in a row failed for the same reason, so the others were not tried. "
                f"{name}: {self._repeated}"
            ) from self._repeated


def all_failed(what: str, errors: Mapping[str, str]) -> LanguageModelError:
    """The error of a run in which every job failed, with reasons by the names of the jobs."""
    name, reason = next(iter(errors.items()))
    return LanguageModelError(f"All {len(errors)} {what} failed. {name}: {reason}")


def _named(error: Exception, name: str) -> Exception:
    """An error of a step with the name of its job; others as they are."""
    return type(error)(f"{name}: {error}") if isinstance(error, ExtractionError) else error
