"""PGRAGIndex: what is built, what a change touches, what survives a kill."""

import pytest
from llama_index.core import Document, StorageContext, load_index_from_storage
from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode

from llama_index.pgrag import GivenMindMaps, OutlineExtractor, PGRAGIndex
from llama_index.ragkit import SpaceRows
from llama_index.ragkit.errors import ConfigurationError, ExtractorMismatchError
from llama_index.ragkit.steps import run_steps
from llama_index.ragkit.testing import HashEmbedding

MAPS = {
    "a1": {"Lamp": {"fuel": ["whale oil", "paraffin"], "keeper": "Ada Byron"}},
    "a2": {"Lamp": {"fuel": "electricity", "height": "40 m"}},
    "b1": {"Lamp": {"fuel": "whale oil", "city": "Lyon"}},
    "c1": {"Loom": {"city": "Lyon", "thread": {"kind": "silk"}}},
}
DOCUMENTS = {"a1": "A", "a2": "A", "b1": "B", "c1": "C"}


def node(name: str) -> TextNode:
    source = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id=DOCUMENTS[name])}
    return TextNode(id_=name, text=f"text of {name}", relationships=source, metadata={"name": name})


def build(names=tuple(MAPS), **kwargs) -> PGRAGIndex:
    return PGRAGIndex(nodes=[node(n) for n in names], extractor=GivenMindMaps(maps=MAPS), **kwargs)


def said(index: PGRAGIndex) -> dict:
    """The graph without ids."""
    graph = index.graph
    texts = {fact.id: f"{fact.document}: {fact.text}" for found in graph.maps.values() for fact in found.facts}
    topics = {topic_id: f"{found.document}: {found.topic}" for topic_id, found in graph.maps.items()}
    return {
        "maps": {topics[i]: [fact.path for fact in found.facts] for i, found in graph.maps.items()},
        "super_facts": sorted(sorted(texts[i] for i in group) for group in graph.super_facts.nodes()),
        "super_topics": sorted(sorted(topics[i] for i in group) for group in graph.super_topics.nodes()),
        "rows": [len(graph.topics), len(graph.routes), len(graph.facts)],
    }


def test_maps_of_one_document_and_topic_are_one_and_super_nodes_cross_documents():
    told = said(build())
    assert set(told["maps"]) == {"A: Lamp", "B: Lamp", "C: Loom"}
    assert len(told["maps"]["A: Lamp"]) == 5
    assert told["super_topics"] == [["A: Lamp", "B: Lamp"]]
    assert told["super_facts"] == [["A: Lamp fuel whale oil", "B: Lamp fuel whale oil"]]


def test_every_fact_keeps_its_node_and_document():
    for found in build().graph.maps.values():
        for fact in found.facts:
            assert fact.document == DOCUMENTS[fact.node_id] == found.document
            assert fact.path[0] == found.topic


def test_every_cell_is_embedded_with_the_whole_path_before_it():
    index = build()
    graph, model = index.graph, HashEmbedding()
    for found in graph.maps.values():
        for fact in found.facts:
            for depth, (kind, cell) in enumerate(found.cells(fact), start=1):
                vector = getattr(graph, kind).vectors_of([cell])[0]
                assert vector == pytest.approx(model.vector(" ".join(fact.path[:depth])), abs=1e-6)


@pytest.mark.parametrize("fusion", ["components", "leaders"])
def test_any_order_of_growth_with_deletes_is_the_build_at_once(fusion):
    wanted = said(build(["b1", "c1", "a2"], fusion=fusion))
    grown = build(["a1"], fusion=fusion)
    for name in ("c1", "a2", "b1"):
        grown.insert_nodes([node(name)])
    grown.delete_nodes(["a1"])
    assert said(grown) == wanted


def test_a_delete_needs_no_model_and_leaves_no_row():
    index = build()
    index.embed_model.texts.clear()
    index.delete_ref_doc("A", delete_from_docstore=True)
    assert index.embed_model.texts == []
    assert said(index) == said(build(["b1", "c1"]))
    index.delete_ref_doc("B")
    index.delete_ref_doc("C")
    assert said(index)["rows"] == [0, 0, 0]
    assert run_steps(index.storage.records.get_all("pg_super_facts")) == {}
    assert index.as_retriever().retrieve("lamp") == []


def test_an_insert_embeds_the_new_cells_alone_each_text_once():
    index = build(["a1", "c1"])
    index.embed_model.texts.clear()
    index.insert_nodes([node("b1")])
    # Topic, two routes, two facts, and the chunk; no text twice although other documents have some of them.
    assert sorted(index.embed_model.texts) == sorted(
        ["Lamp", "Lamp fuel", "Lamp city", "Lamp fuel whale oil", "Lamp city Lyon", "name: b1\n\ntext of b1"]
    )


def test_it_comes_back_as_it_was(tmp_path):
    for fusion in ("components", "leaders"):
        index = build(fusion=fusion, topic_threshold=0.9)
        index.storage_context.persist(str(tmp_path / fusion))
        context = StorageContext.from_defaults(persist_dir=str(tmp_path / fusion))
        loaded = load_index_from_storage(context, extractor=GivenMindMaps(maps=MAPS))
        assert said(loaded) == said(index)
        assert loaded.config == index.config
        with pytest.raises(ConfigurationError, match="topic_threshold"):
            load_index_from_storage(context, topic_threshold=0.5)
        with pytest.raises(ExtractorMismatchError):
            load_index_from_storage(context, extractor=OutlineExtractor()).insert(Document(text="x"))


@pytest.mark.parametrize("space", ["facts", "topics", "routes"])
def test_rows_that_a_killed_write_lost_or_left_are_put_right_at_load(space: str, tmp_path):
    index = build()
    rows = index.storage.space(space)
    lost = rows.store.snapshot().ids[::2]
    run_steps(rows.remove(lost))
    records = index.storage.records
    run_steps(records.put("pg_super_of_facts", [("ghost", {"c": "ghost"})]))
    run_steps(records.put("pg_super_facts", [("ghost", {"members": ["ghost", lost[0]]})]))
    index.storage_context.persist(str(tmp_path))
    context = StorageContext.from_defaults(persist_dir=str(tmp_path))
    loaded = load_index_from_storage(context, extractor=GivenMindMaps(maps=MAPS))
    graph = loaded.graph
    assert 0 < len(graph.facts) == len(graph.map_of) < 9
    assert len(graph.topics) == len(graph.maps)
    assert set(graph.super_facts.component_of) <= set(graph.facts.ids)
    for collection in ("pg_super_of_facts", "pg_super_facts"):
        assert "ghost" not in run_steps(loaded.storage.records.get_all(collection))
    assert loaded.as_retriever().retrieve("whale oil")


def test_a_node_without_a_map_is_failed_and_read_later():
    maps = dict(MAPS)
    del maps["c1"]
    index = PGRAGIndex(nodes=[node(n) for n in MAPS], extractor=GivenMindMaps(maps=maps))
    assert index.retry_failed() == 1
    index.resources.extractor = GivenMindMaps(maps=MAPS)
    assert index.retry_failed() == 0
    assert said(index) == said(build())


def test_ready_maps_may_be_json_text_with_duplicate_keys_and_need_a_topic():
    text = '```json\n{"Lamp": {"fuel": "oil", "fuel": "gas"}}\n```'
    index = PGRAGIndex(nodes=[TextNode(id_="x", text="t")], extractor=GivenMindMaps(maps={"x": text}))
    assert [len(found.facts) for found in index.graph.maps.values()] == [2]
    several = GivenMindMaps(maps={"x": {"a": "1", "b": "2"}}, topics={"x": "T"})
    index = PGRAGIndex(nodes=[TextNode(id_="x", text="t")], extractor=several)
    assert [found.topic for found in index.graph.maps.values()] == ["T"]
    index = PGRAGIndex(nodes=[TextNode(id_="x", text="t")], extractor=GivenMindMaps(maps={"x": {"a": "1", "b": "2"}}))
    assert index.retry_failed() == 1


@pytest.mark.parametrize(
    ("name", "value"), [("topic_threshold", 0), ("fact_threshold", 1.1), ("fact_threshold", "x"), ("fusion", "greedy")]
)
def test_parameters_out_of_range_are_refused(name, value):
    with pytest.raises(ConfigurationError, match=name):
        PGRAGIndex(nodes=[], **{name: value})


def test_many_facts_that_say_the_same_are_one_super_fact():
    maps = {f"n{i}": {"Place": {"city": "Beijing"}} for i in range(150)}
    index = PGRAGIndex(nodes=[], extractor=GivenMindMaps(maps=maps))
    for i in range(150):
        index.insert_nodes([TextNode(id_=f"n{i}", text=f"t{i}")])
    assert [len(group) for group in index.graph.super_facts.nodes()] == [150]
    assert len(index.as_retriever().retrieve("Beijing")) == 1  # said once, with all its sources
    index.delete_nodes([f"n{i}" for i in range(0, 150, 2)])
    assert [len(group) for group in index.graph.super_facts.nodes()] == [75]


def test_an_index_of_an_earlier_version_is_read_and_brought_forward(tmp_path):
    """It had the name of a component for every row, in collections of other names, and facts without metadata."""
    index = build()
    wanted, state, records = said(index), index.state, index.storage.records
    for kind in ("topics", "facts"):
        super_nodes, rows = getattr(state, f"super_{kind}"), getattr(state, kind)
        names = [(row_id, {"c": super_nodes.component_of.get(row_id, row_id)}) for row_id in rows.ids]
        run_steps(records.put(f"super_{kind}", names))
        for collection in (f"pg_super_{kind}", f"pg_super_of_{kind}"):
            run_steps(records.delete(collection, list(run_steps(records.get_all(collection)))))
    metadatas = [{"node": state.fact(i).node_id, "topic": state.map_of[i]} for i in state.facts.ids]
    keys = [record.key for record in state.facts.records]
    earlier = SpaceRows(state.facts.ids, state.facts.matrix, keys, state.facts.ids, metadatas)
    run_steps(index.storage.space("facts").put(earlier))
    index.storage_context.persist(str(tmp_path))
    loaded = load_index_from_storage(
        StorageContext.from_defaults(persist_dir=str(tmp_path)), extractor=GivenMindMaps(maps=MAPS)
    )
    assert said(loaded) == wanted
    assert loaded.as_retriever().retrieve("whale oil")
    loaded.delete_nodes(["c1"])
    assert said(loaded) == said(build(["a1", "a2", "b1"]))
    records = loaded.storage.records
    assert [run_steps(records.get_all(f"super_{kind}")) for kind in ("topics", "facts")] == [{}, {}]
    stored = run_steps(records.get_all("pg_super_facts")).values()
    assert sorted(r["members"] for r in stored) == sorted(map(list, loaded.state.super_facts.members.values()))
