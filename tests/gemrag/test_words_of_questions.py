"""A chunk is found by the words of its questions, for as long as it has them."""

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any, ClassVar

import pytest
from llama_index.core import Document, StorageContext, load_index_from_storage
from llama_index.core.schema import TextNode
from llama_index.core.vector_stores.types import MetadataFilter, MetadataFilters
from tests.raptor.summarizers import FirstWords

from llama_index.gemrag import GEMRAGIndex, GEMRAGPostprocessor, KeyphraseQuestionExtractor
from llama_index.gemrag.question_writer import terms_with_questions
from llama_index.ragkit import HybridRetriever, NodeExtractor
from llama_index.ragkit.errors import ExtractionError
from llama_index.ragkit.steps import run_steps
from llama_index.ragkit.storage.chunk_terms import WordRecords
from llama_index.ragkit.testing import HashEmbedding

TEXTS = {"loom": "a loom stands here", "oven": "the oven is hot", "lamp": "the lamp has oil", "tide": "low tide"}
ASKED = {"loom": "Which shuttle?", "oven": "Which furnace?", "lamp": "Which shuttle lantern?", "tide": "Which ebb?"}
WORDS = ["shuttle", "furnace", "lantern", "ebb", "loom shuttle", "the hot lantern"]


class OtherWords(NodeExtractor):
    """Asks of a node in words that it does not have; of those in `failing` it fails."""

    needs_llm: ClassVar[bool] = False
    failing: Sequence[str] = ()

    @property
    def fingerprint(self) -> dict[str, str]:
        return {"class": "OtherWords"}

    def extract_node(self, node: Any, context: Any) -> Any:
        word = node.get_content().split()[-1] if node.node_id not in ASKED else node.node_id
        if word in self.failing:
            raise ExtractionError(f"asked to fail at {word}")
        return {"questions": [ASKED.get(word, f"Which un{word}?")]}
        yield


def nodes(*names: str) -> list[TextNode]:
    return [TextNode(id_=name, text=TEXTS[name]) for name in names or TEXTS]


PARTS: dict[str, Any] = {"extractor": OtherWords(), "summarizer": FirstWords(), "embed_model": HashEmbedding()}


def build(given: list[TextNode] | None = None, **kwargs: Any) -> GEMRAGIndex:
    return GEMRAGIndex(nodes=given or [], **{**PARTS, "num_themes": 0, **kwargs})


def lexical(index: GEMRAGIndex, question: str, **kwargs: Any) -> dict[str, float]:
    """The BM25 scores above 0."""
    explained = index.as_retriever(similarity_top_k=9, lexical_weight=1, **kwargs).explain(question)
    return {why.node_id: pytest.approx(why.lexical) for why in explained if why.lexical}


def stored_words(index: GEMRAGIndex) -> str:
    return str(run_steps(WordRecords(index.storage.records, GEMRAGIndex.builder_cls.lexical_source).load()))


def test_a_word_that_only_a_question_has_finds_its_chunk():
    index = build(nodes())
    idf = math.log(1 + (4 - 1 + 0.5) / 1.5)
    # "the oven is hot" and "Which furnace?": six words, of 24 + 1 in four chunks with their questions
    words = {"loom": 6, "oven": 6, "lamp": 7, "tide": 4}
    norm = 1.2 * (0.25 + 0.75 * words["oven"] / (sum(words.values()) / 4))
    assert lexical(index, "furnace") == {"oven": pytest.approx(idf * 2.2 / (1 + norm))}
    assert set(lexical(index, "shuttle")) == {"loom", "lamp"}
    assert index.as_retriever(similarity_top_k=1, lexical_weight=1).retrieve("furnace")[0].node_id == "oven"
    processor = GEMRAGPostprocessor(index=index, top_n=2, edge_weight=0.0, lexical_weight=1)
    foreign = index.as_retriever(similarity_top_k=1, lexical_weight=1).retrieve("ebb")
    assert [r.node_id for r in processor.postprocess_nodes(foreign, query_str="furnace")] == ["tide", "oven"]


def test_words_that_a_chunk_has_count_no_more_for_its_questions():
    text, asked = Counter({"oven": 1, "hot": 2}), {"questions": ["Oven, hot oven furnace?", "Which furnace?"]}
    assert terms_with_questions(text, asked) == Counter({"hot": 2, "furnace": 2, "oven": 1, "which": 1})
    assert terms_with_questions(text, None) == text
    phrases = KeyphraseQuestionExtractor(embed_questions=True)  # which have no words but the texts'
    with_phrases = build(nodes(), extractor=phrases)
    without = build(nodes(), extractor=KeyphraseQuestionExtractor(num_questions=0))
    assert len(with_phrases.state.chunk_layer.questions) == len(TEXTS)
    for question in WORDS:
        assert lexical(with_phrases, question) == lexical(without, question)


def test_with_the_chunk_its_questions_words_are_gone():
    index = build(nodes())
    assert "furnace" in stored_words(index)
    index.delete_nodes(["oven"])
    assert lexical(index, "furnace") == {}
    assert "furnace" not in stored_words(index)
    assert {q: lexical(index, q) for q in WORDS} == {q: lexical(build(nodes("loom", "lamp", "tide")), q) for q in WORDS}


def test_a_growing_memory_has_the_words_of_one_built_at_once():
    grown = build(nodes("lamp", "oven"))
    grown.insert_nodes(nodes("tide"))
    grown.delete_nodes(["oven"])
    grown.insert_nodes(nodes("loom", "oven"))
    whole = build(nodes())
    for question in WORDS:
        assert lexical(grown, question) == lexical(whole, question)


@pytest.mark.parametrize("older", [None, "text", "text and questions"])
def test_a_loaded_memory_has_the_words_of_its_questions(tmp_path, older):
    index = build(nodes())
    stored = stored_words(index)
    if older:
        words = {name: " ".join(sorted(TEXTS[name].split())) for name in TEXTS}
        run_steps(WordRecords(index.storage.records, older).change((), words))
    index.storage_context.persist(str(tmp_path))
    context = StorageContext.from_defaults(persist_dir=str(tmp_path))
    loaded = load_index_from_storage(context, **PARTS)
    assert {q: lexical(loaded, q) for q in WORDS} == {q: lexical(index, q) for q in WORDS}
    assert stored_words(loaded) == stored


def test_questions_that_failed_are_words_once_they_are_asked():
    extractor = OtherWords(failing=["oven"])
    index = build(nodes(), extractor=extractor)
    assert lexical(index, "furnace") == {}
    assert set(lexical(index, "hot")) == {"oven"}
    extractor.failing = []
    assert index.retry_failed() == 0
    whole = build(nodes())
    assert {q: lexical(index, q) for q in WORDS} == {q: lexical(whole, q) for q in WORDS}


def test_a_changed_document_loses_the_words_of_its_old_questions():
    index = GEMRAGIndex.from_documents(
        [Document(text="red silk", id_="a"), Document(text="white wool", id_="b")], **PARTS
    )
    assert lexical(index, "unsilk")
    assert not lexical(index, "unlinen")
    assert index.refresh_ref_docs([Document(text="red linen", id_="a")]) == [True]
    assert not lexical(index, "unsilk")
    assert lexical(index, "unlinen")
    assert "unsilk" not in stored_words(index)


def test_chunks_that_a_filter_leaves_out_do_not_count():
    some = MetadataFilters(filters=[MetadataFilter(key="kind", value=1)])
    given = nodes()
    for node, kind in zip(given, (1, 1, 2, 1), strict=True):
        node.metadata["kind"] = kind
        node.excluded_embed_metadata_keys = ["kind"]
    index, alone = build(given), build(nodes("loom", "oven", "tide"))
    for question in WORDS:
        assert lexical(index, question, filters=some) == lexical(alone, question)


def test_without_questions_it_is_the_hybrid_search():
    index = build(nodes(), extractor=KeyphraseQuestionExtractor(num_questions=0))
    peer = HybridRetriever(list(index.docstore.docs.values()), HashEmbedding(), similarity_top_k=4)
    for question in ("the hot loom", "oil of the lamp", "furnace", "low tide"):
        found = [(r.node_id, r.score) for r in index.as_retriever(similarity_top_k=4).retrieve(question)]
        assert found == [(r.node_id, r.score) for r in peer.retrieve(question)]
