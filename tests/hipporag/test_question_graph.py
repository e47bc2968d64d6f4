"""The graph in a database: the search over it is that of the graph in memory, and writes leave only what is there."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix
from sqlalchemy import text

from llama_index.hipporag import PublishedWalk
from llama_index.hipporag.config import SearchConfig
from llama_index.hipporag.graph.passage import (
    Passage,
    list_rows,
    passage_number,
    passage_rows,
    phrase_number,
    read_record,
)
from llama_index.hipporag.graph_view import WholeGraph
from llama_index.hipporag.search.graph_search import search_many, seed_passages
from llama_index.hipporag.search.query_seeds import QuerySeeds
from llama_index.hipporag.search.question_graph import QuestionGraph
from llama_index.hipporag.state import HippoRAGState
from llama_index.hipporag.text.normalization import normalise
from llama_index.ragkit.sql import make_engine, reading
from llama_index.ragkit.sql.graph_rows import SQLGraphRows
from llama_index.ragkit.steps import run_steps
from llama_index.ragkit.storage.graph import edges as records_module
from llama_index.ragkit.vectors.question_scores import Nearness
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
    chunks = Snapshot.of(np.ones((len(held), 2), np.float32), [Record(name, None, name, "{}") for name in held])
    return HippoRAGState.of(chunks, list(held.values()))


def write(graph, held, count=1):
    graph.change(*passage_rows(held, count))


OPTIONS = [
    {},
    {"max_phrase_share": 0.6},
    {"max_phrase_share": 0.3, "subject_weight": 1.0},
    {"published": PublishedWalk(edges="published"), "damping": 0.1},
    {"published": PublishedWalk(conjunction=0.5)},
    {"published": PublishedWalk(max_steps=1)},
    {"published": PublishedWalk(length_normalization=0.5)},
    {"published": PublishedWalk(ensemble="none"), "passage_seeds": "none"},
    *(
        {
            "passage_seeds": "none",
            "published": PublishedWalk(ensemble="none", passage_nodes=False, counted=counted),
        }
        for counted in ("contains", "mentions", "facts")
    ),
    {
        "passage_seeds": "none",
        "published": PublishedWalk(passage_nodes=False, length_normalization=1.0),
        "max_phrase_share": 0.6,
    },
]


ADA = ("ada", "knew", "mary"), ("ada", "knew", "ada lovelace")
TWO_COMMON = {  # one of them only beyond the other
    "p0": Passage(Counter(), Counter(), []),
    "p1": Passage(Counter(), Counter(), []),
    "p2": Passage(Counter(), Counter(ADA[:1]), []),
    "p3": Passage(Counter(), Counter(ADA[:1]), []),
    "p4": Passage(Counter(), Counter(ADA[1:]), ["mary"]),
    "p5": Passage(Counter(), Counter(ADA), ["charles babbage"]),
}


@given(passages(), st.integers(0, 2**20), st.integers(0, 2**8 - 1), st.booleans(), st.sampled_from(OPTIONS))
@example(TWO_COMMON, 0, 0, False, OPTIONS[-1])
@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_an_answer_is_that_of_the_graph_in_memory(graph, held, seed, hidden, is_restricted, options):
    graph.drop()
    write(graph, held)
    state, ids, rng = in_memory(held), list(held), np.random.default_rng(seed)
    allowed = np.array([not (is_restricted and hidden >> i & 1) for i in range(len(ids))])
    if not allowed.any():
        return
    mask = None if not is_restricted else allowed
    cosines, words = rng.random(len(ids)), rng.random(len(ids))
    whole = WholeGraph(state, state.visible(mask))
    links = run_steps(whole.links(QUESTION, normalise, True))
    seeds = QuerySeeds(links, {link.row: link.weight for link in links})
    config = SearchConfig(**options)
    shown = {passage_number(ids[row]) for row in np.flatnonzero(allowed)}
    question = QuestionGraph(
        graph.reader,
        None if mask is None else lambda nodes: np.array([node in shown for node in nodes.tolist()]),
        len(held),
        config,
        [phrase_number("ada")] if seed % 2 else [],
    )
    found = question.links(QUESTION, normalise, True, True)
    assert sorted((link.asked, link.phrase, round(link.weight, 12)) for link in found) == sorted(
        (link.asked, link.phrase, round(link.weight, 12)) for link in links
    )
    if not any(seeds.weights.values()):
        return
    nearness = Nearness.of(cosines, words, 0.6, mask)
    (wanted,) = search_many(state, whole.graph, mask, [seeds], [nearness], config, 10)
    here = [ids[row] for row in np.flatnonzero(allowed)]
    near = Nearness.of(cosines[allowed], words[allowed], 0.6)
    rows, shares = seed_passages(near.cosines, None, config)
    weights = {link.row: link.weight for link in found}
    nodes = np.array([*weights, *(passage_number(here[row]) for row in rows.tolist())], np.int64)
    resets = [(nodes, np.array([*weights.values(), *shares]))]
    resets += [(np.array([node], np.int64), np.ones(1)) for node in weights]
    assert set(question.read(resets, 10)) <= set(here)
    contents = in_memory({node_id: held[node_id] for node_id in here})
    needed = not config.published.passage_nodes or config.published.length_normalization
    part = question.part(here, found, contents if needed else None)
    row = {link.row: part.phrases.index(link.phrase) for link in found}
    local = QuerySeeds(found, {row[node]: weight for node, weight in weights.items()})
    (answer,) = search_many(contents, part, None, [local], [near], config, 10)
    np.testing.assert_allclose(answer.scores, wanted.scores[allowed], atol=1e-6)
    assert answer.trust == (None if wanted.trust is None else pytest.approx(wanted.trust, abs=1e-6))


@given(passages(), st.booleans(), st.sampled_from(["added", "published"]), st.randoms(use_true_random=False))
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_walk_has_the_weights_of_the_graph_in_memory(graph, held, synonyms, edges, random):
    graph.drop()
    write(graph, held)
    state = in_memory(held)
    if not len(state.phrases):
        return
    names = list(state.phrases)
    pairs = [(one, other) for one in names for other in names if one != other and random.random() < 0.3]
    lists = {one: {other: 0.8 + len(one + other) / 500 for first, other in pairs if first == one} for one, _ in pairs}
    graph.change(*list_rows(lists))
    rows = state.phrases
    entries = [(rows[one], rows[other], cosine) for one, near in lists.items() for other, cosine in near.items()]
    table = np.array(entries).reshape(-1, 3)
    state = state.with_lists(
        csr_matrix((table[:, 2], (table[:, 0].astype(int), table[:, 1].astype(int))), (len(names),) * 2)
    )
    config = SearchConfig(
        published=PublishedWalk(edges=edges), synonyms=synonyms, subject_weight=3.0, max_phrase_share=1.0
    )
    question = QuestionGraph(graph.reader, None, len(held), config)
    question.read([(np.array([*map(phrase_number, names)], np.int64), np.ones(len(names)))], 10)
    part = question.part(list(held), [], None)
    wanted = state.graph.walk(edges, synonyms, 3.0).outward.toarray()
    order = [rows[phrase] for phrase in part.phrases]
    order += [row for row in range(len(names)) if row not in order] if len(part.phrases) < len(names) else []
    order += range(len(names), len(names) + len(held))
    np.testing.assert_allclose(part.edges.toarray(), wanted[order][:, order], atol=1e-8)


def stored(graph, path):
    engine = make_engine(f"sqlite:///{path}")
    with reading(engine, single=True) as connection:
        rows = connection.execute(text("SELECT * FROM ragkit_graph_rows ORDER BY node, segment")).all()
    engine.dispose()
    return rows


@given(st.lists(passages(most=4), min_size=1, max_size=5), st.data())
@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
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
