"""The command `python -m llama_index.ragkit.compare`."""

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.embeddings.utils import resolve_embed_model
from llama_index.core.llms import LLM
from llama_index.core.node_parser import SentenceSplitter

from llama_index.ragkit.compare.comparing import compare
from llama_index.ragkit.compare.methods import missing_packages
from llama_index.ragkit.compare.questions import read_questions, with_documents
from llama_index.ragkit.errors import ConfigurationError, RagKitError
from llama_index.ragkit.extraction.context import Estimate
from llama_index.ragkit.extras import need
from llama_index.ragkit.llm.embeddings import local_model
from llama_index.ragkit.llm.prices import check_prices
from llama_index.ragkit.reading import read_folder
from llama_index.ragkit.validation import check_count

__all__ = ["main", "openai_like"]

_MODEL = "sentence-transformers/all-MiniLM-L6-v2"


class _OnlyEstimatedError(Exception):
    """Only the estimate was asked for."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit status."""
    options = _parser().parse_args(arguments)
    seconds: dict[str, float] = {}
    prices: Any = dict(options.prices)

    def before(estimates: dict[str, Estimate]) -> None:
        _say_estimates(estimates, seconds, prices or None)
        if options.estimate:
            raise _OnlyEstimatedError
        _say("")

    try:
        check_prices(prices)
        documents, skipped = read_folder(options.docs)
        for file, reason in skipped.items():
            _say(f"Skipped {file}: {reason}")
        questions = None
        if options.questions is not None:  # before a model is loaded, which takes long
            questions = with_documents(read_questions(options.questions), documents, skipped)
        comparison = compare(
            documents,
            questions,
            out=options.out,
            methods=options.methods,
            embed_model=_embedding(options.embed_model),
            transformations=None if options.chunk_size is None else [_splitter(options.chunk_size)],
            llm=None if options.llm is None else openai_like(options.llm, "--llm", 32_000),
            top_k=options.top_k,
            context_tokens=options.context_tokens,
            read=options.read,
            count=options.count,
            show_progress=sys.stderr.isatty(),
            before=before,
            timed=seconds.update if options.estimate else None,
        )
    except _OnlyEstimatedError:
        return 0
    except (RagKitError, ImportError, OSError, ValueError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    _say(f"{comparison}\n\nThe answers side by side: {options.out / 'index.html'}")
    missing = missing_packages()
    if missing and options.methods is None:
        _say(f"Not compared, since they are not installed: {', '.join(missing)}.")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m llama_index.ragkit.compare",
        description="Which retrieval method for these texts? Builds the installed methods and plain search, asks "
        "questions, and recommends one.",
    )
    parser.add_argument("--docs", type=Path, required=True, help="a folder of texts")
    parser.add_argument(
        "--questions", type=Path, help="one question per line, as text, or as JSON with question, documents and answers"
    )
    parser.add_argument("--out", type=Path, default=Path("comparison"), help="folder for page, methods and replies")
    parser.add_argument("--methods", nargs="+", help="such as HippoRAG MRAG; default: all that are installed")
    parser.add_argument("--embed-model", default=_MODEL, help="a folder, or a model of the Hugging Face hub")
    parser.add_argument("--chunk-size", type=int, help="tokens in a chunk; default: 1024, with an overlap of 200")
    parser.add_argument("--llm", help="a model of OpenAI, or of the server at OPENAI_BASE_URL; default: none, rules")
    parser.add_argument("--top-k", type=int, default=5, help="number of passages in an answer [5]")
    parser.add_argument("--context-tokens", type=int, default=1000, help="tokens in the context of an answer [1000]")
    parser.add_argument("--read", action="store_true", help="with --llm, answer questions without answers too")
    parser.add_argument("--count", type=int, default=40, help="number of questions to make if you give none [40]")
    parser.add_argument(
        "--prices",
        type=_price,
        nargs="+",
        default=(),
        metavar="NAME=PRICE",
        help="prices per million tokens, such as prompt=0.15 completion=0.6 embedding=0.02, to estimate the cost",
    )
    parser.add_argument("--estimate", action="store_true", help="print the estimated work and cost, and stop")
    return parser


def _embedding(name: str) -> BaseEmbedding:
    try:
        return resolve_embed_model(local_model(name))
    except OSError as error:
        reason = str(error).strip().splitlines()[0].rstrip(".")
        raise ConfigurationError(
            f"The embedding model {name!r} cannot be loaded: {reason}. Without a connection to the hub, pass the "
            "folder of a model: --embed-model FOLDER."
        ) from error


def _splitter(chunk_size: int) -> SentenceSplitter:
    check_count("--chunk-size", chunk_size, 1)
    return SentenceSplitter(chunk_size=chunk_size, chunk_overlap=chunk_size // 5)


def _say_estimates(estimates: Mapping[str, Estimate], seconds: Mapping[str, float], prices: Any) -> None:
    """Print the work of each system, with its price, and with minutes where `seconds` has them."""
    _say("Estimated work:")
    for name, work in estimates.items():
        about = "" if work.embedding_is_exact else "about "
        cost = work.priced(prices).cost
        paid = "" if cost is None else f", {cost:.2f} to pay" if cost >= 0.01 or not cost else ", below 0.01 to pay"
        time = f", about {seconds[name] / 60:.1f} minutes" if name in seconds else ""
        _say(f"  {name}: {about}{work.embedded_texts:,} embedded texts, {work.calls:,} LLM calls{paid}{time}")
    _say("The chunks are embedded once for all systems, and so are the questions, which come on top.")
    if seconds:
        _say("Minutes are those of ten chunks and two questions in proportion, without an LLM.")


def openai_like(model: str, option: str, context_window: int) -> LLM:
    """A model of OpenAI, or of the server at `OPENAI_BASE_URL`, that reads `context_window` tokens.

    An `ImportError` names the option that needs the client if that is not installed.
    """
    server = need("llama_index.llms.openai_like", option, "llama-index-llms-openai-like")
    llm: LLM = server.OpenAILike(
        model=model,
        api_base=os.environ.get("OPENAI_BASE_URL", "https://api.openai.com/v1"),
        api_key=os.environ.get("OPENAI_API_KEY", "none"),
        is_chat_model=True,
        max_retries=0,
        timeout=120,
        context_window=context_window,
        reuse_client=False,
    )
    return llm


def _price(text: str) -> tuple[str, float]:
    name, _, price = text.partition("=")
    try:
        return name, float(price)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a price: write one as prompt=0.15") from None


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
