"""The graph in a database: the search over it is that of the graph in memory, and writes leave only what is there."""

from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import text

from llama_index.hipporag.config import SearchConfig
from llama_index.hipporag.graph.knowledge_graph import most_passages
from llama_index.hipporag.graph.passage import Passage, read_record
from llama_index.hipporag.graph.passage_edges import passage_number, passage_rows, phrase_number
from llama_index.hipporag.pagerank.frontier import frontiers
from llama_index.hipporag.pagerank.power_iteration import pagerank
from llama_index.hipporag.search.graph_search import search_many
from llama_index.hipporag.search.query_seeds import QuerySeeds, links_of_text
from llama_index.hipporag.search.question_graph import QuestionGraph
from llama_index.hipporag.state import HippoRAGState
from llama_index.hipporag.stored_graph.stored_search import search_stored
from llama_index.hipporag.text.normalization import normalise
from llama_index.ragkit import run_steps
from llama_index.ragkit.errors import ConfigurationError
from llama_index.ragkit.sql import make_engine, reading
from llama_index.ragkit.sql.graph_rows import SQLGraphRows
from llama_index.ragkit.storage.graph import edges as records_module
from llama_index.ragkit.vectors.nearness import Nearness
from llama_index.ragkit.vectors.row_buffer import Record
from llama_index.ragkit.vectors.snapshot import Snapshot

NAMES = ["Ada", "Ada Lovelace", "Charles Babbage", "London", "machine", "analytical machine", "Turin", "Mary", "Rome"]
QUESTION = "Where did Ada Lovelace and Babbage build the analytical machine, in London or Turin?"


@pytest.fixture
def graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SQLGraphRows]:
    """An empty graph whose hubs have more than four edges."""
    monkeypatch.setattr(records_module, "SEGMENT", 4)
    monkeypatch.setattr("llama_index.ragkit.sql.graph_rows.SEGMENT", 4)
    monkeypatch.setattr("llama_index.hipporag.graph.knowledge_graph._FEWEST", 3)
    engine = make_engine(f"sqlite:///{tmp_path / 'graph.db'}")
    rows = SQLGraphRows(engine, "index")
    rows.create()
    yield rows
    engine.dispose()


@st.composite
def passages(draw, most=8):
    name = st.sampled_from(NAMES)
    record = st.fixed_dictionaries(
        {
            "entities": st.lists(name, max_size=4),
            "triples": st.lists(st.tuples(name, st.sampled_from(["knew", "built"]), name).map(list), max_size=4),
            "subject": st.lists(name, max_size=1),
        }
    )
    records = draw(st.lists(record, min_size=1, max_size=most))
    return {f"p{i}": read_record(record, normalise) for i, record in enumerate(records)}


def in_memory(held: dict[str, Passage]) -> HippoRAGState:
    state = HippoRAGState().with_names(list(held.values()))
    chunks = Snapshot.of(np.ones((len(held), 2), np.float32), [Record(name, None, name, "{}") for name in held])
    return replace(state, chunks=chunks, graph=state.graph_with(list(held.values())))


class Near:
    """Nearness that is given."""

    def __init__(self, ids, nearness, allowed):
        self.ids, self.nearness, self.rows = ids, nearness, np.flatnonzero(allowed)

    def nearest(self, count):
        return [self.ids[row] for row in self.rows], self.nearness.cosines[self.rows]

    def best(self, count):
        order = self.rows[np.argsort(-self.nearness.scores[self.rows])]
        return [self.ids[row] for row in order[:count]]

    def of(self, ids):
        return {node_id: float(self.nearness.scores[self.ids.index(node_id)]) for node_id in ids}
        yield


def search(question_graph, question, near, config, **options):
    return run_steps(search_stored(partial(nullcontext, question_graph), question, near, config, **options))


def write(graph, held, count=1):
    graph.change(*passage_rows(held, count))


@given(passages(), st.integers(0, 2**20), st.integers(0, 2**8 - 1), st.booleans(), st.sampled_from([1.0, 0.6, 0.3]))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_an_answer_is_that_of_the_graph_in_memory(graph, held, seed, hidden, is_restricted, share):
    graph.drop()
    write(graph, held)
    state, ids, rng = in_memory(held), list(held), np.random.default_rng(seed)
    allowed = np.array([not (is_restricted and hidden >> i & 1) for i in range(len(ids))])
    if not allowed.any():
        return
    mask = None if not is_restricted else allowed
    nearness = Nearness.of(rng.random(len(ids)), rng.random(len(ids)), 0.6, mask)
    seen = state.visible(mask)
    links = links_of_text(state, seen, QUESTION, "unicode", True, True)
    weights = {link.row: link.weight for link in links}
    seeds = QuerySeeds(links, weights) if any(weights.values()) else QuerySeeds(reason="nothing")
    config = SearchConfig(max_phrase_share=1.0 if is_restricted else share)
    (wanted,) = search_many(state, seen, mask, [seeds], [nearness], config, 10)
    shown = {passage_number(ids[row]) for row in np.flatnonzero(allowed)}
    with graph.reader() as reader:
        question = QuestionGraph(
            reader,
            None if mask is None else lambda nodes: np.array([node in shown for node in nodes.tolist()]),
            most=most_passages(config.max_phrase_share, len(held)),
            supposed=[phrase_number("ada")] if seed % 2 else [],
        )
        found = search(question, QUESTION, Near(ids, nearness, allowed), config, epsilon=1e-12)
    assert sorted((link.asked, link.phrase, round(link.weight, 12)) for link in found.links) == sorted(
        (link.asked, link.phrase, round(link.weight, 12)) for link in links
    )
    expected = {ids[row]: wanted.scores[row] for row in np.flatnonzero(allowed)}
    assert dict(found.ranking) == pytest.approx(expected, abs=1e-6)
    assert [score for _, score in found.ranking] == sorted((score for _, score in found.ranking), reverse=True)
    assert found.trust == (None if wanted.trust is None else pytest.approx(wanted.trust, abs=1e-6))


@given(passages(), st.sampled_from([1.0, 10.0]))
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_walk_has_the_weights_of_the_graph_in_memory(graph, held, subject_weight):
    graph.drop()
    write(graph, held)
    state = in_memory(held)
    if not len(state.phrases):
        return
    walk = state.graph.walk(subject_weight=subject_weight)
    numbers = [*map(phrase_number, state.phrases), *map(passage_number, held)]
    reset = np.zeros(len(numbers))
    reset[0] = 1.0
    with graph.reader() as reader:
        fetch = QuestionGraph(reader, subject_weight=subject_weight).fetch
        *_, estimate = frontiers(fetch, np.array(numbers[:1]), np.ones(1), epsilon=1e-12)
    found = dict(zip(estimate.nodes.tolist(), estimate.scores.tolist(), strict=True))
    wanted = dict(zip(numbers, pagerank(walk, reset).tolist(), strict=True))
    assert {node: found.get(node, 0.0) for node in numbers} == pytest.approx(wanted, abs=1e-9)
    assert set(found) <= set(numbers)


def stored(graph, path):
    engine = make_engine(f"sqlite:///{path}")
    with reading(engine, single=True) as connection:
        rows = connection.execute(text("SELECT * FROM ragkit_graph_rows ORDER BY node, segment")).all()
    engine.dispose()
    return rows


@given(st.lists(passages(most=4), min_size=1, max_size=5), st.data())
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_after_inserts_and_deletes_the_rows_are_those_of_what_is_left(graph, tmp_path, batches, data):
    graph.drop()
    held: dict[str, Passage] = {}
    for number, batch in enumerate(batches):
        new = {f"{number}-{node_id}": passage for node_id, passage in batch.items()}
        write(graph, new)
        held |= new
        gone = data.draw(st.sets(st.sampled_from(sorted(held)))) if held else set()
        write(graph, {node_id: held.pop(node_id) for node_id in gone}, -1)
    rows = stored(graph, tmp_path / "graph.db")
    graph.drop()
    write(graph, held)
    assert stored(graph, tmp_path / "graph.db") == rows
    write(graph, held, -1)
    assert stored(graph, tmp_path / "graph.db") == []


def test_a_question_that_names_nothing_is_answered_by_nearness(graph):
    write(graph, {"p0": read_record({"entities": ["Rome"]}, normalise)})
    near = Near(["p0", "p1"], Nearness.of(np.array([0.1, 0.9]), np.zeros(2), 0.6), np.ones(2, np.bool_))
    with graph.reader() as reader:
        found = search(QuestionGraph(reader), "Who was it?", near, SearchConfig())
    assert [node_id for node_id, _ in found.ranking] == ["p1", "p0"]
    assert found.trust is None
    assert found.read == 0


def test_another_search_is_refused_by_name(graph):
    with graph.reader() as reader, pytest.raises(ConfigurationError, match="synonyms=False"):
        search(QuestionGraph(reader), "Rome?", Near([], None, []), SearchConfig(synonyms=True))
