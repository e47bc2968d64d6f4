"""Statements that are served from stores: rows that are exact after any writes, and answers as those in memory."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from llama_index.core import load_index_from_storage
from llama_index.core.schema import NodeRelationship, NodeWithScore, RelatedNodeInfo, TextNode
from llama_index.core.vector_stores.types import MetadataFilter, MetadataFilters
from tests.graphrag.scripted import answer
from tests.graphrag.strategies import chunks, ids
from tests.graphrag.test_merging import RECORDS, Angles, corpus, scripted
from tests.serving.places import everything_in
from tests.serving.twins import Twins, random_writes

from llama_index.graphrag import (
    CooccurrenceExtractor,
    CosineResolver,
    GraphRAGIndex,
    GraphRAGPostprocessor,
    GraphRAGQueryEngine,
    LLMResolver,
    PublishedOptions,
    RecordedExtractor,
)
from llama_index.graphrag.graph.statement import ChunkStatements, ClaimStatement
from llama_index.graphrag.graph.statement_edges import Resolved, statement_edges
from llama_index.graphrag.state import GraphRAGState
from llama_index.graphrag.statement_rows import StatementRows
from llama_index.ragkit import ExtractiveSummarizer
from llama_index.ragkit.errors import ConfigurationError
from llama_index.ragkit.sql import make_engine
from llama_index.ragkit.steps import run_steps
from llama_index.ragkit.testing import HashEmbedding, ScriptedLLM

FIRST = ["Ada", "Bede", "Carl", "Dora", "Edna", "Finn", "Gwen", "Hugo"]
LAST = ["Orr", "Dane", "Finch", "Vale", "Stone", "Marsh", "Reed", "Frost"]
PLACES = ["Velsin", "Tern Rock", "Meridian", "Lyon", "Zanzibar", "Northgate"]
OFFLINE: dict[str, Any] = {
    "extractor": CooccurrenceExtractor(),
    "summarizer": ExtractiveSummarizer(),
    "report_tokens": 60,
}


def many(count: int, seed: int = 0, document_of: int = 5) -> list[TextNode]:
    """Chunks about people of eight families, most of whom meet their own."""
    random, made = np.random.default_rng(seed), []
    for i in range(count):
        family = int(random.integers(len(LAST)))
        names = [f"{FIRST[random.integers(8)]} {LAST[(family + int(random.integers(5) == 0)) % 8]}" for _ in range(3)]
        place = PLACES[random.integers(len(PLACES))]
        words = " ".join(f"word{random.integers(40)}" for _ in range(6))
        text = f"{names[0]} met {names[1]} in {place}. Then {names[1]} and {names[2]} wrote {words} in letter {i}."
        document = f"s{seed}-{i // document_of}"
        source = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id=document)}
        made.append(
            TextNode(
                id_=f"s{seed}-{i:03d}",
                text=text,
                metadata={"family": family},
                excluded_embed_metadata_keys=["family"],
                start_char_idx=i,
                relationships=source,
            )
        )
    return made


class GraphTwins(Twins):
    cls = GraphRAGIndex

    def components(self) -> dict[str, Any]:
        return {"embed_model": HashEmbedding(), **OFFLINE, **self.options}

    @property
    def rows(self) -> StatementRows:
        found = self.stored.builder.rows  # type: ignore[attr-defined]
        assert isinstance(found, StatementRows)
        return found

    def check(self) -> None:
        """The statements are those in memory, and the graph in the database has what follows from them."""
        graph, state = run_steps(self.rows.everything()), self.memory.state
        assert graph.chunks == state.graph.chunks
        assert (graph.entities, graph.links) == (state.graph.entities, state.graph.links)
        assert graph.short == state.graph.short
        resolved = [Resolved(chunk, graph.short.get(chunk.document, {})) for chunk in graph.chunks.values()]
        change, labels = statement_edges(resolved, stated=self.memory.config.entity_vectors)
        nodes = np.unique(change.nodes)
        with self.rows.graph.reader() as reader:
            first = reader.fetch(nodes)
            whole = reader.fetch(nodes[:0], first.nodes[first.further > 0])
        assert {n: label for n, label in zip(nodes.tolist(), first.labels, strict=True) if label} == dict(labels)
        counts = int(first.records["count"].sum() + whole.records["count"].sum())
        assert counts == int(change.records["count"].sum())
        assert self.stored.storage.struct.counters["tokens"] == run_steps(self.memory._corpus_tokens())
        names = self.stored.storage.space("entities")
        assert sorted(run_steps(names.described()).ids) == sorted(state.entities.ids)
        self.check_state(state)

    def check_state(self, state: GraphRAGState) -> None:
        """The state in memory is that of all that is stored."""
        again: GraphRAGState = run_steps(self.memory.builder.load())
        assert (again.graph, again.reports, again.judgements) == (state.graph, state.reports, state.judgements)
        assert (again.chunks.ids, again.entities.ids) == (state.chunks.ids, state.entities.ids)

    def same(self, question: str, **options: Any) -> None:
        ours, theirs = (each.as_retriever(**options).retrieve(question) for each in self)
        assert [each.node for each in ours] == [each.node for each in theirs] != []
        assert [each.score for each in ours] == pytest.approx([each.score for each in theirs], abs=1e-6)


QUESTIONS = ["Whom did Ada Orr meet in Lyon?", "What did Gwen Frost and Hugo Reed write?", "letter word3 word7"]


@pytest.mark.parametrize("options", [{}, {"entity_vectors": True}, {"partition_by": "family"}])
def test_any_sequence_of_writes_leaves_the_statements_of_memory(tmp_path: Path, options: dict[str, Any]) -> None:
    twins = GraphTwins(tmp_path, many(20), **options)

    def changed(step: int) -> TextNode:
        return many(20)[step].model_copy(update={"text": f"Ada Orr saw Zed Quill in Lyon {step} times."})

    held = random_writes(twins, many(20), many(60, seed=1), changed, 8)
    for question in QUESTIONS:
        twins.same(question)
        twins.same(question, mode="global", token_budget=1000)
    for index in twins:
        index.delete_nodes(held)
    twins.check()
    left = [row for row in everything_in(make_engine(twins.url)).splitlines() if row.startswith("ragkit_graph")]
    assert left == []


NO_ENTITY = ChunkStatements("c0", "h1", claims=(ClaimStatement("Ada"), ClaimStatement("Charles", "!")))


@settings(max_examples=15)
@example([NO_ENTITY])
@given(st.lists(st.sampled_from(ids).flatmap(chunks) | st.sampled_from(ids), min_size=2, max_size=7))
def test_states_and_rows_after_writes_are_those_of_what_is_left(writes: list[ChunkStatements | str]) -> None:
    """A chunk is inserted, or takes the place of another; an id is deleted."""
    extractor = RecordedExtractor({})
    with TemporaryDirectory() as folder:
        twins = GraphTwins(Path(folder), [], extractor=extractor, entity_vectors=True)
        for step, write in enumerate(writes):
            if isinstance(write, str):
                for index in twins:
                    index.delete_nodes([write])
            else:
                extractor.add({write.chunk_id: write.record()})
                node = TextNode(id_=write.chunk_id, text=f"Step {step}", start_char_idx=write.position)
                if write.document_id:
                    node.relationships[NodeRelationship.SOURCE] = RelatedNodeInfo(node_id=write.document_id)
                for index in twins:
                    index.insert_nodes([node])
            if len(twins.memory.state.chunks):
                twins.check()


TYPED = {
    "d-0": {"entities": [["Ebenezer Scrooge", "person", ""], ["Tim", "person", ""]], "relations": []},
    "d-1": {"entities": [["Scrooge", "person", "mean"]], "relations": [["Scrooge", "Marley", "were partners", 2]]},
    "d-2": {"entities": [["Uncle Scrooge", "person", "rich"], ["Marley", "person", "dead"]], "relations": []},
}


def test_a_name_stands_for_a_longer_one_of_its_document_and_not_once_that_is_gone(tmp_path: Path) -> None:
    source = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id="d")}
    texts = ["Ebenezer Scrooge and Tim.", "Scrooge and Marley were partners.", "Uncle Scrooge, Marley."]
    nodes = [TextNode(id_=f"d-{i}", text=text, start_char_idx=i, relationships=source) for i, text in enumerate(texts)]
    twins = GraphTwins(tmp_path, nodes[:2], extractor=RecordedExtractor(TYPED), entity_vectors=True)
    twins.check()
    assert run_steps(twins.rows.everything()).short == {"d": {"scrooge": "ebenezer scrooge"}}
    for write in (
        lambda index: index.insert_nodes(nodes[2:]),
        lambda index: index.delete_nodes(["d-2"]),
        lambda index: index.delete_nodes(["d-0"]),
    ):
        for index in twins:
            write(index)
        twins.check()
        twins.same("What was Scrooge?", similarity_top_k=3)
        twins.same("What was Ebenezer Scrooge?", similarity_top_k=3, entities_top_k=2)
    assert run_steps(twins.rows.everything()).short == {}


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> GraphTwins:
    return GraphTwins(tmp_path_factory.mktemp("large"), many(700), entity_vectors=True)


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"mode": "basic"},
        {"entities_top_k": 5},
        {"seed_chunks": 0},
        {"published": PublishedOptions(spread=0.0)},
        {"token_budget": 600, "similarity_top_k": 50},
        {"mode": "global", "token_budget": 3000},
        {"mode": "global", "level": 1},
        {"context": "mixed", "token_budget": 900},
        {"context": "mixed", "token_budget": 900, "published": PublishedOptions(chunk_order="entities", fill=False)},
    ],
)
def test_more_chunks_than_a_question_reads_are_answered_as_in_memory(
    large: GraphTwins, question: str, options: dict[str, Any]
) -> None:
    large.same(question, **options)


def test_the_communities_are_those_of_memory_in_every_process(large: GraphTwins) -> None:
    for index in large:
        index.rebuild()
    again = large.again()
    assert again.storage.struct.counters["communities"] == len(large.memory.communities)
    builder: Any = again.builder
    current = run_steps(builder.communities.current())
    table = run_steps(builder.communities.table(current))
    memory = large.memory.state.everything
    for name in ("order", "first", "last", "parent"):
        np.testing.assert_array_equal(getattr(table.hierarchy, name), getattr(memory.hierarchy, name))
    assert list(table.keys) == [plan.key for plan in memory.plans()]
    assert run_steps(builder.need_communities(again.writer.state)) is False


def test_filters_restrict_the_graph_as_in_memory(large: GraphTwins) -> None:
    where = MetadataFilters(filters=[MetadataFilter(key="family", value=3)])
    documents = [f"s0-{i}" for i in range(40)]
    for question in QUESTIONS:
        # How rare a word is, is counted over all chunks where a filter is not a list of these.
        large.same(question, filters=where, lexical_weight=0.0)
        for options in ({"filters": where}, {"doc_ids": documents}, {"doc_ids": documents, "filters": where}):
            large.same(question, mode="global", token_budget=1500, **options)
            large.same(question, context="mixed", token_budget=1500, **options)
            large.same(question, entities_top_k=3, **options)


def test_explanations_name_what_led_to_a_chunk(large: GraphTwins) -> None:
    ours, theirs = (each.as_retriever(similarity_top_k=3).explain(QUESTIONS[0]) for each in large)
    for one, other in zip(ours, theirs, strict=True):
        assert (one.text, one.share) == (other.text, other.share)
        assert [(link.entity, link.kind, link.asked) for link in one.linked] == [
            (link.entity, link.kind, link.asked) for link in other.linked
        ]
        assert one.trust == pytest.approx(other.trust, abs=1e-9)
        assert one.statements == other.statements
        assert dict(one.entities) == pytest.approx(dict(other.entities), abs=1e-9)
    ours, theirs = (each.as_retriever(mode="global", token_budget=3000).explain(QUESTIONS[0]) for each in large)
    assert [(each.opened, each.refused, each.sources) for each in ours] == [
        (each.opened, each.refused, each.sources) for each in theirs
    ]


def test_what_a_question_about_the_whole_would_cost_is_known(large: GraphTwins) -> None:
    ours, theirs = (each.estimate_question(QUESTIONS[0], token_budget=3000) for each in large)
    assert ours == theirs
    assert ours.corpus_tokens > ours.tokens > 0


def test_opening_reads_no_statement(large: GraphTwins, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any) -> Any:
        raise AssertionError("everything was read")

    monkeypatch.setattr(StatementRows, "everything", refused)
    again = large.again()
    assert again.as_retriever().retrieve(QUESTIONS[0])


def test_a_question_sends_few_statements_to_the_graph(large: GraphTwins, monkeypatch: pytest.MonkeyPatch) -> None:
    from llama_index.ragkit.sql.graph_rows import GraphTable

    calls = []
    fetch = GraphTable.fetch
    monkeypatch.setattr(GraphTable, "fetch", lambda *given, **more: calls.append(1) or fetch(*given, **more))
    large.stored.as_retriever().retrieve(QUESTIONS[0])
    assert 0 < len(calls) <= 9


def small(folder: Path, **options: Any) -> GraphTwins:
    llm = ScriptedLLM(answer)
    return GraphTwins(folder, many(30), summarizer=None, llm=llm, **options)


def test_reports_are_written_when_a_question_reads_them_and_by_no_other_again(tmp_path: Path) -> None:
    twins = small(tmp_path)
    question, options = QUESTIONS[0], {"mode": "global", "token_budget": 700}
    twins.same(question, **options)
    assert twins.stored.storage.struct.counters["reports"] == len(twins.memory.state.reports) > 0
    while sum(each.as_retriever(**options).explain(question)[0].calls for each in twins):
        twins.same(question, **options)  # what was written is shorter, so that more is read
    written = twins.stored.storage.struct.counters["reports"]
    assert written == len(twins.memory.state.reports)
    again = twins.again()
    assert again.as_retriever(**options).explain(question)[0].calls == 0
    assert again.write_reports() == twins.memory.write_reports() == 0
    assert again.storage.struct.counters["reports"] == len(twins.memory.state.reports) > written


def test_a_report_goes_with_the_first_of_its_chunks_and_others_stay(tmp_path: Path) -> None:
    twins = small(tmp_path, reports="deferred")
    for index in twins:
        index.write_reports()
    reports = dict(twins.memory.state.reports)
    some = next(iter(reports.values())).nodes[0]
    (gone,) = (node for node in many(30) if node.node_id == some)
    for index in twins:
        index.delete_nodes([gone.node_id], delete_from_docstore=True)
    builder: Any = twins.stored.builder
    kept = run_steps(builder.communities.sizes())
    assert (
        kept.keys()
        == twins.memory.state.reports.keys()
        == {key for key, written in reports.items() if gone.node_id not in written.nodes}
    )
    assert 0 < len(kept) < len(reports)
    assert gone.node_id not in everything_in(make_engine(twins.url))
    assert gone.text.split("wrote ")[1] not in everything_in(make_engine(twins.url))
    twins.same(QUESTIONS[0], mode="global", token_budget=700)


def test_a_chunk_that_is_read_again_takes_reports_on_its_old_statements_with_it(tmp_path: Path) -> None:
    said = "Ada and Bede quarrelled over a zither, a sextant and the price of tallow in Velsin."
    records: dict[str, Any] = {
        f"s0-{i:03d}": {"entities": [], "relations": [["Ada", "Bede", f"{said} {i}", 1]]} for i in range(4)
    }
    extractor = RecordedExtractor(records)
    options = {"extractor": extractor, "summarizer": None, "llm": ScriptedLLM(answer)}
    twins = GraphTwins(tmp_path, many(4), **options, reports="deferred")
    extractor.add({"s0-002": {"entities": [["Carl", "person", ""]], "relations": []}})
    for index in twins:
        assert index.write_reports() == 0
        assert index.storage.struct.counters["reports"] > 0
        run_steps(index.writer.write(many(4)[2:3], again={"s0-002"}))
        assert index.storage.struct.counters["reports"] == 0
    twins.check()
    assert f"{said} 2" not in everything_in(make_engine(twins.url))


def test_follow_up_questions_are_asked_as_in_memory(tmp_path: Path) -> None:
    twins = small(tmp_path)
    twins.same(QUESTIONS[0], mode="drift", max_calls=6)
    assert twins.stored.as_retriever(mode="drift", max_calls=6).explain(QUESTIONS[0])[0].answers


def test_an_engine_answers_from_reports_in_stores(tmp_path: Path) -> None:
    twins = small(tmp_path)
    ours, theirs = (GraphRAGQueryEngine.over(each, token_budget=700).query(QUESTIONS[0]) for each in twins)
    assert ours.metadata["graphrag"].points == theirs.metadata["graphrag"].points


def test_relevance_tests_are_made_of_the_nearest_chunks(large: GraphTwins) -> None:
    large.same(QUESTIONS[0], mode="global", published=PublishedOptions(relevance_budget=30), llm=ScriptedLLM(answer))


def test_a_question_after_a_write_of_another_process_sees_its_communities(tmp_path: Path) -> None:
    twins = GraphTwins(tmp_path, many(30))
    twins.same(QUESTIONS[0], mode="global", token_budget=700)
    other = twins.again()
    for index in (other, twins.memory):
        index.delete_nodes(["s0-004"])
    twins.same(QUESTIONS[0], mode="global", token_budget=700)
    for index in (other, twins.memory):
        index.insert_nodes(many(3, seed=2))
    twins.same(QUESTIONS[0], mode="global", token_budget=700)


def test_a_postprocessor_ranks_by_the_graph_in_stores(large: GraphTwins) -> None:
    given = large.memory.as_retriever(mode="basic", similarity_top_k=12).retrieve(QUESTIONS[0])
    ours, theirs = (
        GraphRAGPostprocessor(index=each).postprocess_nodes(given, query_str=QUESTIONS[0]) for each in large
    )
    assert [each.node.node_id for each in ours] == [each.node.node_id for each in theirs]
    assert [each.score for each in ours] == pytest.approx([each.score for each in theirs])


def test_copies_of_chunks_are_found_by_their_hashes(tmp_path: Path) -> None:
    twins = GraphTwins(tmp_path, many(40))
    found = twins.memory.as_retriever(mode="basic", similarity_top_k=8).retrieve(QUESTIONS[0])
    copies = [
        NodeWithScore(node=TextNode(text=each.node.get_content(), metadata=each.node.metadata), score=each.score)
        for each in found
    ]

    def reranked(index: GraphRAGIndex) -> list[tuple[str, float]]:
        nodes = GraphRAGPostprocessor(index=index, max_added=0).postprocess_nodes(copies, query_str=QUESTIONS[0])
        return [(each.node.node_id, each.get_score()) for each in nodes]

    before = [reranked(index) for index in twins]
    assert before[0] == before[1]
    for index in twins:
        index.delete_nodes([each.node.node_id for each in found[:4]])
        index.insert_nodes([found[4].node.model_copy(update={"text": "Ada Orr slept."})])
    after = [reranked(index) for index in twins]
    assert after[0] == after[1]
    assert after != before


@pytest.mark.parametrize("with_llm", [False, True])
def test_names_are_merged_in_stores_as_in_memory(tmp_path: Path, with_llm: bool) -> None:
    def resolver() -> Any:
        return LLMResolver(0.95, ScriptedLLM(scripted)) if with_llm else CosineResolver(0.95)

    options = {"extractor": RecordedExtractor(RECORDS), "embed_model": Angles(), "entity_vectors": True}
    given = corpus()
    twins = GraphTwins(tmp_path, given[:1], **options, resolver=resolver())

    def same_everywhere() -> None:
        twins.check()
        assert twins.stored.failures() == twins.memory.failures()
        for options in ({}, {"node_ids": [given[0].node_id, given[-1].node_id]}):
            twins.same("Timothy Cratchit", seed_chunks=0, **options)

    for node in given[1:]:
        for index in twins:
            index.insert_nodes([node])
        same_everywhere()
    for index in twins:
        index.delete_nodes(["carol-1"], delete_from_docstore=True)
    same_everywhere()
    assert twins.stored.retry_failed() == twins.memory.retry_failed() == 0
    same_everywhere()
    for index in twins:
        index.delete_ref_doc("carol", delete_from_docstore=True)
    twins.check()
    assert "timothy" not in everything_in(make_engine(twins.url)).lower()


def test_eager_reports_are_written_with_each_write(tmp_path: Path) -> None:
    twins = small(tmp_path, reports="eager")

    def same_reports() -> None:
        assert run_steps(builder.communities.sizes()).keys() == twins.memory.state.reports.keys()
        assert len(twins.memory.state.reports) == twins.stored.storage.struct.counters["reports"] > 0
        twins.same(QUESTIONS[0], mode="global", token_budget=700)

    builder: Any = twins.stored.builder
    same_reports()
    for write in (lambda index: index.insert_nodes(many(5, seed=3)), lambda index: index.delete_nodes(["s0-004"])):
        for index in twins:
            write(index)
        same_reports()
    stored, memory = twins
    memory.insert_nodes(many(5, seed=4))
    stored.writer.more_follows = True
    stored.insert_nodes(many(5, seed=4))
    run_steps(stored.writer.revise(builder.derive_waiting))
    same_reports()


def test_written_reports_are_read_under_a_filter(tmp_path: Path) -> None:
    twins = small(tmp_path, reports="deferred", partition_by="family", report_tokens=20)
    for index in twins:
        assert index.write_reports() == 0
    where = MetadataFilters(filters=[MetadataFilter(key="family", value=many(30)[0].metadata["family"])])
    options: dict[str, Any] = {"mode": "global", "token_budget": 700, "filters": where}
    twins.same(QUESTIONS[0], **options)
    forms = {each.node.metadata["graphrag_report"] for each in twins.stored.as_retriever(**options).retrieve("letters")}
    assert "written" in forms


def test_reports_are_written_under_a_filter_for_all_of_a_partition(tmp_path: Path) -> None:
    twins = small(tmp_path, partition_by="family", report_tokens=20)
    families = [node.metadata["family"] for node in many(30)]
    for family, kept in ((families[0], True), (families[1], True), (families[0], False)):
        where = MetadataFilters(filters=[MetadataFilter(key="family", value=family)])
        ids = None if kept else [node.node_id for node in many(30) if node.metadata["family"] == family][1:]
        options: dict[str, Any] = {"mode": "global", "token_budget": 700, "filters": where, "node_ids": ids}
        before = twins.stored.storage.struct.counters["reports"]
        ours, theirs = (each.as_retriever(**options).explain(QUESTIONS[0])[0].calls for each in twins)
        assert ours == theirs
        assert bool(ours) == kept
        assert twins.stored.storage.struct.counters["reports"] == before + ours
        twins.same(QUESTIONS[0], **options)
    assert len(twins.memory.state.reports) == twins.stored.storage.struct.counters["reports"]


def test_communities_and_reports_are_those_of_memory(tmp_path: Path) -> None:
    twins = small(tmp_path)
    ours, theirs = (index.communities for index in twins)
    np.testing.assert_array_equal(ours.parent, theirs.parent)
    for index in twins:
        index.write_reports()
    for community in range(len(theirs)):
        assert twins.stored.report(community) == twins.memory.report(community)
        assert twins.stored.community_names(community) == twins.memory.community_names(community)


def test_reports_that_an_earlier_version_stored_go_with_their_chunks() -> None:
    """It stored nothing beside a report."""
    options: dict[str, Any] = {**OFFLINE, "embed_model": HashEmbedding(), "summarizer": None}
    index = GraphRAGIndex(many(30), llm=ScriptedLLM(answer), reports="deferred", **options)
    index.write_reports()
    records = index.storage.records
    for collection in ("report_tokens", "chunk_reports"):
        run_steps(records.delete(collection, list(run_steps(records.get_all(collection)))))
    loaded: Any = load_index_from_storage(index.storage_context, llm=ScriptedLLM(answer), **options)
    reports = dict(loaded.state.reports)
    gone = next(iter(reports.values())).nodes[0]
    loaded.delete_nodes([gone], delete_from_docstore=True)
    left = {key for key, written in reports.items() if gone not in written.nodes}
    assert loaded.state.reports.keys() == run_steps(records.get_all("reports")).keys() == left != reports.keys()
    assert not run_steps(loaded.builder.communities.note_repairs(loaded.state.reports))


def test_what_needs_all_of_an_index_is_refused_by_name(tmp_path: Path) -> None:
    twins = GraphTwins(tmp_path, many(3))
    for refused in (twins.stored.to_networkx, lambda: twins.stored.state):
        with pytest.raises(ConfigurationError, match="served from stores"):
            refused()
