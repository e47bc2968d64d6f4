"""The token of a server that others can reach: where it comes from, and the check of each request."""

import os
from collections.abc import Awaitable, Callable
from hmac import compare_digest
from pathlib import Path
from typing import Any

from llama_index.ragkit.errors import ConfigurationError

__all__ = ["TOKEN_VARIABLE", "BearerToken", "check_reachable", "check_token", "read_token"]

TOKEN_VARIABLE = "RAGKIT_MCP_TOKEN"
_LOOPBACK = ("127.0.0.1", "localhost", "::1")  # for these the SDK checks the host of a request too
_FEWEST_CHARACTERS = 16


def read_token(file: Path | None) -> str | None:
    """The token in a file, or else in the environment; None if there is none.

    The command has no option for it, since all users of a machine see the arguments of its processes.

    Raises
    ------
    ConfigurationError
        If the file cannot be read, or its token is too short.
    """
    if file is None:
        return check_token(os.environ.get(TOKEN_VARIABLE) or None)
    try:
        return check_token(file.read_text(encoding="utf-8").strip())
    except (OSError, UnicodeError) as error:
        raise ConfigurationError(f"The token file {file} cannot be read: {type(error).__name__}.") from None


def check_token(token: str | None) -> str | None:
    """A token that can be sent in a header and cannot be guessed; None for none."""
    if token is not None and (len(token) < _FEWEST_CHARACTERS or not token.isascii() or not token.isprintable()):
        raise ConfigurationError(
            f"A token has at least {_FEWEST_CHARACTERS} printable ASCII characters. Make one, for example by "
            '`python -c "import secrets; print(secrets.token_urlsafe())"`.'
        )
    return token


def check_reachable(host: str, token: str | None) -> None:
    """Check that a server that other machines can reach has a token."""
    if token is None and host not in _LOOPBACK:
        raise ConfigurationError(
            f"At {host!r} other machines can reach the server, so it needs a token. Write one to a file that only you "
            f"can read and name it by --token-file, set {TOKEN_VARIABLE}, or pass it to mcp_server(). Or keep to "
            f"{', '.join(_LOOPBACK)}."
        )


class BearerToken:
    """An ASGI application behind a token: requests without `Authorization: Bearer TOKEN` are answered with 401."""

    def __init__(self, app: Callable[..., Awaitable[None]], token: str) -> None:
        self._app = app
        self._token = token.encode()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request."""
        if scope["type"] == "lifespan" or self._is_allowed(scope):
            await self._app(scope, receive, send)
            return
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        headers = [(b"www-authenticate", b"Bearer"), (b"content-type", b"text/plain"), (b"content-length", b"12")]
        await send({"type": "http.response.start", "status": 401, "headers": headers})
        await send({"type": "http.response.body", "body": b"Unauthorized"})

    def _is_allowed(self, scope: Any) -> bool:
        given = [value for name, value in scope["headers"] if name.lower() == b"authorization"]
        scheme, _, token = given[0].partition(b" ") if len(given) == 1 else (b"", b"", b"")
        return compare_digest(token.strip(), self._token) and scheme.lower() == b"bearer"
