"""The tree as pure bookkeeping: closed forms, and invariants under random edits."""

from hypothesis import given, settings
from hypothesis import strategies as st

from llama_index.raptor.tree import Summary, Tree, summary_id


def check(tree: Tree) -> None:
    for name, summary in tree.summaries.items():
        assert name == summary_id(summary.children)
        assert len(summary.children) >= 2
        assert list(summary.children) == sorted(set(summary.children))
        assert summary.level == 1 + max(tree.level(child) for child in summary.children)
        for child in summary.children:
            assert name in tree.parents[child]
    for child, parents in tree.parents.items():
        assert list(parents) == sorted(parents)
        assert all(child in tree.summaries[parent].children for parent in parents)


def two_layers() -> Tree:
    tree = Tree().join([["a", "b"], ["c", "d", "e"]])
    return tree.join([tree.roots()])


def test_the_same_children_in_any_order_have_the_same_summary():
    assert summary_id(["b", "a", "b"]) == summary_id(["a", "b"]) != summary_id(["a", "c"])


def test_two_layers():
    tree = two_layers()
    check(tree)
    (root,) = tree.roots("abcde")
    assert tree.height == 2
    assert tree.leaves(root) == set("abcde")
    assert tree.ancestors(["a"]) == {summary_id("ab"), root}
    assert tree.descendants(root) == {*"abcde", summary_id("ab"), summary_id("cde")}


def test_groups_of_one_get_no_summary():
    assert Tree().join([["a"], []]).summaries == {}


def test_deleting_a_leaf_renames_everything_above_it_and_nothing_else():
    tree = two_layers()
    smaller = tree.replace({"c": ()})
    check(smaller)
    assert summary_id("ab") in smaller.summaries
    assert summary_id("de") in smaller.summaries
    assert smaller.roots() == [summary_id([summary_id("ab"), summary_id("de")])]
    assert len(smaller.summaries) == 3


def test_a_summary_with_one_child_left_gives_its_place_to_the_child():
    tree = two_layers().replace({"a": ()})
    check(tree)
    assert tree.roots() == [summary_id(["b", summary_id("cde")])]


def test_a_tree_that_loses_all_but_one_leaf_has_no_summaries():
    tree = two_layers().replace(dict.fromkeys("abcd", ()))
    assert tree.summaries == {}
    assert tree.roots(["e"]) == ["e"]


def test_adding_to_a_summary_and_to_one_above_it_at_once():
    tree = Tree().join([["a", "b"]])
    tree = tree.join([[summary_id("ab"), "c"]])
    (root,) = tree.roots()
    grown = tree.replace({}, {summary_id("ab"): ["x"], root: ["y"]})
    check(grown)
    assert grown.roots() == [summary_id([summary_id("abx"), "c", "y"])]
    assert len(grown.summaries) == 2


def test_splitting_a_summary_puts_the_parts_below_its_parents():
    tree = two_layers()
    parts = tree.join([["c", "d"]])
    split = parts.replace({summary_id("cde"): [summary_id("cd"), "e"]})
    check(split)
    assert split.roots() == [summary_id([summary_id("ab"), summary_id("cd"), "e"])]


def test_a_leaf_with_two_parents_is_deleted_from_both():
    tree = Tree().join([["a", "b", "x"], ["c", "d", "x"]])
    tree = tree.join([tree.roots()])
    smaller = tree.replace({"x": ()})
    check(smaller)
    assert smaller.roots() == [summary_id([summary_id("ab"), summary_id("cd")])]


def test_unknown_ids_are_leaves_without_parents():
    tree = two_layers()
    assert tree.level("nowhere") == 0
    assert tree.children("nowhere") == ()
    assert tree.replace({"nowhere": ()}) == tree


leaves = [f"n{i:02d}" for i in range(16)]
group = st.lists(st.sampled_from(leaves), min_size=1, max_size=6)


@settings(max_examples=200)
@given(st.lists(group, max_size=6), st.lists(st.sampled_from(leaves), max_size=16), st.randoms(use_true_random=False))
def test_random_edits_keep_the_invariants(groups, doomed, random):
    tree = Tree().join(groups)
    for _ in range(2):
        roots = tree.roots(leaves)
        random.shuffle(roots)
        tree = tree.join([roots[i : i + 3] for i in range(0, len(roots), 3)])
    check(tree)
    smaller = tree.replace(dict.fromkeys(doomed, ()))
    check(smaller)
    assert not {leaf for name in smaller.summaries for leaf in smaller.leaves(name)} & set(doomed)
    untouched = set(tree.summaries) - tree.ancestors(doomed)
    assert untouched <= set(smaller.summaries)
    if tree.summaries:
        name = random.choice(sorted(tree.summaries))
        grown = tree.replace({}, {name: ["new"]})
        check(grown)
        assert "new" in {leaf for root in grown.roots() for leaf in grown.leaves(root)}
        assert set(tree.summaries) - tree.ancestors([name]) - {name} <= set(grown.summaries)


def test_one_edit_at_a_time_or_all_at_once_gives_the_same_tree():
    tree = two_layers()
    one_by_one = tree.replace({"a": ()}).replace({"d": ()})
    assert one_by_one == tree.replace({"a": (), "d": ()})


def test_of_derives_the_parents():
    tree = Tree.of({summary_id("ab"): Summary(1, ("a", "b"))})
    assert tree.parents == {"a": (summary_id("ab"),), "b": (summary_id("ab"),)}
