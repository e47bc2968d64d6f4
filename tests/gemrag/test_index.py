"""GEMRAGIndex: what is built, what a change rewrites, what a failure leaves."""

import asyncio
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llama_index.core import Document, StorageContext, load_index_from_storage
from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.core.vector_stores.types import MetadataFilter, MetadataFilters
from tests.raptor.summarizers import FirstWords

from llama_index.gemrag import GEMRAGIndex, GEMRAGRetriever, KeyphraseQuestionExtractor, UtilityQuestionExtractor
from llama_index.gemrag.layer import OWNER_KEY
from llama_index.gemrag.memory_rows import GROUPS, MemoryRows
from llama_index.ragkit import ExtractiveSummarizer, NodeExtractor
from llama_index.ragkit.errors import ConfigurationError, ExtractionError, ExtractorMismatchError
from llama_index.ragkit.steps import run_steps
from llama_index.ragkit.testing import HashEmbedding

TOPICS = [
    "loom silk weaver thread",
    "engine cards gears wheels",
    "river bridge boats harbour",
    "bread oven flour yeast",
]


COLLECTIONS_OF_ROWS = [
    f"gem_{name}"
    for name in ("chunks", "short", "long", "groups", "pending", "of_group", "unwritten", "unasked", "centre")
] + ["gem_questions", "gem_theme_questions"]


def corpus(per_topic: int = 12) -> list[TextNode]:
    nodes = []
    for t, topic in enumerate(TOPICS):
        for i in range(per_topic):
            source = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id=f"doc{t}-{i % 3}")}
            text = f"{topic} number{i} {topic.split()[i % 4]}."
            nodes.append(TextNode(id_=f"n{t}-{i:02d}", text=text, relationships=source, metadata={"topic": t}))
            nodes[-1].excluded_embed_metadata_keys = ["topic"]
    return nodes


class TwoQuestions(NodeExtractor):
    """Asks what a node says and whether; fails where it is told to, and counts what it reads."""

    needs_llm: ClassVar[bool] = False
    fail_on: str = "\0"
    seen: ClassVar[list[str]] = []

    @property
    def fingerprint(self) -> dict[str, str]:
        return {"class": "TwoQuestions"}

    def extract_node(self, node: Any, context: Any) -> Any:
        self.seen.append(node.get_content())
        if self.fail_on in node.get_content():
            name = "".join(chr(ord("a") + int(digit)) for digit in node.node_id if digit.isdigit())
            raise ExtractionError(f"asked to fail at {name}")  # five equal reasons would end the write
        return {"questions": [f"what {node.get_content()}?", f"whether {node.get_content()}?"]}
        yield


def build(nodes=None, **kwargs) -> GEMRAGIndex:
    TwoQuestions.seen.clear()
    options = {"extractor": TwoQuestions(), "summarizer": FirstWords(), "embed_model": HashEmbedding()}
    options |= {"group_by": None, "num_themes": 4, **kwargs}
    return GEMRAGIndex(nodes=corpus() if nodes is None else nodes, **options)


def check(index: GEMRAGIndex) -> None:
    """What holds for every finished memory."""
    state = index.state
    assert set(state.written) == set(state.themes) == set(state.theme_layer.texts.ids)
    assert {m for theme in state.themes.values() for m in theme.members} <= set(state.chunks.ids)
    for layer in (state.chunk_layer, state.theme_layer):
        assert (layer.owners >= 0).all()
        assert set(np.unique(layer.owners)) == set(range(len(layer.texts)))


def test_every_node_has_its_questions_and_themes_are_topics():
    index = build()
    check(index)
    assert index.index_struct.counters == {
        "chunks": 48,
        "questions": 96,
        "themes": len(index.themes),
        "failed_themes": 0,
    }
    assert len(index.themes) == 4
    topics = [sorted({member[:2] for member in members}) for members in index.themes.values()]
    assert sorted(topics) == [["n0"], ["n1"], ["n2"], ["n3"]]
    assert index.questions_of("n0-00") == [f"what {corpus()[0].text}?", f"whether {corpus()[0].text}?"]
    assert all(len(index.questions_of(name)) == 2 for name in index.themes)


def test_groups_have_graphs_of_their_own():
    by_topic = build(group_by="topic", num_themes=2)
    assert len(by_topic.themes) == 8
    for members in by_topic.themes.values():
        assert len({member[:2] for member in members}) == 1
    by_document = build(group_by="ref_doc_id", num_themes=1)
    assert len(by_document.themes) == 12


def test_themes_of_no_more_than_a_third_of_the_chunks():
    assert build(corpus()[:2]).themes == {}
    assert len(build(corpus()[:3], num_themes=5).themes) <= 1


def test_no_questions_and_no_themes_are_modes():
    index = build(extractor=KeyphraseQuestionExtractor(num_questions=0), num_themes=0)
    assert index.index_struct.counters["themes"] == len(index.state.chunk_layer.questions) == 0
    (found, *others) = index.as_retriever().explain("loom silk weaver thread number0 loom.")
    assert (found.node_id, found.question, found.hub) == ("n0-00", None, 0)
    assert found.text_similarity == pytest.approx(1)
    assert all(found.score > other.score for other in others)
    asked = UtilityQuestionExtractor(num_questions=0)
    assert build(extractor=asked).index_struct.counters["questions"] == 0  # and no LLM is looked for
    with_graph = build(extractor=KeyphraseQuestionExtractor(num_questions=0))
    assert len(with_graph.themes) == 4


def test_the_paper_is_two_components_and_the_blend():
    index = build(paper=True, num_themes=None)
    assert 1 <= len(index.themes) <= 2
    retriever = GEMRAGRetriever(index)
    assert (retriever.rule.blend, retriever.summary_margin, retriever.keep_covered) == (0.5, 0.0, True)
    assert retriever.lexical_weight == 0
    assert index.as_retriever(blend=0.2).rule.blend == 0.2


def test_new_chunks_are_found_at_once_and_the_spectrum_waits():
    index = build(refresh_share=0.1)
    before, summaries = index.themes, index.resources.summarizer.calls.copy()
    index.insert_nodes([TextNode(id_="new", text="bread oven flour yeast crust")])
    check_questions = index.questions_of("new")
    assert len(check_questions) == 2
    assert index.as_retriever(similarity_top_k=1).retrieve("bread crust")[0].node.node_id == "new"
    assert index.themes == before
    assert index.resources.summarizer.calls == summaries
    index.write_summaries()
    check(index)
    kept = before.keys() & index.themes.keys()
    assert len(index.resources.summarizer.calls) - len(summaries) == len(index.themes.keys() - kept)


def test_many_new_chunks_are_read_at_once():
    index = build(corpus()[:24])
    assert set(index.themes).isdisjoint(build().themes)
    index.insert_nodes(corpus()[24:])
    check(index)
    assert index.themes.keys() == build().themes.keys()


def test_a_rebuild_of_what_did_not_change_is_free():
    index = build()
    themes, calls = index.themes, len(index.resources.summarizer.calls)
    assert index.rebuild() == asyncio.run(index.arebuild()) == 0
    assert index.themes == themes
    assert len(index.resources.summarizer.calls) == calls


def test_a_delete_asks_for_nothing_and_takes_what_saw_the_document():
    index = build()
    saw = [n for n, members in index.themes.items() if {"n0-00", "n0-03", "n0-06", "n0-09"} & set(members)]
    kept = set(index.themes) - set(saw)
    assert saw
    calls = len(index.resources.summarizer.calls)
    index.embed_model.texts.clear()
    TwoQuestions.seen.clear()
    index.delete_ref_doc("doc0-0", delete_from_docstore=True)
    assert (len(index.resources.summarizer.calls), index.embed_model.texts, TwoQuestions.seen) == (calls, [], [])
    assert set(index.themes) == kept
    assert index.index_struct.counters["questions"] == 88
    owners = index.state.chunk_layer.questions.column(OWNER_KEY)
    assert not {"n0-00", "n0-03"} & {owners[0].values[code] for code in owners[1]}
    assert asyncio.run(index.awrite_summaries()) == 0
    check(index)
    assert len(index.themes) == 4


def test_eager_deletes_write_again_and_the_next_insert_writes_what_was_left():
    eager = build(summaries="eager")
    eager.delete_ref_doc("doc0-0")
    check(eager)
    assert len(eager.themes) == 4
    index = build()
    index.delete_ref_doc("doc1-1")
    assert len(index.themes) < 4
    asyncio.run(index.ainsert(Document(text="engine gears")))
    check(index)
    assert len(index.themes) == 4


def test_the_order_and_the_ids_of_the_nodes_do_not_matter():
    nodes = corpus()
    order = np.random.default_rng(0).permutation(48)
    shuffled = [nodes[i].model_copy(update={"id_": f"other{i}"}) for i in order]
    found = [
        [(n.node.get_content(), n.score) for n in build(n).as_retriever(similarity_top_k=60).retrieve("silk bread")]
        for n in (nodes, shuffled)
    ]
    assert [t for t, _ in found[0]] == [t for t, _ in found[1]]
    assert [s for _, s in found[0]] == pytest.approx([s for _, s in found[1]], abs=1e-6)


def test_failed_summaries_are_counted_left_out_and_tried_again(caplog):
    summarizer = FirstWords()
    summarizer.fail_on = "river bridge boats harbour number3"
    index = build(summarizer=summarizer, theme_size=12)
    assert index.index_struct.counters["failed_themes"] == 1
    assert "retry_failed" in caplog.text
    assert len(index.state.unwritten) == 1
    assert index.as_retriever(similarity_top_k=99).retrieve("river")
    assert index.retry_failed() == 1
    summarizer.fail_on = "\0"
    assert asyncio.run(index.aretry_failed()) == 0
    check(index)


def test_questions_that_failed_are_asked_again_for_chunks_and_themes():
    extractor = TwoQuestions(fail_on="number3")
    index = build(extractor=extractor, theme_size=12)
    assert index.questions_of("n0-03") == []
    assert len(index.state.chunks) == 48
    assert index.as_retriever(similarity_top_k=1).retrieve(corpus()[3].text)[0].node.node_id == "n0-03"
    extractor.fail_on = "silk"  # every theme's text has the first three words of its members
    index = build(extractor=extractor)
    failed = [name for name, record in index.state.written.items() if record["error"]]
    assert len(failed) == 1
    assert index.retry_failed() == 13
    extractor.fail_on = "\0"
    assert index.retry_failed() == 0
    check(index)


def test_on_error_raise_ends_the_write_and_refresh_takes_it_up():
    summarizer = FirstWords()
    summarizer.fail_on = "number3"
    with pytest.raises(ExtractionError, match="number3"):
        build(summarizer=summarizer, on_error="raise", theme_size=12)


def test_a_theme_reads_no_more_tokens_than_allowed():
    from llama_index.ragkit.text.tokens import count_tokens

    index = build(max_theme_tokens=30)
    assert index.resources.summarizer.calls
    assert all(sum(map(count_tokens, texts)) <= 30 for texts in index.resources.summarizer.calls)
    assert build(max_theme_tokens=1).themes == {}


def test_parameters_are_stored_and_may_be_replaced(tmp_path):
    index = build(num_themes=3, summary_tokens=77, blend=0.25)
    index.storage_context.persist(str(tmp_path))
    context = StorageContext.from_defaults(persist_dir=str(tmp_path))
    parts = {"extractor": TwoQuestions(), "summarizer": FirstWords()}
    loaded = load_index_from_storage(context, **parts)
    assert loaded.config == index.config
    assert loaded.themes == index.themes
    assert load_index_from_storage(context, **parts, num_themes=1).config.num_themes == 1
    other = load_index_from_storage(context, extractor=KeyphraseQuestionExtractor(), summarizer=FirstWords())
    with pytest.raises(ExtractorMismatchError):
        other.insert(Document(text="more"))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("num_themes", -1),
        ("max_themes", 0),
        ("theme_size", 1),
        ("min_component", 1.5),
        ("blend", float("nan")),
        ("blend", -0.1),
        ("refresh_share", 2),
        ("max_theme_tokens", 0),
        ("summary_tokens", 0),
        ("question_role", "x"),
        ("summaries", "x"),
        ("group_by", 3),
    ],
)
def test_parameters_out_of_range_are_refused(name, value):
    with pytest.raises(ConfigurationError, match=name):
        build([], **{name: value})


def test_questions_can_be_embedded_as_queries():
    class Roles(HashEmbedding):
        def _get_query_embedding(self, query: str) -> list[float]:
            return self._get_text_embedding(f"query: {query}")

        async def _aget_query_embedding(self, query: str) -> list[float]:
            return self._get_query_embedding(query)

    model = Roles()
    kwargs = {"extractor": TwoQuestions(), "summarizer": FirstWords(), "question_role": "query", "num_themes": 0}
    GEMRAGIndex(nodes=corpus()[:3], embed_model=model, **kwargs)
    assert sum(text.startswith("query: what") for text in model.texts) == 3


def test_a_filter_hides_every_theme_that_has_a_hidden_chunk():
    index = build(min_component=0.0)
    filters = MetadataFilters(filters=[MetadataFilter(key="topic", value=0)])
    for mode in ("argmax", "best_first"):
        retriever = index.as_retriever(similarity_top_k=99, filters=filters, mode=mode, keep_covered=True)
        found = retriever.explain("engine cards gears wheels")
        assert found
        for why in found:
            assert {source[:2] for source in why.sources} == {"n0"}
            for theme in why.themes:
                assert {member[:2] for member in index.themes[theme]} == {"n0"}


def test_the_spectrum_of_all_and_of_one_group():
    index = build(group_by="topic")
    assert index.spectrum().num_themes >= 4
    assert index.spectrum().num_nodes == 48
    assert index.spectrum(2).num_nodes == 12
    with pytest.raises(ConfigurationError, match="'nowhere'"):
        index.spectrum("nowhere")
    assert build([]).spectrum().num_themes == 0


def test_an_estimate_counts_calls_before_paying():
    documents = [Document(text=node.text, id_=node.node_id) for node in corpus()]
    # A call a chunk, and for each of two themes one for the summary and one for its questions.
    assert GEMRAGIndex.estimate(documents, transformations=[_Pass()]).calls == 48 + 4
    assert (
        GEMRAGIndex.estimate(documents, extractor=KeyphraseQuestionExtractor(), summarizer=ExtractiveSummarizer()).calls
        == 0
    )
    given = {"documents": documents, "transformations": [_Pass()]}
    assert GEMRAGIndex.estimate(**given, paper=True) == GEMRAGIndex.estimate(**given, **GEMRAGIndex.paper())


@pytest.mark.parametrize("collection", ["themes", "summaries"])
def test_what_a_killed_write_left_half_done_is_put_right_at_load(collection, tmp_path):
    index = build()
    lost = sorted(index.themes)[:2]
    run_steps(index.storage.records.delete(collection, lost))
    run_steps(index.storage.space().remove(["n3-03"]))
    index.storage_context.persist(str(tmp_path))
    context = StorageContext.from_defaults(persist_dir=str(tmp_path))
    again = load_index_from_storage(context, extractor=TwoQuestions(), summarizer=FirstWords())
    assert again.as_retriever(similarity_top_k=99).retrieve("silk")
    assert again.rebuild() == 0
    check(again)


class _Pass:
    """No transformation."""

    def __call__(self, nodes, **kwargs):
        return nodes


@pytest.mark.parametrize("write", ["insert", "delete", "write_summaries", "rebuild", "retry_failed"])
def test_an_index_of_a_version_without_rows_of_chunks_is_read_and_brought_forward(write: str, tmp_path):
    """It had a record a theme and one a group, which said what changed, and no size."""
    index, written = (build(group_by="ref_doc_id", num_themes=1) for _ in range(2))
    for each in (index, written):
        each.resources.summarizer.fail_on = "silk"
        each.delete_nodes(["n0-00", "n2-05"])
        each.insert_nodes([TextNode(id_="more", text="river bridge boats harbour ferry")])
    rows, records = MemoryRows(written.storage), written.storage.records
    names = run_steps(rows.names(GROUPS))
    groups = run_steps(rows.groups(names)).items()
    for collection in COLLECTIONS_OF_ROWS:
        run_steps(records.delete(collection, run_steps(records.get_all(collection))))
    run_steps(records.put("groups", [(n, {"changed": g.changed, "lost": g.theme_deleted}) for n, g in groups]))
    written.storage_context.persist(str(tmp_path))
    context = StorageContext.from_defaults(persist_dir=str(tmp_path))
    again = load_index_from_storage(context, extractor=TwoQuestions(), summarizer=FirstWords())
    assert again.themes == index.themes
    assert [each.node_id for each in again.failures()] == [each.node_id for each in index.failures()] != []
    assert not run_steps(again.storage.records.get_all("gem_chunks"))  # opening writes nothing
    index.resources.summarizer.fail_on = "\0"
    for each in (index, again):
        if write == "insert":
            each.insert_nodes([TextNode(id_="new", text="bread oven flour yeast crust")])
        elif write == "delete":
            each.delete_nodes(["n1-01", "n2-02"])
        else:
            getattr(each, write)()
        assert not run_steps(MemoryRows(each.storage).note_repairs(each.state, each.config))
    ours, theirs = (MemoryRows(each.storage) for each in (again, index))
    names = run_steps(ours.names(GROUPS))
    assert run_steps(ours.groups(names)) == run_steps(theirs.groups(names))
    assert again.themes == index.themes
    assert again.state.written.keys() == index.state.written.keys()
    assert not run_steps(again.storage.records.get_all("groups"))


writes = st.lists(st.tuples(st.sampled_from(["insert", "change", "delete"]), st.integers(0, 47)), max_size=8)


@settings(max_examples=15)
@given(writes, st.sampled_from(["ref_doc_id", "topic", None]))
def test_a_state_that_a_write_advanced_is_that_of_all_rows(some: list[tuple[str, int]], group_by: str | None):
    nodes = corpus()
    index = build(nodes[::2], group_by=group_by, num_themes=1, refresh_share=0.0)
    for kind, number in some:
        if kind == "delete":
            index.delete_nodes([nodes[number].node_id])
        else:
            text = nodes[number].text + (f" changed {number}" if kind == "change" else "")
            index.insert_nodes([nodes[number].model_copy(update={"text": text})])
        state, loaded = index.state, run_steps(index.builder.load())
        assert (loaded.themes, loaded.written) == (state.themes, state.written)
        assert sorted(loaded.chunk_layer.questions.ids) == sorted(state.chunk_layer.questions.ids)
        assert not run_steps(MemoryRows(index.storage).note_repairs(loaded, index.config))
