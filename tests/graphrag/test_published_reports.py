"""Reports of the command-line tool: taken where a community is about the same, with their sources, and deleted with
them.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from llama_index.core import load_index_from_storage
from llama_index.core.schema import TextNode
from tests.graphrag.carol import TABLES, needs_recording, run, table
from tests.graphrag.scripted import LIGHTS, LOOMS, answer, nodes
from tests.pages import ROOT, blocks

from llama_index.graphrag import (
    AgglomerativeClustering,
    CooccurrenceExtractor,
    EntityExtractor,
    GraphRAGIndex,
    ImportedReports,
    RecordedClustering,
    RecordedExtractor,
    ReportWriter,
    published_nodes,
)
from llama_index.graphrag.graph.entity_graph import EntityGraph
from llama_index.graphrag.published.run import PublishedRun, read_published
from llama_index.ragkit import ExtractiveSummarizer
from llama_index.ragkit.errors import ConfigurationError
from llama_index.ragkit.testing import HashEmbedding, ScriptedLLM

NAMES = {"a": ["ADA", "BEDE", "CARL"], "b": ["DORA", "EGON"], "c": ["FARA"]}


def small_run(**changes: Any) -> PublishedRun:
    """Two communities of a long and a short text unit each, one inside a third; DORA is related to nobody known."""
    units = [
        {"id": unit, "human_readable_id": i, "text": f"The text of {unit}.", "document_id": unit}
        for i, unit in enumerate("abc")
    ]
    long = "said at length that " * 40
    entities = [
        {"title": name, "type": "PERSON", "description": f"{name} {long}", "text_unit_ids": [unit]}
        for unit, names in NAMES.items()
        for name in names
    ]
    relations = [
        {"source": one, "target": other, "description": f"{one} met {other}", "weight": 1.0, "text_unit_ids": [unit]}
        for unit, one, other in (
            ("a", "ADA", "BEDE"),
            ("a", "BEDE", "CARL"),
            ("b", "DORA", "EGON"),
            ("b", "EGON", "NOBODY"),
            ("c", "CARL", "DORA"),
        )
    ]
    for rows in (entities, relations):
        for number, row in enumerate(rows):
            row |= {"id": f"{number}", "human_readable_id": number}
    members = {0: [0, 1, 2, 3, 4], 1: [0, 1, 2], 2: [3, 4]}
    communities = [
        {
            "community": number,
            "parent": 0 if number else -1,
            "level": min(number, 1),
            "entity_ids": list(map(str, entity_ids)),
            "relationship_ids": [],
        }
        for number, entity_ids in members.items()
    ]
    findings = [
        {"summary": "Friends", "explanation": "They met [Data: Entities (0, 99); Relationships (0, 2)]."},
        {"summary": "Invented", "explanation": "Nothing of this is known [Data: Reports (7)]."},
    ]
    reports = [
        {
            "community": number,
            "title": f"Report {number}",
            "summary": "A summary [Data: Entities (0)].",
            "findings": findings,
            "rank": 7.5,
            "full_content": "",
        }
        for number in members
    ]
    tables = dict(zip(TABLES, (units, entities, relations, communities, reports), strict=True))
    return read_published({**tables, **changes})


def index_of(given: PublishedRun, units: list[TextNode] | None = None, **options: Any) -> GraphRAGIndex:
    return GraphRAGIndex(
        units or published_nodes(given),
        extractor=options.pop("extractor", None) or RecordedExtractor.from_published(given),
        summarizer=options.pop("summarizer", ExtractiveSummarizer()),
        embed_model=HashEmbedding(),
        clustering=options.pop("clustering", RecordedClustering.from_published(given)),
        report_tokens=options.pop("report_tokens", 100),
        **options,
    )


def community_of(index: GraphRAGIndex, *names: str) -> int:
    (found,) = (c for c in range(len(index.communities)) if set(names) == set(index.community_names(c)))
    return found


def test_a_report_is_taken_with_the_sources_of_its_findings_and_without_the_rest() -> None:
    index = index_of(small_run())
    # No community has entity 99 or report 7; community 1 is not joined by relation 2, nor community 2 by relation 0,
    # and entity 0 is not in community 2.
    assert index.import_reports(small_run()) == ImportedReports(3, 0, 0, 3 * 2 + 1 + 2, 3)
    report = index.report(community_of(index, "ADA", "BEDE", "CARL"))
    assert (report.title, report.summary, report.form, report.rating) == ("Report 1", "A summary.", "written", 7.5)
    assert [(finding.text, finding.nodes) for finding in report.findings] == [("Friends: They met.", ("a",))]
    other = index.report(community_of(index, "DORA", "EGON", "NOBODY"))
    assert [finding.nodes for finding in other.findings] == [("b",)]
    assert index.import_reports(small_run()) == ImportedReports(0, 3, 0, 0, 0)


def test_a_report_rests_on_all_that_it_was_written_from() -> None:
    index = index_of(small_run())
    index.import_reports(small_run())
    # CARL is in community 1, and the relation that joins CARL with DORA was shown to its writer.
    assert {tuple(written.nodes) for written in index.state.reports.values()} == {
        ("a", "c"),
        ("a", "b", "c"),
        ("b", "c"),
    }
    index.delete_ref_doc("a", delete_from_docstore=True)
    assert {tuple(written.nodes) for written in index.state.reports.values()} == {("b", "c")}
    assert index.report(community_of(index, "DORA", "EGON", "NOBODY")).form == "written"


def claim(number: int, subject: str, unit: str, said: str, other: str = "NONE") -> dict[str, Any]:
    return {
        "id": f"claim {number}",
        "human_readable_id": number,
        "covariate_type": "claim",
        "type": "TRAVEL",
        "description": said,
        "subject_id": subject,
        "object_id": other,
        "status": "SUSPECTED",
        "start_date": "1843-12-24T00:00:00",
        "end_date": "NONE",
        "source_text": "He left.",
        "text_unit_id": unit,
    }


CLAIMS = [
    claim(0, "ADA", "a", "ADA left by night."),
    claim(1, "EGON", "b", "EGON met a STRANGER.", other="STRANGER"),
    claim(2, "ADA", "elsewhere", "This text unit is unknown."),
    claim(3, "NONE", "c", "It has no subject."),
]


def test_claims_of_a_run_are_statements_that_its_reports_can_cite() -> None:
    findings = [{"summary": "Night", "explanation": "She left [Data: Claims (0, 1, 2)]."}]
    given = small_run(covariates=CLAIMS)
    given = replace(
        given,
        reports={
            n: replace(r, findings=((f["summary"], f["explanation"]),))
            for n, r in given.reports.items()
            for f in findings
        },
    )
    assert given.claims.keys() == {0, 1}
    index = index_of(given)
    lines = {
        statement.text for chunk in "abc" for statement in index.state.graph.statements(chunk) if statement.is_claim
    }
    about = 'Claim (TRAVEL, suspected, from 1843-12-24T00:00:00): {} "He left."'
    assert lines == {about.format("ADA left by night."), about.format("EGON met a STRANGER.")}
    # Community 1 has ADA, 2 has EGON, 0 both; nothing has claim 2, and STRANGER is in no community of the run.
    assert index.import_reports(given) == ImportedReports(3, 0, 0, 1 + 2 + 2, 0)
    own = index.report(community_of(index, "ADA", "BEDE", "CARL"))
    assert [(finding.text, finding.nodes) for finding in own.findings] == [("Night: She left.", ("a",))]
    other = index.report(community_of(index, "DORA", "EGON", "NOBODY", "STRANGER"))
    assert [finding.nodes for finding in other.findings] == [("b",)]
    index.delete_ref_doc("b", delete_from_docstore=True)
    assert "stranger" not in index.state.graph.entities


def test_a_run_without_claims_is_read_as_before() -> None:
    assert not small_run().claims
    with pytest.raises(ConfigurationError, match="subject_id"):
        small_run(covariates=[{"human_readable_id": 0, "text_unit_id": "a"}])


def test_documents_that_come_after_a_migration_are_read_by_the_fallback() -> None:
    given = small_run()
    llm = ScriptedLLM(answer)
    extractor = RecordedExtractor.from_published(given, fallback=EntityExtractor())
    index = index_of(given, extractor=extractor, llm=llm)
    assert not llm.prompts
    index.insert_nodes(nodes(LIGHTS, "lights"))
    assert len(llm.prompts) == len(LIGHTS)
    assert not index.failures()
    assert {"ada byron", "tern rock", "ada"} <= index.state.graph.entities.keys()
    batch = index_of(given, [*published_nodes(given), *nodes(LIGHTS, "lights")], extractor=extractor, llm=llm)
    assert batch.state.graph.entities == index.state.graph.entities
    index.delete_ref_doc("lights", delete_from_docstore=True)
    assert index.state.graph.entities == index_of(given).state.graph.entities


def test_without_a_fallback_they_are_failures_that_say_what_to_do_and_one_can_be_given_later() -> None:
    given = small_run()
    index = index_of(given)
    index.insert_nodes(nodes(LOOMS, "looms"))
    failures = index.failures()
    assert len(failures) == len(LOOMS)
    assert all("fallback=" in failure.reason for failure in failures)
    loaded = load_index_from_storage(
        index.storage_context,
        extractor=RecordedExtractor.from_published(given, fallback=CooccurrenceExtractor()),
        summarizer=ExtractiveSummarizer(),
        embed_model=HashEmbedding(),
        clustering=RecordedClustering.from_published(given),
    )
    assert isinstance(loaded, GraphRAGIndex)
    assert loaded.retry_failed() == 0
    assert "velsin guild" in loaded.state.graph.entities


def test_a_report_of_something_else_is_not_taken() -> None:
    given = small_run()
    statements = index_of(given, report_tokens=3000)
    assert statements.import_reports(given) == ImportedReports(0, 3, 0, 0, 0)
    other = [
        node.model_copy(update={"text": "Another text."}) if node.node_id == "a" else node
        for node in published_nodes(given)
    ]
    # Communities 0 and 1 rest on the text that changed.
    assert index_of(given, other).import_reports(given).taken == 1
    grown = index_of(given)
    extractor = grown.resources.extractor
    assert isinstance(extractor, RecordedExtractor)
    extractor.add({"new": {"entities": [["Ada", "PERSON", "Ada came back."]], "relations": []}})
    grown.insert_nodes([TextNode(id_="new", text="Ada came back.")])
    assert grown.import_reports(given).taken == 1
    agglomerative = index_of(given, clustering=AgglomerativeClustering())
    taken = agglomerative.import_reports(given)
    assert sum(taken[:3]) == 3


def test_a_report_that_was_taken_is_not_written_again_and_read_in_its_full_length() -> None:
    given = small_run()
    llm = ScriptedLLM(answer)
    index = index_of(given, summarizer=ReportWriter(min_in_text=0), llm=llm)
    index.import_reports(given)
    assert index.write_reports() == 0
    (prompt,) = llm.prompts  # of the only community that the run has no report of
    assert "FARA" in prompt
    assert "ADA" not in prompt
    found = index.as_retriever(mode="global", level=0).retrieve("Who met?")
    assert "They met." in found[0].text


def test_recorded_communities_hold_their_entities_and_new_ones_join_them() -> None:
    clustering = RecordedClustering(
        (("ada", (0, 1)), ("bede", (0, 1)), ("carl", (0, 2)), ("dora", (0, 2)), ("gone", (5,)))
    )
    names = ["ada", "bede", "carl", "dora", "new", "far", "away"]
    edges = [("ada", "new", 1), ("carl", "new", 2), ("far", "away", 1)]
    graph = EntityGraph.of(
        names,
        [names.index(one) for one, _, _ in edges],
        [names.index(other) for _, other, _ in edges],
        [weight for _, _, weight in edges],
    )
    found = clustering.cluster(graph)
    groups = {frozenset(graph.names[row] for row in found.members(c)) for c in range(len(found))}
    assert groups == {
        frozenset(("ada", "bede", "carl", "dora", "new")),
        frozenset(("ada", "bede")),
        frozenset(("carl", "dora", "new")),
        frozenset(("far", "away")),
    }
    assert len(clustering.cluster(EntityGraph.of([], [], []))) == 0
    assert len(clustering.cluster(EntityGraph.of(["new"], [], []))) == 1


@needs_recording
def test_the_reports_of_the_recorded_run_are_taken_for_its_communities() -> None:
    index = index_of(run(), report_tokens=800)
    assert index.import_reports(run()) == ImportedReports(25, 85, 12, 23, 0)
    nodes = {node for written in index.state.reports.values() for f in written.report.findings for node in f.nodes}
    assert nodes <= set(run().texts)
    assert not any("[Data:" in written.report.text for written in index.state.reports.values())


@needs_recording
def test_the_migration_that_is_documented_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    (tmp_path / "output").mkdir()
    for name in TABLES:
        parquet.write_table(pyarrow.Table.from_pylist(table(name)), tmp_path / "output" / f"{name}.parquet")
    (block,) = (b for b in blocks(ROOT / "docs" / "migration.md") if "read_parquet" in b.code)
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    exec(compile(block.code, "migration.md", "exec"), names)
    assert names["graph"].state.reports
