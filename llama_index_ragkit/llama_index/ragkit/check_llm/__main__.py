"""The command `python -m llama_index.ragkit.check_llm`."""

import argparse
import logging
import sys
from collections.abc import Sequence
from pathlib import Path

from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.schema import BaseNode

from llama_index.ragkit.check_llm.checking import check_llm
from llama_index.ragkit.compare.command import openai_like
from llama_index.ragkit.errors import RagKitError
from llama_index.ragkit.reading import read_folder

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m llama_index.ragkit.check_llm",
        description="Which steps of the installed methods can this language model do? Each is tried on a few chunks.",
    )
    parser.add_argument("--model", required=True, help="a model of OpenAI, or of the server at OPENAI_BASE_URL")
    parser.add_argument("--context-window", type=int, default=8192, help="tokens that the server reads [8192]")
    parser.add_argument("--docs", type=Path, help="a folder of texts; default: three short built-in texts")
    parser.add_argument("--methods", nargs="+", help="such as HippoRAG MRAG; default: all that are installed")
    parser.add_argument("--chunks", type=int, default=3, help="how many chunks are read [3]")
    options = parser.parse_args(arguments)
    try:
        nodes = None if options.docs is None else _chunks(options.docs)
        llm = openai_like(options.model, "--model", options.context_window)
        found = check_llm(llm, nodes, methods=options.methods, chunks=options.chunks)
    except (RagKitError, ImportError, OSError, ValueError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(f"{found}\n")
    return 0


def _chunks(folder: Path) -> list[BaseNode]:
    documents, _ = read_folder(folder)
    return list(SentenceSplitter(chunk_size=256, chunk_overlap=0).get_nodes_from_documents(documents))


if __name__ == "__main__":
    logging.basicConfig(level=logging.CRITICAL)  # what failed is in the table
    sys.exit(main())
