"""Communities: closed forms, a slow reference, and that they follow from the graph alone."""

import random
from itertools import combinations

import numpy as np
import pytest
from benchmarks.modularity import modularity
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components
from tests.graphrag.slow_clustering import Partition, Weights, slow_levels, slow_modularity

from llama_index.graphrag.clustering.agglomerative import AgglomerativeClustering
from llama_index.graphrag.clustering.hierarchy import Clustering, Hierarchy, hierarchy
from llama_index.graphrag.clustering.leiden import LeidenClustering
from llama_index.graphrag.graph.entity_graph import EntityGraph
from llama_index.ragkit.errors import ConfigurationError

pytest.importorskip("graspologic_native")

NAMES = [f"{word}{i}" for i in range(4) for word in ("ada", "bob", "cy", "dee")]
WHOLE = AgglomerativeClustering(leaf_tokens=None)
each_clustering = pytest.mark.parametrize("clustering", [WHOLE, LeidenClustering()], ids=["agglomerative", "leiden"])


def graph_of(weights: Weights, names: list[str] | None = None, tokens: int = 0) -> EntityGraph:
    listed = names or sorted({name for pair in weights for name in pair})
    ends = [[listed.index(pair[side]) for pair in weights] for side in (0, 1)]
    sizes = [tokens] * len(weights)
    return EntityGraph.of(listed, *ends, list(weights.values()), sizes, [tokens] * len(listed))


def clique(names: list[str]) -> Weights:
    return dict.fromkeys(combinations(names, 2), 1)


def partition(graph: EntityGraph, labels: np.ndarray) -> Partition:
    groups: dict[int, set[str]] = {}
    for name, label in zip(graph.names, labels.tolist(), strict=True):
        groups.setdefault(label, set()).add(name)
    return {frozenset(group) for group in groups.values()}


def communities(graph: EntityGraph, found: Hierarchy) -> list[frozenset[str]]:
    return [frozenset(graph.names[i] for i in found.members(c)) for c in range(len(found))]


def as_bytes(found: Hierarchy) -> list[bytes]:
    return [array.tobytes() for array in (found.order, found.first, found.last, found.parent)]


def check_hierarchy(graph: EntityGraph, found: Hierarchy) -> None:
    """Levels nest and partition; communities are connected, and numbered parents first by their least members."""
    n = len(graph)
    assert sorted(found.order.tolist()) == list(range(n))
    assert len(set(communities(graph, found))) == len(found)
    previous = np.zeros(n, np.int64)
    for level in range(int(found.level.max(initial=0)) + 1):
        labels = found.partition(level)
        assert all(i in found.members(labels[i]) for i in range(n))
        assert len(np.unique(previous * (len(found) + 1) + labels)) == len(np.unique(labels))
        previous = labels
    adjacency = csr_matrix((graph.weights, graph.indices, graph.indptr), shape=(n, n))
    for community in range(len(found)):
        members = found.members(community)
        assert connected_components(adjacency[members][:, members], directed=False)[0] == 1
        children = found.children(community).tolist()
        assert found.is_leaf[community] == (not children)
        assert len(children) != 1
        if children:
            assert sorted(np.concatenate([found.members(child) for child in children])) == members.tolist()
            firsts = [int(found.members(child)[0]) for child in children]
            assert firsts == sorted(firsts)
        assert found.ancestors(community)[:1] == [p for p in [int(found.parent[community])] if p >= 0]
    assert (found.parent < np.arange(len(found))).all()
    assert [int(found.members(root)[0]) for root in found.roots] == sorted(
        int(found.members(r)[0]) for r in found.roots
    )


@st.composite
def weighted_graphs(draw: st.DrawFn) -> tuple[list[str], Weights]:
    names = draw(st.lists(st.sampled_from(NAMES), unique=True, max_size=14))
    pairs = list(combinations(sorted(names), 2))
    some = st.sampled_from([0, 0, 0, 1, 1, 2, 5])
    drawn = {pair: draw(some) for pair in pairs}
    return names, {pair: weight for pair, weight in drawn.items() if weight}


@settings(max_examples=80)
@given(weighted_graphs(), st.randoms(use_true_random=False))
def test_agglomeration_is_as_described(case: tuple[list[str], Weights], random_: random.Random) -> None:
    names, weights = case
    graph = graph_of(weights, names)
    found = WHOLE.cluster(graph)
    check_hierarchy(graph, found)
    expected = {community for level in slow_levels(names, weights) for community in level} if names else set()
    assert set(communities(graph, found)) == expected
    shuffled = list(weights)
    random_.shuffle(shuffled)
    again = graph_of({pair: weights[pair] for pair in shuffled}, names[::-1])
    assert as_bytes(WHOLE.cluster(again)) == as_bytes(found)


@settings(max_examples=30)
@given(weighted_graphs())
def test_leiden_gives_a_hierarchy_of_everything(case: tuple[list[str], Weights]) -> None:
    graph = graph_of(case[1], case[0])
    for clustering in (LeidenClustering(max_cluster_size=3), LeidenClustering.paper()):
        found = clustering.cluster(graph)
        assert sorted(found.order.tolist()) == list(range(len(graph)))
        assert as_bytes(clustering.cluster(graph)) == as_bytes(found)


@settings(max_examples=40)
@given(weighted_graphs(), st.data())
def test_modularity_is_its_definition(case: tuple[list[str], Weights], data: st.DataObject) -> None:
    names, weights = case
    graph = graph_of(weights, names)
    labels = np.array([data.draw(st.integers(0, 3)) for _ in names], np.int64)
    expected = slow_modularity(names, weights, partition(graph, labels)) if weights else 0.0
    assert modularity(graph, labels) == pytest.approx(expected, abs=1e-12)


# -- closed forms -----------------------------------------------------------------------------------------


@each_clustering
def test_two_joined_cliques_are_two_communities(clustering: Clustering) -> None:
    left, right = list("abcde"), list("vwxyz")
    graph = graph_of(clique(left) | clique(right) | {("a", "z"): 1})
    roots = partition(graph, clustering.cluster(graph).partition(0))
    assert roots == {frozenset(left), frozenset(right)}
    # Each side has 10 of 21 edges inside and half of all strength.
    assert modularity(graph, clustering.cluster(graph).partition(0)) == pytest.approx(20 / 21 - 1 / 2)


def test_a_ring_of_cliques_has_the_cliques_for_leaves() -> None:
    cliques = [[f"{i}{letter}" for letter in "abcde"] for i in range(8)]
    weights: Weights = {}
    for i, names in enumerate(cliques):
        weights |= clique(names) | {(min(names[0], cliques[(i + 1) % 8][1]), max(names[0], cliques[(i + 1) % 8][1])): 1}
    graph = graph_of(weights)
    assert partition(graph, WHOLE.cluster(graph).leaf) == {frozenset(names) for names in cliques}


@each_clustering
def test_a_star_stays_whole(clustering: Clustering) -> None:
    graph = graph_of({("hub", f"spoke{i}"): 1 for i in range(9)})
    assert len(clustering.cluster(graph)) == 1


def test_a_star_over_the_limit_stays_whole_too() -> None:
    graph = graph_of({("hub", f"spoke{i}"): 1 for i in range(9)}, tokens=100)
    assert len(AgglomerativeClustering(leaf_tokens=50).cluster(graph)) == 1


def test_components_never_mix_and_the_small_ones_are_there() -> None:
    weights = clique(list("abcd")) | {("p", "q"): 1}
    graph = graph_of(weights, [*"abcdpqz"])
    assert partition(graph, WHOLE.cluster(graph).partition(0)) == {
        frozenset("abcd"),
        frozenset("pq"),
        frozenset("z"),
    }
    alone = LeidenClustering.paper().cluster(graph)
    assert partition(graph, alone.partition(0)) == {frozenset("abcd"), *(frozenset(name) for name in "pqz")}


@each_clustering
def test_nothing_and_one_entity(clustering: Clustering) -> None:
    nothing, one = EntityGraph.of([], [], []), EntityGraph.of(["a"], [], [])
    assert len(clustering.cluster(nothing)) == 0
    assert clustering.cluster(nothing).partition(3).tolist() == []
    assert communities(one, clustering.cluster(one)) == [frozenset("a")]
    assert modularity(one, [0]) == 0


# -- leaves over the limit --------------------------------------------------------------------------------


@settings(max_examples=40)
@given(weighted_graphs(), st.integers(1, 400))
def test_leaves_over_the_limit_are_those_that_nothing_divides(case: tuple[list[str], Weights], limit: int) -> None:
    names, weights = case
    graph = graph_of(weights, names, tokens=10)
    found = AgglomerativeClustering(leaf_tokens=limit).cluster(graph)
    check_hierarchy(graph, found)
    undivided = set(communities(graph, WHOLE.cluster(graph)))
    assert undivided <= set(communities(graph, found))
    for leaf in np.flatnonzero(found.is_leaf):
        members = {graph.names[i] for i in found.members(leaf)}
        inside = {pair: w for pair, w in weights.items() if members.issuperset(pair)}
        if 10 * (len(members) + len(inside)) > limit:
            assert all(len(level) == 1 for level in slow_levels(sorted(members), inside)) or len(members) == 1


# -- the hierarchy ----------------------------------------------------------------------------------------


def test_a_hierarchy_can_be_walked() -> None:
    #          0: nodes 0 1 2 3 5         4: nodes 4 6
    #   1: 0 2      2: 1 3 5              (the same at every level)
    found = hierarchy(7, [np.array([0, 0, 0, 0, 4, 0, 4]), np.array([3, 1, 3, 1, 0, 1, 0])])
    assert found.parent.tolist() == [-1, 0, 0, -1]
    assert [found.members(c).tolist() for c in range(4)] == [[0, 1, 2, 3, 5], [0, 2], [1, 3, 5], [4, 6]]
    assert found.level.tolist() == [0, 1, 1, 0]
    assert found.roots.tolist() == [0, 3]
    assert found.children(0).tolist() == [1, 2]
    assert found.children(3).tolist() == []
    assert found.leaf.tolist() == [1, 2, 1, 2, 3, 2, 3]
    assert found.partition(0).tolist() == [0, 0, 0, 0, 3, 0, 3]
    assert found.partition(9).tolist() == found.leaf.tolist()
    assert found.ancestors(2) == [0]


# -- limits -----------------------------------------------------------------------------------------------


def test_weights_too_large_for_exact_gains_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="common factor"):
        WHOLE.cluster(graph_of({("a", "b"): 2_000_000_000}))
    assert len(WHOLE.cluster(graph_of({("a", "b"): 1_400_000_000}))) == 1


@pytest.mark.parametrize(
    ("kind", "parameters"),
    [
        (AgglomerativeClustering, {"leaf_tokens": 0}),
        (LeidenClustering, {"max_cluster_size": 0}),
        (LeidenClustering, {"resolution": 0}),
        (LeidenClustering, {"randomness": -1}),
        (LeidenClustering, {"iterations": 0}),
        (LeidenClustering, {"seed": -1}),
    ],
)
def test_parameters_are_checked(kind: type, parameters: dict[str, int]) -> None:
    with pytest.raises(ConfigurationError, match=next(iter(parameters))):
        kind(**parameters)


def test_without_the_library_leiden_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "graspologic_native", None)
    with pytest.raises(ImportError, match=r"llama-index-graphrag\[leiden\]"):
        LeidenClustering()


def test_fingerprints_tell_clusterings_apart() -> None:
    assert WHOLE.fingerprint == {"class": "AgglomerativeClustering", "leaf_tokens": "None"}
    assert LeidenClustering.paper().fingerprint != LeidenClustering().fingerprint
