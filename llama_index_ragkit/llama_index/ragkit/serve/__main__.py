"""The command `python -m llama_index.ragkit.serve`."""

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from llama_index.ragkit.errors import ConfigurationError, RagKitError
from llama_index.ragkit.index.derived_index import DerivedIndex
from llama_index.ragkit.llm.embeddings import local_model
from llama_index.ragkit.redaction import redact
from llama_index.ragkit.serve.index_tools import IndexTools
from llama_index.ragkit.serve.loading import load_stored
from llama_index.ragkit.serve.server import mcp_server
from llama_index.ragkit.serve.token import TOKEN_VARIABLE, check_reachable, read_token

__all__ = ["main"]

_MODEL = "sentence-transformers/all-MiniLM-L6-v2"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command until its client ends it; returns its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m llama_index.ragkit.serve",
        description="Offers a stored index to agents as a Model Context Protocol server.",
    )
    parser.add_argument("--storage", type=Path, help="a folder saved by ragkit.persist or StorageContext.persist")
    parser.add_argument("--index-id", help="which index, if the folder holds several")
    parser.add_argument("--embed-model", default=_MODEL, help="a folder, or a model of the Hugging Face hub")
    parser.add_argument("--load", metavar="MODULE:FUNCTION", help="a function without arguments that returns the index")
    parser.add_argument("--write", action="store_true", help="offer insert and forget too; otherwise read-only")
    parser.add_argument("--name", default="llama-index-ragkit", help="name of the server")
    parser.add_argument("--http", type=int, metavar="PORT", help="serve HTTP at this port instead of standard input")
    parser.add_argument(
        "--host",
        default="127.0.0.1",
        help="address for HTTP; an address that other machines reach needs a token [127.0.0.1]",
    )
    parser.add_argument(
        "--token-file", type=Path, help=f"a file with the token that requests must send [{TOKEN_VARIABLE}]"
    )
    options = parser.parse_args(arguments)
    if (options.storage is None) == (options.load is None):
        parser.error("name either --storage or --load")
    if options.http is not None and not 0 <= options.http < 1 << 16:
        parser.error(f"--http takes a port, 0 to 65535, not {options.http}")
    try:
        token = read_token(options.token_file) if options.http is not None else None
        if options.http is not None:
            check_reachable(options.host, token)
        index = _called(options.load) if options.load else _stored(options)
        server = mcp_server(IndexTools(index, options.storage), write=options.write, name=options.name, token=token)
    except (RagKitError, ImportError, OSError, ValueError) as error:
        sys.stderr.write(f"{redact(str(error))}\n")
        return 1
    if options.http is None:
        server.run()
    else:
        server.run("streamable-http", host=options.host, port=options.http)
    return 0


def _stored(options: argparse.Namespace) -> DerivedIndex[Any, Any]:
    return load_stored(options.storage, local_model(options.embed_model), options.index_id)


def _called(name: str) -> DerivedIndex[Any, Any]:
    module, _, function = name.partition(":")
    if not function:
        raise ConfigurationError(f"--load takes MODULE:FUNCTION, not {name!r}.")
    load = getattr(import_module(module), function, None)
    if not callable(load):
        raise ConfigurationError(f"--load: {module} has no function {function!r}.")
    index = load()
    if not isinstance(index, DerivedIndex):
        raise ConfigurationError(f"{name} returned {type(index).__name__}, not an index of these packages.")
    return index


if __name__ == "__main__":
    sys.exit(main())
