"""`python -m benchmarks.whole_corpus`: questions about a corpus as a whole, at equal tokens, without a language model.

The questions of the sample archive that need several articles: on a theme, and on many aspects. Every system fills a
context of the same number of tokens; the share of the gold articles among the sources of that context is reported with
95 % bootstrap intervals, and the number of different articles beside it, since a report may name many sources. A
report's tokens count in full, and its sources are those of its findings.

Then an assessor who knows the gold tests one chunk after another: the share of the gold articles found after so many
tests, in the order of nearness, and with feedback.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from llama_index.core.schema import BaseNode, MetadataMode, NodeWithScore
from llama_index.retrievers.bm25 import BM25Retriever

from benchmarks import quality_graphrag, quality_raptor
from benchmarks.data import Task, load
from benchmarks.embedding import minilm
from llama_index.graphrag.found import FINDINGS_KEY
from llama_index.graphrag.global_search import RelevanceSearch
from llama_index.graphrag.local_search import STATEMENTS_KEY
from llama_index.ragkit import HybridRetriever
from llama_index.ragkit.evaluation import bootstrap_interval, paired_bootstrap
from llama_index.ragkit.steps import run_steps
from llama_index.ragkit.text.tokens import count_tokens
from llama_index.ragkit.vectors.kernels import cosines
from llama_index.ragkit.vectors.question_scores import hybrid_nearness, standardised

__all__ = ["main"]

ARCHIVE = Path(__file__).parents[1] / "examples" / "archive"
BUDGETS = (1000, 4000, 12000)
TESTS = (20, 40, 80)
KINDS = ("theme", "aspects")
BASELINE = "hybrid"

Search = Callable[[str, int], Sequence[NodeWithScore]]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmark from the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.whole_corpus", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--data", type=Path, default=ARCHIVE, help="the folder of the sample archive")
    parser.add_argument("--half", type=int, choices=(0, 1), help="every other question, from this one; default all")
    options = parser.parse_args(sys.argv[1:] if arguments is None else arguments)
    (task,) = load(options.data)
    index = quality_graphrag.make_index(task.corpus, minilm(), argparse.Namespace(rules=False))
    asked = argparse.Namespace(mode="collapsed", paper=False, summary_tokens=None, target_size=None)
    raptor = quality_raptor.make_index(task.corpus, minilm(), asked)
    found = _systems(task, index, raptor)

    def sources_of(node: BaseNode) -> Sequence[str]:
        """The chunks that a result rests on."""
        if node.node_id in task.corpus.passage_of:
            return [node.node_id]
        children = [child.node_id for child in node.child_nodes or ()]
        return (
            children
            if FINDINGS_KEY in node.metadata or STATEMENTS_KEY in node.metadata
            else raptor.leaves_of(node.node_id)
        )

    for kind in KINDS:
        queries = [query for query in task.queries if kind in task.groups_of.get(query.id, ())]
        queries = queries if options.half is None else queries[options.half :: 2]
        _at_equal_tokens(task, kind, queries, found, sources_of)
        _assessor(task, kind, queries, index)


def _systems(task: Task, index: Any, raptor: Any) -> dict[str, Search]:
    corpus, model = task.corpus, minilm()
    every = len(corpus.nodes)
    plain = {
        "dense": HybridRetriever(corpus.fresh_nodes(), model, lexical_weight=0.0, similarity_top_k=every),
        "BM25": BM25Retriever.from_defaults(nodes=list(corpus.nodes), similarity_top_k=every, verbose=False),
        BASELINE: HybridRetriever(corpus.fresh_nodes(), model, similarity_top_k=every),
        "RAPTOR": raptor.as_retriever(similarity_top_k=every),
        "local": index.as_retriever(similarity_top_k=every),
    }

    def budgeted(**options: Any) -> Search:
        return lambda question, budget: index.as_retriever(token_budget=budget, **options).retrieve(question)

    systems: dict[str, Search] = {
        name: (lambda question, budget, retriever=retriever: retriever.retrieve(question))  # type: ignore[misc]
        for name, retriever in plain.items()
    }
    return {**systems, "local, mixed": budgeted(context="mixed"), "global": budgeted(mode="global")}


def _at_equal_tokens(
    task: Task,
    kind: str,
    queries: Sequence[Any],
    systems: dict[str, Search],
    sources_of: Callable[[BaseNode], Sequence[str]],
) -> None:
    shares: dict[tuple[str, int], list[float]] = {}
    articles: dict[tuple[str, int], list[int]] = {}
    valid = findings = 0
    for name, search in systems.items():
        for budget in BUDGETS:
            for query in queries:
                passages: dict[str, None] = {}
                left = budget
                for result in search(query.question, budget):
                    cost = count_tokens(result.node.get_content(metadata_mode=MetadataMode.LLM))
                    if cost > left:
                        continue
                    left -= cost
                    passages.update(dict.fromkeys(task.corpus.passages(sources_of(result.node))))
                    for _, nodes in result.node.metadata.get(FINDINGS_KEY, ()):
                        findings += 1
                        valid += bool(nodes) and set(nodes) <= task.corpus.passage_of.keys()
                share = len(passages.keys() & set(query.gold)) / len(set(query.gold))
                shares.setdefault((name, budget), []).append(share)
                articles.setdefault((name, budget), []).append(len(passages))
    print(f"\n## {kind}: {len(queries)} questions, {len(task.corpus.nodes)} chunks, no calls of a model\n")
    print("| system | tokens | gold articles among the sources | minus hybrid | articles |")
    print("|---|---|---|---|---|")
    for (name, budget), values in shares.items():
        difference = paired_bootstrap(np.array(values), np.array(shares[BASELINE, budget]))
        print(
            f"| {name} | {budget} | {bootstrap_interval(np.array(values))} | {difference.mean:+.3f} "
            f"[{difference.low:+.3f}, {difference.high:+.3f}] | {np.mean(articles[name, budget]):.1f} |"
        )
    print(f"\nfindings of reports with valid sources: {valid} of {findings}")


def _assessor(task: Task, kind: str, queries: Sequence[Any], index: Any) -> None:
    """The share of the gold articles found by an assessor who knows the gold, after so many tests."""
    contents = run_steps(index.writer.recovered())
    chunks = contents.state.chunks
    ordered = contents.state.ordered(chunks.ids)
    rows, vectors = chunks.rows_of(ordered), chunks.vectors_of(ordered)
    model = minilm()
    print("\n| order | " + " | ".join(f"after {tests} tests" for tests in TESTS) + " |")
    print("|---|" + "---|" * len(TESTS))
    for name, weight, feedback in (
        ("dense", 0.0, 0.0),
        ("BM25", 1.0, 0.0),
        ("nearness", 0.6, 0.0),
        ("nearness, feedback 0.2", 0.6, 0.2),
        ("nearness, feedback 0.5", 0.6, 0.5),
    ):
        cells = []
        for tests in TESTS:
            values = []
            for query in queries:
                cosine = cosines(chunks.matrix, np.asarray(model.get_query_embedding(query.question), np.float32))
                words, full_score = contents.scored(query.question)
                nearness = hybrid_nearness(cosine, words, weight, full_score=full_score)[rows]
                search, found = RelevanceSearch(nearness, tests, feedback), set()
                while (place := search.next()) is not None:
                    (passage,) = task.corpus.passages([ordered[place]])
                    if passage in query.gold:
                        found.add(passage)
                    if search.judged(place, passage in query.gold):
                        search.compare(standardised(cosines(vectors, vectors[place])))
                values.append(len(found) / len(set(query.gold)))
            cells.append(str(bootstrap_interval(np.array(values))))
        print(f"| {name} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
