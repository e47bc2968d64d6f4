"""Which nodes a write embeds, reads, stores and removes: the plan alone, without stores."""

from typing import Any, NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from llama_index.ragkit.index.write_plan import WritePlan, plan_write
from llama_index.ragkit.storage.manifest import NodeEntry

IDS = list("abcdef")
ids = st.sampled_from(IDS)
keys = st.sampled_from(["one", "two"])


class GivenNode(NamedTuple):
    """A node as the input of a plan."""

    node_id: str
    key: str
    has_text: bool


def planned(nodes: list[GivenNode], *args: Any, **kwargs: Any) -> WritePlan:
    keys = {node.node_id: node.key for node in nodes}
    return plan_write(keys, {node.node_id for node in nodes if not node.has_text}, *args, **kwargs)


@st.composite
def entries(draw: st.DrawFn) -> NodeEntry:
    record = draw(st.none() | st.just({"words": []}))
    error = draw(st.none() | st.just("it failed")) if record is None else None
    return NodeEntry("d", draw(keys), record, error, [], draw(st.booleans()))


@st.composite
def situations(draw: st.DrawFn):
    nodes = [GivenNode(i, draw(keys), draw(st.booleans())) for i in draw(st.lists(ids, unique=True))]
    manifest = draw(st.dictionaries(ids, entries()))
    known = {node.node_id: manifest[node.node_id] for node in nodes if node.node_id in manifest}
    return nodes, manifest, known, draw(st.sets(ids)), draw(st.sets(ids)), draw(st.booleans())


def slow_plan(nodes, manifest, embedded, again, replace):
    """Node by node, as the documentation says it."""
    plan = {"write": [], "read": [], "repeated": set(), "reused": set(), "changed": set(), "obsolete": set()}
    for node in nodes:
        entry = manifest.get(node.node_id)
        unchanged = entry is not None and entry.key == node.key and (not node.has_text or node.node_id in embedded)
        if unchanged and entry.done and node.node_id not in again:
            continue
        plan["write"].append(node.node_id)
        if unchanged:
            plan["repeated"].add(node.node_id)
        elif entry is not None:
            plan["changed"].add(node.node_id)
        same_text = entry is not None and entry.key == node.key
        if same_text and node.node_id not in again and entry.record is not None:
            plan["reused"].add(node.node_id)
        else:
            plan["read"].append(node.node_id)
    if replace:
        plan["obsolete"] = set(manifest) - {node.node_id for node in nodes}
    return plan


@given(situations())
def test_a_plan_is_what_the_documentation_says(situation) -> None:
    nodes, manifest, known, embedded, again, replace = situation
    plan = planned(nodes, known, embedded, stored=manifest if replace else None, again=again)
    slow = slow_plan(nodes, manifest, embedded, again, replace)
    assert {name: type(slow[name])(getattr(plan, name)) for name in slow} == slow


@given(situations())
def test_every_node_has_one_fate(situation) -> None:
    nodes, manifest, known, embedded, again, replace = situation
    plan = planned(nodes, known, embedded, stored=manifest if replace else None, again=again)
    assert sorted([*plan.read, *plan.reused]) == sorted(plan.write)
    assert not plan.changed.keys() & plan.repeated.keys()
    assert not plan.removed.keys() & plan.repeated.keys()  # what stays as it is loses no row
    assert plan.removed.keys() == plan.changed.keys() | plan.obsolete.keys()
    assert plan.replaced.keys() == set(plan.write) & known.keys()
    assert all(plan.removed[i] is manifest[i] for i in plan.removed)  # old entries, whose cache keys are given back
    assert plan.obsolete.keys().isdisjoint(node.node_id for node in nodes)


@given(situations())
def test_a_plan_that_was_carried_out_leaves_nothing_to_do(situation) -> None:
    nodes, manifest, known, embedded, again, _ = situation
    plan = planned(nodes, known, embedded, stored=manifest, again=again)
    key_of = {node.node_id: node.key for node in nodes}
    after = {i: entry for i, entry in manifest.items() if i not in plan.removed}
    after.update({i: NodeEntry("d", key_of[i], {}, done=True) for i in plan.write})
    rows = embedded | {node.node_id for node in nodes if node.has_text}
    again_plan = planned(nodes, after, rows, stored=after)
    assert (list(again_plan.write), again_plan.removed) == ([], {})


def test_a_new_node_is_embedded_and_read() -> None:
    plan = planned([GivenNode("a", "one", True)], {}, set())
    assert (plan.write, plan.read, plan.removed, plan.replaced) == (["a"], ["a"], {}, {})


def test_a_node_whose_vector_is_lost_is_written_again() -> None:
    known = {"a": NodeEntry("d", "one", {}, done=True)}
    assert planned([GivenNode("a", "one", True)], known, set()).write == ["a"]
    assert planned([GivenNode("a", "one", False)], known, set()).write == []  # it never had one
