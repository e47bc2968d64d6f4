"""HippoRAGIndex: what is derived, what a change rewrites, what a killed write leaves."""

import asyncio
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from llama_index.core import Document, StorageContext, load_index_from_storage
from llama_index.core.graph_stores import SimplePropertyGraphStore
from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode

from llama_index.hipporag import HippoRAGIndex, NounPhraseExtractor, RecordedExtractor
from llama_index.ragkit.errors import ConfigurationError, ExtractorMismatchError
from llama_index.ragkit.steps import run_steps
from llama_index.ragkit.testing import HashEmbedding

NAMES = [
    "ada byron",
    "ada king",
    "babbage",
    "charles babbage",
    "loom",
    "jacquard loom",
    "lyon",
    "lyon city",
    "漢字",
    "an",
]


ALL_VECTORS = {"phrase_vectors": True, "fact_vectors": True}


def record(*triples: tuple[str, str, str], entities: list[str] | None = None) -> dict[str, Any]:
    return {"entities": entities or [], "triples": [list(triple) for triple in triples]}


def node(name: str, document: str = "d") -> TextNode:
    return TextNode(
        id_=name, text=f"text of {name}", relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=document)}
    )


def index_of(records: dict[str, Any], **kwargs: Any) -> HippoRAGIndex:
    nodes = [node(name, document=f"doc {name}") for name in records]
    parameters = {"embed_model": HashEmbedding(dim=6), **ALL_VECTORS, **kwargs}
    return HippoRAGIndex(nodes=nodes, extractor=RecordedExtractor(records), **parameters)


def picture(index: HippoRAGIndex) -> dict[str, Any]:
    """Everything that the graph holds, by name: equal pictures are equal graphs."""
    state = index.state
    memory, phrases = state.graph, list(state.phrases)
    facts, passages = list(state.facts), state.chunks.ids
    cells = lambda m, rows, columns: {  # noqa: E731
        (rows[i], columns[j]): round(float(v), 6) for i, j, v in zip(*_coo(m), strict=True)
    }
    return {
        "phrases": sorted(phrases),
        "named": cells(memory.named, passages, phrases),
        "about": cells(memory.about, passages, phrases),
        "told": cells(memory.statements, passages, facts),
        "facts": {fact: (phrases[memory.heads[i]], phrases[memory.tails[i]]) for fact, i in state.facts.items()},
        "similar": cells(memory.synonym_lists, phrases, phrases),
        "fact vectors": sorted(r.key for r in state.fact_vectors.records),
        "stored lists": {
            row_id: dict(zip(r["ids"], np.round(r["cosines"], 6), strict=True))
            for row_id, r in run_steps(index.storage.records.get_all("similar")).items()
        },
        "vectors": {r.key: state.phrase_vectors.vectors_of([r.id])[0].tolist() for r in state.phrase_vectors.records},
    }


def _coo(matrix):
    found = matrix.tocoo()
    return found.row.tolist(), found.col.tolist(), found.data.tolist()


name = st.sampled_from(NAMES)
records_of_passages = st.dictionaries(
    st.sampled_from(["p0", "p1", "p2", "p3", "p4"]),
    st.builds(
        lambda triples, entities: record(*triples, entities=entities),
        st.lists(st.tuples(name, st.sampled_from(["met", "saw"]), name), max_size=4),
        st.lists(name, max_size=3),
    ),
    min_size=1,
)


@pytest.mark.parametrize("cap", [1, 2, 100])
@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(kept=records_of_passages, gone=records_of_passages, random=st.randoms(use_true_random=False))
def test_growth_in_any_order_and_deletes_equal_one_build(cap, kept, gone, random):
    parameters = {"synonym_threshold": 0.4, "max_synonyms": cap}
    at_once = index_of(kept, **parameters)
    others = {f"gone-{name}": given_ for name, given_ in gone.items()}
    everything = {**kept, **others}
    grown = index_of({}, **parameters)
    grown.resources.extractor.add(everything)
    names = list(everything)
    random.shuffle(names)
    deleted = []
    for place, one in enumerate(names):
        grown.insert_nodes([node(one, document=f"doc {one}")])
        if one in others and place % 2:
            grown.delete_ref_doc(f"doc {one}", delete_from_docstore=True)
            deleted.append(one)
    for one in others:
        if one not in deleted:
            grown.delete_ref_doc(f"doc {one}", delete_from_docstore=True)
    assert picture(grown) == picture(at_once)


def three() -> dict[str, Any]:
    return {
        "p0": record(("Ada Byron", "met", "Charles Babbage"), ("Ada Byron", "met", "Charles Babbage")),
        "p1": record(("Charles Babbage", "drew", "Engine"), entities=["Engine", "London"]),
        "p2": record(("Ada King", "lived in", "London")),
    }


def test_what_is_derived():
    seen = picture(index_of(three(), synonym_threshold=0.3))
    assert seen["phrases"] == ["ada byron", "ada king", "charles babbage", "engine", "london"]
    assert seen["told"]["p0", ("ada byron", "met", "charles babbage")] == 2
    assert seen["named"] == {("p1", "engine"): 1, ("p1", "london"): 1}
    assert ("ada byron", "ada king") in seen["similar"]
    assert len(seen["fact vectors"]) == 3
    without = picture(index_of(three(), entity_nodes=False, fact_vectors=False))
    assert without["named"] == {}
    assert without["fact vectors"] == []


def test_a_loaded_index_is_the_same_and_asks_no_model(tmp_path):
    index = index_of(three(), synonym_threshold=0.3)
    index.storage_context.persist(str(tmp_path))
    model = HashEmbedding(dim=6)
    loaded = load_index_from_storage(
        StorageContext.from_defaults(persist_dir=str(tmp_path)), embed_model=model, extractor=RecordedExtractor(three())
    )
    assert picture(loaded) == picture(index)
    assert loaded.config == index.config
    assert model.texts == []


def test_parameters_of_the_graph_stay(tmp_path):
    index_of(three(), **HippoRAGIndex.paper("v1_code")).storage_context.persist(str(tmp_path))
    context = StorageContext.from_defaults(persist_dir=str(tmp_path))
    options = {"embed_model": HashEmbedding(dim=6), "extractor": RecordedExtractor()}
    assert load_index_from_storage(context, **options).config.normalizer == "legacy"
    assert load_index_from_storage(context, normalizer="legacy", **options)
    with pytest.raises(ConfigurationError, match="max_synonyms"):
        load_index_from_storage(context, max_synonyms=3, **options)
    with pytest.raises(ExtractorMismatchError):
        load_index_from_storage(context, embed_model=HashEmbedding(dim=6), extractor=NounPhraseExtractor()).insert(
            Document(text="x")
        )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("normalizer", "ascii"),
        ("synonym_threshold", 0.0),
        ("synonym_threshold", 1.5),
        ("max_synonyms", 0),
        ("min_synonym_length", -1),
    ],
)
def test_parameters_out_of_range_are_refused(name, value):
    with pytest.raises(ConfigurationError, match=name):
        HippoRAGIndex(nodes=[], extractor=RecordedExtractor(), **{name: value})


@pytest.mark.parametrize("lost", ["rows", "lists", "facts"])
def test_what_a_killed_write_left_half_done_is_put_right_at_load(lost: str, tmp_path):
    records = {f"p{i}": record((NAMES[i], "met", NAMES[(i + 1) % 8])) for i in range(8)}
    parameters = {"synonym_threshold": 0.3, "max_synonyms": 2}
    index = index_of(records, **parameters)
    whole = picture(index)
    victim = sorted(index.state.phrase_vectors.ids)[:2]
    if lost == "rows":  # killed after rows were deleted, before the lists that name them were
        run_steps(index.storage.space().remove(["p0", "p1"]))
        run_steps(index.storage.space("phrases").remove(victim))
    elif lost == "lists":  # killed between the lists and the rows of new phrases
        run_steps(index.storage.records.put("similar", [("stranger", {"ids": victim, "cosines": [0.9, 0.8]})]))
    else:
        run_steps(index.storage.space("facts").remove(index.state.fact_vectors.ids[:1]))
    index.storage_context.persist(str(tmp_path))
    options = {"embed_model": HashEmbedding(dim=6), "extractor": RecordedExtractor(records)}
    again = load_index_from_storage(StorageContext.from_defaults(persist_dir=str(tmp_path)), **options)
    assert again.as_retriever(similarity_top_k=9).retrieve("loom")
    again.delete_nodes([*again.state.chunks.ids, "p0", "p1"], delete_from_docstore=True)
    again.insert_nodes([node(name, document=f"doc {name}") for name in records])
    assert picture(again) == whole


def test_a_failed_extraction_is_counted_and_tried_again():
    extractor = RecordedExtractor({"p0": three()["p0"]})
    nodes, model = [node("p0"), node("p1")], HashEmbedding(dim=6)
    index = HippoRAGIndex(nodes=nodes, extractor=extractor, embed_model=model, **ALL_VECTORS)
    assert {n.node.node_id for n in index.as_retriever().retrieve("Ada Byron")} == {"p0", "p1"}
    assert index.retry_failed() == 1
    extractor.add(three())
    assert index.retry_failed() == 0
    assert picture(index) == picture(index_of({k: three()[k] for k in ("p0", "p1")}))


def test_a_write_that_the_embedding_model_ends_can_be_taken_up():
    class Failing(HashEmbedding):
        def _get_text_embedding(self, text: str) -> list[float]:
            if text == "engine" and not getattr(Failing, "mended", False):
                raise ValueError("no vector today")
            return super()._get_text_embedding(text)

    index = HippoRAGIndex(
        nodes=[node("p0", "doc p0")], extractor=RecordedExtractor(three()), embed_model=Failing(dim=6), **ALL_VECTORS
    )
    with pytest.raises(ValueError, match="no vector today"):
        index.insert_nodes([node("p1", "doc p1"), node("p2", "doc p2")])
    assert len(index.as_retriever(similarity_top_k=9).retrieve("Ada Byron")) == 3
    Failing.mended = True
    index.insert_nodes([node("p1", "doc p1"), node("p2", "doc p2")])
    assert picture(index) == picture(index_of(three()))


def test_async_writes_equal_sync_ones():
    async def grown() -> HippoRAGIndex:
        index = index_of({})
        index.resources.extractor.add(three())
        await index.ainsert_nodes([node(name, document=f"doc {name}") for name in three()])
        await index.adelete_ref_doc("doc p1", delete_from_docstore=True)
        return index

    assert picture(asyncio.run(grown())) == picture(index_of({k: three()[k] for k in ("p0", "p2")}))


def test_the_graph_elsewhere():
    index = index_of(three(), synonym_threshold=0.3)
    graph = index.to_networkx()
    kinds = {kind: sum(1 for *_, k in graph.edges(data="kind") if k == kind) for kind in ("fact", "near", "mention")}
    assert kinds["fact"] == 3
    assert kinds["near"] == index.state.graph.synonym_edges.nnz // 2 > 0
    assert graph.edges["p1", ("phrase", "engine"), 0]["kind"] == "mention"
    store = SimplePropertyGraphStore()
    index.export_to(store)
    assert {t[1].label for t in store.get_triplets(entity_names=["ada byron"])} >= {"met", "MENTIONS"}
    assert store.get(ids=["p0"])[0].text == "text of p0"
    again = SimplePropertyGraphStore()
    asyncio.run(index.aexport_to(again))
    assert again.graph.nodes.keys() == store.graph.nodes.keys()


def test_an_estimate_counts_two_calls_a_passage():
    documents = [Document(text="Ada Byron met Charles Babbage in London.")] * 3
    assert HippoRAGIndex.estimate(documents).calls == 6
    assert HippoRAGIndex.estimate(documents, extractor=NounPhraseExtractor()).calls == 0
