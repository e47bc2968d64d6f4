"""Which errors of a language model's client are retried, and after what wait.

Clients have no error classes in common, so the decision is based on HTTP status, response headers and the names of
error classes.
"""

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from typing import Any

from llama_index.ragkit.errors import ConfigurationError

__all__ = ["RetryPolicy", "is_permanent", "is_refused", "is_timeout", "is_transient", "is_unreachable"]

_TRANSIENT_4XX = (408, 409, 425, 429)
_FOR_ALL_CALLS = (401, 402, 403, 404, 405)
_PERMANENT = re.compile("Authenti|PermissionDenied|Credential|Forbidden|NotFound")
_REFUSED = re.compile("BadRequest|InvalidRequest|Unprocessable")
# llama.cpp refuses functions with status 500, and OpenRouter with 404.
_ABOUT_TOOLS = re.compile(r"\btools?\b|tool_|--jinja|function.call|response_format|json_schema", re.IGNORECASE)
_UNREACHABLE = re.compile(
    "^(?:ConnectError|ClientConnectorError|NewConnectionError|ConnectionRefusedError|gaierror|UnsupportedProtocol)$"
)
_CONNECTION, _TIMEOUT = re.compile("Connect|Timeout"), re.compile("Timeout")


@dataclass(frozen=True)
class RetryPolicy:
    """How often an LLM call is tried, and how long to wait between attempts.

    Attributes
    ----------
    max_attempts : total number of calls, at least 1
    min_wait : seconds before the second call; each later wait is twice as long. Waits are shortened at random by up to
        a half, so that workers that failed together do not retry together
    max_wait : the longest wait in seconds, even if a server requests more (`Retry-After`)
    """

    max_attempts: int = 3
    min_wait: float = 1.0
    max_wait: float = 60.0

    def __post_init__(self) -> None:
        if self.max_attempts < 1 or not 0 <= self.min_wait <= self.max_wait:
            raise ConfigurationError(f"{self} needs max_attempts >= 1 and 0 <= min_wait <= max_wait.")

    def wait(self, attempt: int, error: BaseException | None) -> float:
        """Seconds to wait after the `attempt`-th call (from 1) ended in `error`."""
        backoff = self.min_wait * 2.0 ** min(attempt - 1, 64) * random.uniform(0.5, 1.0)
        return min(self.max_wait, max(backoff, _asked_wait(error)))


def is_transient(error: BaseException) -> bool:
    """Whether the same call may succeed a moment later.

    True for a lost connection, a time-out, HTTP 408, 409, 425, 429 and 5xx, and for a reply that the client could not
    read, which can raise any error; False for another 4xx, or an error class for a rejected request or rejected
    credentials.
    """
    if isinstance(error, ConfigurationError | NotImplementedError | ImportError):
        return False
    status = _status(error)
    if status is not None:
        return not 400 <= status < 500 or status in _TRANSIENT_4XX
    return not _is_of(error, _PERMANENT) and not _is_of(error, _REFUSED) and not _is_bare(error)


def is_permanent(error: BaseException) -> bool:
    """Whether every other call would fail too: credentials, an unknown model or address, a package that is missing."""
    if isinstance(error, NotImplementedError | ImportError):
        return True
    status = _status(error)
    if status is not None:
        return status in _FOR_ALL_CALLS
    return _is_of(error, _PERMANENT) or _is_bare(error)


def is_unreachable(error: BaseException) -> bool:
    """Whether no server answers at the address."""
    return any(_is_of(link, _UNREACHABLE) for link in _chain(error))


def is_timeout(error: BaseException) -> bool:
    """Whether the client gave up waiting for a reply."""
    return any(_is_of(link, _TIMEOUT) for link in _chain(error))


def is_refused(error: BaseException) -> bool:
    """Whether the request may have been refused for its form, such as for functions that the server does not know."""
    status = _status(error)
    if status is not None and (status == 404 or status >= 500) and _ABOUT_TOOLS.search(str(error)):
        return True
    if isinstance(error, ConfigurationError) or is_permanent(error):
        return isinstance(error, NotImplementedError)
    if status is not None:
        return 400 <= status < 500 and status not in _TRANSIENT_4XX
    return not _is_of(error, _CONNECTION) and not isinstance(error, OSError)


def _is_of(error: BaseException, names: re.Pattern[str]) -> bool:
    return any(names.search(kind.__name__) for kind in type(error).__mro__)


def _is_bare(error: BaseException) -> bool:
    return type(error).__name__ == "OpenAIError"  # which openai raises for a key that is missing


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    for _ in range(5):
        if error is None:
            return
        yield error
        error = error.__cause__


def _status(error: BaseException) -> int | None:
    """The HTTP status of an error or of one that caused it."""
    for link in _chain(error):
        response = getattr(link, "response", None)
        for owner, name in ((link, "status_code"), (response, "status_code"), (link, "status"), (link, "code")):
            status: Any = getattr(owner, name, None)
            if isinstance(status, int) and 100 <= status < 600:
                return int(status)
    return None


def _asked_wait(error: BaseException | None) -> float:
    """Seconds that the server requests to wait (`Retry-After`: seconds or a date), else 0."""
    for link in _chain(error):
        headers = getattr(getattr(link, "response", None), "headers", None)
        retry_after = headers.get("retry-after") if headers is not None else None
        if retry_after is None:
            continue
        try:
            return max(0.0, float(retry_after))
        except ValueError:
            pass
        try:
            return max(0.0, (parsedate_to_datetime(retry_after) - datetime.now(timezone.utc)).total_seconds())
        except (ValueError, TypeError):  # not a date, or one without a time zone
            return 0.0
    return 0.0
