"""PG-RAG served from stores: rows of maps, names and super nodes, which writes keep as in memory."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from llama_index.core.schema import NodeRelationship, NodeWithScore, QueryBundle, RelatedNodeInfo, TextNode
from llama_index.core.vector_stores.types import MetadataFilter, MetadataFilters
from sqlalchemy import text as sql
from tests.serving.places import everything_in
from tests.serving.reads import count_reads, refuse_other_reads
from tests.serving.twins import Twins

from llama_index.pgrag import PGRAGIndex, PGRAGPostprocessor, PGRAGRetriever, map_rows, map_view
from llama_index.pgrag.fusion.super_nodes import SuperNodes, update
from llama_index.pgrag.fusion_rows import FusionRows
from llama_index.pgrag.map_rows import MapRows
from llama_index.pgrag.maps.mind_map import read_mind_map
from llama_index.pgrag.records import to_record
from llama_index.pgrag.search import name_walk
from llama_index.ragkit import NodeExtractor
from llama_index.ragkit.errors import ConfigurationError
from llama_index.ragkit.sql import make_engine, reading
from llama_index.ragkit.steps import run_steps
from llama_index.ragkit.testing import HashEmbedding

NAMES = (
    "New York", "New York City", "York City", "City Hall", "Lewis Range", "Mount Cleveland", "Glass Wall",
    "The Glass Wall (film)", "Ada Byron", "Otto Lindqvist", "东京", "东京大学",
)  # fmt: skip
QUESTIONS = (
    "Where does the Lewis Range begin?",
    "Who built the City Hall of New York City?",
    "what is kept in 东京大学",
    "Which keeper lit the lamp with oil?",
    "Did Ada Byron see The Glass Wall?",
)


class FromText(NodeExtractor):
    """The text of a node is its mind map."""

    needs_llm: ClassVar[bool] = False

    @property
    def fingerprint(self) -> dict[str, str]:
        return {"class": "FromText"}

    def extract_node(self, node: Any, context: Any) -> Any:
        topic, facts = json.loads(node.text)
        return to_record(topic, read_mind_map(facts, topic))
        yield


def node(number: int, document: str, words: str = "", **metadata: Any) -> TextNode:
    """A node whose facts name others, some as cells and some in sentences; many have the same."""
    random = np.random.default_rng(number)
    one, two, three, four = (str(name) for name in random.choice(NAMES, 4, replace=False))
    topic = one if number % 3 else f"{one} {number % 5}"
    facts: dict[str, Any] = {
        "part of": {"place": two},
        "place": "Beijing",
        "story": f"On that day {three} was seen from the old tower near {four} by {number % 7} men {words}".strip(),
    }
    if number % 4 == 0:
        facts["lamp"] = ["oil", f"keeper {number % 9}"]
    source = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id=document)}
    made = TextNode(id_=f"x{number:03d}", text=json.dumps([topic, facts]), relationships=source)
    made.metadata = {"kind": number % 4, "topic": topic, **metadata}
    made.excluded_embed_metadata_keys = made.excluded_llm_metadata_keys = list(made.metadata)
    return made


def corpus(count: int = 40) -> list[TextNode]:
    return [node(i, f"d{i // 3}") for i in range(count)]


class MapTwins(Twins):
    cls = PGRAGIndex

    def components(self) -> dict[str, Any]:
        return {"extractor": FromText(), "embed_model": HashEmbedding(dim=32), **self.options}

    @property
    def rows(self) -> MapRows:
        return self.stored.builder._rows  # type: ignore[attr-defined]

    def check(self) -> None:
        """The rows are the state in memory: maps, facts, cells, super nodes, links of names and counts."""
        state, storage = self.memory.state, self.stored.storage
        loaded = run_steps(self.memory.builder.load())  # type: ignore[attr-defined]
        assert loaded.names.now.nodes == state.names.now.nodes
        for part in ("maps", "map_of", "of_node", "super_topics", "super_facts"):
            assert getattr(loaded, part) == getattr(state, part)
        found = run_steps(storage.records.get_all("pg_maps"))
        assert {i: record["nodes"] for i, record in found.items()} == {
            i: sorted({fact.node_id for fact in mind_map.facts}) for i, mind_map in state.maps.items()
        }
        assert set(run_steps(storage.records.get_all("pg_nodes"))) == set(state.of_node)
        nodes = run_steps(self.rows.nodes(state.of_node))
        assert {node_id: row.facts for node_id, row in nodes.items()} == dict(state.of_node)
        assert {node_id: row.names_among(row.present) for node_id, row in nodes.items()} == dict(state.names.now.nodes)
        for kind, mine in (("topics", state.maps), ("facts", state.map_of)):
            fusion: FusionRows = self.stored.builder._fusions[kind]  # type: ignore[attr-defined]
            super_nodes, rows = getattr(state, f"super_{kind}"), getattr(state, kind)
            empty = SuperNodes(super_nodes.threshold, super_nodes.fusion)
            assert update(empty, rows, rows.ids, ()).groups == super_nodes.groups
            assert run_steps(fusion.read(mine)).nodes() == super_nodes.nodes()
            counters = storage.struct.counters
            for name in (kind, f"super_{kind}"):
                assert counters.get(name, 0) == self.memory.storage.struct.counters.get(name, 0)
        for kind in ("topics", "routes", "facts"):
            theirs = getattr(state, kind)
            ours = run_steps(storage.space(kind).fetch(theirs.ids))
            assert sorted(ours.ids) == sorted(run_steps(storage.space(kind).described()).ids) == sorted(theirs.ids)
            if len(ours):
                np.testing.assert_allclose(ours.vectors_of(theirs.ids), theirs.vectors_of(theirs.ids), atol=1e-6)
        keys = {r.id: r.key for kind in ("topics", "facts") for r in run_steps(storage.space(kind).described()).records}
        # Those in memory are as old as the rows.
        assert keys == {i: found.key for i, found in state.maps.items()} | {i: state.fact(i).key for i in state.map_of}
        facts = run_steps(storage.space("facts").described())
        for fact_id, topic_id in state.map_of.items():
            own = facts.metadata_of(fact_id)
            node_id = own.pop("pgrag_node")
            assert (node_id, own.pop("pgrag_topic")) == (state.fact(fact_id).node_id, topic_id)
            assert own == state.chunks.metadata_of(node_id)

    def graph(self) -> list[tuple[Any, ...]]:
        """All rows of the links of names."""
        columns = "node, segment, leaves, label, packed"
        with reading(make_engine(self.url)) as connection:
            return sorted(map(tuple, connection.execute(sql(f"SELECT {columns} FROM ragkit_graph_rows"))))

    def same(self, question: str, **options: Any) -> None:
        ours, theirs = (each.as_retriever(**options).retrieve(question) for each in self)
        assert [each.node for each in ours] == [each.node for each in theirs]
        assert [each.score for each in ours] == pytest.approx([each.score for each in theirs], abs=1e-6)


def wander(twins: MapTwins, seed: int, steps: int, after: Callable[[], None]) -> None:
    """Random inserts, changes and deletes of nodes in documents that grow and shrink, in both."""
    random, held = np.random.default_rng(seed), list(twins.memory.docstore.docs)
    for step in range(steps):
        kind = random.integers(5)
        if kind < 2 or not held:
            first = int(random.integers(200))
            new = [node(first + i, f"d{int(random.integers(12))}") for i in range(int(random.integers(1, 5)))]
            for index in twins:
                index.insert_nodes(new)
            held = list(dict.fromkeys([*held, *(each.node_id for each in new)]))
        elif kind < 4:
            gone = [str(i) for i in random.choice(held, size=min(len(held), int(random.integers(1, 6))), replace=False)]
            for index in twins:
                index.delete_nodes(gone, delete_from_docstore=True)
            held = [i for i in held if i not in gone]
        else:
            number = int(random.integers(200))
            changed = node(number, f"d{number % 12}", f"changed {step}", kind=int(random.integers(4)))
            for index in twins:
                index.insert_nodes([changed])
            held = list(dict.fromkeys([*held, changed.node_id]))
        after()


@pytest.mark.parametrize(
    "options",
    [{}, {"fusion": "leaders", "topic_threshold": 0.6, "fact_threshold": 0.7}, {"fact_threshold": 0.5}],
)
def test_any_sequence_of_writes_leaves_the_maps_of_an_index_in_memory(tmp_path: Path, options: dict[str, Any]):
    twins = MapTwins(tmp_path, corpus(12), **options)
    twins.check()
    wander(twins, len(str(options)), 14, twins.check)
    for question in QUESTIONS:
        twins.same(question, similarity_top_k=60)
    (tmp_path / "batch").mkdir()
    held = [each for each in twins.memory.docstore.docs.values() if isinstance(each, TextNode)]
    assert MapTwins(tmp_path / "batch", held, **options).graph() == twins.graph()
    for name in list(twins.memory.ref_doc_info):
        for index in twins:
            index.delete_ref_doc(name, delete_from_docstore=True)
    twins.check()
    assert twins.graph() == []
    left = everything_in(make_engine(twins.url))
    assert not any(word in left for word in ("Lewis", "lewis", "Beijing", "pg_"))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"return_source": True},
        {"mode": "PG"},
        {"mode": "PG w. KPs"},
        {"bridge_weight": 0.0, "seed_facts": 2},
        {"topic_walk": False, "seed_topics": 1, "lexical_weight": 0.0},
        {"fact_walk": False, "max_topics": 20, "seed_facts": 0},
        {**PGRAGRetriever.paper(), "key_points": "question"},
        {**PGRAGRetriever.paper(), "key_points": "question", "mode": "PG"},
    ],
)
def test_answers_and_reasons_are_those_in_memory(tmp_path: Path, options: dict[str, Any]):
    twins = MapTwins(tmp_path, corpus())
    for question in QUESTIONS:
        for given in (options, {**options, "similarity_top_k": 200}):
            twins.same(question, **given)
        ours, theirs = (index.as_retriever(**options).explain(question) for index in twins)
        for one, other in zip(ours, theirs, strict=True):
            assert (one.node_id, one.path, one.reason, one.seed, one.names, one.sources, one.fallback) == (
                other.node_id, other.path, other.reason, other.seed, other.names, other.sources, other.fallback,
            )  # fmt: skip
            assert (one.cosine, one.support, one.share, one.trust or 0.0) == pytest.approx(
                (other.cosine, other.support, other.share, other.trust or 0.0), abs=1e-6
            )


def test_key_points_of_a_question_are_looked_for(tmp_path: Path):
    twins = MapTwins(tmp_path, [node(i, f"d{i // 3}") for i in range(150)])
    bundle = QueryBundle(QUESTIONS[0], custom_embedding_strs=["Ada Byron", QUESTIONS[3]])
    ours, theirs = (each.as_retriever().retrieve(bundle) for each in twins)
    assert [each.node for each in ours] == [each.node for each in theirs]
    assert [each.score for each in ours] == pytest.approx([each.score for each in theirs], abs=1e-6)


def test_a_filter_holds_for_maps_names_and_super_nodes(tmp_path: Path):
    twins = MapTwins(tmp_path, corpus(60))
    for kind in range(4):
        only = MetadataFilters(filters=[MetadataFilter(key="kind", value=kind)])
        for question in QUESTIONS:
            # By cosines: with a filter, how rare a word is, is counted over all chunks.
            twins.same(question, filters=only, lexical_weight=0.0, similarity_top_k=60)
            twins.same(question, doc_ids=[f"d{kind}", f"d{kind + 4}", "d9"], similarity_top_k=60)
    other = MetadataFilters(filters=[MetadataFilter(key="topic", value="Lewis Range")])
    twins.same(QUESTIONS[0], filters=other, lexical_weight=0.0)


def test_facts_follow_the_metadata_of_their_nodes(tmp_path: Path):
    twins = MapTwins(tmp_path, corpus(9))
    for index in twins:
        index.insert_nodes([node(4, "d1", kind=77)])
    twins.check()
    only = MetadataFilters(filters=[MetadataFilter(key="kind", value=77)])
    twins.same(QUESTIONS[0], filters=only)


def test_names_lead_to_nodes_that_nothing_else_is_near_to(tmp_path: Path):
    """The third node shares no word with the question, and is not among the hundred nearest in any way."""

    def said(number: int, topic: str, facts: dict[str, Any]) -> TextNode:
        return TextNode(id_=f"n{number:03d}", text=json.dumps([topic, facts]))

    many = [said(i, f"Kiln {i}", {"in": f"town {i}", "river": f"bank {i}"}) for i in range(10, 500)]
    chain = [
        said(0, "Lewis Range", {"begins at": "Marias Pass"}),
        said(1, "Marias Pass", {"found by": "John Stevens"}),
        said(2, "John Stevens", {"born": "Ohio"}),
    ]
    twins = MapTwins(tmp_path, [*chain, *many])
    asked = "Which kiln and town and river and bank is in the Lewis Range?"
    whole: dict[str, Any] = {"return_source": True, "similarity_top_k": 100}
    without = twins.stored.as_retriever(**whole, bridge_weight=0.0).retrieve(asked)
    assert "n002" not in {each.node.node_id for each in without}
    shares = [{e.node_id: e.share for e in each.as_retriever(**whole).explain(asked)} for each in twins]
    assert shares[0]["n002"] > 0
    both = shares[0].keys() & shares[1].keys()
    assert {i: shares[0][i] for i in both} == pytest.approx({i: shares[1][i] for i in both}, abs=1e-9)


def test_a_topic_that_comes_or_goes_links_the_facts_that_mention_it(tmp_path: Path):
    def said(node_id: str, topic: str, fact: str) -> TextNode:
        return TextNode(id_=node_id, text=json.dumps([topic, {"story": fact}]))

    long = "The men of the tower have seen the New York City Hall Park from afar, and so on"
    twins = MapTwins(tmp_path, [said("a", "Tower", long), said("b", "York City", "x")])
    twins.check()
    for node_id, topic in (("c", "City Hall"), ("d", "New York"), ("e", "New York City Hall"), ("f", "Hall Park")):
        for index in twins:
            index.insert_nodes([said(node_id, topic, "x")])
        twins.check()
    for node_id in "ebdc":
        for index in twins:
            index.delete_nodes([node_id])
        twins.check()


def test_a_question_reads_many_rows_at_once_and_no_more_of_a_larger_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    counts = []
    for size in (300, 600):
        (tmp_path / str(size)).mkdir()
        index = MapTwins(tmp_path / str(size), [node(i, f"d{i // 3}") for i in range(size)]).stored
        with monkeypatch.context() as patch:
            reads = count_reads(patch)
            refuse_other_reads(patch)
            assert index.as_retriever().retrieve(QUESTIONS[0])
            assert index.as_retriever(return_source=True).retrieve(QUESTIONS[0])
        counts.append((len(reads), sum(keys for _, keys in reads)))
    assert max(calls for calls, _ in counts) <= 60
    assert counts[1][1] < 1.3 * counts[0][1]


def test_a_write_reads_what_its_documents_touch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def said(i: int) -> TextNode:
        source = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id=f"d{i // 4}")}
        facts = {"part": f"Part {i}", "story": f"It was seen by the {i} men of the Tower {i + 1} in that year"}
        return TextNode(id_=f"n{i}", text=json.dumps([f"Tower {i}", facts]), relationships=source)

    index = MapTwins(tmp_path, [said(i) for i in range(400)]).stored
    reads = count_reads(monkeypatch)
    index.insert_nodes([said(401 + i) for i in range(4)])
    index.delete_ref_doc("d100", delete_from_docstore=True)
    assert max(keys for collection, keys in reads if "pg_" in collection) < 200


def test_stores_are_searched_before_the_transaction_of_a_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    index = MapTwins(tmp_path, corpus(12)).stored
    builder: Any = index.builder
    monkeypatch.setattr(builder, "prepare", _prepared_alone(builder.prepare, builder))
    index.insert_nodes([node(100, "d1"), node(101, "new")])
    assert len(index.ref_doc_info["new"].node_ids) == 1


def _prepared_alone(prepare: Any, builder: Any) -> Any:
    def run(change: Any) -> Any:
        yield from prepare(change)
        for fusion in builder._fusions.values():
            fusion.linked = None  # from now on nothing can be looked for

    return run


def test_rows_beyond_what_a_step_reads_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    twins = MapTwins(tmp_path, corpus())
    monkeypatch.setattr(name_walk, "ROWS_A_STEP", 1)
    found = twins.stored.as_retriever(return_source=True).explain(QUESTIONS[0])
    assert found[0].names == ["lewis range"]
    assert found[0].share > 0


def test_a_write_by_another_process_is_seen(tmp_path: Path):
    twins = MapTwins(tmp_path, corpus(20))
    other = twins.again()
    for index in (other, twins.memory):
        index.insert_nodes([node(107, "d1"), node(108, "d1")])
    for question in QUESTIONS:
        twins.same(question, similarity_top_k=60)


def test_sync_and_async_agree(tmp_path: Path):
    retriever = MapTwins(tmp_path, corpus(20)).stored.as_retriever()
    assert retriever.retrieve(QUESTIONS[0]) == asyncio.run(retriever.aretrieve(QUESTIONS[0]))
    assert retriever.explain(QUESTIONS[0]) == asyncio.run(retriever.aexplain(QUESTIONS[0]))
    assert retriever.as_context(QUESTIONS[0]) == asyncio.run(retriever.aas_context(QUESTIONS[0]))


def test_contexts_are_those_in_memory(tmp_path: Path):
    ours, theirs = (each.as_retriever() for each in MapTwins(tmp_path, corpus(20)))
    assert ours.as_context(QUESTIONS[1], documents=True) == theirs.as_context(QUESTIONS[1], documents=True)


@pytest.mark.parametrize("scope", ["documents", "nodes"])
def test_outlines_of_a_postprocessor_are_those_in_memory(tmp_path: Path, scope: Any):
    twins = MapTwins(tmp_path, corpus())
    given = twins.memory.as_retriever(return_source=True, similarity_top_k=4).retrieve(QUESTIONS[0])
    given.insert(1, NodeWithScore(node=TextNode(id_="foreign", text="foreign"), score=0.5))
    for filters in (None, MetadataFilters(filters=[MetadataFilter(key="kind", value=1)])):
        for question in (QUESTIONS[0], None):
            processors = [PGRAGPostprocessor(index=each, scope=scope, filters=filters) for each in twins]
            ours, theirs = (each.postprocess_nodes(given, query_str=question) for each in processors)
            assert [each.node for each in ours] == [each.node for each in theirs]
            assert [each.score for each in ours] == pytest.approx([each.score for each in theirs], abs=1e-6)
            again = asyncio.run(processors[0].apostprocess_nodes(given, query_str=question))
            assert [each.node for each in again] == [each.node for each in ours]


def test_large_super_nodes_are_walked_in_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(map_view, "_TOGETHER", 1)
    twins = MapTwins(tmp_path, corpus(), topic_threshold=0.5)
    search: dict[str, Any] = {"seed_topics": 1, "max_topics": 30, "seed_facts": 0, "fact_walk": False}
    walked = []
    for index in twins:
        found = index.as_retriever(**search, similarity_top_k=200).explain(QUESTIONS[0])
        walked.append({each.path[0] for each in found if each.reason == "topic walk"})
    assert len(walked[0]) < len(walked[1])


def test_what_needs_the_whole_graph_is_refused_by_name(tmp_path: Path):
    index = MapTwins(tmp_path, corpus(9)).stored
    for use in (lambda: index.graph, index.to_networkx):
        with pytest.raises(ConfigurationError, match="served from stores"):
            use()


def no_mentions(rows: Any, come: Any, gone: Any) -> dict[str, Any]:
    return {}


def no_links(self: FusionRows, vectors: Any) -> Any:
    return [set() for _ in vectors]
    yield


@pytest.mark.parametrize(
    ("owner", "name", "fault"),
    [(map_rows, "_with_topics", no_mentions), (FusionRows, "linked", no_links)],
)
def test_a_fault_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, fault: Any):
    monkeypatch.setattr(owner, name, fault)
    twins = MapTwins(tmp_path, corpus(12))
    with pytest.raises(AssertionError):
        wander(twins, 2, 14, twins.check)
