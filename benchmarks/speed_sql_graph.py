"""Speed of HippoRAG's graph in a database, beside the same graph in memory: one question, from its names to its list.

A question is answered by the default search in both, from the same nearness of passages, which is not timed: where
vectors lie is another matter. MuSiQue's graph is that of its recorded triples (`RAG_DATA`); larger graphs are made up.
PostgreSQL is measured where `PG_DSN` names a server, in a schema of its own. `RAG_STORES_PASSAGES` sets the size of the
made-up graph; beyond `EMBEDDED` passages it is not built in memory.
"""

import os
import statistics
from argparse import Namespace
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from llama_index.core.schema import QueryBundle
from sqlalchemy import Engine, text

from benchmarks.data import load
from benchmarks.embedding import minilm
from benchmarks.made_up_names import nearness_of, passages, questions
from benchmarks.measuring import Times, timed
from benchmarks.quality_hipporag import make_index
from benchmarks.sql_databases import databases
from llama_index.hipporag.config import SearchConfig
from llama_index.hipporag.graph.passage import Passage
from llama_index.hipporag.graph.passage_edges import passage_rows
from llama_index.hipporag.graph.record_reader import RecordReader
from llama_index.hipporag.search.graph_search import search_many
from llama_index.hipporag.search.query_seeds import QuerySeeds, links_of_text
from llama_index.hipporag.search.question_graph import QuestionGraph
from llama_index.hipporag.state import HippoRAGState
from llama_index.hipporag.stored_graph.stored_search import StoredResult, search_stored
from llama_index.ragkit import Steps, run_steps
from llama_index.ragkit.sql import reading
from llama_index.ragkit.sql.graph_rows import SQLGraphRows
from llama_index.ragkit.vectors.nearness import Nearness
from llama_index.ragkit.vectors.row_buffer import Record
from llama_index.ragkit.vectors.snapshot import Snapshot

__all__ = ["measurements"]

PASSAGES = 100_000
EMBEDDED = 200_000
AT_ONCE = 10_000  # passages written in one transaction
QUESTIONS = 100
TOP = 10
EPSILONS = (1e-5, 3e-6, 1e-6)


class Near:
    """Nearness that is at hand, for :class:`~llama_index.hipporag.stored_graph.stored_search.NearPassages`."""

    def __init__(self, ids: Sequence[str], row_of: Mapping[str, int], nearness: Nearness) -> None:
        self._ids, self._row_of, self._nearness = ids, row_of, nearness
        self._by = {"cosines": self._first(nearness.cosines), "scores": self._first(nearness.scores)}

    def _first(self, values: np.ndarray) -> list[int]:
        some = min(400, len(values))
        best = np.argpartition(-values, some - 1)[:some]
        found: list[int] = best[np.argsort(-values[best], kind="stable")].tolist()
        return found

    def nearest(self, count: int) -> tuple[list[str], np.ndarray]:
        """Passages with the largest cosines."""
        rows = self._by["cosines"][:count]
        return [self._ids[row] for row in rows], self._nearness.cosines[rows]

    def best(self, count: int) -> list[str]:
        """Passages with the highest nearness."""
        return [self._ids[row] for row in self._by["scores"][:count]]

    def of(self, passages: Sequence[str]) -> Steps[Mapping[str, float]]:
        """Nearness of passages."""
        return {node_id: float(self._nearness.scores[self._row_of[node_id]]) for node_id in passages}
        yield


class Asked(NamedTuple):
    """A question with its nearness, and the list that the graph in memory gives; empty where there is none."""

    text: str
    near: Near
    wanted: Sequence[str]


def measurements() -> Iterator[dict[str, Any]]:
    """MuSiQue's graph, where the corpus is, then a made-up one."""
    folder = Path(os.environ.get("RAG_DATA", "")) / "musique"
    if os.environ.get("RAG_DATA") and folder.is_dir():
        yield from _musique(folder)
    yield from _made_up(int(os.environ.get("RAG_STORES_PASSAGES", PASSAGES)))


def _musique(folder: Path) -> Iterator[dict[str, Any]]:
    (task,) = load(folder)
    index = make_index(task.corpus, minilm(), Namespace(rules=False, terms=False))
    entries = run_steps(index.storage.manifest.entries())
    reader = RecordReader(index.config)
    held = {node_id: reader.read(entries[node_id].record) for node_id in index.state.chunks.ids}
    retriever = index.as_retriever(similarity_top_k=TOP)
    near = {}
    for query in task.queries:
        (found,) = run_steps(retriever._search_many(run_steps(retriever._queries([QueryBundle(query.question)]))))
        near[query.question] = found.near
    with databases() as engines:
        graphs = {name: SQLGraphRows(engine, "musique") for name, engine in engines.items()}
        yield from _stored(f"MuSiQue: {len(held)} passages", graphs, engines, [held])
        asked, times = _embedded(index.state, near)
        for half in (0, 1):
            name = f"MuSiQue: one question, every other one from {half}"
            yield from _answers(name, graphs, asked[half::2], times.wall_s[half::2])


def _made_up(total: int) -> Iterator[dict[str, Any]]:
    parts = [(first, min(total, first + AT_ONCE)) for first in range(0, total, AT_ONCE)]
    with databases() as engines:
        graphs = {name: SQLGraphRows(engine, "made up") for name, engine in engines.items()}
        yield from _stored(
            f"made up: {total} passages", graphs, engines, (passages(total, *part) for part in parts)
        )  # fmt: skip
        drawn = [question for seed in (0, 1) for question in questions(total, QUESTIONS // 2, seed)]
        near = {question.text: nearness_of(question, total, 0) for question in drawn}
        if total <= EMBEDDED:
            state = _state([passage for part in parts for passage in passages(total, *part).items()])
            asked, times = _embedded(state, near)
            walls = times.wall_s
            del state
        else:
            ids = [f"p{number:07d}" for number in range(total)]
            rows = {node_id: row for row, node_id in enumerate(ids)}
            asked, walls = [Asked(question, Near(ids, rows, given), ()) for question, given in near.items()], []
        yield from _answers(f"made up: one question of {total} passages", graphs, asked, walls)


def _state(held: Sequence[tuple[str, Passage]]) -> HippoRAGState:
    """The state of an index with these passages, without vectors."""
    read = [passage for _, passage in held]
    state = HippoRAGState().with_names(read)
    records = [Record(node_id, None, node_id, "{}") for node_id, _ in held]
    chunks = Snapshot.of(np.ones((len(held), 1), np.float32), records)
    return replace(state, chunks=chunks, graph=state.graph_with(read))


def _stored(
    name: str,
    graphs: Mapping[str, SQLGraphRows],
    engines: Mapping[str, Engine],
    parts: Iterable[Mapping[str, Passage]],
) -> Iterator[dict[str, Any]]:
    """Write passages, and what that took; they are made into edges once for all databases."""
    making, writings, count = Times(), {kind: Times() for kind in graphs}, 0
    for graph in graphs.values():
        graph.create()
    for part in parts:
        rows = making.run(partial(passage_rows, part))
        for kind, graph in graphs.items():
            writings[kind].run(partial(graph.change, *rows))
        count += len(part)
    one = {f"one more {node_id}": held for node_id, held in passages(count, 0, 1).items()}
    for kind, graph in graphs.items():
        with reading(engines[kind], single=True) as connection:
            rows_there, size = connection.execute(
                text("SELECT count(*), sum(length(packed) + length(label)) FROM ragkit_graph_rows")
            ).one()
        _, insert_s, _ = timed(partial(_write, graph, one))
        _, delete_s, _ = timed(partial(_write, graph, one, -1))
        yield {
            "name": f"{name}, stored in {kind}",
            "edges_ms_a_passage": round(sum(making.wall_s) / count * 1000, 2),
            "write_ms_a_passage": round(sum(writings[kind].wall_s) / count * 1000, 2),
            "rows": rows_there,
            "rows_a_passage": round(rows_there / count, 1),
            "packed_mb": round(float(size) / 2**20, 1),
            "insert_of_one_ms": round(insert_s * 1000, 1),
            "delete_of_one_ms": round(delete_s * 1000, 1),
            "to_reach": "insert and delete under 300 ms",
        }


def _embedded(state: HippoRAGState, near: Mapping[str, Nearness]) -> tuple[list[Asked], Times]:
    """The lists of the graph in memory, after one question that is not counted, since it builds the tables."""
    rows = {node_id: row for row, node_id in enumerate(state.chunks.ids)}
    times, config = Times(), SearchConfig()

    def answer(question: str, given: Nearness) -> list[str]:
        links = links_of_text(state, state.graph, question, "unicode", True, True)
        weights = {link.row: link.weight for link in links}
        seeds = QuerySeeds(links, weights) if any(weights.values()) else QuerySeeds(reason="nothing is named")
        (found,) = search_many(state, state.graph, None, [seeds], [given], config, TOP)
        return [node_id for node_id, _ in zip((node_id for node_id, _ in found.ranking(TOP)), range(TOP), strict=False)]

    answer(*next(iter(near.items())))
    asked = []
    for question, given in near.items():
        wanted = times.run(partial(answer, question, given))
        asked.append(Asked(question, Near(state.chunks.ids, rows, given), wanted))
    return asked, times


def _answers(
    name: str, graphs: Mapping[str, SQLGraphRows], asked: Sequence[Asked], embedded_s: Sequence[float]
) -> Iterator[dict[str, Any]]:
    """The same questions to each database, at several epsilons."""
    for kind, graph in graphs.items():
        for epsilon in EPSILONS:
            times = Times()
            found = [times.run(partial(_answer, graph, question, epsilon)) for question in asked]
            lists = [[node_id for node_id, _ in result.ranking[:TOP]] for result in found]
            pairs = list(zip(lists, (question.wanted for question in asked), strict=True))
            known = [(one, wanted) for one, wanted in pairs if wanted]
            yield {
                "name": f"{name}, {kind}, epsilon {epsilon:g}",
                "questions": len(asked),
                "embedded_median_ms": round(statistics.median(embedded_s) * 1000, 1) if len(embedded_s) else None,
                "stored_median_ms": round(times.median_ms, 1),
                "stored_p95_ms": round(float(np.quantile(times.wall_s, 0.95)) * 1000, 1),
                "stored_median_cpu_ms": round(statistics.median(times.cpu_s) * 1000, 1),
                "top_10_the_same_passages": _share([set(one) == set(wanted) for one, wanted in known]),
                "top_10_in_the_same_order": _share([one == list(wanted) for one, wanted in known]),
                "median_nodes_read": statistics.median(result.read for result in found),
                "most_nodes_read": max(result.read for result in found),
                "median_statements": statistics.median(result.calls for result in found),
                "most_statements": max(result.calls for result in found),
                "best_of_the_walk_certain": _share([result.certain for result in found]),
                "median_missing_mass": round(statistics.median(result.missing for result in found), 5),
                "to_reach": "top 10 equal in 0.95",
            }


def _write(graph: SQLGraphRows, held: Mapping[str, Passage], count: int = 1) -> None:
    graph.change(*passage_rows(held, count))


def _share(truths: Sequence[bool]) -> float | None:
    return round(sum(truths) / len(truths), 3) if truths else None


def _answer(graph: SQLGraphRows, question: Asked, epsilon: float) -> StoredResult:
    with graph.reader() as reader:
        opened = partial(nullcontext, QuestionGraph(reader))
        return run_steps(search_stored(opened, question.text, question.near, SearchConfig(), epsilon=epsilon))
