"""`CombinedRetriever`: several indexes of the same chunks, asked as one."""

import asyncio

import numpy as np
import pytest
from llama_index.core.postprocessor import SimilarityPostprocessor
from llama_index.core.schema import IndexNode
from llama_index.core.vector_stores.types import MetadataFilter, MetadataFilters
from tests.cases import CASES, QUESTION, chunks, told
from tests.together.plugins import chunk_retriever

from llama_index.ragkit import CombinedRetriever, HybridRetriever, MatrixVectorStore
from llama_index.ragkit.errors import ConfigurationError, EmbeddingModelMismatchError
from llama_index.ragkit.index import query
from llama_index.ragkit.index.chunk_scores import ChunkScores, Structure, summed
from llama_index.ragkit.sql import storage_context
from llama_index.ragkit.testing import HashEmbedding
from llama_index.ragkit.vectors.question_scores import result_scores
from llama_index.ragkit.vectors.snapshot import Snapshot

NODES = [*chunks("d", 6), *chunks("e", 4)]
METHODS = ("hipporag", "pgrag", "mrag", "graphrag", "sprag", "gemrag")
CASE = {case.name: case for case in CASES}
MANY = 50


def built(*methods: str, nodes=NODES):
    return [CASE[name].build(nodes) for name in methods]


@pytest.fixture(scope="module")
def indexes():
    return built(*METHODS)


@pytest.mark.parametrize("method", METHODS)
def test_nearness_and_what_a_method_adds_are_its_own_scores(method: str, indexes):
    own, other = (next(index for index in indexes if index.method in names) for names in ([method], _others(method)))
    explained = CombinedRetriever([own, other], similarity_top_k=MANY).explain(QUESTION)
    keywords = {"mode": "chunks"} if method == "sprag" else {}
    found = chunk_retriever(own, similarity_top_k=MANY, **keywords).retrieve(QUESTION)
    scores = {result.node.node_id: result.get_score() for result in found}
    totals = np.array([each.nearness + each.added[method] for each in explained])
    kept = [i for i, each in enumerate(explained) if each.node_id in scores]
    assert len(kept) == len(NODES)
    assert result_scores(totals[kept], totals) == pytest.approx([scores[explained[i].node_id] for i in kept])


def _others(method: str) -> tuple[str, ...]:
    """Methods that rest on other evidence."""
    return ("hipporag", "pgrag", "graphrag") if method in ("mrag", "sprag", "gemrag") else ("mrag",)


def test_all_methods_add_to_one_nearness_and_explain_tells_the_share_of_each(indexes):
    retriever = CombinedRetriever(indexes, similarity_top_k=MANY)
    results, explained = retriever.retrieve(QUESTION), retriever.explain(QUESTION)
    assert {result.node.node_id for result in results} == {node.node_id for node in NODES}
    assert [each.node_id for each in explained] == [result.node.node_id for result in results]
    assert all(set(each.added) == set(METHODS) for each in explained)
    totals = [each.nearness + sum(each.added.values()) for each in explained]
    assert totals == sorted(totals, reverse=True)
    near = HybridRetriever(NODES, HashEmbedding(), similarity_top_k=MANY).retrieve(QUESTION)
    nearness = np.array([each.nearness for each in explained])
    by_nearness = sorted(result_scores(nearness, nearness), reverse=True)
    assert by_nearness == pytest.approx([result.get_score() for result in near])


def test_async_asks_the_same(indexes):
    retriever = CombinedRetriever(indexes)
    assert told(asyncio.run(retriever.aretrieve(QUESTION))) == told(retriever.retrieve(QUESTION))
    assert asyncio.run(retriever.aexplain(QUESTION)) == retriever.explain(QUESTION)


def test_a_filter_holds_for_every_index_and_a_cutoff_works(indexes):
    only = MetadataFilters(filters=[MetadataFilter(key="doc", value="e")])
    given = [node.model_copy(update={"metadata": {"doc": node.ref_doc_id}}) for node in NODES]
    filtered = CombinedRetriever(built("hipporag", "mrag", "sprag", nodes=given), similarity_top_k=MANY, filters=only)
    assert {result.node.ref_doc_id for result in filtered.retrieve(QUESTION)} == {"e"}
    found = CombinedRetriever(indexes, doc_ids=["e"]).retrieve(QUESTION)
    assert {result.node.ref_doc_id for result in found} == {"e"}
    cut = SimilarityPostprocessor(similarity_cutoff=found[1].get_score()).postprocess_nodes(found)
    assert len(cut) == 2


class Counting(HashEmbedding):
    def _get_query_embedding(self, query: str) -> list[float]:
        asked.append(query)
        return super()._get_query_embedding(query)


asked: list[str] = []


def test_the_question_is_embedded_once_by_indexes_of_one_model(monkeypatch):
    model = Counting()
    three = [CASE[name].build(NODES, embed_model=model) for name in ("hipporag", "pgrag", "graphrag")]
    computed = []
    monkeypatch.setattr(query, "question_cosines", lambda *a, f=query.question_cosines: computed.append(1) or f(*a))
    retriever = CombinedRetriever(three)
    asked.clear()
    retriever.retrieve(QUESTION)
    assert (len(asked), len(computed)) == (1, 1)


def test_indexes_that_do_not_belong_together_are_refused():
    hipporag, mrag = built("hipporag", "mrag")
    with pytest.raises(ConfigurationError, match="at least two, each of another method, not hipporag"):
        CombinedRetriever([hipporag])
    with pytest.raises(ConfigurationError, match="at least two"):
        CombinedRetriever([hipporag, hipporag])
    with pytest.raises(ConfigurationError, match="must be indexes of these packages"):
        CombinedRetriever([hipporag, "mrag"])
    with pytest.raises(ConfigurationError, match="RaptorIndex has no scores of chunks"):
        CombinedRetriever([hipporag, *built("raptor")])
    with pytest.raises(ConfigurationError, match="do not hold the same chunks: 4 are in one of them only"):
        CombinedRetriever([hipporag, *built("mrag", nodes=NODES[:6])])
    other = CASE["pgrag"].build(NODES, embed_model=HashEmbedding(dim=48))
    with pytest.raises(EmbeddingModelMismatchError, match="Build both with the same model"):
        CombinedRetriever([hipporag, other])
    with pytest.raises(ConfigurationError, match="compares chunks as they are"):
        CombinedRetriever(built("sprag", "gemrag")).retrieve(QUESTION)
    retriever = CombinedRetriever([hipporag, mrag])
    mrag.delete_ref_doc("e")
    with pytest.raises(ConfigurationError, match="Insert and delete the same nodes in both"):
        retriever.retrieve(QUESTION)
    hipporag.delete_ref_doc("e")
    assert {result.node.ref_doc_id for result in retriever.retrieve(QUESTION)} == {"d"}


def rows(*ids: str) -> Snapshot:
    return CASE["hipporag"].build([node for node in NODES if node.node_id in ids]).state.chunks


def test_a_chunk_that_an_index_has_not_read_gets_the_least_that_it_gives():
    a, b, c = (node.node_id for node in NODES[:3])
    both, one = rows(a, b), rows(b, c)
    first = ChunkScores(both, np.array([1.0, 0.5]), [Structure(np.array([0.0, -2.0]), "names")])
    second = ChunkScores(one, np.array([0.5, 0.2]), [Structure(np.array([-4.0, 0.0]), "names", 0.5)])
    ids, nearness, added = summed({"first": first, "second": second})
    near = dict(zip(ids, nearness.tolist(), strict=True))
    assert near == {**dict(zip(both.ids, [1.0, 0.5], strict=True)), **dict(zip(one.ids, [0.5, 0.2], strict=True))}
    missing = ids.index(next(i for i in ids if i not in both.ids)), ids.index(next(i for i in ids if i not in one.ids))
    assert (added["first"][missing[0]], added["second"][missing[1]]) == (-2.0, -2.0)


def test_walks_count_by_sentence_where_aspects_vote():
    chunks = rows(*(node.node_id for node in NODES[:2]))
    walk, facts, votes = (Structure(np.array([0.0, -6.0]), name) for name in ("names", "facts", "votes"))
    near = np.array([1.0, 0.5])
    found = {"walk": ChunkScores(chunks, near, [walk, facts])}
    _, _, alone = summed(found, 3)
    _, _, beside = summed({**found, "votes": ChunkScores(chunks, near, [votes])}, 3)
    assert alone["walk"].tolist() == [0.0, -12.0]
    assert (beside["walk"].tolist(), beside["votes"].tolist()) == ([0.0, -8.0], [0.0, -6.0])


def test_objects_of_index_nodes_are_followed_in_whichever_index_they_are():
    node = IndexNode(
        id_="see", text=QUESTION, index_id="elsewhere", obj=HybridRetriever(chunks("f", 1), HashEmbedding())
    )
    first, second = built("hipporag", "graphrag")
    retriever = CombinedRetriever([second, first], similarity_top_k=1)
    first.insert_nodes([node])  # it keeps the object
    second.insert_nodes([node])
    assert [found.node.node_id for found in retriever.retrieve(QUESTION)] == ["f-0"]


def test_indexes_in_stores_give_what_they_give_in_memory(tmp_path, indexes):
    context = storage_context(f"sqlite:///{tmp_path / 'index.db'}", vectors=_stores())
    stored = [CASE[name].build(NODES, storage_context=context) for name in METHODS]
    assert not any(index.storage.is_whole for index in stored)
    for keywords in ({"similarity_top_k": 10}, {"doc_ids": ["e"]}):
        there, here = CombinedRetriever(stored, **keywords), CombinedRetriever(indexes, **keywords)
        assert told(there.retrieve(QUESTION)) == told(here.retrieve(QUESTION))
    stored[0].delete_ref_doc("e")
    with pytest.raises(ConfigurationError, match="the one has 6, the other 10"):
        there.retrieve(QUESTION)


def _stores():
    made: dict[str, MatrixVectorStore] = {}
    return lambda space, dimension: made.setdefault(space, MatrixVectorStore())
