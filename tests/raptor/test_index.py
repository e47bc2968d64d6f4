"""RaptorIndex: what is built, what a change rewrites, what a failure leaves."""

import asyncio
from typing import Any, ClassVar

import numpy as np
import pytest
from llama_index.core import Document, StorageContext, load_index_from_storage
from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.core.vector_stores.types import MetadataFilter, MetadataFilters
from tests.raptor.summarizers import FirstWords, FirstWordsSlowly, MostFrequentWords

from llama_index.ragkit import ExtractiveSummarizer
from llama_index.ragkit.errors import ConfigurationError, ExtractionError
from llama_index.ragkit.sql import storage_context
from llama_index.ragkit.steps import run_steps
from llama_index.ragkit.testing import HashEmbedding
from llama_index.raptor import RaptorIndex
from llama_index.raptor.config import PAPER_TREE
from llama_index.raptor.tree import Tree
from llama_index.raptor.tree_rows import TreeRows, tree_of

TOPICS = [
    "loom silk weaver thread",
    "engine cards gears wheels",
    "river bridge boats harbour",
    "bread oven flour yeast",
]


def corpus(per_topic: int = 12) -> list[TextNode]:
    nodes = []
    for t, topic in enumerate(TOPICS):
        for i in range(per_topic):
            source = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id=f"doc{t}-{i % 3}")}
            text = f"{topic} number{i} {topic.split()[i % 4]}"
            nodes.append(TextNode(id_=f"n{t}-{i:02d}", text=text, relationships=source, metadata={"topic": t}))
            nodes[-1].excluded_embed_metadata_keys = ["topic"]
    return nodes


def check(index: RaptorIndex) -> None:
    """What holds for every finished tree."""
    state = index.state
    assert set(state.written) == set(state.summaries.ids) == set(index.tree.summaries)
    covered = {leaf for root in state.roots for leaf in index.leaves_of(root)}
    assert covered == set(state.chunks.ids)
    assert Tree.of(index.tree.summaries) == index.tree


def test_every_chunk_is_below_one_root_and_layers_shrink():
    summarizer = FirstWords()
    index = RaptorIndex(nodes=corpus(), summarizer=summarizer)
    check(index)
    assert len(index.state.roots) == 1
    sizes = [sum(s.level == level for s in index.tree.summaries.values()) for level in range(1, index.tree.height + 1)]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] < 0.7 * 48
    assert len(summarizer.calls) == len(index.tree.summaries)


def test_no_layer_for_one_chunk_one_summary_for_a_few():
    assert RaptorIndex(nodes=corpus(1)[:1], summarizer=FirstWords()).tree.summaries == {}
    index = RaptorIndex(nodes=corpus(1), summarizer=FirstWords())
    assert len(index.tree.summaries) == 1
    assert index.leaves_of(index.state.roots[0]) == ["n0-00", "n1-00", "n2-00", "n3-00"]


def test_max_layers_limits_the_height_and_zero_builds_none():
    assert RaptorIndex(nodes=corpus(), summarizer=FirstWords(), max_layers=1).tree.height == 1
    summarizer = FirstWords()
    index = RaptorIndex(nodes=corpus(), summarizer=summarizer, max_layers=0)
    index.insert(Document(text="more"))
    assert summarizer.calls == []
    assert len(index.as_retriever(similarity_top_k=99).retrieve("loom")) == 49


def test_no_summary_reads_more_tokens_than_allowed():
    summarizer = FirstWords()
    RaptorIndex(nodes=corpus(), summarizer=summarizer, max_cluster_tokens=40)
    from llama_index.ragkit.text.tokens import count_tokens

    assert all(sum(map(count_tokens, texts)) <= 40 for texts in summarizer.calls)


def test_the_order_and_the_ids_of_the_nodes_do_not_matter():
    nodes = corpus()
    shuffled = [nodes[i].model_copy(update={"id_": f"other{i}"}) for i in np.random.default_rng(0).permutation(48)]
    one, other = (RaptorIndex(nodes=n, summarizer=FirstWords()) for n in (nodes, shuffled))
    found = [
        [(n.node.get_content(), n.score) for n in index.as_retriever(similarity_top_k=60).retrieve("silk bread")]
        for index in (one, other)
    ]
    assert found[0] == found[1]


def test_an_insert_rewrites_the_way_up_from_one_cluster_and_nothing_else():
    summarizer = FirstWords()
    index = RaptorIndex(nodes=corpus(), summarizer=summarizer)
    before = set(index.tree.summaries)
    summarizer.calls.clear()
    index.insert_nodes([TextNode(id_="new", text="bread oven flour yeast crust")])
    check(index)
    rewritten = set(index.tree.summaries) - before
    assert rewritten == index.tree.ancestors(["new"])
    assert len(summarizer.calls) == len(rewritten) <= index.tree.height
    parent = index.tree.parents["new"][0]
    assert {leaf[:2] for leaf in index.leaves_of(parent)} == {"n3", "ne"}


@pytest.mark.parametrize("served", [False, True])
def test_rules_write_and_embed_a_summary_of_the_same_texts_only_once(served: bool, tmp_path):
    """An index of an earlier version, whose records do not tell texts apart, has all of them written once more."""
    indexes, asked = [], []
    for i, version in enumerate(("this", "earlier")):
        summarizer = MostFrequentWords()
        context = storage_context(f"sqlite:///{tmp_path}/{i}.db") if served else None
        index = RaptorIndex(nodes=corpus(), summarizer=summarizer, storage_context=context, max_root_children=3)
        rows = TreeRows(index.storage)
        texts = run_steps(rows.all_texts())
        if version == "earlier":
            run_steps(rows.put_texts({name: without_inputs(record) for name, record in texts.items()}))
            if not served:
                struct = index.index_struct
                index = RaptorIndex(index_struct=struct, storage_context=index.storage_context, summarizer=summarizer)
        summarizer.calls.clear()
        index.embed_model.texts.clear()
        index.insert_nodes([TextNode(id_="new", text="bread oven flour yeast crust")])
        texts = run_steps(TreeRows(index.storage).all_texts())
        indexes.append((index, {name: without_inputs(record) for name, record in texts.items()}))
        asked.append((len(summarizer.calls), len(index.embed_model.texts)))
    (new, texts), (old, same) = indexes
    above = run_steps(TreeRows(new.storage).above(["new"]))
    assert asked == [(1, 2), (len(above) - 1, len(above))]
    assert len(above) > 2
    assert texts == same
    vectors = [run_steps(each.storage.space("summaries").fetch(sorted(texts))) for each in (new, old)]
    np.testing.assert_allclose(vectors[0].matrix, vectors[1].matrix, atol=1e-6)


def without_inputs(record: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in record.items() if key != "inputs"}


def test_a_summary_of_a_language_model_is_never_taken_for_another():
    summarizer = FirstWordsSlowly()
    index = RaptorIndex(nodes=corpus(), summarizer=summarizer)
    assert not any("inputs" in record for record in index.state.written.values())


def test_a_delete_asks_for_nothing_and_takes_what_saw_the_document():
    summarizer = FirstWords()
    index = RaptorIndex(nodes=corpus(), summarizer=summarizer)
    saw = index.tree.ancestors(["n0-00", "n0-03", "n0-06", "n0-09"])
    kept = set(index.tree.summaries) - saw
    summarizer.calls.clear()
    index.embed_model.texts.clear()
    index.delete_ref_doc("doc0-0", delete_from_docstore=True)
    assert summarizer.calls == []
    assert index.embed_model.texts == []
    assert set(index.state.written) == kept
    assert not any(
        "number0" in n.node.text
        for n in index.as_retriever(similarity_top_k=99).retrieve("number0")
        if "loom" in n.node.text
    )
    assert index.write_summaries() == 0
    check(index)
    assert len(summarizer.calls) == len(set(index.tree.summaries) - kept)


def test_eager_deletes_write_again_at_once():
    index = RaptorIndex(nodes=corpus(), summarizer=FirstWords(), summaries="eager")
    index.delete_ref_doc("doc0-0")
    check(index)


def test_the_next_insert_writes_what_a_delete_left_out():
    index = RaptorIndex(nodes=corpus(), summarizer=FirstWords())
    index.delete_ref_doc("doc1-1")
    assert index.state.unwritten
    asyncio.run(index.ainsert(Document(text="engine gears")))
    check(index)


def test_inserts_write_no_summaries_until_they_are_requested():
    summarizer, model = FirstWords(), HashEmbedding()
    index = RaptorIndex(nodes=corpus(), summarizer=summarizer, embed_model=model, summaries="on_request")
    check(index)
    for text in ("engine gears", "engine pistons and valves", "number3 of the looms"):
        summarizer.calls.clear()
        model.texts.clear()
        index.insert(Document(text=text))
        assert (model.texts, summarizer.calls) == ([text], [])
        assert index.as_retriever(similarity_top_k=1).retrieve(text)[0].text == text
    index.delete_ref_doc("doc1-1")
    assert index.state.unwritten
    assert index.write_summaries() == 0
    assert 0 < len(summarizer.calls) <= len(index.tree.summaries)
    check(index)


def test_a_rebuild_of_what_did_not_change_is_free():
    summarizer = FirstWords()
    index = RaptorIndex(nodes=corpus(), summarizer=summarizer)
    tree = index.tree
    summarizer.calls.clear()
    assert index.rebuild() == 0
    assert summarizer.calls == []
    assert index.tree == tree


def test_many_new_chunks_are_clustered_anew_and_known_clusters_cost_nothing():
    summarizer = FirstWords()
    index = RaptorIndex(nodes=corpus()[:24], summarizer=summarizer)
    old = set(index.tree.summaries)
    summarizer.calls.clear()
    index.insert_nodes(corpus()[24:])
    check(index)
    assert len(summarizer.calls) == len(set(index.tree.summaries) - old)
    assert asyncio.run(index.arebuild()) == 0
    assert index.tree == RaptorIndex(nodes=corpus(), summarizer=FirstWords()).tree


def test_failed_summaries_are_counted_left_out_and_tried_again(caplog):
    summarizer = FirstWords()
    summarizer.fail_on = "river bridge boats harbour number3"
    index = RaptorIndex(nodes=corpus(), summarizer=summarizer)
    assert index.index_struct.counters["failed"] == 1
    assert "retry_failed" in caplog.text
    assert len(index.state.unwritten) == 1
    assert len(index.state.roots) == 1  # the layers above were built all the same
    failed = index.state.unwritten[0]
    assert all(n.score is not None for n in index.as_retriever(similarity_top_k=99).retrieve("river"))
    assert index.retry_failed() == 1
    summarizer.fail_on = "\0"
    above = index.tree.ancestors([failed])
    summarizer.calls.clear()
    assert asyncio.run(index.aretry_failed()) == 0
    check(index)
    assert len(summarizer.calls) == 1 + len(above)  # those above were written without it


def test_on_error_raise_ends_the_write_and_keeps_what_was_written():
    summarizer = FirstWords()
    summarizer.fail_on = "river bridge boats harbour number3"
    with pytest.raises(ExtractionError, match="number3"):
        RaptorIndex(nodes=corpus(), summarizer=summarizer, on_error="raise")
    index = RaptorIndex(nodes=corpus()[:4], summarizer=summarizer, on_error="raise")
    with pytest.raises(ExtractionError, match="number3"):
        index.insert(Document(text=summarizer.fail_on, id_="bad"))
    assert index.index_struct.building
    summarizer.fail_on = "\0"
    assert index.refresh_ref_docs([Document(text="river bridge boats harbour number3", id_="bad")]) == [True]
    check(index)


def test_summaries_of_a_layer_are_written_many_at_a_time():
    for build in (
        lambda s: RaptorIndex(nodes=corpus(), summarizer=s, num_workers=4),
        lambda s: asyncio.run(RaptorIndex.afrom_documents(
            [Document(text=n.text, id_=n.node_id) for n in corpus()], summarizer=s, num_workers=4, transformations=[]
        )),
    ):  # fmt: skip
        summarizer = FirstWordsSlowly(0.05)
        build(summarizer)
        assert summarizer.most_at_once == 4


def test_parameters_are_stored_and_may_be_replaced(tmp_path):
    index = RaptorIndex(nodes=corpus(), summarizer=FirstWords(), max_layers=1, summary_tokens=77)
    index.storage_context.persist(str(tmp_path))
    context = StorageContext.from_defaults(persist_dir=str(tmp_path))
    loaded = load_index_from_storage(context, summarizer=FirstWords())
    assert loaded.config == index.config
    assert load_index_from_storage(context, summarizer=FirstWords(), max_layers=3).config.max_layers == 3


def test_the_published_parameters_are_accepted():
    index = RaptorIndex(nodes=corpus(2), summarizer=FirstWords(), **RaptorIndex.paper())
    assert {name: getattr(index.config, name) for name in PAPER_TREE} == PAPER_TREE
    check(index)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_layers", -1),
        ("max_cluster_tokens", 0),
        ("summary_tokens", 0),
        ("max_root_children", 1),
        ("summaries", "x"),
    ],
)
def test_parameters_out_of_range_are_refused(name, value):
    with pytest.raises(ConfigurationError, match=name):
        RaptorIndex(nodes=[], summarizer=FirstWords(), **{name: value})


def test_a_filter_hides_every_summary_that_has_a_hidden_chunk():
    index = RaptorIndex(nodes=corpus(), summarizer=FirstWords())
    filters = MetadataFilters(filters=[MetadataFilter(key="topic", value=0)])
    for mode in ("collapsed", "tree_traversal"):
        retriever = index.as_retriever(similarity_top_k=99, filters=filters, mode=mode)
        found = retriever.retrieve("engine cards gears wheels")
        assert found
        for result in found:
            assert {leaf[:2] for leaf in index.leaves_of(result.node.node_id)} == {"n0"}
        for explanation in retriever.explain("engine cards gears wheels"):
            for path in explanation.paths:
                assert {leaf[:2] for node, _ in path for leaf in index.leaves_of(node)} == {"n0"}


def test_the_nodes_come_back_as_they_were_given_and_summaries_are_marked():
    nodes = corpus()
    index = RaptorIndex(nodes=nodes, summarizer=FirstWords())
    by_id = {node.node_id: node for node in nodes}
    for result in index.as_retriever(similarity_top_k=99).retrieve("silk"):
        node = result.node
        if node.node_id in by_id:
            assert node.hash == by_id[node.node_id].hash
            assert node.metadata == by_id[node.node_id].metadata
        else:
            assert node.metadata["raptor_level"] == index.tree.level(node.node_id)
            assert [c.node_id for c in node.child_nodes] == list(index.tree.children(node.node_id))
            assert "raptor_level" not in node.get_content(metadata_mode="all" and "llm")


def test_two_parents_are_kept_through_inserts_and_deletes():
    class Overlapping:
        fingerprint: ClassVar = {"class": "Overlapping"}

        def cluster(self, vectors, weights=None):
            return [np.arange(i, min(i + 6, len(vectors))) for i in range(0, len(vectors), 4)]

    index = RaptorIndex(nodes=corpus(), summarizer=FirstWords(), clustering=Overlapping())
    assert any(len(parents) > 1 for parents in index.tree.parents.values())
    check(index)
    index.insert(Document(text="bread oven"))
    index.delete_ref_doc("doc2-1", delete_from_docstore=True)
    index.write_summaries()
    check(index)
    ids = [n.node.node_id for n in index.as_retriever(similarity_top_k=99).retrieve("bread")]
    assert len(ids) == len(set(ids))


def test_an_estimate_counts_calls_before_paying():
    documents = [Document(text=node.text, id_=node.node_id) for node in corpus()]
    estimate = RaptorIndex.estimate(documents)
    assert 4 <= estimate.calls <= 8
    assert estimate.prompt_tokens > 0
    assert RaptorIndex.estimate(documents, summarizer=FirstWords()).calls == 0


@pytest.mark.parametrize("collection", ["tree", "summaries"])
def test_what_a_killed_write_left_half_done_is_put_right_at_load(collection: str, tmp_path):
    index = RaptorIndex(nodes=corpus(), summarizer=FirstWords())
    lost = sorted(index.tree.summaries)[::2]
    run_steps(index.storage.records.delete(collection, lost))
    run_steps(index.storage.space().remove(["n0-00", "n3-03"]))
    index.storage_context.persist(str(tmp_path))
    again = load_index_from_storage(StorageContext.from_defaults(persist_dir=str(tmp_path)), summarizer=FirstWords())
    assert again.as_retriever(similarity_top_k=99).retrieve("silk")
    assert again.write_summaries() == 0
    check(again)
    assert tree_of(run_steps(TreeRows(again.storage).all())) == again.tree
    again.rebuild()
    check(again)


def test_an_insert_embeds_its_chunk_and_the_summaries_above_it_however_long_the_chunks_are():
    texts = [
        ". ".join(f"Tower {i} has bell {k} and {w} lamps" for k, w in enumerate("abcdefghijklmnopqrst"))
        for i in range(30)
    ]
    model = HashEmbedding()
    index = RaptorIndex.from_documents(
        [Document(text=f"{text}.", id_=f"d{i}") for i, text in enumerate(texts)],
        summarizer=ExtractiveSummarizer(),
        summary_tokens=40,
        embed_model=model,
    )
    assert len(model.texts) == 30 + len(index.state.written) + 1  # and what tells models apart
    model.texts.clear()
    index.insert(Document(text="Tower 30 has a new bell."))
    assert len(model.texts) == 1 + index.tree.height


def rows_are_those_of_the_state(index: RaptorIndex) -> bool:
    state = index.state
    rows = TreeRows(index.storage)
    return not run_steps(rows.note_repairs(state.tree, state.chunks.ids, state.written, run_steps(rows.all())))


@pytest.mark.parametrize("write", ["insert", "delete", "write_summaries", "rebuild"])
def test_an_index_of_a_version_that_stored_children_alone_is_read_and_brought_forward(write: str, tmp_path):
    """It had one record a summary, and none of chunks, roots and summaries without a text."""
    index, written = (RaptorIndex(nodes=corpus(), summarizer=FirstWords()) for _ in range(2))
    for each in (index, written):
        each.delete_nodes(["n0-00"])
    records = written.storage.records
    rows = run_steps(TreeRows(written.storage).all())
    run_steps(records.delete("tree", rows))
    for collection in ("tree_roots", "tree_unwritten"):
        run_steps(records.delete(collection, run_steps(records.get_all(collection))))
    summaries = {node: row for node, row in rows.items() if row["level"]}
    old = [(node, {"level": row["level"], "children": row["children"]}) for node, row in summaries.items()]
    run_steps(records.put("tree", old))
    written.storage_context.persist(str(tmp_path))
    again = load_index_from_storage(StorageContext.from_defaults(persist_dir=str(tmp_path)), summarizer=FirstWords())
    assert again.tree == index.tree
    assert [each.node_id for each in again.failures()] == index.state.unwritten != []
    assert run_steps(again.storage.records.get_all("tree")).keys() == summaries.keys()  # opening writes nothing
    for each in (index, again):
        if write == "insert":
            each.insert_nodes([TextNode(id_="new", text="bread oven flour yeast crust")])
        elif write == "delete":
            each.delete_nodes(["n1-01", "n2-02"])
        else:
            getattr(each, write)()
    assert rows_are_those_of_the_state(again)
    assert again.tree == index.tree
    assert again.state.written.keys() == index.state.written.keys()
