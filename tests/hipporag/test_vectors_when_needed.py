"""Phrases and facts are embedded when a search needs their vectors, and not before."""

import asyncio
import threading
from typing import Any

import pytest
from llama_index.core import StorageContext, load_index_from_storage
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from tests.hipporag.test_index import node, picture, three

from llama_index.hipporag import HippoRAGIndex, HippoRAGPostprocessor, RecordedExtractor
from llama_index.ragkit.testing import HashEmbedding

QUESTION = "Whom did Ada Byron meet in London?"
NEEDS: dict[str, dict[str, Any]] = {
    "facts": {"linking": "facts"},
    "entities": {"linking": "entities", "question_entities": {QUESTION: ["Ada Byron"]}},
    "synonyms": {"synonyms": True},
}
EAGER = {"facts": {"fact_vectors": True}, "entities": {"phrase_vectors": True}, "synonyms": {"phrase_vectors": True}}


def index_of(records: dict[str, Any], model: HashEmbedding | None = None, **kwargs: Any) -> HippoRAGIndex:
    nodes = [node(name, document=f"doc {name}") for name in records]
    extractor = RecordedExtractor(three())
    parameters = {"synonym_threshold": 0.3, "embed_model": model or HashEmbedding(dim=6), **kwargs}
    return HippoRAGIndex(nodes=nodes, extractor=extractor, **parameters)


def answer(index: HippoRAGIndex, **options: Any) -> list[tuple[str, float]]:
    found = index.as_retriever(similarity_top_k=9, **options).retrieve(QUESTION)
    return [(n.node.node_id, round(n.get_score(), 6)) for n in found]


def test_a_build_and_a_default_search_embed_chunks_and_the_question_alone():
    model = HashEmbedding(dim=6)
    index = index_of(three(), model)
    assert sorted(text for text in model.texts if text.startswith("text of")) == [f"text of p{i}" for i in range(3)]
    assert not {"ada byron", "ada byron met charles babbage", "engine"} & set(model.texts)
    built = len(model.texts)
    assert answer(index)
    assert model.texts[built:] in ([QUESTION], [])


@pytest.mark.parametrize("needed", NEEDS)
def test_the_first_search_embeds_them_once_and_answers_as_if_they_had_always_been_there(needed: str):
    model = HashEmbedding(dim=6)
    index, eager = index_of(three(), model), index_of(three(), **EAGER[needed])
    plain = answer(index)
    assert answer(index, **NEEDS[needed]) == answer(eager, **NEEDS[needed])
    assert picture(index) == picture(eager)
    counted = len(model.texts)
    assert answer(index, **NEEDS[needed])
    assert set(model.texts[counted:]) <= {QUESTION, "ada byron"}
    assert answer(index) == plain == answer(eager)


@pytest.mark.parametrize("needed", NEEDS)
def test_later_writes_keep_them_complete(needed: str):
    index, eager = index_of({"p0": three()["p0"]}), index_of(three(), **EAGER[needed])
    answer(index, **NEEDS[needed])
    index.insert_nodes([node(name, document=f"doc {name}") for name in ("p1", "p2")])
    assert picture(index) == picture(eager)
    for one in (index, eager):
        one.delete_ref_doc("doc p0", delete_from_docstore=True)
    assert picture(index) == picture(eager)
    assert answer(index, **NEEDS[needed]) == answer(eager, **NEEDS[needed])


def test_a_loaded_index_has_them_and_an_async_search_makes_them(tmp_path):
    index = index_of(three())
    retriever = index.as_retriever(linking="facts", similarity_top_k=9)
    assert asyncio.run(retriever.aretrieve(QUESTION))
    index.storage_context.persist(str(tmp_path))
    model = HashEmbedding(dim=6)
    loaded = load_index_from_storage(
        StorageContext.from_defaults(persist_dir=str(tmp_path)), embed_model=model, extractor=RecordedExtractor(three())
    )
    assert picture(loaded) == picture(index)
    assert answer(loaded, linking="facts") == answer(index, linking="facts")
    assert set(model.texts) <= {QUESTION}


def test_many_threads_that_need_them_at_once_make_them_once():
    model = HashEmbedding(dim=6)
    index = index_of(three(), model)
    found: list[Any] = []
    threads = [threading.Thread(target=lambda: found.append(answer(index, synonyms=True))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert all(one == found[0] for one in found)
    assert model.texts.count("charles babbage") == 1


def test_a_model_that_fails_half_way_leaves_the_index_whole_and_the_next_search_goes_on():
    class Failing(HashEmbedding):
        def _get_text_embedding(self, text: str) -> list[float]:
            if text == "london" and not getattr(Failing, "mended", False):
                raise ValueError("no vector today")
            return super()._get_text_embedding(text)

    index = index_of(three(), Failing(dim=6))
    plain = answer(index)
    with pytest.raises(ValueError, match="no vector today"):
        answer(index, synonyms=True)
    assert answer(index) == plain
    Failing.mended = True
    assert answer(index, synonyms=True) == answer(index_of(three()), synonyms=True)


def test_a_postprocessor_gives_the_same_with_and_without_them():
    given = [NodeWithScore(node=TextNode(id_=f"p{i}", text=f"text of p{i}"), score=1 - i / 9) for i in range(3)]
    seen = []
    for index in (index_of(three()), index_of(three(), phrase_vectors=True, fact_vectors=True)):
        found = HippoRAGPostprocessor(index).postprocess_nodes(given, QueryBundle(QUESTION))
        seen.append([(n.node.node_id, n.get_score()) for n in found])
    assert seen[0] == seen[1]


def test_an_estimate_counts_what_the_build_embeds():
    documents = [TextNode(text="Ada Byron met Charles Babbage in London. He drew the Analytical Engine.")]
    extractor = RecordedExtractor({})
    plain = HippoRAGIndex.estimate(documents, extractor=extractor)
    assert plain.embedded_texts == 2  # the chunk, and a text that tells models apart
