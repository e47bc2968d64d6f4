"""Steps of a search: cuts, chunk scores, links, contexts, relevance tests, follow-ups, points and costs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.graphrag.test_reports import planner, ring

from llama_index.graphrag.clustering.hierarchy import Hierarchy, hierarchy
from llama_index.graphrag.config import SearchConfig
from llama_index.graphrag.costs import question_cost
from llama_index.graphrag.global_search import RelevanceSearch
from llama_index.graphrag.graph.entity_graph import GraphArrays, entity_graph
from llama_index.graphrag.graph.statement import ChunkStatements, EntityStatement, RelationStatement
from llama_index.graphrag.graph.statement_graph import statement_graph
from llama_index.graphrag.local_search import ranked_chunks, ranked_communities, ranked_relations
from llama_index.graphrag.map_reduce import BatchResult, Point, checked_points, collected
from llama_index.graphrag.prompts import MAP_PROMPT
from llama_index.graphrag.search.cut import budget_cut, community_nearness, level_cut, rated_cut
from llama_index.graphrag.search.drift import Drift, DriftAnswer
from llama_index.graphrag.search.linking import Link, activations, chunk_shares, known_names, linked_entities, relative
from llama_index.ragkit.llm.prompts import fence
from llama_index.ragkit.text.tokens import count_tokens


@st.composite
def trees(draw: st.DrawFn) -> Hierarchy:
    n = draw(st.integers(1, 12))
    levels, labels = [], np.zeros(n, np.int64)
    for _ in range(draw(st.integers(1, 3))):
        finer = np.array(draw(st.lists(st.integers(0, 2), min_size=n, max_size=n)))
        labels = np.unique(labels * 3 + finer, return_inverse=True)[1].reshape(-1)
        levels.append(labels)
    return hierarchy(n, levels)


@settings(max_examples=100)
@given(trees(), st.integers(1, 60), st.integers(0, 1000))
def test_a_cut_has_each_entity_at_most_once_and_fits(tree: Hierarchy, budget: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    costs, nearness = rng.integers(1, 9, len(tree)).tolist(), rng.random(len(tree))
    cut = budget_cut(tree, costs.__getitem__, nearness, budget)
    rows = [row for community in cut.communities for row in tree.members(community).tolist()]
    assert len(rows) == len(set(rows))
    assert cut.tokens == sum(costs[community] for community in cut.communities) <= budget
    if not cut.left_out:
        assert sorted(rows) == list(range(len(tree.order)))
    assert [float(nearness[c]) for c in cut.communities] == sorted(nearness[list(cut.communities)], reverse=True)
    for level in range(4):
        level_rows = [row for c in level_cut(tree, level) for row in tree.members(c).tolist()]
        assert sorted(level_rows) == list(range(len(tree.order)))


def test_the_nearest_community_is_opened_first() -> None:
    tree = hierarchy(4, [np.array([0, 0, 1, 1]), np.array([0, 1, 2, 3])])
    nearness = np.zeros(len(tree))
    near = int(tree.parent[tree.leaf[2]])
    nearness[near] = 1.0
    cut = budget_cut(tree, lambda _: 1, nearness, 3)
    assert cut.opened == (near,)
    assert len(cut.refused) == 1
    assert budget_cut(tree, lambda _: 1, nearness, 9, can_open=lambda _: False).opened == ()


def test_nearness_of_a_community_is_the_mean_of_its_five_best_chunks() -> None:
    tree = hierarchy(2, [np.array([0, 1])])
    found = community_nearness(tree, [(1.0, [0]), (0.5, [0, 1]), (0.1, [])], lowest=0.1)
    assert found.tolist() == pytest.approx([(1.0 + 0.5 + 3 * 0.1) / 5, (0.5 + 4 * 0.1) / 5])


CHUNKS = [
    ChunkStatements("c0", "h0", relations=(RelationStatement("Ada", "Bede"), RelationStatement("Ada", "Cai"))),
    ChunkStatements("c1", "h1", relations=(RelationStatement("Ada", "Bede"),)),
    ChunkStatements("c2", "h2", entities=(EntityStatement("Dora"),)),
]


def test_activation_goes_on_to_neighbours_by_weight() -> None:
    graph = statement_graph(CHUNKS)
    links = [Link("ada", "name", "Ada", 1.0)]
    assert activations(entity_graph(graph), links, 0.0) == {"ada": 1.0}
    active = activations(entity_graph(graph), links, 0.3)
    assert dict(active) == pytest.approx({"ada": 1.0, "bede": 0.3 * 2 / 3, "cai": 0.3 / 3})
    shares = chunk_shares(GraphArrays.of(graph).naming, active)
    best = 1 / 2 + 0.2 / 2 + 0.1
    assert dict(shares) == pytest.approx({"c0": 1.0, "c1": (1 / 2 + 0.2 / 2) / best})


def test_links_are_names_then_vectors_then_chunks() -> None:
    names = known_names(statement_graph(CHUNKS))
    links = linked_entities("Who met Ada?", names, [("bede", 0.9), ("ada", 0.8)])
    assert [(link.entity, link.kind) for link in links] == [("ada", "name"), ("bede", "vector")]
    assert links[0].weight == 1.8
    by_chunks = linked_entities("who?", names, chunks=[(0.8, ["cai"]), (0.4, ["cai", "dora"])])
    assert [(link.entity, link.kind, link.weight) for link in by_chunks] == [
        ("cai", "chunk", 1.0),
        ("dora", "chunk", 0.2),
    ]
    assert linked_entities("who?", names) == []


@given(st.lists(st.floats(0, 1), min_size=1, max_size=9), st.floats(0.01, 9), st.floats(-9, 9))
def test_places_between_the_last_and_the_first_know_no_scale(values: list[float], scale: float, offset: float) -> None:
    given_values = np.round(np.sort(values)[::-1], 3)
    expected = relative(given_values, 2)
    assert relative(given_values * scale + offset, 2) == pytest.approx(expected, abs=1e-6)
    assert expected.min() == 0
    assert expected.max() in (0, 1)


def test_names_belong_to_their_scope() -> None:
    scoped_chunks = [ChunkStatements(f"{s}", "h", entities=(EntityStatement("Ada"),), scope=s) for s in ("x", "y")]
    graph = statement_graph(scoped_chunks)
    assert len(graph.entities) == 2
    assert len(known_names(graph)["ada"]) == 2
    assert {graph.name_of(key) for key in graph.entities} == {"Ada"}


def test_a_local_context_ranks_communities_relations_and_chunks() -> None:
    plans = planner(ring())
    rows = [plans.entities.position[name] for name in ("n00", "n01")]
    communities = ranked_communities(plans.hierarchy, rows)
    members = [plans.hierarchy.members(community).tolist() for community in range(len(plans.hierarchy))]
    assert communities[0] == min(
        (c for c, own in enumerate(members) if set(rows) <= {*own}), key=lambda c: len(members[c])
    )
    relations = ranked_relations(plans.entities, rows, 1)
    assert set(relations[0]) == set(rows)
    assert len(relations) == 1 + 2
    assert ranked_chunks(plans.graph, ["n00", "n01"])[0] == "c0"


def test_feedback_brings_what_resembles_a_relevant_chunk() -> None:
    search = RelevanceSearch(np.array([0.9, 0.8, 0.1, 0.0]), 3, 2.0)
    assert search.next() == 0
    assert search.judged(0, True)
    search.compare(np.array([1.0, 0.0, 0.0, 0.9]))
    assert search.next() == 3
    assert not search.judged(3, True)
    assert search.next() == 1
    search.judged(1, False)
    assert search.next() is None
    assert (search.relevant, search.tests) == ([0, 3], 3)


def test_rated_communities_are_opened_and_replaced_by_what_is_read_below() -> None:
    tree = hierarchy(4, [np.array([0, 0, 1, 1]), np.array([0, 1, 2, 3])])
    first, second = tree.roots.tolist()
    low, high = tree.children(first).tolist()
    assert rated_cut(tree, {first: 3, second: 0, low: 0, high: 5}, 1) == (high,)
    assert rated_cut(tree, {first: 3, second: 0, low: 0, high: 0}, 1) == (first,)
    assert rated_cut(tree, {first: 1, second: 2, low: 0, high: 0}, 1) == (second, first)


def test_a_search_with_follow_ups_asks_none_twice_and_ends() -> None:
    drift = Drift(SearchConfig(max_calls=6, rounds=5, follow_ups=2))
    drift = drift.answered([DriftAnswer("Q", "a", 50, ("One?", "two?", "one"), ("n1",))], 2)
    assert drift.next_questions() == ("One?", "two?")
    new = [DriftAnswer("One?", "b", 90, ("Three?", "Q"), ("n2",)), DriftAnswer("two?", "c", 10, (), ("n1",))]
    drift = drift.answered(new, 2)
    assert drift.next_questions() == ("Three?",)
    assert drift.nodes == ("n2", "n1")
    assert drift.answered([DriftAnswer("Three?", "d", 1, ("Four?",), ("n1",))], 1).ended
    assert drift.answered([], 1).next_questions() == ()


def test_points_without_score_source_or_room_are_counted() -> None:
    found = checked_points(
        [("a [1]", "9/10", []), ("b", 50, [7]), ("c", "high", [1]), ("d [2]", 0, [])], {1: ["n1"], 2: ["n2"]}
    )
    assert found.points == (Point("a", 90.0, ("n1",)), Point("d", 0.0, ("n2",)))
    assert (found.dropped_citations, found.dropped_points) == (1, 2)
    results = [BatchResult(error="no reply"), BatchResult((*found.points, Point("a", 20.0, ("n3",))))]
    made = collected(results, 10, lambda text: 1)
    assert made.points == (Point("a", 90.0, ("n1", "n3")),)
    assert (made.without_score, made.left_out, made.failed) == (1, 0, {0: "no reply"})
    assert collected(results[::-1], 10, lambda text: 1).points == made.points
    assert collected(results, 1, lambda text: 1).left_out == 1


def test_the_cost_of_a_question_says_when_reading_all_is_cheaper() -> None:
    texts = ["silk " * 9_000, "loom " * 9_000]
    sizes, tags = sum(map(count_tokens, texts)), count_tokens(fence([""]))
    instructions = count_tokens(MAP_PROMPT.get_template()) + count_tokens("Why?")
    cost = question_cost("Why?", texts, 500, [400], None)
    points = -(-2 * 12_000 // sizes)  # of the answer, as long as the passages
    expected = sizes + 12_000 + tags * (2 + points) + instructions * 3 + 400
    assert (cost.calls, cost.report_calls, cost.tokens) == (2 + 1, 1, expected)
    assert cost.reading_all_is_cheaper
    assert not question_cost("Why?", texts, expected, [400], None).reading_all_is_cheaper
    assert question_cost("Why?", [], 500, [], None).calls == 0
