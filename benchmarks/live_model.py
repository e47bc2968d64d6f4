"""Each step of each method with a live model: SmolLM2-135M-Instruct, on a few chunks of the archive.

    python -m benchmarks.live_model [--methods RAPTOR spRAG ...] [--chunks 6] [--reply-tokens 48]

Printed are the questions that the model was asked in each step, how many replies could be used, what a build asked
beside what it was expected to ask, and what rules did in its place. Replies are kept (see
:mod:`benchmarks.smollm2`), so that a run that was stopped goes on.
"""

import argparse
import logging
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from llama_index.core import Document
from llama_index.core.llms import LLM
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.schema import BaseNode

from benchmarks.smollm2 import SmolLM2, missing
from llama_index.ragkit.check_llm import check_llm
from llama_index.ragkit.check_llm.checking import TRIALS
from llama_index.ragkit.compare.methods import Method, installed
from llama_index.ragkit.index.dry_run import HashedWords
from llama_index.ragkit.llm.retry import RetryPolicy
from llama_index.ragkit.llm.usage import counted

__all__ = ["REPLY_TOKENS", "build", "chunks_of_archive"]

ARCHIVE = Path(__file__).resolve().parents[1] / "examples" / "archive" / "articles"
ONCE = RetryPolicy(max_attempts=1)
REPLY_TOKENS = 48  # most of the time goes into writing replies; longer ones repeat themselves
QUESTION = "Who kept the lighthouse?"


def chunks_of_archive(count: int) -> list[BaseNode]:
    """The first chunks of the sample archive, of about 100 words each."""
    files = sorted(ARCHIVE.iterdir())[:count]  # each has at least one
    documents = [Document(text=file.read_text(encoding="utf-8"), id_=file.stem) for file in files]
    return list(SentenceSplitter(chunk_size=128, chunk_overlap=0).get_nodes_from_documents(documents)[:count])


def build(method: Method, nodes: Sequence[BaseNode], llm: LLM) -> Any:
    """An index of a method, each of whose steps asks the model once."""
    package = __import__(method.module, fromlist=[method.index])
    copies = [node.model_copy(deep=True) for node in nodes]
    keywords = TRIALS[method.name].build(package, ONCE)
    model = HashedWords(model_name="hashed words")
    return getattr(package, method.index)(copies, llm=llm, embed_model=model, num_workers=1, **keywords)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", nargs="+", help="default: all")
    parser.add_argument("--chunks", type=int, default=6)
    parser.add_argument("--reply-tokens", type=int, default=REPLY_TOKENS)
    options = parser.parse_args()
    if missing():
        raise SystemExit(f"Not installed: {missing()}. See benchmarks/smollm2.py.")
    logging.disable(logging.ERROR)
    nodes, llm = chunks_of_archive(options.chunks), SmolLM2(max_tokens=options.reply_tokens)
    steps = ["| method | step | asked | read | failed | tokens of replies |", "|---|---|---|---|---|---|"]
    builds = ["| method | calls | estimated | failed | by rules |", "|---|---|---|---|---|"]
    for method in installed(options.methods):
        begun = time.perf_counter()
        for step in check_llm(llm, nodes, chunks=len(nodes), methods=[method.name], question=QUESTION).steps:
            use = step.usage
            cells = (method.name, step.step, step.asked, use.read, use.failed, use.completion_tokens)
            steps.append(f"| {' | '.join(map(str, cells))} |")
        with counted() as usage:
            index = build(method, nodes, llm)
        resources, total = index.resources, usage.total
        work = index.llm_work(nodes, resources.extractor, resources.summarizer, llm, index.config)
        expected = f"{work.calls} to {work.calls + work.more_calls}" if work.more_calls else f"{work.calls}"
        by_rules = sum(bool(failure.by) for failure in index.failures())
        builds.append(f"| {method.name} | {total.replies} | {expected} | {total.failed} | {by_rules} |")
        print(f"{method.name}: {time.perf_counter() - begun:.0f} s", flush=True)
    print("\n".join([*steps, "", *builds]))


if __name__ == "__main__":
    main()
