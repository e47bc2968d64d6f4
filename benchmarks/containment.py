"""`python -m benchmarks.containment --data FOLDER`: does the context hold the answer? Every method at equal tokens.

Each system fills contexts of the same number of tokens, with what it gives a query engine by default: passages,
segments, summaries or facts. The share of the questions whose context holds a correct answer is a bound on what a
reader can copy from it, and needs no LLM. Questions that are answered by "yes" or "no" are left out.

A system is asked once, for the longest context, which is cut to the shorter ones. spRAG is asked for each: its segments
depend on their budget.

What was measured is kept in a file of JSON lines, so that a run that was cut off goes on. What was measured with other
sources of ragkit or of the method is measured anew; until then the table has it, with its commit. The table is written
into `docs/answers.md` between two markers.
"""

import argparse
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.schema import NodeWithScore, QueryBundle
from llama_index.retrievers.bm25 import BM25Retriever

from benchmarks.data import Corpus, load
from benchmarks.embedding import MODELS, cache_folder
from benchmarks.sources import commit, sources
from benchmarks.systems import METHODS, HybridZ, adapter
from llama_index.ragkit import HybridRetriever
from llama_index.ragkit.evaluation import (
    Evaluation,
    LabelledQuery,
    can_be_contained,
    evaluate_answers,
)

__all__ = ["SETS", "main"]

PAGE = Path(__file__).parents[1] / "docs" / "answers.md"
BEGIN, END = "<!-- containment: begin -->", "<!-- containment: end -->"
SETS = ("hotpotqa", "2wiki", "musique", "financebench", "fairytale", "friendsqa", "xquad/en")
BUDGETS = (500, 1000, 2000, 4000)
BASELINE = "hybrid-z"
PLAIN = ("dense", "BM25", BASELINE)
SHORT = 10  # tokens of a short passage, so that enough are asked for
CHUNK = 256  # tokens, of whole documents: the shortest context should hold one
BY_BUDGET = ("sprag",)
KEPT_METRICS = ("contained", "answer recall", "tokens")


@dataclass(frozen=True)
class Asked:
    """A corpus and its questions."""

    corpus: Corpus
    queries: tuple[LabelledQuery, ...]
    embed_model: BaseEmbedding


class NearestFirst(BaseRetriever):
    """The nodes of :class:`~benchmarks.systems.HybridZ`."""

    def __init__(self, asked: Asked, depth: int) -> None:
        self._rank = HybridZ(asked.corpus, asked.embed_model)
        self._nodes = {node.node_id: node for node in asked.corpus.nodes}
        self._depth = depth
        super().__init__()

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        ids = self._rank.node_ids(query_bundle.query_str)[: self._depth]
        return [NodeWithScore(node=self._nodes[node_id], score=1 / rank) for rank, node_id in enumerate(ids, start=1)]


class AskedOnce(BaseRetriever):
    """Keeps what a retriever found for each question."""

    def __init__(self, retriever: BaseRetriever) -> None:
        self._retriever = retriever
        self._found: dict[str, list[NodeWithScore]] = {}
        super().__init__()

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        question = query_bundle.query_str
        if question not in self._found:
            self._found[question] = self._retriever.retrieve(query_bundle)
        return self._found[question]


def _sources(system: str) -> str:
    """Those that a system is made of."""
    return sources() if system in PLAIN else sources(system)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure what is missing, and write the table."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.containment", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--data", type=Path, required=True, help="the folder that holds the data folders")
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--systems", nargs="+", choices=(*PLAIN, *METHODS), default=[*PLAIN, *METHODS])
    parser.add_argument("--limit", type=int, default=0, help="at most so many questions a corpus, evenly spaced")
    parser.add_argument(
        "--chunk-tokens",
        type=int,
        default=CHUNK,
        help="of chunks of whole documents; 0 for those of the stock splitter",
    )
    parser.add_argument("--embedding", choices=sorted(MODELS), default="minilm", help="the embedding model")
    parser.add_argument("--kept", type=Path, default=cache_folder() / "containment.jsonl", help="what was measured")
    parser.add_argument("--page", type=Path, default=PAGE, help="the page with the markers")
    options = parser.parse_args(arguments)
    asked: dict[str, Asked] = {}
    for name in options.sets:
        for system in options.systems:
            kept = _latest(options.kept)
            if name not in asked:
                folder, model = options.data / name, MODELS[options.embedding]()
                asked = {name: _asked(folder, options.limit, options.chunk_tokens, model)}
            ids = [query.id for query in asked[name].queries]
            present = {"data": name, "system": system, "sources": _sources(system), "ids": ids}
            present |= {"chunk": options.chunk_tokens} if asked[name].corpus.pages_of else {}
            if present.items() <= kept.get((name, system), {}).items():
                continue
            row: dict[str, Any] = {**present, "commit": commit()}
            row["scores"] = _measured(system, asked[name])
            options.kept.parent.mkdir(parents=True, exist_ok=True)
            with options.kept.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
            means = {tokens: sum(each["contained"]) / len(ids) for tokens, each in row["scores"].items()}
            print(name, system, " ".join(f"{tokens}: {mean:.3f}" for tokens, mean in means.items()), flush=True)
    before, _, rest = options.page.read_text(encoding="utf-8").partition(BEGIN)
    old, _, after = rest.partition(END)
    # A corpus of which nothing is kept stays as the page has it.
    tables = _tables(old) | markdown(_latest(options.kept))
    table = "\n".join(tables[name] for name in SETS if name in tables)
    options.page.write_text(f"{before}{BEGIN}\n{table}\n{END}{after}", encoding="utf-8")


def _asked(folder: Path, limit: int, chunk_tokens: int, embed_model: BaseEmbedding) -> Asked:
    (task,) = load(folder, chunk_tokens=chunk_tokens or None)
    queries = tuple(query for query in task.queries if can_be_contained(query.answers))
    step = -(-len(queries) // limit) if limit else 1
    return Asked(task.corpus, queries[::step], embed_model)


def _measured(system: str, asked: Asked) -> dict[str, dict[str, list[float]]]:
    """Tokens of a context -> metric -> a score for every question."""
    scores = {}
    index = _index(system, asked)

    def ask(tokens: int) -> BaseRetriever:
        depth = min(len(asked.corpus.nodes), tokens // SHORT)
        return _plain(system, asked, depth) if index is None else _of(index, tokens, depth)

    once = AskedOnce(ask(max(BUDGETS)))
    for tokens in BUDGETS:
        retriever = ask(tokens) if system in BY_BUDGET else once
        found = evaluate_answers(retriever, asked.queries, token_budget=tokens)
        scores[str(tokens)] = {metric: list(found.scores[metric]) for metric in KEPT_METRICS}
    return scores


def _index(system: str, asked: Asked) -> Any:
    if system in PLAIN:
        return None
    method: Any = adapter(system)
    parser = argparse.ArgumentParser()
    method.add_arguments(parser)
    return method.make_index(asked.corpus, asked.embed_model, parser.parse_args([]))


def _of(index: Any, tokens: int, depth: int) -> BaseRetriever:
    retriever: BaseRetriever = index.as_retriever(token_budget=tokens, similarity_top_k=depth)
    return retriever


def _plain(system: str, asked: Asked, depth: int) -> BaseRetriever:
    if system == "dense":
        nodes = asked.corpus.fresh_nodes()
        return HybridRetriever(nodes, asked.embed_model, similarity_top_k=depth, lexical_weight=0.0)
    if system == "BM25":
        return BM25Retriever.from_defaults(nodes=list(asked.corpus.nodes), similarity_top_k=depth, verbose=False)
    return NearestFirst(asked, depth)


def _tables(page: str) -> dict[str, str]:
    """Corpus -> its table, of a page."""
    parts = [part for part in re.split(r"(?m)^(?=### )", page) if part.startswith("### ")]
    return {part.removeprefix("### ").partition(",")[0]: f"\n{part.rstrip()}" for part in parts}


def markdown(kept: Mapping[tuple[str, str], Mapping[str, Any]]) -> dict[str, str]:
    """Corpus -> a table, a row a system: the share of the contexts that hold an answer.

    Bold where the paired interval of the difference to hybrid-z excludes zero; "-" where no passage fits the context.
    """
    parts = {}
    for name in (name for name in SETS if (name, BASELINE) in kept):
        first = kept[name, BASELINE]
        base = _evaluation(first)
        found = [kept[name, system] for system in (*PLAIN, *METHODS) if (name, system) in kept]
        lines = [["system", *(f"{tokens:,} tokens" for tokens in BUDGETS), "commit"], ["---"] * (2 + len(BUDGETS))]
        same = [row for row in found if all(row.get(key) == first.get(key) for key in ("ids", "chunk"))]
        lines += [
            [row["system"], *(_cell(row, str(tokens), base) for tokens in BUDGETS), row.get("commit", "")]
            for row in same
        ]
        table = "\n".join("| " + " | ".join(line) + " |" for line in lines)
        chunks = f", {_chunks(first['chunk'])}" if "chunk" in first else ""
        parts[name] = f"\n### {name}, {len(base.ids):,} questions{chunks}\n\n{table}"
    return parts


def _chunks(tokens: int) -> str:
    return f"chunks of {tokens} tokens" if tokens else "chunks of the stock splitter"


def _cell(row: Mapping[str, Any], tokens: str, base: Evaluation) -> str:
    if not any(row["scores"][tokens]["tokens"]):
        return "-"
    own = _evaluation(row)
    shown = str(own.interval(tokens))
    return f"**{shown}**" if own.difference(base, tokens).excludes_zero else shown


def _evaluation(row: Mapping[str, Any]) -> Evaluation:
    scores = {tokens: tuple(each["contained"]) for tokens, each in row["scores"].items()}
    return Evaluation(row["system"], tuple(row["ids"]), scores)


def _latest(path: Path) -> dict[tuple[str, str], dict[str, Any]]:
    """What was measured last, by corpus and system."""
    return {(row["data"], row["system"]): row for row in _kept(path)}


def _kept(path: Path) -> Iterator[dict[str, Any]]:
    if path.exists():
        with path.open(encoding="utf-8") as file:
            yield from (json.loads(line) for line in file)


if __name__ == "__main__":
    main()
