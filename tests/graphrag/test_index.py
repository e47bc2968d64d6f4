"""The index: batch equals incremental, deletes are complete and need no LLM, tenants share nothing."""

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from llama_index.core import Document, Settings, StorageContext, load_index_from_storage
from llama_index.core.schema import TextNode
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters
from tests.chromium import CHROMIUM, Browser
from tests.graphrag.scripted import LIGHTS, LOOMS, answer, corpus, nodes

from llama_index.graphrag import (
    CooccurrenceExtractor,
    EntityExtractor,
    GraphRAGIndex,
    GraphRAGRetriever,
    PublishedOptions,
    RecordedExtractor,
    ReportWriter,
)
from llama_index.graphrag.graph.statement import scope_of
from llama_index.ragkit import ExtractiveSummarizer, LLMSummarizer
from llama_index.ragkit.errors import ConfigurationError
from llama_index.ragkit.llm.context_window import remember_window
from llama_index.ragkit.steps import run_steps
from llama_index.ragkit.storage.selection import EVERYTHING
from llama_index.ragkit.testing import HashEmbedding, ScriptedLLM

SMALL = {"report_tokens": 12, "context_tokens": 60}


def offline(given=(), **kwargs) -> GraphRAGIndex:
    options = {
        "extractor": CooccurrenceExtractor(),
        "summarizer": ExtractiveSummarizer(),
        "embed_model": HashEmbedding(),
        **kwargs,
    }
    return GraphRAGIndex(nodes=list(given), **options)


def with_llm(given=(), **kwargs) -> tuple[GraphRAGIndex, ScriptedLLM]:
    llm = ScriptedLLM(answer)
    options = {"extractor": EntityExtractor(), "summarizer": ReportWriter(min_in_text=0), **SMALL, **kwargs}
    return GraphRAGIndex(nodes=list(given), embed_model=HashEmbedding(), llm=llm, **options), llm


def derived(index: GraphRAGIndex) -> str:
    """Everything that the index derives, ids of nodes included, as text."""
    view = index.state.everything
    rows = sorted((row.key, row.id) for row in index.state.entities.records)
    plans = [(plan.key, plan.lines, plan.nodes) for plan in view.plans()]
    pairs = {key: {other: dict(where) for other, where in row.items()} for key, row in view.graph.links.items()}
    return json.dumps([rows, plans, view.hierarchy.parent.tolist(), view.entities.names, pairs], sort_keys=True)


def test_an_index_that_grew_in_any_order_is_one_built_at_once() -> None:
    whole = derived(offline(corpus()))
    for seed in range(3):
        given = corpus()
        random.Random(seed).shuffle(given)
        index = offline(given[:2])
        index.insert_nodes(nodes(["Tern Rock and Velsin met Egon Hale."], "gone"))
        for node in given[2:]:
            index.insert_nodes([node])
        index.delete_ref_doc("gone", delete_from_docstore=True)
        assert derived(index) == whole


def test_communities_are_those_of_the_texts() -> None:
    index = offline(corpus())
    hierarchy = index.communities
    groups = [set(index.community_names(int(root))) for root in hierarchy.roots]
    assert {"Ada Byron", "Bede Orr", "Tern Rock", "Meridian"} in groups
    assert {"Carl Dane", "Dora Finch", "Velsin", "Velsin Guild"} in groups
    report = index.report(int(hierarchy.roots[0]))
    assert report.form == "statements"
    assert set(report.nodes) == {"lights-0", "lights-1", "lights-2"}


def test_nothing_of_a_deleted_document_is_left_and_no_model_is_asked(tmp_path) -> None:
    index, llm = with_llm(corpus(), reports="deferred")
    assert index.write_reports() == 0
    assert index.state.reports
    llm.prompts.clear()
    index.delete_ref_doc("lights", delete_from_docstore=True)
    assert llm.prompts == []
    index.storage_context.persist(str(tmp_path))
    stored = b"".join(path.read_bytes() for path in tmp_path.iterdir()).lower()
    assert b"byron" not in stored
    assert b"meridian" not in stored
    assert b"dora finch" in stored
    assert derived(index) == derived(with_llm(nodes(LOOMS, "looms"))[0])


def test_a_name_that_comes_back_from_a_short_form_is_found_again() -> None:
    records = {
        "a-0": {"entities": [["Ebenezer Scrooge", "person", "A miser."]], "relations": []},
        "b-0": {"entities": [["Scrooge", "person", "An uncle."]], "relations": []},
    }
    given = [*nodes(["one"], "a"), *nodes(["two"], "b")]
    for node in given:
        node.relationships = nodes(["x"], "doc")[0].relationships
    index = offline(given, extractor=RecordedExtractor(records), entity_vectors=True)
    assert list(index.state.graph.entities) == ["ebenezer scrooge"]
    index.delete_nodes(["a-0"], delete_from_docstore=True)
    assert list(index.state.graph.entities) == ["scrooge"]
    assert [row.key for row in index.state.entities.records] == ["scrooge"]


def test_reports_are_written_once_for_each_content() -> None:
    index, llm = with_llm(corpus(), reports="deferred")

    def written() -> int:
        return sum("Write a report" in prompt for prompt in llm.prompts)

    index.write_reports()
    first = written()
    assert first == len(index.state.reports) > 0
    assert index.write_reports() == 0
    assert written() == first
    index.insert_nodes(nodes(["Egon Hale painted Fara Isle and Egon Hale left."], "new"))
    index.write_reports()
    kept = written()
    assert kept <= first + 1  # the two old communities cost nothing
    index.delete_ref_doc("new", delete_from_docstore=True)
    index.write_reports()
    assert written() == kept


def test_reports_that_were_paid_before_a_kill_are_not_paid_again(tmp_path) -> None:
    class Killed(BaseException):
        """Ends the process, as far as the index can tell."""

    asked: list[str] = []

    def killed_at_the_second(prompt: str) -> str:
        if "Write a report" in prompt:
            if asked:
                raise Killed
            asked.append(prompt)
        return answer(prompt)

    options = {
        "extractor": EntityExtractor(),
        "summarizer": ReportWriter(min_in_text=0),
        "embed_model": HashEmbedding(),
        **SMALL,
    }
    options |= {"reports": "deferred", "cache": tmp_path / "cache.db", "num_workers": 1}
    index = GraphRAGIndex(nodes=corpus(), llm=ScriptedLLM(killed_at_the_second), **options)
    with pytest.raises(Killed):
        index.write_reports()
    index.storage_context.persist(str(tmp_path / "index"))
    storage = StorageContext.from_defaults(persist_dir=str(tmp_path / "index"))
    llm = ScriptedLLM(answer)
    loaded = load_index_from_storage(storage, llm=llm, **options)
    assert loaded.write_reports() == 0
    again = [prompt for prompt in llm.prompts if "Write a report" in prompt]
    assert len(asked) == 1
    assert len(again) == len(loaded.state.reports) - 1 > 0
    assert not set(asked) & set(again)


def test_no_hash_seed_has_an_influence() -> None:
    script = "from tests.graphrag.test_index import corpus, derived, offline; print(derived(offline(corpus())))"
    seed = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"
    found = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONHASHSEED": seed},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        check=True,
    ).stdout
    assert found == f"{derived(offline(corpus()))}\n".encode()


def test_a_lazy_build_pays_for_no_report_and_a_question_for_those_it_reads() -> None:
    index, llm = with_llm(corpus())
    assert not any("Write a report" in prompt for prompt in llm.prompts)
    retriever = index.as_retriever(mode="global")
    found = retriever.retrieve("What happened at Tern Rock?")
    paid = sum("Write a report" in prompt for prompt in llm.prompts)
    assert paid == len(index.state.reports) > 0
    assert any("They belong together." in result.text for result in found)
    assert not any("invented" in result.text for result in found)
    assert all(report.dropped == (1, 1) for report in index.state.reports.values())
    assert index.last_query is not None
    retriever.retrieve("What happened at Tern Rock?")
    assert sum("Write a report" in prompt for prompt in llm.prompts) == paid


def test_an_eager_index_has_its_reports_at_once() -> None:
    index, _ = with_llm(corpus(), reports="eager")
    assert len(index.state.reports) == index.index_struct.counters["reports"] > 0


def test_a_question_has_no_more_reports_written_than_it_may() -> None:
    index, llm = with_llm(corpus())
    index.as_retriever(mode="global", max_reports=1).retrieve("What happened?")
    assert sum("Write a report" in prompt for prompt in llm.prompts) == 1


def test_written_reports_are_persisted_and_loaded(tmp_path) -> None:
    index, llm = with_llm(corpus(), reports="deferred")
    index.write_reports()
    index.storage_context.persist(str(tmp_path))
    loaded = load_index_from_storage(
        StorageContext.from_defaults(persist_dir=str(tmp_path)), embed_model=HashEmbedding(), llm=llm
    )
    assert loaded.state.reports == index.state.reports
    assert loaded.config == index.config
    assert derived(loaded) == derived(index)


def test_a_report_that_fails_is_counted_answered_by_statements_and_retried() -> None:
    index, llm = with_llm(corpus(), reports="deferred")
    good, llm._script = llm._script, lambda prompt: "no"
    assert index.write_reports() == len(index.failures()) > 0
    assert all(report.form == "extract" for report in (index.report(int(c)) for c in index.communities.roots))
    llm._script = good
    assert index.retry_failed() == 0
    assert index.state.reports


def test_any_summarizer_writes_a_report_of_one_finding() -> None:
    llm = ScriptedLLM("The whole story.")
    index = offline(corpus(), summarizer=LLMSummarizer(min_in_text=0), llm=llm, reports="eager", **SMALL)
    report = index.report(int(index.communities.roots[0]))
    assert report.form == "written"
    assert [finding.text for finding in report.findings] == ["The whole story."]
    assert report.findings[0].nodes


def test_tenants_share_no_entity_no_community_and_no_report() -> None:
    given = [*nodes(LIGHTS, "a", tenant="a"), *nodes(LIGHTS[:2], "b", tenant="b")]
    index, llm = with_llm(given, partition_by="tenant")
    planner = index.state.everything.planner
    for community in range(len(index.communities)):
        assert len({scope_of(key) for key in planner.names(community)}) == 1
    only_b = MetadataFilters(filters=[MetadataFilter(key="tenant", value="b")])
    retriever = index.as_retriever(mode="global", filters=only_b)
    llm.prompts.clear()
    found = retriever.retrieve("What happened at Tern Rock?")
    assert llm.prompts  # a whole partition may have its reports written
    assert not any("Meridian struck" in prompt for prompt in llm.prompts)
    sources = {child.node_id for result in found for child in result.node.child_nodes or ()}
    assert sources == {"b-0", "b-1"}
    alone, _ = with_llm(nodes(LIGHTS[:2], "b", tenant="b"), partition_by="tenant")
    assert {plan.key for plan in alone.state.everything.plans()} <= {
        plan.key for plan in index.state.everything.plans()
    }


def test_under_a_filter_nothing_else_is_seen_or_written() -> None:
    index, llm = with_llm(corpus())
    llm.prompts.clear()
    retriever = index.as_retriever(mode="global", doc_ids=["looms"])
    explained = retriever.explain("What did Ada Byron do at Tern Rock?")
    assert llm.prompts == []
    assert explained
    assert "Byron" not in repr(explained)
    local = index.as_retriever(doc_ids=["looms"]).explain("What did Ada Byron do at Tern Rock?")
    assert "byron" not in repr(local).casefold()


def test_partition_by_cannot_change(tmp_path) -> None:
    index = offline(nodes(LIGHTS, "a", tenant="a"), partition_by="tenant")
    index.storage_context.persist(str(tmp_path))
    context = StorageContext.from_defaults(persist_dir=str(tmp_path))
    with pytest.raises(ConfigurationError, match="partition_by"):
        load_index_from_storage(context, embed_model=HashEmbedding(), partition_by="other")


@pytest.mark.parametrize(
    "wrong",
    [{"reports": "never"}, {"report_tokens": 0}, {"context_tokens": 10}, {"partition_by": ""}, {"partition_by": 3}],
    ids=str,
)
def test_wrong_parameters_are_refused(wrong) -> None:
    with pytest.raises(ConfigurationError, match=next(iter(wrong))):
        offline(**wrong)


def test_odd_corpora_have_graphs() -> None:
    assert len(offline().communities) == 0
    one = offline([TextNode(id_="n", text="Ada Byron wrote.")])
    assert one.communities.sizes.tolist() == [1]
    chinese = offline(nodes(["东京是日本的首都。东京塔在东京。"], "zh"))
    assert len(chinese.communities)
    same = offline([*nodes(LIGHTS[:1] * 3, "d")])
    assert same.state.everything.entities.weights.tolist() == [3] * 6


def test_a_merged_description_goes_with_the_first_chunk_it_was_made_from() -> None:
    record = {"entities": [["Ada", "person", "Met Babbage in Velsin.", ["m-0", "m-1"]]], "relations": []}
    index = offline(nodes(["one", "two"], "m"), extractor=RecordedExtractor({"m-0": record, "m-1": record}))
    assert index.state.graph.descriptions("ada") == ["Met Babbage in Velsin."]
    index.delete_nodes(["m-0"], delete_from_docstore=True)
    assert index.state.graph.descriptions("ada") == []
    entries = run_steps(index.storage.manifest.entries())
    assert "Velsin" not in json.dumps(entries["m-1"].record)


def test_the_paper_has_its_keywords() -> None:
    pytest.importorskip("graspologic_native")
    index = GraphRAGIndex(nodes=corpus(), embed_model=HashEmbedding(), llm=ScriptedLLM(answer), **GraphRAGIndex.paper())
    assert index.config.reports == "eager"
    assert index.as_retriever(**GraphRAGRetriever.paper()).options.context == "mixed"
    assert index.as_retriever().retrieve("Who kept Tern Rock?")


@pytest.mark.parametrize("count", [6, 40])
@pytest.mark.parametrize("window", [2048, 100_000])
def test_reports_take_no_more_calls_than_estimated_and_at_least_half_of_them(count: int, window: int) -> None:
    given = nodes([f"{LIGHTS[i % len(LIGHTS)]} {i}" for i in range(count)], "d")
    index, llm = with_llm([], reports="eager", report_tokens=20, context_tokens=4000)
    remember_window(llm, window)
    index.insert_nodes(given)
    components = index.resources.extractor, index.resources.summarizer
    estimated = index.llm_work(given, *components, llm, index.config).calls
    assert len(llm.prompts) <= estimated <= 2 * len(llm.prompts)


def test_costs_are_told_before_they_are_paid() -> None:
    documents = [Document(text=text) for text in LIGHTS]
    Settings.llm = ScriptedLLM(answer)
    assert GraphRAGIndex.estimate(documents).calls == 3
    assert GraphRAGIndex.estimate(documents, extractor=EntityExtractor(gleanings=2)).calls == 9
    index, llm = with_llm(corpus())
    llm.prompts.clear()
    cost = index.estimate_question("What happened at Tern Rock?")
    assert llm.prompts == []
    assert (cost.calls, cost.report_calls) == (2, 2)
    assert cost.reading_all_is_cheaper == (cost.corpus_tokens < cost.tokens)
    for more in ({"mode": "drift"}, {"rating_threshold": 3}, {"published": PublishedOptions(relevance_budget=5)}):
        with pytest.raises(ConfigurationError, match='counts the calls of mode="global"'):
            index.estimate_question("What happened at Tern Rock?", **more)


def test_a_page_shows_communities_and_the_way_to_the_answer(tmp_path) -> None:
    index = offline(corpus())
    for mode in ("local", "global"):
        page = index.visualize(tmp_path / f"{mode}.html", query="Who kept Tern Rock?", mode=mode)
        assert "Tern Rock" in page.read_text(encoding="utf-8")
        shown = index._page(index.last_query, EVERYTHING).view.nodes
        lit = {node.group for node in shown if node.highlighted}
        assert lit == ({"report read"} if mode == "global" else {"community", "linked", "entity", "chunk"})
        assert any(node.id.startswith("chunk lights-") for node in shown)
    assert offline().visualize(tmp_path / "empty.html").exists()


@pytest.mark.skipif(not CHROMIUM.exists(), reason="needs Chromium")
@pytest.mark.parametrize(("width", "height"), [(1280, 800), (390, 844)])
def test_a_click_on_a_community_shows_its_statements_and_its_chunks(tmp_path, width: int, height: int) -> None:
    long = nodes([f"{LIGHTS[0]} It was a wet night, and nobody else was about.", *LIGHTS[1:]], "lights")
    page = offline(long).visualize(tmp_path / "page.html", query="Who kept Tern Rock?", mode="global")
    with Browser(width, height) as browser:
        browser.open(page)
        browser.run("document.querySelector('.fixed .result').click()")
        browser.wait(0.3)
        shown = browser.run("document.querySelector('.detail').innerText")
        assert "Bede Orr saw the Meridian near Tern Rock." in shown
        assert "Chunk: Ada Byron kept the lamp of Tern Rock with Bede Orr. It was a wet night" in shown
        assert browser.run("document.documentElement.scrollWidth") == width
        assert browser.problems == []


def test_the_graph_is_given_away_with_its_communities(tmp_path: Path) -> None:
    networkx = pytest.importorskip("networkx")
    index = offline(corpus())
    graph, view = index.to_networkx(), index.state.everything
    kinds = networkx.get_node_attributes(graph, "kind")
    assert sorted(kinds.values()) == sorted(
        ["chunk"] * len(index.state.chunks) + ["entity"] * len(view.entities) + ["community"] * len(view.hierarchy)
    )
    for (_, one), (_, other) in ((a, b) for a, b, kind in graph.edges(data="kind") if kind == "relation"):
        assert graph.edges[("entity", one), ("entity", other)]["weight"] == len(view.graph.links[one][other])
    relations = sum(kind == "relation" for *_, kind in graph.edges(data="kind"))
    assert 2 * relations == sum(map(len, view.graph.links.values())) > 0
    for key, where in view.graph.entities.items():
        around = graph.adj["entity", key]
        assert {name for name, edge in around.items() if edge["kind"] == "mention"} == set(where)
        (smallest,) = (name for name, edge in around.items() if edge["kind"] == "member")
        assert key in view.planner.names(smallest[1])
    upper = [(a, b) for a, b, kind in graph.edges(data="kind") if kind == "part"]
    assert len(upper) == len(view.hierarchy) - len(view.hierarchy.roots)
    assert all(abs(graph.nodes[a]["level"] - graph.nodes[b]["level"]) == 1 for a, b in upper)
    networkx.write_gexf(networkx.relabel_nodes(graph, str), tmp_path / "graph.gexf")  # Gephi takes no tuples as names
    assert len(offline([]).to_networkx()) == 0
