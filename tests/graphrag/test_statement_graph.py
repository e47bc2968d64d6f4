"""Counts of statements: batch equals incremental, names resolve by rules, nothing is left of what went."""

import json
import random
from collections import defaultdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.graphrag.strategies import chunks, corpora, ids

from llama_index.graphrag.clustering.agglomerative import AgglomerativeClustering
from llama_index.graphrag.config import GraphRAGConfig
from llama_index.graphrag.graph.entity_graph import EntityGraph, GraphArrays, entity_graph
from llama_index.graphrag.graph.resolution import representative, representatives, short_forms
from llama_index.graphrag.graph.statement import ChunkStatements, EntityStatement, RelationStatement, majority
from llama_index.graphrag.graph.statement_graph import StatementGraph, changed, statement_graph
from llama_index.graphrag.state import GraphView
from llama_index.ragkit.errors import ConfigurationError

SCROOGE = ChunkStatements(
    "n1",
    "hash 1",
    "carol",
    0,
    (EntityStatement("Ebenezer Scrooge", "PERSON", "A miser."), EntityStatement("Marley", "PERSON", "A ghost.")),
    (RelationStatement("Marley", "Ebenezer Scrooge", "Marley warns Ebenezer Scrooge.", 8.0),),
)
NEPHEW = ChunkStatements(
    "n2",
    "hash 2",
    "carol",
    1,
    (EntityStatement("SCROOGE", "person", "An uncle."), EntityStatement("Scrooge's nephew", "PERSON")),
    (RelationStatement("Scrooge", "Scrooge's nephew", "invites"), RelationStatement("Scrooge", "Marley", "mourns")),
)
ELSEWHERE = ChunkStatements("n3", "hash 3", "duck", 0, (EntityStatement("Scrooge", "PERSON", "A duck."),))


def slow_links(graph: StatementGraph) -> dict[tuple[str, str], set[str]]:
    """Pairs and the chunks that state them, read off the statements one by one."""
    pairs: dict[tuple[str, str], set[str]] = defaultdict(set)
    for chunk_id in graph.chunks:
        for statement in graph.statements(chunk_id):
            if len(statement.entities) == 2:
                pairs[tuple(sorted(statement.entities))].add(chunk_id)  # type: ignore[index]
    return pairs


def test_a_short_form_is_its_long_form_within_its_document() -> None:
    graph = statement_graph([SCROOGE, NEPHEW, ELSEWHERE])
    assert graph.short == {"carol": {"scrooge": "ebenezer scrooge"}}
    assert sorted(graph.entities) == ["ebenezer scrooge", "marley", "scrooge", "scrooge s nephew"]
    assert set(graph.entities["ebenezer scrooge"]) == {"n1", "n2"}
    assert set(graph.links["marley"]["ebenezer scrooge"]) == {"n1", "n2"}
    assert graph.key("Scrooge", "carol") == "ebenezer scrooge"
    assert graph.key("Scrooge", "duck") == "scrooge"


def test_what_an_entity_is_follows_from_its_statements() -> None:
    graph = statement_graph([NEPHEW, ELSEWHERE, SCROOGE])
    assert graph.name_of("ebenezer scrooge") == "Ebenezer Scrooge"
    assert graph.type_of("ebenezer scrooge") == "PERSON"
    assert graph.descriptions("ebenezer scrooge") == ["A miser.", "An uncle."]
    assert [s.text for s in graph.statements_in(["ebenezer scrooge", "marley"])] == [
        "Ebenezer Scrooge: A miser.",
        "Marley: A ghost.",
        "Marley warns Ebenezer Scrooge.",
        "SCROOGE: An uncle.",
        "Scrooge - Marley: mourns",
    ]
    assert {s.chunk_id for s in graph.statements_about("marley")} == {"n1", "n2"}
    assert graph.name_of("ebenezer scrooge", allowed={"n2"}) == "ebenezer scrooge"


def test_a_short_form_loses_its_long_form_with_the_chunk_that_had_it() -> None:
    graph = changed(statement_graph([SCROOGE, NEPHEW, ELSEWHERE]), removed=["n1"]).graph
    assert set(graph.entities["scrooge"]) == {"n2", "n3"}
    assert "ebenezer scrooge" not in json.dumps([sorted(graph.entities), sorted(graph.short)])


def test_statements_are_known_by_content_and_not_by_ids_of_nodes() -> None:
    moved = ChunkStatements("other id", *list(vars(SCROOGE).values())[1:6])
    ids_of = [[s.id for s in statement_graph([chunk]).statements(chunk.chunk_id)] for chunk in (SCROOGE, moved)]
    assert ids_of[0] == ids_of[1]
    assert len(set(ids_of[0])) == 3


@settings(max_examples=60)
@given(corpora, st.data())
def test_any_inserts_and_deletes_give_the_graph_of_what_is_left(
    start: tuple[ChunkStatements, ...], data: st.DataObject
) -> None:
    graph = statement_graph(start)
    view = GraphView(graph, AgglomerativeClustering(), GraphRAGConfig(), "")
    assert view.arrays.entities.names == tuple(sorted(graph.entities))
    for _ in range(data.draw(st.integers(1, 4))):
        removed = data.draw(st.lists(st.sampled_from(ids), max_size=3))
        added = [data.draw(chunks(i)) for i in data.draw(st.lists(st.sampled_from(ids), unique=True, max_size=3))]
        change = changed(graph, removed, added)
        graph = change.graph
        view = GraphView(graph, view.clustering, view.config, "").following(view, change.touched)
        if data.draw(st.booleans()):  # else the changes of several writes come at once
            assert listed(view.arrays) == listed(GraphArrays.of(graph))
        assert graph.relations == sum(map(len, graph.links.values())) / 2
        shuffled = list(graph.chunks.values())
        data.draw(st.randoms(use_true_random=False)).shuffle(shuffled)
        assert graph == statement_graph(shuffled)
        assert slow_links(graph) == {
            (one, other): set(where) for one, row in graph.links.items() for other, where in row.items() if one < other
        }
        assert all(graph.links[other][one] == where for one, row in graph.links.items() for other, where in row.items())


@settings(max_examples=60)
@given(corpora, st.sets(st.sampled_from(ids)))
def test_what_a_filtered_query_sees_is_the_graph_of_the_allowed_chunks(
    corpus: tuple[ChunkStatements, ...], allowed: set[str]
) -> None:
    graph = statement_graph(corpus)
    view = GraphView(graph, AgglomerativeClustering(), GraphRAGConfig(), "")
    seen = view.restricted(frozenset(allowed))
    gone = {chunk.chunk_id for chunk in corpus} - allowed
    alone = statement_graph(c.without_merged(gone) for c in corpus if c.chunk_id in allowed)
    assert seen.graph == alone
    assert edges(seen.entities) == edges(entity_graph(alone))
    assert seen.names == GraphView(alone, view.clustering, GraphRAGConfig(), "").names


def listed(arrays: GraphArrays) -> list[object]:
    entities, naming, short = arrays
    columns = (entities.indptr, entities.indices, entities.weights, entities.tokens, entities.node_tokens)
    numbers = [column.tolist() for column in (*columns, naming.starts, naming.where)]
    return [entities.names, naming.names, naming.chunks, short, numbers]


def edges(graph: EntityGraph) -> list[tuple[tuple[str, str], int]]:
    listed = [
        ((graph.names[i], graph.names[j]), int(w))
        for i, j, w in zip(graph.rows, graph.indices, graph.weights, strict=True)
        if i < j
    ]
    backwards = sum(bool(i > j) for i, j in zip(graph.rows, graph.indices, strict=True))
    assert backwards == len(listed)
    return listed


def test_a_deleted_word_is_nowhere() -> None:
    secret = EntityStatement("Xyzzy", "SPELL", "It opens plugh.")
    merged = EntityStatement("Spell", "", "Xyzzy and others.", ("n7", "n8", "n9"))
    two = [ChunkStatements(f"n{i}", f"h{i}", f"d{i}", 0, (merged, secret)[: i - 7]) for i in (8, 9)]
    alone = ChunkStatements("n7", "h7", "d7", 0, (merged, EntityStatement("Spell", "", "A word.")))
    change = changed(statement_graph([SCROOGE, alone, *two]), removed=["n9"])
    assert [chunk.chunk_id for chunk in change.rewritten] == ["n7", "n8"]
    assert change.graph.descriptions("spell") == ["A word."]
    held = repr(vars(change.graph)).casefold()
    assert "xyzzy" not in held
    assert "plugh" not in held


@settings(max_examples=60)
@given(st.sets(st.sampled_from(ids), min_size=2), st.data())
def test_a_merged_description_lasts_while_all_its_chunks_do(merged: set[str], data: st.DataObject) -> None:
    statement = EntityStatement("Ada", "", "merged", tuple(sorted(merged)))
    corpus = [ChunkStatements(i, i, "", 0, (statement,) if i in merged else (EntityStatement("Ada"),)) for i in ids]
    removed = data.draw(st.sets(st.sampled_from(ids)))
    graph = changed(statement_graph(corpus), removed).graph
    assert graph.descriptions("ada") == ([] if removed & merged else ["merged"])
    assert set(graph.entities.get("ada", {})) == set(ids) - removed


def test_an_id_given_twice_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="'n1'"):
        statement_graph([SCROOGE, SCROOGE])


def test_statements_of_equal_description_share_its_tokens() -> None:
    line = "A, B and C " + "x" * 89
    relations = tuple(RelationStatement(a, b, line) for a, b in ("AB", "AC", "BC"))
    graph = statement_graph([ChunkStatements("n", "h", "", 0, (), relations)])
    tokens = [int(graph.links[a][b]["n"]) for a, b in ("ab", "ac", "bc")]
    assert tokens == [1 + 9] * 3  # 100 bytes are 25 tokens, a third of them 9; the two names are 1


def test_records_can_be_stored() -> None:
    chunk = ChunkStatements(
        "n", "h", "d", 3, (EntityStatement("A", "T", "x", ("n", "m")),), (RelationStatement("A", "B", "y", 2.5),)
    )
    stored = json.loads(json.dumps(chunk.record()))
    assert ChunkStatements.from_record(stored, "n", "h", "d", 3) == chunk
    assert ChunkStatements.from_record({"entities": [["A"]], "relations": [["A", "B"]]}, "n", "h").relations[
        0
    ].text == ("A - B")


# -- resolution -------------------------------------------------------------------------------------------


def test_short_forms_follow_to_the_longest_name() -> None:
    names = ["smith", "john smith", "john smith jr", "bob", "mother of bob"]
    assert short_forms(dict.fromkeys(names, "person")) == {"john smith": "john smith jr", "smith": "john smith jr"}


@pytest.mark.parametrize("kinds", [("geo", "person"), ("person", ""), ("organization", "organization"), ("", "")])
def test_only_people_have_short_forms(kinds: tuple[str, str]) -> None:
    assert short_forms(dict(zip(("lincoln", "abraham lincoln"), kinds, strict=True))) == {}


@given(
    st.dictionaries(
        st.lists(st.sampled_from(["a", "bb", "cc", "dd"]), min_size=1).map(" ".join), st.sampled_from(["person", "per"])
    )
)
def test_short_forms_do_not_depend_on_order_and_end_at_names_that_stand_for_themselves(types: dict[str, str]) -> None:
    found = short_forms(types)
    backwards = short_forms(dict(reversed(types.items())))
    assert found == backwards
    assert set(found.values()).isdisjoint(found)
    assert all(f" {short} " in f" {long} " and short != long for short, long in found.items())


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.sampled_from("abcdef"))), st.randoms(use_true_random=False))
def test_representatives_are_those_of_connected_names(pairs: list[tuple[str, str]], random_: random.Random) -> None:
    groups = {name: {name} for pair in pairs for name in pair}
    for _ in groups:
        for one, other in pairs:
            joined = groups[one] | groups[other]
            groups.update(dict.fromkeys(joined, joined))
    expected = {name: representative(group) for name, group in groups.items() if representative(group) != name}
    shuffled = [pair[::-1] for pair in pairs]
    random_.shuffle(shuffled)
    assert representatives(pairs) == representatives(shuffled) == expected


def test_names_that_were_judged_to_be_one_are_so_in_their_document_while_both_are_there() -> None:
    same = {"duck": frozenset([("donald", "scrooge")]), "carol": frozenset([("ebenezer scrooge", "marley")])}
    graph = statement_graph([SCROOGE, NEPHEW, ELSEWHERE], same=same)
    assert graph.same == {"carol": same["carol"]}
    assert set(graph.entities["ebenezer scrooge"]) == {"n1", "n2"}
    assert "marley" not in graph.entities
    assert graph.short["carol"] == dict.fromkeys(["marley", "scrooge"], "ebenezer scrooge")
    assert changed(graph, ["n1"]).graph == statement_graph([NEPHEW, ELSEWHERE])
    assert changed(graph, same={"carol": frozenset()}).graph == statement_graph([SCROOGE, NEPHEW, ELSEWHERE])
    assert changed(statement_graph([SCROOGE, NEPHEW, ELSEWHERE]), same=same).graph == graph


def test_majority_breaks_ties_by_order() -> None:
    assert majority(["b", "a", "b", "a", ""]) == "a"


# -- arrays -----------------------------------------------------------------------------------------------


def test_edges_may_come_in_any_order() -> None:
    one = EntityGraph.of(["b", "a", "c"], [0, 2], [1, 0], [2, 3], [5, 7], [1, 2, 3])
    other = EntityGraph.of(["c", "b", "a"], [1, 0, 1], [2, 1, 0], [2, 1, 2], [5, 3, 4], [3, 1, 2])
    for graph in (one, other):
        assert graph.names == ("a", "b", "c")
        assert edges(graph) == [(("a", "b"), 2), (("b", "c"), 3)]
        assert graph.tokens.tolist() == [5, 5, 7, 7]
        assert graph.node_tokens.tolist() == [2, 1, 3]
        assert graph.degrees.tolist() == [1, 2, 1]
        assert graph.strengths.tolist() == [2, 5, 3]
        assert graph.neighbours(1).tolist() == [0, 2]


@pytest.mark.parametrize(
    "arguments",
    [
        (["a", "a"], [], []),
        (["a", "b"], [0], [0]),
        (["a", "b"], [0], [2]),
        (["a", "b"], [0], [1], [0.5]),
        (["a"], [0], []),
    ],
)
def test_a_graph_that_cannot_be_is_refused(arguments: tuple) -> None:  # type: ignore[type-arg]
    with pytest.raises(ConfigurationError):
        EntityGraph.of(*arguments)


def test_no_entities_are_a_graph() -> None:
    for graph in (EntityGraph.of([], [], []), entity_graph(statement_graph([]))):
        assert len(graph) == 0
        assert graph.indptr.tolist() == [0]
        assert graph.degrees.tolist() == []
