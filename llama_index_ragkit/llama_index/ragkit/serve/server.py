"""`mcp_server`: an index as a server of the Model Context Protocol, by the official SDK."""

import asyncio
import logging
from collections.abc import Callable
from functools import partial, wraps
from inspect import iscoroutinefunction
from typing import Any

from llama_index.ragkit.errors import ConcurrentWriteError, ToolArgumentError
from llama_index.ragkit.extras import need
from llama_index.ragkit.serve.index_tools import MOST_FILTERS, MOST_QUESTION_CHARACTERS, MOST_RESULTS, IndexTools
from llama_index.ragkit.serve.token import BearerToken, check_reachable, check_token

__all__ = ["mcp_server"]

logger = logging.getLogger(__name__)

_ABOUT = (
    "Search over an indexed collection of texts. `retrieve` answers a question with passages; `explain` says why each "
    "was found; `describe` says what the index holds."
)
_LIMITS = (
    f" A question has at most {MOST_QUESTION_CHARACTERS:,} characters, `top_k` is at most {MOST_RESULTS}, and there "
    f"are at most {MOST_FILTERS} filters."
)
_FAILED = "The server could not do this. Try again later or ask something else; the log of the server has the reason."
_BUSY = "The index is being written to. Try again in a moment."
_ABOUT_WRITING = " `insert` adds or replaces a document, `forget` deletes one with everything derived from it."


def mcp_server(
    tools: IndexTools, *, write: bool = False, name: str = "llama-index-ragkit", token: str | None = None
) -> Any:
    """The server, an `mcp.server.MCPServer`; `.run()` serves standard input and output.

    Agents are told what is wrong with their arguments. About other errors they learn only that there was one; the log
    has these in full, without keys and passwords.

    Parameters
    ----------
    tools : the tools of the index
    write : whether to offer `insert` and `forget`; without it the server cannot change the index
    name : of the server, as clients show it
    token : requests over HTTP must send it as `Authorization: Bearer TOKEN`; at least 16 characters. None for none,
        if the server listens only on the loopback interface

    Raises
    ------
    ConfigurationError
        If the token is too short; by `run`, if there is no token and the host is not 127.0.0.1, localhost or ::1.
    ImportError
        Without the extra `mcp`.
    """
    sdk = need("mcp.server", "A Model Context Protocol server", "llama-index-ragkit[mcp]")
    types = need("mcp.types", "A Model Context Protocol server", "llama-index-ragkit[mcp]")
    exceptions = need("mcp.server.mcpserver.exceptions", "A Model Context Protocol server", "llama-index-ragkit[mcp]")
    check_token(token)

    class Server(sdk.MCPServer):  # type: ignore[misc, name-defined]
        """A server whose HTTP applications ask for the token."""

        def streamable_http_app(self, **options: Any) -> Any:
            return guarded(super().streamable_http_app, options)

        def sse_app(self, **options: Any) -> Any:
            return guarded(super().sse_app, options)

    def guarded(make_app: Any, options: dict[str, Any]) -> Any:
        check_reachable(options.get("host", "127.0.0.1"), token)
        app = make_app(**options)
        if token is not None:
            app.add_middleware(BearerToken, token=token)
        return app

    told = partial(_told, tools, exceptions.ToolError)
    server = Server(name, instructions=_ABOUT + _LIMITS + (_ABOUT_WRITING if write else ""))
    reads = types.ToolAnnotations(read_only_hint=True)
    deletes = types.ToolAnnotations(destructive_hint=True)

    offered: list[tuple[Callable[..., Any], Any]] = [
        (tools.describe, reads), (tools.retrieve, reads), (tools.explain, reads),
        (tools.insert, deletes), (tools.forget, deletes),
    ]  # fmt: skip
    for tool, kind in offered:
        if write or kind is reads:
            server.tool(annotations=kind)(told(tool))
    return server


def _told(tools: IndexTools, tool_error: type[Exception], tool: Callable[..., Any]) -> Callable[..., Any]:
    """A tool that tells the agent what it can do about an error, and the log of the server the rest.

    Messages of errors may name hosts, users, files and statements, which are not for agents.
    """

    @wraps(tool)
    async def answered(*args: Any, **kwargs: Any) -> Any:
        try:
            return await (tool if iscoroutinefunction(tool) else partial(asyncio.to_thread, tool))(*args, **kwargs)
        except ToolArgumentError as error:
            raise tool_error(str(error)) from None
        except Exception as error:
            logger.error("A call of an agent failed.\n%s", tools.told(error))
            raise tool_error(_BUSY if isinstance(error, ConcurrentWriteError) else _FAILED) from None

    return answered
