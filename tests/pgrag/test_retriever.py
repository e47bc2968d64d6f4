"""PGRAGRetriever and PGRAGPostprocessor: what comes back, from where, and why."""

import asyncio

import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.schema import QueryBundle, TextNode
from llama_index.core.vector_stores.types import MetadataFilter, MetadataFilters
from tests.chromium import CHROMIUM, Browser
from tests.pgrag.test_index import MAPS, build, node
from tests.shifted import ShiftedEmbedding

from llama_index.pgrag import Control, GivenMindMaps, PGRAGIndex, PGRAGPostprocessor, PGRAGRetriever
from llama_index.pgrag.evaluation import bert_scores, bleu, rouge_l
from llama_index.pgrag.page import page_of
from llama_index.ragkit.errors import ConfigurationError
from llama_index.ragkit.steps import run_steps
from llama_index.ragkit.testing import HashEmbedding, ScriptedLLM

ONLY_A = MetadataFilters(filters=[MetadataFilter(key="name", value="a1")])


def texts(results):
    return [result.node.get_content() for result in results]


def test_paths_come_as_nodes_that_point_at_their_sources():
    results = build().as_retriever(similarity_top_k=3).retrieve("Lamp fuel whale oil")
    best = results[0].node
    assert best.get_content() == "Lamp fuel whale oil"
    assert best.metadata["pgrag_path"] == ["Lamp", "fuel", "whale oil"]
    assert best.metadata["pgrag_documents"] == ["A", "B"]
    assert sorted(child.node_id for child in best.child_nodes) == ["a1", "b1"]
    assert best.get_content(metadata_mode="llm") == "Lamp fuel whale oil"
    scores = [result.score for result in results]
    assert scores == sorted(scores, reverse=True)
    assert len(set(texts(results))) == 3


def test_sources_come_as_the_user_gave_them():
    results = build().as_retriever(return_source=True, similarity_top_k=9).retrieve("silk thread")
    assert sorted(r.node.node_id for r in results) == sorted(MAPS)
    assert results[0].node.node_id == "c1"
    assert results[0].node.hash == node("c1").hash


def test_a_node_whose_facts_leave_out_its_content_stands_for_itself():
    texts = {"table": "whale oil price lamp", "prose": "a ship with whale oil sailed home"}
    texts |= {f"n{i}": f"rope and sail {i}" for i in range(8)}
    maps = {"table": {"Annual report": {"page": "seven"}}, "prose": {"Ship": {"cargo": "whale oil price"}}}
    nodes = [TextNode(id_=name, text=text) for name, text in texts.items()]
    index = PGRAGIndex(
        nodes=nodes, extractor=GivenMindMaps(maps=maps | {f"n{i}": {"Rope": {"part": f"sail {i}"}} for i in range(8)})
    )
    search = index.as_retriever(return_source=True, fact_weight=10, bridge_weight=0, lexical_weight=0)
    assert search.retrieve("whale oil price lamp")[0].node.node_id == "table"


def test_the_modes_are_the_papers_ablations():
    index = build()
    ranks = {mode: texts(index.as_retriever(mode=mode).retrieve("whale")) for mode in ("PG", "PG w. KPs", "PG-RAG")}
    assert ranks["PG"] == ranks["PG w. KPs"]  # without key points
    bundle = QueryBundle("whale", custom_embedding_strs=["silk thread"])
    vector = QueryBundle("whale", embedding=index.embed_model.get_query_embedding("silk thread"))
    assert texts(index.as_retriever(mode="PG").retrieve(bundle)) == texts(
        index.as_retriever(mode="PG").retrieve(vector)
    )
    assert "silk" in texts(index.as_retriever(mode="PG w. KPs").retrieve(bundle))[0]
    assert index.as_retriever(mode="PG").explain("whale")[0].seed is None
    assert index.as_retriever(mode="PG-RAG").explain("whale")[0].seed is not None


def test_three_titles_cap_what_is_found_and_facts_enter_directly():
    maps = {f"n{i}": {f"Title {i}": {"route": f"fact{i}"}} for i in range(12)}
    nodes = [TextNode(id_=name, text=f"text {name}") for name in maps]
    index = PGRAGIndex(nodes=nodes, extractor=GivenMindMaps(maps=maps))
    titles = {**PGRAGRetriever.paper(), "key_points": "question", "similarity_top_k": 12}
    titles["control"] = Control(9, 9, unit="cosines")
    capped = index.as_retriever(**{**titles, "max_topics": 3})
    assert len(capped.retrieve("fact7")) == 3
    assert len(index.as_retriever(similarity_top_k=12).retrieve("fact7")) == 12
    nothing = index.as_retriever(**{**titles, "control": Control(9, 9), "max_topics": 3})
    assert nothing.explain("fact7")[0].fallback == "no path has support"
    assert all(0 <= result.get_score() <= 1 for result in nothing.retrieve("fact7"))
    assert "fact7" in texts(index.as_retriever().retrieve("fact7"))[0]


def test_walks_go_over_super_nodes_and_say_so():
    index = build()
    walks = {
        **PGRAGRetriever.paper(), "key_points": "question", "seed_topics": 1, "similarity_top_k": 20,
        "control": Control(9, 9), "num_seeds": 99,
    }  # fmt: skip
    question = "Lamp"

    def reasons(**kwargs):
        return {why.reason for why in index.as_retriever(**{**walks, **kwargs}).explain(question)}

    assert reasons() == {"seed topic", "topic walk"}
    assert reasons(topic_walk=False) == {"seed topic", "fact walk"}
    assert reasons(topic_walk=False, fact_walk=False) == {"seed topic"}
    assert reasons(max_topics=1) == {"seed topic"}


def test_a_fact_that_names_another_topic_leads_there():
    maps = {
        "q": {"Norris Mountain": {"part of": "Lewis Range"}},
        "r": {"Lewis Range": {"in": "Montana"}},
        **{f"x{i}": {f"Norris {i}": {"part": f"thing {i}"}} for i in range(30)},
    }
    nodes = [TextNode(id_=name, text=next(iter(tree))) for name, tree in maps.items()]
    index = PGRAGIndex(nodes=nodes, extractor=GivenMindMaps(maps=maps), embed_model=HashEmbedding(dim=128))
    reach = {"similarity_top_k": 40, "seed_facts": 3}
    explained = index.as_retriever(**reach).explain("What is Norris Mountain part of?")
    (why,) = [why for why in explained if why.path[0] == "Lewis Range"]
    assert why.names == ["norris mountain"]
    assert why.share > 0
    assert why.trust > 0

    def rank(**options) -> int:
        found = index.as_retriever(**reach, **options).retrieve("What is Norris Mountain part of?")
        return texts(found).index("Lewis Range in Montana")

    assert rank() < rank(bridge_weight=0)


@pytest.mark.parametrize("common", [0.5, 2.0])
@pytest.mark.parametrize("return_source", [False, True])
@pytest.mark.parametrize("question", ["Which fuel does the lamp of Lyon burn?", "whale oil", "Who keeps it?"])
def test_the_scale_of_cosines_changes_no_score(common: float, return_source: bool, question: str):
    plain, shifted = (
        build(embed_model=ShiftedEmbedding(common=c, dim=256))
        .as_retriever(similarity_top_k=20, return_source=return_source)
        .retrieve(question)
        for c in (0.0, common)
    )
    assert plain
    assert [r.node_id for r in plain] == [r.node_id for r in shifted]
    assert [r.score for r in plain] == pytest.approx([r.score for r in shifted], abs=1e-4)


@pytest.mark.parametrize("return_source", [False, True])
def test_one_question_is_one_embedded_text(return_source: bool):
    index = build()
    index.embed_model.texts.clear()
    assert index.as_retriever(return_source=return_source).retrieve("Which fuel does the Lamp burn?")
    assert index.embed_model.texts == ["Which fuel does the Lamp burn?"]


def test_paths_can_be_cited_like_their_sources():
    def page(name: str, label: str) -> TextNode:
        found = node(name)
        found.metadata = {"file_name": "lamp.pdf", "page_label": label, "secret": "s"}
        found.excluded_llm_metadata_keys = ["secret"]
        return found

    index = PGRAGIndex(nodes=[page("a1", "1"), page("a2", "2"), page("b1", "1")], extractor=GivenMindMaps(maps=MAPS))
    found = {r.node.get_content(): r.node for r in index.as_retriever(similarity_top_k=20).retrieve("lamp")}
    keeper = found["Lamp keeper Ada Byron"]
    assert keeper.ref_doc_id == "A"
    assert (keeper.metadata["file_name"], keeper.metadata["page_label"]) == ("lamp.pdf", "1")
    assert keeper.get_content(metadata_mode="llm") == "file_name: lamp.pdf\npage_label: 1\n\nLamp keeper Ada Byron"
    assert keeper.get_content(metadata_mode="embed") == "Lamp keeper Ada Byron"
    both = found["Lamp fuel whale oil"]  # of two documents
    assert both.ref_doc_id is None
    assert both.metadata["page_label"] == "1"
    got = VectorStoreIndex([page("a1", "1"), page("a2", "2")]).as_retriever().retrieve("lamp")
    (outline,) = PGRAGPostprocessor(index=index).postprocess_nodes(got, query_str="lamp")
    assert outline.node.ref_doc_id == "A"
    assert outline.node.metadata["file_name"] == "lamp.pdf"
    assert "page_label" not in outline.node.metadata
    assert run_steps(index.storage.manifest.nodes_of("A")) == ["a1", "a2"]


def test_the_published_index_and_search_are_keywords():
    llm = ScriptedLLM('{"key_points": ["The lamp burned whale oil."]}')
    index = PGRAGIndex(
        nodes=[node(n) for n in MAPS], **{**PGRAGIndex.paper(), "extractor": GivenMindMaps(maps=MAPS)}, llm=llm
    )
    assert (index.config.topic_threshold, index.config.fact_threshold, index.config.fusion) == (0.92, 0.98, "leaders")
    extractor = PGRAGIndex.paper()["extractor"]
    assert (extractor.min_rouge_l, extractor.min_semantic, extractor.join_lists) == (0.75, 0.85, True)
    retriever = index.as_retriever(**PGRAGRetriever.paper())
    assert retriever.similarity_top_k == 8
    found = retriever.explain("Lamp?")
    assert len(llm.prompts) == 1
    assert {why.key_point for why in found} == {"The lamp burned whale oil."}


def test_the_papers_search_ranks_by_support_and_enters_by_titles_alone():
    index = build()
    options = {**PGRAGRetriever.paper(), "key_points": "question", "similarity_top_k": 20}
    found = index.as_retriever(**options).explain("Lamp fuel")
    assert found
    assert {why.reason for why in found} <= {"seed topic", "topic walk", "fact walk"}
    supports = [round(why.support, 9) for why in found]
    assert supports == sorted(supports, reverse=True)


def test_explanations_name_key_point_seed_and_control_values():
    why = build().as_retriever(control=Control(0.3, 2.0), num_seeds=1).explain("whale oil")[0]
    assert why.key_point == "whale oil"
    assert why.seed[-1] == "whale oil"
    assert [cell.text for cell in why.cells] == list(why.path)
    assert why.cells[-1].weight == 1.0
    assert {cell.weight for cell in why.cells} <= {0.0, 0.5, 1.0}
    assert why.support > 0
    assert why.documents == ["A", "B"]


@pytest.mark.parametrize("return_source", [False, True])
def test_filters_hide_facts_topics_and_explanations(return_source: bool):
    retriever = build().as_retriever(filters=ONLY_A, similarity_top_k=50, return_source=return_source)
    for result in retriever.retrieve("thread height"):
        sources = [child.node_id for child in result.node.child_nodes or []] or [result.node.node_id]
        assert sources == ["a1"]
    shown = str(retriever.explain("thread height")) + retriever.as_context("thread height")
    assert "Loom" not in shown
    assert "electricity" not in shown
    assert build().as_retriever(node_ids=[]).retrieve("x") == []


def test_the_context_is_one_nested_outline():
    retriever = build().as_retriever(similarity_top_k=4)
    context = retriever.as_context("Lamp fuel", documents=True)
    assert context.count("- Lamp\n") == 1
    assert "    - whale oil [A, B, " in context
    assert asyncio.run(retriever.aas_context("Lamp fuel", "json")).startswith('{"Lamp": {"fuel"')
    assert PGRAGIndex(nodes=[]).as_retriever().as_context("x") == ""


def test_a_token_budget_is_kept():
    index = build()
    assert len(index.as_retriever(token_budget=8, similarity_top_k=50).retrieve("Lamp")) in (1, 2, 3)
    assert index.as_retriever(token_budget=1).explain("Lamp") == []


def test_sync_and_async_give_the_same():
    for source in (False, True):
        retriever = build().as_retriever(return_source=source)
        found = asyncio.run(retriever.aretrieve("whale oil"))
        assert [(r.node.node_id, r.score) for r in found] == [
            (r.node.node_id, r.score) for r in retriever.retrieve("whale oil")
        ]


@pytest.mark.parametrize(
    "bad",
    [
        {"mode": "x"},
        {"key_points": "x"},
        {"control": "x"},
        {"num_seeds": 0},
        {"max_key_points": 0},
        {"walk_weight": -1},
        {"bridge_weight": float("inf")},
        {"fact_weight": -0.1},
        {"lexical_weight": 1.5},
        {"ranking": "x"},
        {"seed_topics": -1},
        {"seed_topics": 0, "seed_facts": 0},
        {"prompts": {"nothing": None}},
    ],
)
def test_parameters_out_of_range_are_refused(bad):
    with pytest.raises(ConfigurationError):
        build().as_retriever(**bad)


def test_the_postprocessor_rewrites_known_chunks_and_keeps_foreign_ones():
    index = build()
    got = VectorStoreIndex([node("c1"), TextNode(id_="f", text="a foreign text")]).as_retriever().retrieve("silk")
    before = [result.score for result in got]
    out = PGRAGPostprocessor(index=index).postprocess_nodes(got, query_str="silk")
    assert "a foreign text" in texts(out)
    outline = next(result.node for result in out if "pgrag_topic" in result.node.metadata)
    assert outline.get_content().startswith("- Loom\n")
    assert [child.node_id for child in outline.child_nodes] == ["c1"]
    assert [result.score for result in got] == before


def test_the_postprocessor_takes_the_whole_document_unless_told_otherwise():
    index = build()
    got = VectorStoreIndex([node("a1")]).as_retriever().retrieve("fuel")
    assert "electricity" in texts(PGRAGPostprocessor(index=index).postprocess_nodes(got, query_str="fuel"))[0]
    for narrow in ({"scope": "nodes"}, {"filters": ONLY_A}):
        out = PGRAGPostprocessor(index=index, **narrow).postprocess_nodes(got, query_str="fuel")
        assert "electricity" not in texts(out)[0]
    assert len(PGRAGPostprocessor(index=index, max_paths=1).postprocess_nodes(got, query_str="fuel")) == 1
    assert PGRAGPostprocessor(index=index).postprocess_nodes(got)  # without a question
    with pytest.raises(ConfigurationError, match="max_paths must be a whole number of at least 1, not 0"):
        PGRAGPostprocessor(index=index, max_paths=0)


def test_it_all_holds_for_equal_nodes_under_other_ids():
    index = build()
    twin = node("c1").model_copy(update={"id_": "other"})
    out = PGRAGPostprocessor(index=index).postprocess_nodes(
        VectorStoreIndex([twin]).as_retriever().retrieve("silk"), query_str="silk"
    )
    assert texts(out)[0].startswith("- Loom")


@pytest.mark.skipif(not CHROMIUM.exists(), reason="needs Chromium")
def test_the_page_shows_the_maps_with_the_walked_paths_lit(tmp_path):
    page = build().visualize(tmp_path / "maps.html", query="Lamp fuel whale oil")
    with Browser() as browser:
        browser.open(page)
        assert browser.problems == []
        assert "Lamp fuel whale oil" in browser.run("document.body.innerText")
    assert build().visualize(tmp_path / "plain.html").exists()
    assert PGRAGIndex(nodes=[]).visualize(tmp_path / "empty.html").exists()


def test_metrics_that_need_no_model():
    assert bleu("The lamp burned whale oil at night.", "The lamp burned whale oil at night.") == pytest.approx(1.0)
    assert bleu("The lamp burned whale oil.", "Nothing else here at all.") < 0.1
    assert bleu("机器人产业发展迅速。", "机器人产业发展很快。") > 0.3
    assert rouge_l("the lamp burned oil", "the oil burned") == pytest.approx(2 * (2 / 3) * 0.5 / (2 / 3 + 0.5))
    assert rouge_l("灯塔很高", "灯塔高") == pytest.approx(6 / 7)
    assert rouge_l("", "x") == 0
    assert rouge_l("oil " * 4_000 + "lamp", "lamp") == 0 < rouge_l("oil " * 3_999 + "lamp", "lamp")  # of 4,000 words

    class Scorer:
        def score(self, cands, refs):
            return [0.0], [0.0], [float(cands == refs)]

    assert bert_scores(["a"], ["a"], Scorer()) == [1.0]
    assert bert_scores([], [], Scorer()) == []
    with pytest.raises(ConfigurationError):
        bert_scores(["a"], [], Scorer())


def test_labels_of_the_page_begin_without_marks():
    maps = {"a": {"** The lamp of 1926": {"; jerseys": "- whale oil"}}}
    index = PGRAGIndex(nodes=[TextNode(id_="a", text="lamp")], extractor=GivenMindMaps(maps=maps))
    labels = {node.label for node in page_of(index.state, None).view.nodes}
    assert labels == {"The lamp of 1926", "jerseys", "whale oil"}
