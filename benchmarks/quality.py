"""`python -m benchmarks.quality METHOD --data DIR`: retrieval quality of a method beside its peers."""

import argparse
import json
import sys
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from benchmarks.data import Corpus, Task, load
from benchmarks.embedding import MODELS
from benchmarks.systems import RANKED, Ranking, adapter, build, fill
from llama_index.ragkit.evaluation import (
    Evaluation,
    all_recall_at_k,
    as_labels,
    comparison_table,
    difference_table,
    multi_aspect_metrics,
    recall_at_k,
    reciprocal_rank,
    score_rankings,
)
from llama_index.ragkit.evaluation.metrics import Metric

__all__ = ["evaluate", "main", "run"]

HEADER = "Annual Report 2023 - Confidential"  # as on every page of a document
SHORTEST = 30  # passages that every ranking has, if the corpus has them

Rankings = dict[str, dict[str, Ranking]]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmark from the command line."""
    options = _options(sys.argv[1:] if arguments is None else arguments)
    tasks = load(
        options.data,
        options.queries,
        titled=not options.untitled,
        documents=options.documents,
        within=options.within,
        repeated=HEADER if options.header else "",
    )
    if options.half is not None:
        tasks = [replace(task, queries=task.queries[options.half :: 2]) for task in tasks]
    if options.limit:
        tasks = [replace(task, queries=task.queries[: options.limit]) for task in tasks]
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)  # before the long part, not after it
    rankings, filled = run(options.method, tasks, options)
    if options.out:
        _write(options.out, tasks, rankings)
    for part in report(options, tasks, rankings, filled):
        print(part)


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.quality", description=__doc__)
    parser.add_argument("method", choices=sorted(RANKED))
    parser.add_argument("--data", type=Path, required=True, help="data folder, or the folder of the sample archive")
    parser.add_argument(
        "--queries", type=Path, help="questions to ask instead of the folder's own (.jsonl or .jsonl.gz)"
    )
    parser.add_argument("--half", type=int, choices=(0, 1), help="every other question, from the first or the second")
    parser.add_argument("--untitled", action="store_true", help="index the text of passages without their titles")
    parser.add_argument("--header", action="store_true", help=f"put one line before every passage: {HEADER!r}")
    parser.add_argument("--documents", action="store_true", help="read passages as files, cut by the stock splitter")
    parser.add_argument("--within", action="store_true", help="ask each question of its own document alone")
    parser.add_argument("--embedding", choices=sorted(MODELS), default="minilm", help="the embedding model")
    parser.add_argument("--out", type=Path, help="write every ranking, one JSON object a query and system")
    parser.add_argument("--limit", type=int, default=0, help="ask only the first so many questions")
    parser.add_argument("--resamples", type=int, default=10_000, help="bootstrap resamples")
    parser.add_argument("--seed", type=int, default=0, help="seed of the bootstrap")
    for method in [argument for argument in arguments if argument in RANKED][:1]:
        adapter(method).add_arguments(parser)  # type: ignore[attr-defined]
    return parser.parse_args(arguments)


def run(method: str, tasks: Sequence[Task], options: argparse.Namespace) -> tuple[Rankings, dict[str, float]]:
    """Rank every question with every system.

    Returns
    -------
    rankings : system -> question id -> passages
    filled : system -> share of the first `SHORTEST` places that had to be filled from dense
    """
    embed_model = MODELS[options.embedding]()
    rankings: Rankings = defaultdict(dict)
    places: dict[str, list[float]] = defaultdict(list)
    for task in tasks:
        start = time.perf_counter()
        systems = build(method, task.corpus, embed_model, options)
        _say(f"indexed {len(task.corpus.nodes)} nodes in {time.perf_counter() - start:.1f} s")
        length = min(SHORTEST, len(task.corpus.records))
        start = time.perf_counter()
        for query in task.queries:
            for name, system in systems.items():
                ranking, extra = fill(system(query.question), systems["dense"](query.question), length)
                rankings[name][query.id] = ranking
                places[name].append(extra / length)
        _say(f"asked {len(task.queries)} questions in {time.perf_counter() - start:.1f} s")
    return dict(rankings), {name: sum(shares) / len(shares) for name, shares in places.items()}


def report(
    options: argparse.Namespace, tasks: Sequence[Task], rankings: Rankings, filled: Mapping[str, float]
) -> list[str]:
    """The tables, in markdown."""
    parts = [f"\n{options.method} on {options.data.resolve().name}: {len(tasks[0].corpus.records)} passages"]
    parts.append("filled from dense: " + ", ".join(f"{name} {share:.1%}" for name, share in filled.items()))
    dropped = [query_id for task in tasks for query_id in task.dropped]
    if dropped:
        parts.append(f"dropped, since all their topics are missing from the corpus: {', '.join(dropped)}")
    queries = [query for task in tasks for query in task.queries]
    unlabelled = [query.id for query in queries if not query.gold]
    if unlabelled:
        parts.append(f"{len(unlabelled)} of {len(queries)} questions have no gold and are not scored")
    labelled = [query for query in queries if query.gold]
    if not labelled:
        return parts
    names_of = {key: names for task in tasks for key, names in task.groups_of.items()}
    groups: dict[str, set[str]] = {}
    for query_id in (query.id for query in labelled):
        for group in names_of.get(query_id, ()):
            groups.setdefault(group, set()).add(query_id)
    scored = evaluate(tasks, rankings)
    parts.append(_tables(options, scored))
    for group, ids in groups.items():
        parts.append(f"\n## {group}\n" + _tables(options, {n: e.only(ids) for n, e in scored.items()}))
    return parts


def evaluate(tasks: Sequence[Task], rankings: Mapping[str, Mapping[str, Ranking]]) -> dict[str, Evaluation]:
    """The scores of every system on the questions that have gold."""
    labelled = [query for task in tasks for query in task.queries if query.gold]
    metrics = _metrics(tasks[0].corpus, tasks[0].multi_aspect)
    return {
        name: score_rankings(name, _as_gold(tasks[0].corpus, ranked), labelled, metrics)
        for name, ranked in rankings.items()
    }


def _tables(options: argparse.Namespace, scored: Mapping[str, Evaluation]) -> str:
    method, settings = options.method, {"n_resamples": options.resamples, "seed": options.seed}
    tables = [comparison_table(list(scored.values()), **settings)]
    for baseline in (name for name in ("dense", "hybrid-z", f"{method}-off", "bm25-sentences") if name in scored):
        others = [e for name, e in scored.items() if name not in ("dense", "bm25", baseline)]
        tables.append(difference_table(others, scored[baseline], **settings))
    return "\n" + "\n\n".join(tables)


def _metrics(corpus: Corpus, multi_aspect: bool) -> dict[str, Metric]:
    metrics: dict[str, Metric] = {f"R@{k}": partial(recall_at_k, k=k) for k in (2, 5, 10)}
    metrics["all@5"] = partial(all_recall_at_k, k=5)
    metrics["MRR"] = reciprocal_rank
    if corpus.pages_of:
        metrics["R@20"] = partial(recall_at_k, k=20)
    if multi_aspect:
        ratios = multi_aspect_metrics(corpus.category_of)
        metrics.update(ratios if not corpus.label_of else {"success@n": ratios["success@n"]})
    return metrics


def _as_gold(corpus: Corpus, ranked: Mapping[str, Ranking]) -> Mapping[str, Ranking]:
    """Rankings in the terms of the gold: topics where any passage of a topic is a hit."""
    if not corpus.label_of:
        return ranked
    return {query_id: [str(x) for x in as_labels(ranking, corpus.label_of)] for query_id, ranking in ranked.items()}


def _write(path: Path, tasks: Sequence[Task], rankings: Rankings) -> None:
    with path.open("w", encoding="utf-8") as file:
        for query in (query for task in tasks for query in task.queries):
            for name, ranked in rankings.items():
                line = {"id": query.id, "system": name, "ranking": ranked[query.id]}
                file.write(json.dumps(line, ensure_ascii=False) + "\n")


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
