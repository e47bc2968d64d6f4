"""Reports: what they are made of, their keys, the choice of statements, and when they must be written again."""

import json
from collections.abc import Callable
from itertools import combinations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.graphrag.strategies import corpora

from llama_index.graphrag import AgglomerativeClustering
from llama_index.graphrag.clustering.hierarchy import clustered
from llama_index.graphrag.config import GraphRAGConfig
from llama_index.graphrag.graph.entity_graph import entity_graph
from llama_index.graphrag.graph.statement import ChunkStatements, ClaimStatement, EntityStatement, RelationStatement
from llama_index.graphrag.graph.statement_graph import statement_graph
from llama_index.graphrag.reports.lines import ReportLine, covering_lines, fitting, ranked_lines, salience
from llama_index.graphrag.reports.planning import (
    Planner,
    numbered_sources,
    unwritten,
)
from llama_index.graphrag.reports.report import Finding, Report


def words(text: str) -> int:
    return len(text.split())


def planner(chunks, report_tokens: int = 8, context_tokens: int = 24, count: Callable[[str], int] = words) -> Planner:
    graph = statement_graph(chunks)
    entities = entity_graph(graph)
    hierarchy = clustered(entities, AgglomerativeClustering())
    config = GraphRAGConfig(report_tokens=report_tokens, context_tokens=context_tokens)
    return Planner(graph, entities, hierarchy, config, "maker", count)


def ring(cliques: int = 4, size: int = 4) -> list[ChunkStatements]:
    """A ring of cliques; each pair is stated by a chunk of its own, in eight words or so."""
    pairs = [(f"n{clique}{i}", f"n{clique}{j}") for clique in range(cliques) for i, j in combinations(range(size), 2)]
    pairs += [(f"n{clique}0", f"n{(clique + 1) % cliques}1") for clique in range(cliques)]
    return [
        ChunkStatements(
            f"c{i}", f"h{i}", relations=(RelationStatement(a, b, f"{a} and {b} are said to be friends here"),)
        )
        for i, (a, b) in enumerate(pairs)
    ]


def test_a_community_that_fits_is_reported_verbatim() -> None:
    plans = planner(ring(), report_tokens=1000, context_tokens=1000)
    for community in range(len(plans.hierarchy)):
        plan = plans.plan(community)
        report = plans.report(community)
        assert plan.verbatim
        assert report.form == "statements"
        assert [finding.text for finding in report.findings] == [line.text for line in plan.lines]
        assert unwritten([plan], {}) == []


def test_a_large_community_reads_its_childrens_reports_first() -> None:
    plans = planner(ring(24))
    root = next(int(c) for c in plans.hierarchy.roots if len(plans.hierarchy.children(c)))
    plan = plans.plan(root)
    assert plan.children
    assert not plan.verbatim
    assert plan.tokens <= plans.config.context_tokens + len(plan.children) * plans.config.report_tokens
    order = unwritten([plan], {})
    assert order[-1] is plan
    place = {each.key: i for i, each in enumerate(order)}
    assert all(place[child.key] < place[each.key] for each in order for child in each.children if child.key in place)
    assert unwritten([plan], {each.key for each in order}) == []
    reports = {child.key: plans.report(child.community) for child in plan.children}
    shown, sources = numbered_sources(plan, reports)
    assert sum(line.startswith("[") for line in shown) == len(sources)
    assert set(sources) == set(range(1, len(sources) + 1))


def test_keys_change_with_what_a_report_is_made_of_and_with_nothing_else() -> None:
    given_chunks = ring()
    keys = {plan.key for plan in map(planner(given_chunks).plan, range(len(planner(given_chunks).hierarchy)))}
    renamed = [ChunkStatements(f"other {c.chunk_id}", c.text_hash, relations=c.relations) for c in given_chunks]
    again = planner(renamed[::-1])
    assert {again.plan(c).key for c in range(len(again.hierarchy))} == keys
    changed = planner([ChunkStatements("c0", "other text", relations=given_chunks[0].relations), *given_chunks[1:]])
    new = {changed.plan(c).key for c in range(len(changed.hierarchy))}
    assert 1 <= len(new - keys) < len(new)
    for options in ({"report_tokens": 9}, {"context_tokens": 25}):
        other = planner(given_chunks, **options)
        assert keys.isdisjoint(other.plan(c).key for c in range(len(other.hierarchy)))


@settings(max_examples=40)
@given(corpora)
def test_reports_are_a_function_of_the_statements(chunks) -> None:
    one, other = planner(chunks), planner(tuple(reversed(chunks)))
    assert [one.report(c) for c in range(len(one.hierarchy))] == [other.report(c) for c in range(len(other.hierarchy))]
    for community in range(len(one.hierarchy)):
        inside = set(one.names(community))
        for line in one.lines(community):
            assert inside.issuperset(line.entities)
            assert line.nodes


def test_a_title_has_what_begins_in_lower_case_only_where_there_is_no_other_name() -> None:
    stated = [("to dust", "Ada Hale"), ("to dust", "Tern Rock"), ("as a lid does", "all the lot")]
    chunks = [
        ChunkStatements(f"c{i}", f"h{i}", relations=(RelationStatement(*pair, "They are in one sentence here."),))
        for i, pair in enumerate(stated)
    ]
    plans = planner(chunks)
    assert {plans.title(community) for community in range(len(plans.hierarchy))} == {
        "Ada Hale, Tern Rock",
        "all the lot, as a lid does",
    }


def test_names_of_which_nothing_is_said_are_titles_as_they_are_spelled() -> None:
    plans = planner([ChunkStatements("c0", "h0", entities=(EntityStatement("Fax-Execution"),))])
    assert [plans.title(community) for community in range(len(plans.hierarchy))] == ["Fax-Execution"]


lines = st.lists(
    st.tuples(st.integers(1, 9), st.frozensets(st.sampled_from("abcde"), min_size=1, max_size=3)), max_size=8
).map(
    lambda rows: [
        ReportLine(" ".join(["w"] * size) + f" {i}", tuple(sorted(about)), (f"s{i}",), (f"n{i}",))
        for i, (size, about) in enumerate(rows)
    ]
)


def slow_cover(given_lines: list[ReportLine], budget: int) -> list[ReportLine]:
    """The greedy choice, with every gain computed at every step."""
    costs = [words(line.text) + 1 for line in given_lines]
    if given_lines and min(costs) > budget:
        return [min(given_lines, key=lambda line: (words(line.text), given_lines.index(line)))]
    worth = {entity: times + 1 for entity, times in salience(given_lines).items()}
    covered: set[str] = set()
    left, chosen = list(range(len(given_lines))), []
    while True:
        gains = {
            i: sum(worth[e] for e in given_lines[i].entities if e not in covered) / costs[i] ** 0.3
            for i in left
            if costs[i] <= budget
        }
        best = min(gains, key=lambda i: (-gains[i], i), default=None)
        if best is None or not gains[best]:
            break
        chosen.append(best)
        left.remove(best)
        covered.update(given_lines[best].entities)
        budget -= costs[best]
    for i in left:
        if costs[i] <= budget:
            chosen.append(i)
            budget -= costs[i]
    return [given_lines[i] for i in sorted(chosen)]


@settings(max_examples=200)
@given(lines, st.integers(1, 40))
def test_the_lazy_greedy_choice_is_the_plain_one(given_lines: list[ReportLine], budget: int) -> None:
    chosen = covering_lines(given_lines, budget, words)
    assert chosen == slow_cover(given_lines, budget)
    if len(chosen) > 1:
        assert sum(words(line.text) + 1 for line in chosen) <= budget


def test_a_line_that_does_not_fit_is_passed_over() -> None:
    three = [ReportLine("a b c d", ("a",), ("s",), ("n",)), ReportLine("e", ("a",), ("s",), ("n",))]
    assert fitting(three, 3, words) == ([three[1]], 1)


def test_equal_texts_are_one_line_with_all_their_nodes() -> None:
    relation = RelationStatement("Ada", "Bede", "Ada met Bede.")
    graph = statement_graph([ChunkStatements(f"c{i}", f"h{i}", relations=(relation,)) for i in range(3)])
    (line,) = ranked_lines(graph.statements_in(["ada", "bede"]))
    assert (line.text, line.nodes) == ("Ada met Bede.", ("c0", "c1", "c2"))
    assert len(line.statements) == 3


def test_claims_stand_together_after_the_other_statements() -> None:
    claim = ClaimStatement("Ada", "Bede", "theft", said="Ada robbed Bede.", quotation="robbed")
    chunk = ChunkStatements(
        "c", "h", relations=(RelationStatement("Ada", "Bede", "Ada met Bede."),) * 2, claims=(claim,)
    )
    late = ChunkStatements("d", "a", claims=(ClaimStatement("Ada", said="Ada lied."),))
    plans = planner([chunk, late], report_tokens=1000, context_tokens=1000)
    texts = [claim.text, "Ada met Bede.", "Claim: Ada lied."]
    report = plans.report(0)
    assert [finding.text for finding in report.findings] == [texts[1], texts[0], texts[2]]
    assert set(report.nodes) == {"c", "d"}
    shown, sources = numbered_sources(plans.plan(0), {})
    assert shown == [f"[1] {texts[1]}", "Claims:", f"[2] {texts[0]}", f"[3] {texts[2]}"]
    assert sources == {1: ("c",), 2: ("c",), 3: ("d",)}


def test_a_report_survives_json() -> None:
    report = Report("k", "t", "s", (Finding("f", ("n1", "n2")),), "written", 7.0, 2)
    assert Report.from_record(json.loads(json.dumps(report.record()))) == report
    assert report.text == "t\ns\nf"


def test_scopes_are_clustered_apart_as_if_alone() -> None:
    one = [ChunkStatements(f"a{c.chunk_id}", c.text_hash, relations=c.relations, scope="a") for c in ring()]
    other = [ChunkStatements(f"b{c.chunk_id}", c.text_hash, relations=c.relations, scope="b") for c in ring(3, 5)]
    both = planner([*one, *other]).hierarchy
    alone = [planner(part).hierarchy for part in (one, other)]
    assert both.sizes.tolist() == [*alone[0].sizes.tolist(), *alone[1].sizes.tolist()]
    assert np.array_equal(both.parent[len(alone[0]) :] >= 0, alone[1].parent >= 0)
    assert sorted(both.order.tolist()) == list(range(len(both.order)))
