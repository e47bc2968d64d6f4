"""`python -m benchmarks.cutoffs --data FOLDER`: what a cutoff of scores keeps and drops, for every method and corpus.

Of the gold passages among the ten best results of a question, the share whose best result has at least the score; of
the other results among the ten and the fifty best, the share that has less. Every other question is asked, those that
the scores were not calibrated on.

What was measured is kept in a file of JSON lines, so that a run that was cut off goes on; name another file, or delete
this one, to measure anew. The tables are written into `docs/nearness.md` between two markers, and the curve is drawn.
"""

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from examples.cutoff_chart import cutoff_chart
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.schema import BaseNode, NodeWithScore

from benchmarks.containment import _kept
from benchmarks.data import Corpus, Task, load
from benchmarks.embedding import MODELS, cache_folder
from benchmarks.systems import METHODS, adapter
from llama_index.ragkit import HybridRetriever
from llama_index.sprag.segment_nodes import chunks_of_node

__all__ = ["CUTOFFS", "main"]

DOCS = Path(__file__).parents[1] / "docs"
BEGIN, END = "<!-- cutoffs: begin -->", "<!-- cutoffs: end -->"
CUTOFFS = tuple(round(0.1 * step, 1) for step in range(1, 10))
SHOWN = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
SETS = (
    "archive", "cosqa", "policyqa", "friendsqa", "fairytale", "contractnli", "recorded_questions", "musique",
    "hotpotqa", "xquad/en", "xquad/de",
)  # fmt: skip
SYSTEMS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "nearness": ("", {}),
    **{method: (method, {}) for method in METHODS},
    "pgrag, passages": ("pgrag", {"return_source": True}),
    "sprag, chunks": ("sprag", {"mode": "chunks"}),
}
FEW, MANY = 10, 50
KINDS = ("kept", f"dropped of {FEW}", f"dropped of {MANY}")

Sources = Callable[[BaseNode], Sequence[str]]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure what is missing, and write the tables and the curve."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cutoffs", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="the folder that holds the data folders")
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--systems", nargs="+", choices=list(SYSTEMS), default=list(SYSTEMS))
    parser.add_argument("--limit", type=int, default=0, help="at most so many questions a corpus, evenly spaced")
    parser.add_argument("--embedding", choices=sorted(MODELS), default="minilm", help="the embedding model")
    parser.add_argument("--kept", type=Path, default=cache_folder() / "cutoffs.jsonl", help="what was measured before")
    parser.add_argument("--docs", type=Path, default=DOCS, help="the folder of the page and its picture")
    options = parser.parse_args(arguments)
    known = {(row["data"], row["system"], row["embedding"]): row["shares"] for row in _kept(options.kept)}
    for name in options.sets:
        folder = DOCS.parent / "examples" / "archive" if name == "archive" else options.data / name
        for system in options.systems:
            key = (name, system, options.embedding)
            if key not in known:
                known[key] = _measured(system, load(folder), MODELS[options.embedding](), options.limit)
                row = {"data": name, "system": system, "embedding": options.embedding, "shares": known[key]}
                options.kept.parent.mkdir(parents=True, exist_ok=True)
                with options.kept.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(row) + "\n")
            for kind in KINDS:
                shares = " ".join(f"{share:.2f}" for share in known[key][kind])
                print(f"{name}, {system}, {kind}, at {CUTOFFS[0]} to {CUTOFFS[-1]}: {shares}", flush=True)
    page = options.docs / "nearness.md"
    before, _, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    page.write_text(f"{before}{BEGIN}\n{tables(known)}\n{END}{rest.partition(END)[2]}", encoding="utf-8")
    curves = {kind: [_mean(known, kind, place) for place in range(len(CUTOFFS))] for kind in KINDS}
    chart = cutoff_chart(CUTOFFS, curves)
    (options.docs / "pictures" / "cutoffs.svg").write_text(chart + "\n", encoding="utf-8")


def _measured(system: str, tasks: Sequence[Task], embed_model: BaseEmbedding, limit: int) -> dict[str, list[float]]:
    """For each of `KINDS` the share at each cutoff."""
    kept: list[float] = []
    dropped: dict[int, list[float]] = {FEW: [], MANY: []}
    for task in tasks:
        retriever, sources = _retriever(system, task.corpus, embed_model)
        queries = [query for query in task.queries[1::2] if query.gold]
        step = -(-len(queries) // limit) if limit else 1
        for query in queries[::step]:
            waiting = set(query.gold)
            for place, found in enumerate(retriever.retrieve(query.question)[:MANY]):
                gold = set(query.gold) & _labels(task.corpus, found, sources)
                kept += [found.get_score()] * len(gold & waiting) if place < FEW else []
                waiting -= gold
                if not gold:
                    for depth in (depth for depth in dropped if place < depth):
                        dropped[depth].append(found.get_score())
    found_gold, few, many = np.array(kept), np.array(dropped[FEW]), np.array(dropped[MANY])
    return {
        KINDS[0]: [_share(found_gold >= cutoff) for cutoff in CUTOFFS],
        KINDS[1]: [_share(few < cutoff) for cutoff in CUTOFFS],
        KINDS[2]: [_share(many < cutoff) for cutoff in CUTOFFS],
    }


def _share(which: np.ndarray) -> float:
    return round(float(which.mean()), 4) if which.size else 0.0


def _retriever(system: str, corpus: Corpus, embed_model: BaseEmbedding) -> tuple[Any, Sources]:
    """The retriever of a system, and the source nodes of what it derived."""
    name, keywords = SYSTEMS[system]
    if not name:
        return HybridRetriever(corpus.fresh_nodes(), embed_model, similarity_top_k=MANY), lambda node: ()
    method: Any = adapter(name)
    parser = argparse.ArgumentParser()
    method.add_arguments(parser)
    index = method.make_index(corpus, embed_model, parser.parse_args([]))
    sources: dict[str, Sources] = {
        "raptor": lambda node: index.leaves_of(node.node_id),
        "gemrag": lambda node: index.themes[node.node_id],
        "sprag": chunks_of_node,
        "pgrag": lambda node: [child.node_id for child in node.child_nodes or []],
    }
    return index.as_retriever(similarity_top_k=MANY, **keywords), sources.get(name, lambda node: ())


def _labels(corpus: Corpus, found: NodeWithScore, sources: Sources) -> set[str]:
    """What a result stands for, in the terms of the gold: its passages, or their topics."""
    node = found.node
    ids = [node.node_id] if node.node_id in corpus.passage_of else list(sources(node))
    passages = corpus.passages([node_id for node_id in ids if node_id in corpus.passage_of])
    return {str(corpus.label_of.get(passage, passage)) for passage in passages}


def tables(known: Mapping[tuple[str, str, str], Mapping[str, Sequence[float]]]) -> str:
    """For each method the means over all corpora and models at some cutoffs, and for each corpus those at 0.5."""
    lines = [
        ["method", *(f"{cutoff:g}" for cutoff in SHOWN)],
        *(
            [system, *(_cell(known, CUTOFFS.index(cutoff), system=system) for cutoff in SHOWN)]
            for system in SYSTEMS
            if any(key[1] == system for key in known)
        ),
    ]
    pairs = [(name, model) for name in SETS for model in MODELS if any((name, model) == key[::2] for key in known)]
    half = CUTOFFS.index(0.5)
    of_corpora = [
        ["corpus", "model", *KINDS],
        *(
            [name, model, *(f"{_mean(known, kind, half, data=name, embedding=model):.2f}" for kind in KINDS)]
            for name, model in pairs
        ),
    ]
    return f"\n{_markdown(lines)}\n\n{_markdown(of_corpora)}\n"


def _cell(known: Mapping[tuple[str, str, str], Mapping[str, Sequence[float]]], place: int, **only: str) -> str:
    return " / ".join(f"{_mean(known, kind, place, **only):.2f}" for kind in KINDS)


def _mean(
    known: Mapping[tuple[str, str, str], Mapping[str, Sequence[float]]], kind: str, place: int, **only: str
) -> float:
    """The mean share of those of a corpus, system or model at a cutoff."""
    names = ("data", "system", "embedding")
    wanted = [
        shares[kind][place]
        for key, shares in known.items()
        if all(value == key[names.index(name)] for name, value in only.items())
    ]
    return sum(wanted) / len(wanted)


def _markdown(lines: Sequence[Sequence[str]]) -> str:
    return "\n".join("| " + " | ".join(line) + " |" for line in [lines[0], ["---"] * len(lines[0]), *lines[1:]])


if __name__ == "__main__":
    main()
