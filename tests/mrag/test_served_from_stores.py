"""MRAG served from stores: the answers of the index in memory, where the heads vote among the nodes near to a question
and to each of its aspects."""

import asyncio
import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from llama_index.core import Document
from llama_index.core.schema import TextNode
from llama_index.core.vector_stores.simple import SimpleVectorStore
from llama_index.core.vector_stores.types import MetadataFilter, MetadataFilters
from tests.cases import TEXTS, HashHeads, chunks
from tests.llm_server import LLMServer
from tests.mrag.stored import Twins
from tests.mrag.test_retriever import RandomEmbedding
from tests.mrag.test_with_llm import client

from llama_index.mrag import MRAGIndex, MRAGRetriever
from llama_index.ragkit.errors import ConfigurationError, UnsupportedStoreError

ONE, MANY = (
    "Which engine used punched cards",
    "The Analytical Engine used cards. The loom wove silk in Lyon, by the river.",
)
QUESTIONS = (ONE, MANY)


def documents(count: int) -> list[Document]:
    return [
        Document(text=f"{TEXTS[i % 6]} Note {i} of {count}.", id_=f"D{i}", metadata={"odd": i % 2})
        for i in range(count)
    ]


def build(nodes: list[TextNode], **options: Any) -> MRAGIndex:
    return MRAGIndex([node.model_copy(deep=True) for node in nodes], **options)


def told(index: Any, question: str, **options: Any) -> list[tuple[str, float]]:
    found = index.as_retriever(**{"similarity_top_k": 5, **options}).retrieve(question)
    return [(each.node_id, each.score) for each in found]


def same(one: Any, other: Any, **options: Any) -> bool:
    for question in QUESTIONS:
        ours, theirs = told(one, question, **options), told(other, question, **options)
        assert [name for name, _ in ours] == [name for name, _ in theirs]
        assert [score for _, score in ours] == pytest.approx([score for _, score in theirs], abs=1e-9)
    return True


@pytest.fixture
def twins(tmp_path: Path) -> Twins:
    return Twins(tmp_path, partial(build, chunks("d", 12)))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"vote_weight": 0.7, "vote": "decay"},
        {"lexical_weight": 0, "vote": "distance"},
        {"num_candidates": 2, "similarity_top_k": 9},
        {"token_budget": 40},
        MRAGRetriever.paper(),
        MRAGRetriever.paper("distance"),
    ],
)
def test_answers_are_those_in_memory_with_one_aspect_and_with_many(twins: Twins, options: dict[str, Any]):
    assert same(twins.stored, twins.memory, **options)


def test_importance_follows_every_write_of_every_object_over_the_database(tmp_path: Path):
    def of_documents(**options: Any) -> MRAGIndex:
        return MRAGIndex.from_documents(documents(5), **options)

    twins = Twins(tmp_path, of_documents)
    other = twins.again()

    def check() -> None:
        for index in (twins.stored, other, twins.again()):
            np.testing.assert_allclose(index.importance, twins.memory.importance, rtol=1e-9)
            assert same(index, twins.memory)

    check()
    for index in (twins.stored, twins.memory):
        index.insert(Document(text="The lamp of the lighthouse went out.", id_="L"))
    check()
    for index in (other, twins.memory):
        index.update_ref_doc(Document(text="The lamp of the lighthouse was lit again by the keeper.", id_="L"))
        index.delete_ref_doc("D1", delete_from_docstore=True)
    check()
    for index in (twins.stored, twins.memory):
        assert index.refresh_ref_docs([documents(5)[0], documents(9)[4]]) == [False, True]
    check()
    for index in (other, twins.memory):
        for name in list(index.ref_doc_info):
            index.delete_ref_doc(name, delete_from_docstore=True)
    assert not other.importance.any()
    assert told(twins.stored, MANY) == []


def test_filters_and_ids_hold_for_every_voter(tmp_path: Path):
    twins = Twins(tmp_path, partial(MRAGIndex.from_documents, documents(8)))
    odd = MetadataFilters(filters=[MetadataFilter(key="odd", value=1)])
    ours, theirs = (told(index, MANY, filters=odd, lexical_weight=0) for index in (twins.stored, twins.memory))
    assert ours == theirs
    with_words = [told(index, MANY, filters=odd) for index in (twins.stored, twins.memory)]
    assert {name for name, _ in with_words[0]} == {name for name, _ in with_words[1]}
    names = [node_id for i in (2, 5, 7) for node_id in twins.memory.ref_doc_info[f"D{i}"].node_ids]
    assert same(twins.stored, twins.memory, node_ids=names)
    assert same(twins.stored, twins.memory, doc_ids=["D2", "D5", "D6"])


def test_explanations_are_those_in_memory(twins: Twins):
    for question in QUESTIONS:
        ours, theirs = (
            index.as_retriever(similarity_top_k=4).explain(question) for index in (twins.stored, twins.memory)
        )
        for one, other in zip(ours, theirs, strict=True):
            assert (one.node_id, one.text, one.fallback) == (other.node_id, other.text, other.fallback)
            assert (one.cosine, one.lexical, one.nearness, one.score, one.vote_weight) == pytest.approx(
                (other.cosine, other.lexical, other.nearness, other.score, other.vote_weight)
            )
            assert one.aspects == pytest.approx(other.aspects)
            votes = [{(v.aspect, v.head, v.place): v.share for v in each.votes} for each in (one, other)]
            assert votes[0] == pytest.approx(votes[1])


def test_sync_and_async_agree(twins: Twins):
    retriever = twins.stored.as_retriever(similarity_top_k=5)
    one, other = retriever.retrieve(MANY), asyncio.run(retriever.aretrieve(MANY))
    assert [(r.node_id, r.score) for r in one] == [(r.node_id, r.score) for r in other]
    assert retriever.explain(MANY) == asyncio.run(retriever.aexplain(MANY))


def test_the_page_shows_the_votes_of_the_last_question(twins: Twins, tmp_path: Path):
    page = twins.stored.visualize(tmp_path / "page.html", query=MANY).read_text(encoding="utf-8")
    assert f"Question: {MANY}" in page
    assert "The loom wove silk in Lyon" in page


# -- more nodes than are looked at -------------------------------------------------------------------------

MORE = [TextNode(text=f"Ship {i} sails to port {i % 7} with cargo {i % 11}.", id_=f"n{i:04d}") for i in range(900)]


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Twins:
    return Twins(tmp_path_factory.mktemp("many"), partial(build, MORE), RandomEmbedding())


def test_a_query_of_the_llm_finds_what_is_not_near_to_the_question(many: Twins):
    far = "Ship 451 sails to port 3 with cargo 0."
    assert far in {node.text for node in MORE}
    question = "Nothing that any vessel does"
    with LLMServer(lambda asked: json.dumps({"queries": [far]})) as server:
        for aspects in ("llm", "queries"):
            options = {"aspects": aspects, "llm": client(server), "lexical_weight": 0, "vote_weight": 1}
            ours, theirs = (told(index, question, **options) for index in (many.stored, many.memory))
            assert ours[0] == pytest.approx(theirs[0])
            assert ours[0][0] == "n0451"
        plain = many.stored.as_retriever(aspects="none", lexical_weight=0, vote_weight=1, similarity_top_k=1)
        looked_at = plain.explain(question)
        assert looked_at[0].node_id != "n0451"


def test_every_aspect_finds_its_own(many: Twins):
    wanted = ["n0012", "n0333", "n0801"]
    question = " ".join(node.text for node in MORE if node.node_id in wanted)
    for index in (many.stored, many.memory):
        found = told(index, question, similarity_top_k=3, lexical_weight=0, vote_weight=1)
        assert sorted(name for name, _ in found) == wanted


# -- head stores -----------------------------------------------------------------------------------------


class Counting(SimpleVectorStore):
    """Counts its searches; deletes by document only."""

    asked: list[int] = []  # noqa: RUF012

    def query(self, query: Any, **kwargs: Any) -> Any:
        self.asked.append(query.similarity_top_k)
        return super().query(query, **kwargs)

    def delete_nodes(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError


def test_head_stores_give_each_head_its_own_candidates(tmp_path: Path, many: Twins):
    heads = [Counting(asked=[]) for _ in range(4)]
    twins = Twins(tmp_path, partial(build, MORE), RandomEmbedding(), head_stores=heads)
    questions = ["Who lit the lamp", "Where the river flows"]
    exact = [told(many.memory, question, **MRAGRetriever.paper()) for question in questions]
    found = [told(twins.stored, question, **MRAGRetriever.paper()) for question in questions]
    assert [[name for name, _ in answer] for answer in found] == [[name for name, _ in answer] for answer in exact]
    assert np.array([[score for _, score in answer] for answer in found]) == pytest.approx(
        np.array([[score for _, score in answer] for answer in exact]), abs=1e-9
    )
    assert all(len(store.asked) == 2 for store in heads)
    without = [told(many.stored, question, **MRAGRetriever.paper()) for question in questions]
    assert without != exact, "whole vectors alone miss some candidates of single heads"
    odd = MetadataFilters(filters=[MetadataFilter(key="odd", value=1)])
    assert told(twins.stored, questions[0], filters=odd, **MRAGRetriever.paper()) == []


def test_head_stores_follow_writes_and_are_needed_for_them(tmp_path: Path):
    heads = [Counting(asked=[]) for _ in range(4)]
    twins = Twins(tmp_path, partial(build, chunks("d", 6)), head_stores=heads)
    twins.stored.insert_nodes(chunks("e", 3))
    twins.stored.delete_nodes(["d-2"])
    twins.stored.delete_ref_doc("e", delete_from_docstore=True)
    assert [len(store.data.embedding_dict) for store in heads] == [5] * 4
    without = twins.again()
    assert told(without, MANY) == told(twins.stored, MANY)
    with pytest.raises(UnsupportedStoreError, match="head_stores"):
        without.insert_nodes(chunks("f", 1))
    twins.again(head_stores=heads).insert_nodes(chunks("f", 2))
    assert [len(store.data.embedding_dict) for store in heads] == [7] * 4


def test_another_type_of_numbers_is_refused(tmp_path: Path):
    with pytest.raises(ConfigurationError, match="leave out dtype='float16'"):
        Twins(tmp_path, partial(build, chunks("d", 2)), HashHeads(), dtype="float16")
