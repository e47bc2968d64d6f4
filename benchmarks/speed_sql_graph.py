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
from dataclasses import replace
from functools import partial
from itertools import islice
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
from llama_index.hipporag.graph.passage import Passage, passage_number, passage_rows, record_reader
from llama_index.hipporag.graph_view import WholeGraph
from llama_index.hipporag.search.graph_search import GraphSearchResult, search_many, seed_passages
from llama_index.hipporag.search.query_seeds import Link, QuerySeeds
from llama_index.hipporag.search.question_graph import QuestionGraph
from llama_index.hipporag.state import HippoRAGState
from llama_index.ragkit.sql import reading
from llama_index.ragkit.sql.graph_rows import SQLGraphRows
from llama_index.ragkit.steps import run_steps
from llama_index.ragkit.text.characters import normalise
from llama_index.ragkit.vectors.question_scores import Nearness
from llama_index.ragkit.vectors.row_buffer import Record
from llama_index.ragkit.vectors.snapshot import Snapshot

__all__ = ["measurements"]

PASSAGES = 100_000
EMBEDDED = 200_000
AT_ONCE = 10_000  # passages written in one transaction
QUESTIONS = 100
TOP = 10
EPSILONS = (1e-5, 3e-6, 1e-6)
WALKED = 60  # passages of the walk that are scored


class Asked(NamedTuple):
    """A question with its nearness, and the list that the graph in memory gives; empty where there is none."""

    text: str
    row_of: Mapping[str, int]
    near: Nearness
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
    read = record_reader(index.config)
    held = {node_id: read(entries[node_id].record) for node_id in index.state.chunks.ids}
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
            asked, walls = [Asked(question, rows, given, ()) for question, given in near.items()], []
        yield from _answers(f"made up: one question of {total} passages", graphs, asked, walls)


def _state(held: Sequence[tuple[str, Passage]]) -> HippoRAGState:
    """The state of an index with these passages, without vectors."""
    read = [passage for _, passage in held]
    records = [Record(node_id, None, node_id, "{}") for node_id, _ in held]
    return HippoRAGState.of(Snapshot.of(np.ones((len(held), 1), np.float32), records), read)


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
    times, config = Times(), SearchConfig()
    rows = {node_id: row for row, node_id in enumerate(state.chunks.ids)}

    def answer(question: str, given: Nearness) -> list[str]:
        seeds = _seeds(run_steps(WholeGraph(state, state.graph).links(question, normalise, True)))
        (found,) = search_many(state, state.graph, None, [seeds], [given], config, TOP)
        return _best(found)

    answer(*next(iter(near.items())))
    asked = []
    for question, given in near.items():
        wanted = times.run(partial(answer, question, given))
        asked.append(Asked(question, rows, given, wanted))
    return asked, times


def _answers(
    name: str, graphs: Mapping[str, SQLGraphRows], asked: Sequence[Asked], embedded_s: Sequence[float]
) -> Iterator[dict[str, Any]]:
    """The same questions to each database, at several epsilons."""
    for kind, graph in graphs.items():
        for epsilon in EPSILONS:
            times = Times()
            found = [times.run(partial(_answer, graph, question, epsilon)) for question in asked]
            pairs = [(one, question.wanted) for (one, _), question in zip(found, asked, strict=True)]
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
                "median_nodes_read": statistics.median(read for _, (read, _) in found),
                "most_nodes_read": max(read for _, (read, _) in found),
                "median_reads_of_the_walk": statistics.median(calls for _, (_, calls) in found),
                "most_reads_of_the_walk": max(calls for _, (_, calls) in found),
                "to_reach": "top 10 equal in 0.95",
            }


def _write(graph: SQLGraphRows, held: Mapping[str, Passage], count: int = 1) -> None:
    graph.change(*passage_rows(held, count))


def _share(truths: Sequence[bool]) -> float | None:
    return round(sum(truths) / len(truths), 3) if truths else None


def _seeds(links: Sequence[Link]) -> QuerySeeds:
    weights = {link.row: link.weight for link in links}
    return QuerySeeds(links, weights) if any(weights.values()) else QuerySeeds(reason="nothing is named")


def _best(found: GraphSearchResult[Any]) -> list[str]:
    return [node_id for node_id, _ in islice(found.ranking(TOP), TOP)]


def _answer(graph: SQLGraphRows, asked: Asked, epsilon: float) -> tuple[list[str], tuple[int, int]]:
    """The ten best passages, of those near to a question or walked to; nodes that were read, and in how many reads."""
    config, ids_of = SearchConfig(), list(asked.row_of)
    question = QuestionGraph(graph.reader, None, len(asked.row_of), config, epsilon=epsilon)
    seeds = _seeds(question.links(asked.text, normalise, True, True))
    near = asked.near
    rows = list(dict.fromkeys(np.concatenate([_first(near.cosines), _first(near.scores)]).tolist()))
    if not seeds.reason:
        places, shares = seed_passages(near.cosines, None, config)
        nodes = [*seeds.weights, *(passage_number(ids_of[row]) for row in places.tolist())]
        walked = question.read([(np.array(nodes, np.int64), np.array([*seeds.weights.values(), *shares]))], WALKED)
        rows = list(dict.fromkeys([*rows, *(asked.row_of[node_id] for node_id in walked)]))
    ids = [ids_of[row] for row in rows]
    part = question.part(ids, seeds.links, None)
    row_of_phrase = {link.row: part.phrases.index(link.phrase) for link in seeds.links}
    seeds = replace(seeds, weights={row_of_phrase[node]: weight for node, weight in seeds.weights.items()})
    given = replace(near, cosines=near.cosines[rows], lexical=near.lexical[rows], scores=near.scores[rows])
    state = HippoRAGState(Snapshot.of(np.ones((len(ids), 1), np.float32), [Record(i, None, i, "{}") for i in ids]))
    (found,) = search_many(state, part, None, [seeds], [given], config, TOP)
    frontier = question.frontier
    return _best(found), (int((frontier.further >= 0).sum()), frontier.calls)


def _first(values: np.ndarray) -> np.ndarray:
    some = min(200, len(values))
    best: np.ndarray = np.argpartition(-values, some - 1)[:some]
    return best
