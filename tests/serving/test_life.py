"""The whole life of an index that is served from stores, beside its twin in memory."""

import asyncio
from typing import Any

import pytest
from llama_index.core import Document
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.vector_stores.types import FilterOperator, MetadataFilter, MetadataFilters
from tests.cases import QUESTION, TEXTS, Case, ask, chunks, retriever, told
from tests.serving.places import Place, everything_in

from llama_index.ragkit import MatrixVectorStore
from llama_index.ragkit.errors import ConfigurationError
from llama_index.ragkit.sql import storage_context

pytestmark = [
    pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning"),
    pytest.mark.pairs,
]

SPLIT = [SentenceSplitter(chunk_size=64, chunk_overlap=0)]
QUESTIONS = (QUESTION, "Where does the Rhone meet the Saone?", "cloves", "Who lit the lamp of the lighthouse?")


def documents(count: int) -> list[Document]:
    return [
        Document(text=" ".join([*TEXTS[i:], *TEXTS[:i], f"Note {i}."]), id_=f"D{i}", metadata={"number": i})
        for i in range(count)
    ]


def answers(index: Any, top_k: int = 50, **options: Any) -> list[list[tuple[str, float]]]:
    """Texts and scores of all questions; scores to four digits, since a push leaves some of the walk out."""
    return [[(text, round(score, 4)) for text, score in ask(index, each, top_k, **options)] for each in QUESTIONS]


def same(one: Any, other: Any, **options: Any) -> bool:
    """Whether two indexes answer alike."""
    for ours, theirs in zip(answers(one, **options), answers(other, **options), strict=True):
        assert [text for text, _ in ours] == [text for text, _ in theirs]
        assert [score for _, score in ours] == pytest.approx([score for _, score in theirs], abs=2e-4)
    return True


def test_life_from_build_to_forgetting_is_that_of_an_index_in_memory(case: Case, place: Place):
    index = case.from_documents(documents(4), transformations=SPLIT, storage_context=place.open())
    twin = case.from_documents(documents(4), transformations=SPLIT)
    assert same(index, twin)
    canary = Document(text=f"Zanzibar exports cloves to {place.tag}x. {TEXTS[2]}", id_="Z")
    for each in (index, twin):
        each.insert(canary)
        each.update_ref_doc(Document(text="Lyon lies on the Rhone and the Saone.", id_="D0"))
        assert each.refresh_ref_docs([*documents(4)[1:], canary]) == [False] * 4
    assert same(index, twin)
    assert f"{place.tag}x" in everything_in(place.engine())
    again = case.load(place.open(), transformations=SPLIT)
    assert same(again, twin)
    for each in (again, twin):
        each.delete_ref_doc("Z", delete_from_docstore=True)
    assert same(again, twin)
    assert same(index, twin), "an index that was open sees what another has written"
    assert f"{place.tag}x" not in everything_in(place.engine())
    assert set(index.ref_doc_info) == {"D0", "D1", "D2", "D3"}


def test_asynchronous_methods_do_the_same(case: Case, place: Place):
    async def live() -> list[tuple[str, float]]:
        context = place.open()
        index = await case.cls.afrom_documents(
            documents(2), transformations=SPLIT, storage_context=context, **case.options()
        )
        await index.ainsert(Document(text="Zanzibar exports cloves.", id_="Z"))
        await index.adelete_ref_doc("Z", delete_from_docstore=True)
        assert await index.arefresh_ref_docs(documents(2)) == [False, False]
        found = await retriever(index, similarity_top_k=50).aretrieve(QUESTION)
        return told(found)

    twin = case.from_documents(documents(2), transformations=SPLIT)
    twin.insert(Document(text="Zanzibar exports cloves.", id_="Z"))
    twin.delete_ref_doc("Z", delete_from_docstore=True)
    found, wanted = asyncio.run(live()), ask(twin, top_k=50)
    assert [text for text, _ in found] == [text for text, _ in wanted]


def where(key: str, value: Any, operator: FilterOperator = FilterOperator.EQ) -> MetadataFilters:
    return MetadataFilters(filters=[MetadataFilter(key=key, value=value, operator=operator)])


def test_filters_and_ids_are_kept(case: Case, place: Place):
    index = case.from_documents(documents(4), transformations=SPLIT, storage_context=place.open())
    twin = case.from_documents(documents(4), transformations=SPLIT)
    of_two = set(index.ref_doc_info["D2"].node_ids)
    for options in (
        {"filters": where("number", 2)},
        {"filters": where("number", 1, FilterOperator.GT)},
        {"doc_ids": ["D2", "unknown"]},
        {"node_ids": [*of_two, "unknown"]},
        {"doc_ids": ["D2"], "filters": where("number", 3)},
        {"filters": where("number", 9)},
        {"doc_ids": []},
    ):
        for question in QUESTIONS:
            ours, theirs = (
                {each.node.node_id for each in retriever(one, similarity_top_k=50, **options).retrieve(question)}
                for one in (index, twin)
            )
            assert ours == theirs
    assert same(index, twin, doc_ids=["D1", "D3"])


def test_explanations_are_those_of_an_index_in_memory(case: Case, here: Place):
    index = case.from_documents(documents(3), transformations=SPLIT, storage_context=here.open())
    twin = case.from_documents(documents(3), transformations=SPLIT)
    ours, theirs = (retriever(each, similarity_top_k=5).explain(QUESTION) for each in (index, twin))
    assert [each.text for each in ours] == [each.text for each in theirs]
    assert [each.fallback for each in ours] == [each.fallback for each in theirs]


def test_a_page_is_drawn_of_an_answer(case: Case, here: Place):
    index = case.from_documents(documents(3), transformations=SPLIT, storage_context=here.open())
    assert "Lyon" in index.visualize(here.folder / "page.html", query=QUESTION).read_text(encoding="utf-8")
    again = case.load(here.open())
    with pytest.raises(ConfigurationError, match="served from stores"):
        again.visualize(here.folder / "other.html")


def test_what_needs_the_whole_index_says_so(case: Case, here: Place):
    index = case.build(chunks("d", 3), storage_context=here.open())
    with pytest.raises(ConfigurationError, match="served from stores"):
        index.state  # noqa: B018
    if hasattr(index, "to_networkx"):
        with pytest.raises(ConfigurationError, match="served from stores"):
            index.to_networkx()


def test_an_empty_index_and_one_node_are_ordinary(case: Case, here: Place):
    index = case.build([], storage_context=here.open())
    assert ask(index) == []
    index.insert_nodes(chunks("d", 1))
    assert [text for text, _ in ask(index)] == [chunks("d", 1)[0].text]
    assert "in_stores=True" in repr(index)
    index.delete_ref_doc("d", delete_from_docstore=True)
    assert ask(index) == []


def test_nodes_that_change_under_their_ids_keep_their_vectors(case: Case, place: Place):
    first, second = chunks("d", 3), chunks("d", 3)
    second[0].set_content("Zanzibar exports cloves.")
    index = case.build(first, storage_context=place.open())
    for nodes in (second, first, second):
        index.insert_nodes(nodes)
        assert same(index, case.build(nodes))
    store = place.open().space_store("chunks")
    if place.kind.name == "sqlite":
        assert len(store.made.snapshot()) == 3


def test_tenants_never_see_each_other(case: Case, place: Place):
    indexes = {}
    for name in ("one", "two"):
        nodes = [*chunks("d", 3)]
        nodes[0].set_content(f"Zanzibar exports cloves to {name}.")
        indexes[name] = case.build(nodes, storage_context=place.open(name))
    for name, index in indexes.items():
        texts = [text for text, _ in ask(index, "Zanzibar exports cloves")]
        assert texts[0] == f"Zanzibar exports cloves to {name}."
        assert len(texts) == 3
    assert place.open("one").drop() > 0
    left = everything_in(place.engine())
    assert "to two" in left
    assert "to one" not in left
    assert len(ask(case.load(place.open("two")), "Zanzibar exports cloves")) == 3
    place.open("two").drop()
    assert [row for row in everything_in(place.engine()).splitlines() if row.startswith("ragkit_graph")] == []
    assert [row for row in everything_in(place.engine()).splitlines() if row.startswith("ragkit_lexical")] == []


def test_what_cannot_be_is_refused_by_name(case: Case, here: Place):
    with pytest.raises(ConfigurationError, match="in place of vector_store="):
        case.build(chunks("d", 2), storage_context=here.open(), vector_store=MatrixVectorStore())
    case.build(chunks("d", 2), storage_context=here.open())
    with pytest.raises(ConfigurationError, match=r"vectors=.*no vector store for 'chunks'"):
        ask(case.load(storage_context(here.engine())))
