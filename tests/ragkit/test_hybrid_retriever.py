"""`HybridRetriever`: dense and lexical search together, over any nodes."""

import asyncio
import threading

import numpy as np
import pytest
from llama_index.core import Settings
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.llms import MockLLM
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.retrievers import QueryFusionRetriever
from llama_index.core.schema import IndexNode, TextNode
from llama_index.core.vector_stores.types import MetadataFilter, MetadataFilters
from tests.ragkit.test_lexical_index import slow_bm25

from llama_index.ragkit import HybridRetriever
from llama_index.ragkit.errors import ConfigurationError
from llama_index.ragkit.testing.models import HashEmbedding

TEXTS = {
    "loom": "The looms of Lyon wove silk from punched cards.",
    "engine": "The engine reads cards and prints tables of numbers.",
    "baker": "A baker sells bread and rolls at the market.",
    "zh": "鲁迅出生于浙江绍兴",
    "ru": "На фабрике в Москве работала ткачиха.",
}


def nodes_of(texts=TEXTS, **metadata):
    return [TextNode(id_=name, text=text, metadata={"kind": name[:1], **metadata}) for name, text in texts.items()]


def ids(found):
    return [n.node.node_id for n in found]


def retriever(**kwargs):
    return HybridRetriever(nodes_of(), HashEmbedding(dim=256), **kwargs)


def test_what_an_index_node_leads_to_is_asked_as_it_is_now_and_a_node_is_given_as_a_copy():
    elsewhere, table = retriever(similarity_top_k=1), TextNode(id_="table", text="| 1871 |")
    found = HybridRetriever(
        [
            IndexNode(id_="see", text="See the shop.", index_id="shop", obj=elsewhere),
            IndexNode(id_="years", text="Years of trade.", index_id="years", obj=table),
        ],
        HashEmbedding(dim=256),
        similarity_top_k=1,
    )
    assert ids(found.retrieve("See the shop.")) != ["shop"]
    elsewhere.add_nodes([TextNode(id_="shop", text="See the shop of 1871.")])
    assert ids(found.retrieve("See the shop.")) == ["shop"]
    (result,) = found.retrieve("Years of trade.")
    result.node.text = "changed"
    assert table.text == found.retrieve("Years of trade.")[0].node.text == "| 1871 |"


def test_what_is_no_node_and_what_is_no_list_of_ids_is_refused_by_name():
    found = retriever()
    with pytest.raises(ConfigurationError, match="A document or node is needed, not str 'a text'"):
        found.add_nodes(["a text"])
    for wrong in ("loom", iter(["loom"])):
        with pytest.raises(ConfigurationError, match="node_ids must be a list of ids"):
            found.delete_nodes(wrong)
    assert "loom" in ids(found.retrieve(TEXTS["loom"]))


def test_scores_are_those_of_the_formula():
    model = HashEmbedding(dim=256)
    question = "Which cards did the looms of Lyon read?"
    nodes = [TextNode(id_=name, text=text) for name, text in TEXTS.items()]
    found = {n.node.node_id: n.score for n in HybridRetriever(nodes, model, lexical_weight=0.3).retrieve(question)}
    vector = np.array(model.get_query_embedding(question))
    rows = np.array(model.get_text_embedding_batch([node.text for node in nodes]))
    cosines = rows @ vector / np.linalg.norm(rows, axis=1) / np.linalg.norm(vector)
    lexical = np.array(list(slow_bm25(TEXTS, question).values()))
    z = [(part - part.mean()) / part.std() for part in (cosines, lexical)]
    nearness = 0.7 * z[0] + 0.3 * z[1]
    z = (nearness - nearness.mean()) / nearness.std()
    x = z - z.max() * 5**0.5 / 30
    wanted = (1 + x / (1 + abs(x))) / 2
    assert found == pytest.approx(dict(zip(TEXTS, wanted.tolist(), strict=True)), abs=1e-4)


def test_the_weight_chooses_between_words_and_vectors():
    question = "鲁迅出生在哪里？"
    assert ids(retriever(lexical_weight=1).retrieve(question))[0] == "zh"
    assert ids(retriever(lexical_weight=1).retrieve("Кто работал в городе Москва?"))[0] == "ru"
    near = ids(retriever(lexical_weight=0).retrieve("baker"))
    assert near == ids(retriever(lexical_weight=0).retrieve("baker"))
    for wrong in ({"lexical_weight": 1.5}, {"similarity_top_k": 0}):
        with pytest.raises(ConfigurationError):
            retriever(**wrong)


class Stretched(BaseEmbedding):
    """The vectors of another model with a common part, so that all cosines are high."""

    common: float = 2.0

    def _get_text_embedding(self, text):
        vector = np.array(HashEmbedding(dim=256).get_text_embedding(text))
        return [*(vector / np.linalg.norm(vector)).tolist(), self.common]

    _get_query_embedding = _get_text_embedding

    async def _aget_query_embedding(self, query):
        return self._get_text_embedding(query)


@pytest.mark.parametrize("question", ["looms and cards", "bread at the market", "numbers"])
def test_the_scale_of_cosines_does_not_matter(question):
    plain = HybridRetriever(nodes_of(), Stretched(common=0.0)).retrieve(question)
    high = HybridRetriever(nodes_of(), Stretched(common=2.0)).retrieve(question)
    assert ids(high) == ids(plain)
    assert [n.score for n in high] == pytest.approx([n.score for n in plain], abs=1e-3)


def test_nodes_come_and_go():
    grown = HybridRetriever(embed_model=HashEmbedding(dim=256))
    assert grown.retrieve("cards") == []
    grown.add_nodes(nodes_of())
    grown.add_nodes([TextNode(id_="baker", text="The baker punched cards."), TextNode(id_="empty", text="")])
    grown.delete_nodes(["loom", "unknown"])
    texts = {**TEXTS, "baker": "The baker punched cards."}
    texts.pop("loom")
    same = [node for node in nodes_of(texts) if node.node_id != "baker"] + [TextNode(id_="baker", text=texts["baker"])]
    fresh = HybridRetriever(same, HashEmbedding(dim=256))
    for question in ("punched cards", "Lyon", "numbers"):
        one, other = grown.retrieve(question), fresh.retrieve(question)
        assert ids(one) == ids(other)
        assert [n.score for n in one] == pytest.approx([n.score for n in other])
    assert len(grown) == 4


def test_filters_hold_and_other_nodes_do_not_change_scores():
    only = MetadataFilters(filters=[MetadataFilter(key="kind", value="l")])
    found = retriever(filters=only).retrieve("cards")
    assert ids(found) == ["loom"]
    some = ["loom", "engine"]
    found = retriever(node_ids=some).retrieve("cards of Lyon")
    assert set(ids(found)) == set(some)
    assert retriever(doc_ids=["nothing"]).retrieve("cards") == []


def test_results_are_copies_and_embeddings_of_nodes_are_used():
    nodes = nodes_of()
    for node in nodes:
        node.embedding = HashEmbedding(dim=256).get_text_embedding(node.text)

    class Refusing(HashEmbedding):
        def _get_text_embeddings(self, texts):
            raise AssertionError("embedded again")

    search = HybridRetriever(nodes, Refusing(dim=256))
    found = search.retrieve("cards")
    found[0].node.metadata["changed"] = True
    assert "changed" not in search.retrieve("cards")[0].node.metadata
    assert all(type(n.score) is float and 0 <= n.score <= 1 for n in found)


def test_it_works_where_retrievers_do(monkeypatch):
    search = retriever(similarity_top_k=2)
    assert ids(asyncio.run(search.aretrieve("cards"))) == ids(search.retrieve("cards"))
    fusion = QueryFusionRetriever([search], llm=MockLLM(), num_queries=1, use_async=False, similarity_top_k=2)
    assert ids(fusion.retrieve("cards")) == ids(search.retrieve("cards"))
    assert RetrieverQueryEngine.from_args(search, llm=MockLLM()).query("cards").source_nodes
    monkeypatch.setattr(Settings, "_embed_model", HashEmbedding(dim=256))
    assert ids(HybridRetriever(nodes_of(), similarity_top_k=2).retrieve("cards")) == ids(search.retrieve("cards"))


def test_threads_may_add_while_others_retrieve():
    search = retriever()
    failures = []

    def write():
        for i in range(20):
            search.add_nodes([TextNode(id_=f"n{i}", text=f"Cards of number {i}")])
            search.delete_nodes([f"n{i - 3}"])

    def read():
        try:
            for _ in range(40):
                assert search.retrieve("cards of Lyon")
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for work in (write, read, read)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert len(search) == len(TEXTS) + 3
