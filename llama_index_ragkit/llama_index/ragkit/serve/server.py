"""`mcp_server`: an index as a server of the Model Context Protocol, by the official SDK."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from llama_index.ragkit.errors import RagKitError
from llama_index.ragkit.extras import need
from llama_index.ragkit.serve.index_tools import IndexTools

__all__ = ["mcp_server"]

_ABOUT = (
    "Search over an indexed collection of texts. `retrieve` answers a question with passages; `explain` says why each "
    "was found; `describe` says what the index holds."
)
_ABOUT_WRITING = " `insert` adds or replaces a document, `forget` deletes one with all that was derived from it."


def mcp_server(tools: IndexTools, *, write: bool = False, name: str = "llama-index-ragkit") -> Any:
    """The server, an `mcp.server.MCPServer`; `.run()` serves standard input and output.

    Parameters
    ----------
    tools : those of the index
    write : whether `insert` and `forget` are offered; without it the server cannot change the index
    name : of the server, as clients show it

    Raises
    ------
    ImportError
        Without the extra `mcp`.
    """
    sdk = need("mcp.server", "A Model Context Protocol server", "llama-index-ragkit[mcp]")
    types = need("mcp.types", "A Model Context Protocol server", "llama-index-ragkit[mcp]")
    exceptions = need("mcp.server.mcpserver.exceptions", "A Model Context Protocol server", "llama-index-ragkit[mcp]")
    server = sdk.MCPServer(name, instructions=_ABOUT + (_ABOUT_WRITING if write else ""))
    reads = types.ToolAnnotations(read_only_hint=True)
    deletes = types.ToolAnnotations(destructive_hint=True)

    @server.tool(annotations=reads)  # type: ignore[untyped-decorator]
    def describe() -> dict[str, Any]:
        """What the index is, and how much it holds."""
        return tools.describe()

    @server.tool(annotations=reads)  # type: ignore[untyped-decorator]
    async def retrieve(
        question: str, top_k: int = 5, filters: dict[str, str | int | float | bool] | None = None
    ) -> list[dict[str, Any]]:
        """Passages that answer a question, best first, with text, score, document and metadata.

        `filters` keeps the passages whose metadata have these values.
        """
        with _told(exceptions.ToolError):
            return await tools.retrieve(question, top_k, filters)

    @server.tool(annotations=reads)  # type: ignore[untyped-decorator]
    async def explain(
        question: str, top_k: int = 5, filters: dict[str, str | int | float | bool] | None = None
    ) -> list[dict[str, Any]]:
        """Why each passage for a question was found."""
        with _told(exceptions.ToolError):
            return await tools.explain(question, top_k, filters)

    if write:

        @server.tool(annotations=deletes)  # type: ignore[untyped-decorator]
        async def insert(
            text: str, document_id: str | None = None, metadata: dict[str, str | int | float | bool] | None = None
        ) -> dict[str, Any]:
            """Add a document, or replace the one with this id."""
            with _told(exceptions.ToolError):
                return await tools.insert(text, document_id, metadata)

        @server.tool(annotations=deletes)  # type: ignore[untyped-decorator]
        async def forget(document_id: str) -> dict[str, Any]:
            """Delete a document and everything that was derived from it."""
            with _told(exceptions.ToolError):
                return await tools.forget(document_id)

    return server


@contextmanager
def _told(tool_error: type[Exception]) -> Iterator[None]:
    """Turns errors that say what to do into those whose text the agent reads."""
    try:
        yield
    except RagKitError as error:
        raise tool_error(str(error)) from error
