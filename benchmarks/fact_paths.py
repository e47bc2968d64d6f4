"""`python -m benchmarks.fact_paths --data DIR`: what the first fact paths of PG-RAG hold, without a language model.

PG-RAG returns facts, unless it is asked for passages. For the first one, five and eight of them: the share of questions
whose answer stands in one of them, where the questions have answers, and the share of the gold passages among their
sources. Beside the defaults stand facts ranked by their cosines alone (the paper's ablation "PG") and the published
search, both over the same index. Brackets are 95 % bootstrap intervals; the last lines are paired differences.
"""

import argparse
import sys
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from llama_index.core.schema import NodeWithScore

from benchmarks import quality_pgrag
from benchmarks.data import Task, load
from benchmarks.embedding import MODELS
from llama_index.pgrag import PGRAGRetriever
from llama_index.ragkit.evaluation import LabelledQuery, bootstrap_interval, paired_bootstrap

__all__ = ["main"]

FIRST = (1, 5, 8)
SEARCHES = {
    "pgrag": {},
    "cosines": {"mode": "PG"},
    "published": {**PGRAGRetriever.paper(), "key_points": "question"},
}
Shares = dict[str, dict[str, list[float]]]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmark from the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fact_paths", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="data folder, or the folder of the sample archive")
    parser.add_argument("--half", type=int, choices=(0, 1), help="every other question, from this one; default all")
    parser.add_argument("--embedding", choices=sorted(MODELS), default="minilm", help="the embedding model")
    options = parser.parse_args(sys.argv[1:] if arguments is None else arguments)
    tasks = load(options.data)
    if options.half is not None:
        tasks = [replace(task, queries=task.queries[options.half :: 2]) for task in tasks]
    print(_table(_measured(tasks, options.embedding)))


def _measured(tasks: Sequence[Task], embedding: str) -> Shares:
    """What each search found: search -> measure -> a share for each question."""
    found: Shares = {name: defaultdict(list) for name in SEARCHES}
    model = MODELS[embedding]()
    for task in tasks:
        index = quality_pgrag.make_index(task.corpus, model, argparse.Namespace(outline=False))
        for name, settings in SEARCHES.items():
            retriever = index.as_retriever(**{**settings, "similarity_top_k": max(FIRST)})
            for query in task.queries:
                for measure, share in _shares(task, query, retriever.retrieve(query.question)).items():
                    found[name][measure].append(share)
    return found


def _shares(task: Task, query: LabelledQuery, results: Sequence[NodeWithScore]) -> dict[str, float]:
    shares = {}
    for k in FIRST:
        texts = [result.node.get_content().casefold() for result in results[:k]]
        if query.answers:
            held = any(answer.casefold() in text for text in texts for answer in query.answers)
            shares[f"answer in {k}"] = float(held)
        sources = [child.node_id for result in results[:k] for child in result.node.child_nodes or []]
        passages = set(task.corpus.passages(sources or [result.node.node_id for result in results[:k]]))
        shares[f"passages of {k}"] = len(passages & set(query.gold)) / len(query.gold)
    return shares


def _table(found: Shares) -> str:
    measures = list(found["pgrag"])
    lines = ["| facts | " + " | ".join(measures) + " |", "| --- " * (len(measures) + 1) + "|"]
    for name, shares in found.items():
        cells = (bootstrap_interval(np.array(shares[measure])) for measure in measures)
        lines.append(f"| {name} | " + " | ".join(f"{c.mean:.3f} [{c.low:.3f}, {c.high:.3f}]" for c in cells) + " |")
    own = found["pgrag"]
    for name in list(SEARCHES)[1:]:
        gains = (paired_bootstrap(np.array(own[measure]), np.array(found[name][measure])) for measure in measures)
        cells = " | ".join(f"{c.mean:+.3f} [{c.low:+.3f}, {c.high:+.3f}]" for c in gains)
        lines.append(f"| pgrag - {name} | {cells} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
