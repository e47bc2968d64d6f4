"""A stored index as a Model Context Protocol server, for agents: `python -m llama_index.ragkit.serve --storage DIR`."""

from llama_index.ragkit.serve.index_tools import IndexTools
from llama_index.ragkit.serve.loading import load_stored
from llama_index.ragkit.serve.server import mcp_server

__all__ = ["IndexTools", "load_stored", "mcp_server"]
