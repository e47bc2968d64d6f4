"""Condensing a ranking with the tree: closed forms and invariants."""

from hypothesis import given, settings
from hypothesis import strategies as st

from llama_index.raptor.postprocessor import Choice, condense
from llama_index.raptor.tree import Tree, summary_id

TREE = Tree().join(["abc", "de"])
TREE = TREE.join([TREE.roots()])
ABC, DE, ROOT = summary_id("abc"), summary_id("de"), summary_id([summary_id("abc"), summary_id("de")])
ALL = set(TREE.summaries)


def test_two_of_three_leaves_become_their_summary_at_the_place_of_the_better_one():
    assert condense(["a", "d", "b"], TREE, ALL, 0.65) == [Choice(0, ABC), Choice(1)]


def test_the_highest_summary_that_is_covered_wins():
    assert condense(["a", "d", "b", "e"], TREE, ALL, 0.8) == [Choice(0, ROOT)]


def test_a_single_leaf_is_never_swapped():
    assert condense(["a"], TREE, ALL, 0.1) == [Choice(0)]


def test_a_summary_without_text_is_not_used():
    assert condense(["d", "e"], TREE, ALL - {DE, ROOT}, 0.5) == [Choice(0), Choice(1)]


def test_what_an_ancestor_says_is_not_said_again():
    assert condense([ABC, "a", "d"], TREE, ALL, 1.0) == [Choice(0), Choice(2)]


def test_what_a_better_ranked_descendant_says_drops_the_ancestor():
    assert condense(["a", ROOT, "d"], TREE, ALL, 1.0) == [Choice(0), Choice(2)]


def test_foreign_nodes_stay_where_they_were():
    assert condense([None, "a", None, "b", None], TREE, ALL, 0.6) == [
        Choice(0),
        Choice(1, ABC),
        Choice(2),
        Choice(4),
    ]


nodes = st.sampled_from([*"abcdexy", ABC, DE, ROOT, None])


@settings(max_examples=200)
@given(st.lists(nodes, max_size=12, unique_by=lambda n: n if n is not None else object()), st.floats(0.01, 1))
def test_nothing_is_said_twice_and_nothing_is_lost(ranking, min_coverage):
    chosen = condense(ranking, TREE, ALL, min_coverage)
    assert [c.position for c in chosen] == sorted({c.position for c in chosen})
    assert sum(ranking[c.position] is None for c in chosen) == ranking.count(None)
    names = [c.summary or ranking[c.position] for c in chosen if ranking[c.position] is not None]
    covered = set()
    for name in names:
        below = TREE.leaves(name)
        assert not below & covered  # this tree has no soft clusters, so nodes that share a leaf are related
        covered |= below
    said = {leaf for node in ranking if node is not None for leaf in TREE.leaves(node)}
    for node in ranking:
        if node is not None and node not in TREE.summaries:
            assert node in covered  # a leaf is kept, or below something that is kept
    assert {leaf for name in names if name in ranking for leaf in TREE.leaves(name)} <= said
