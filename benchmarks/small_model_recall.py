"""Recall@5 of indexes that a very small model has built, with rules in its place where it fails, beside rules alone.

    python -m benchmarks.small_model_recall --data FOLDER --sets archive fairytale [--methods RAPTOR] [--live]

Without `--live` the model is the recording of :mod:`benchmarks.small_model`: a prompt of a step gets one of the replies
that were given to this step, chosen by its hash. These are about other texts, so that this is a harder trial than the
model: what is fluent and of another text must not get into an index.
"""

import argparse
import logging
import os
import time
import zlib
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from llama_index.core.llms import LLM

from benchmarks.data import Corpus, Task, load
from benchmarks.embedding import minilm
from benchmarks.live_model import ARCHIVE
from benchmarks.small_model import STEPS, recorded
from benchmarks.smollm2 import SmolLM2
from llama_index.ragkit.compare.methods import Method, installed
from llama_index.ragkit.testing import ScriptedLLM

__all__ = ["recall", "replayed"]

_DEPTH = 20  # nodes that are asked for: several may be of one passage


def replayed(folder: str | Path) -> Callable[[str], str]:
    """Says to a prompt what the model said in the same step; "" in a step that was not recorded."""
    replies: dict[str, list[str]] = defaultdict(list)
    for row in recorded(folder):
        first = row["messages"][0]["content"]
        replies[next(step for step in STEPS if first.startswith(step))].append(row["reply"])

    def reply(prompt: str) -> str:
        asked = prompt.removeprefix("user: ")  # further on, the worked example has the beginning of another prompt
        own = next((given for step, given in replies.items() if asked.startswith(step)), [""])
        return own[zlib.crc32(prompt.encode()) % len(own)]

    return reply


def recall(method: Method, corpus: Corpus, tasks: Sequence[Task], index: Any) -> float:
    """The share of the passages that answer a question among the first five, the mean over all questions."""
    retriever = index.as_retriever(**{"similarity_top_k": _DEPTH, **method.retriever})
    shares = []
    for task in tasks:
        for query in task.queries:
            ids = [result.node.node_id for result in retriever.retrieve(query.question)]
            found = corpus.passages([i for i in ids if i in corpus.passage_of])[:5]
            shares.append(len(set(found) & set(query.gold)) / len(set(query.gold)))
    return sum(shares) / len(shares)


def _row(method: Method, tasks: Sequence[Task], llm: LLM) -> str:
    corpus = tasks[0].corpus
    given: Mapping[str, LLM | None] = {"rules": None, "model": llm}
    cells, by_rules = [], 0
    for model in given.values():
        index = method.build(corpus.fresh_nodes(), minilm(), model, None)
        cells.append(f"{recall(method, corpus, tasks, index):.3f}")
        by_rules = sum(bool(failure.by) for failure in index.failures())
    return f"| {method.name} | {' | '.join(cells)} | {by_rules} |"


def _folder(name: str, data: str) -> Path:
    return ARCHIVE.parent if name == "archive" else Path(data) / name


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=os.environ.get("RAG_DATA"), help="default: RAG_DATA")
    parser.add_argument("--sets", nargs="+", default=["archive"])
    parser.add_argument("--methods", nargs="+", help="default: all that ask a model for an index")
    parser.add_argument("--live", action="store_true", help="ask the model itself, which takes hours")
    options = parser.parse_args()
    logging.disable(logging.ERROR)
    for name in options.sets:
        print(f"\n{name}\n\n| method | rules alone | small model, and rules | done by rules |\n|---|---|---|---|")
        for method in installed(options.methods):
            if method.name == "MRAG":
                continue
            begun = time.perf_counter()
            llm = SmolLM2() if options.live else ScriptedLLM(replayed(options.data))
            print(
                f"{_row(method, load(_folder(name, options.data)), llm)}  {time.perf_counter() - begun:.0f} s",
                flush=True,
            )


if __name__ == "__main__":
    main()
