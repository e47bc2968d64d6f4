"""Texts that are longer than an embedding model reads."""

import logging

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from llama_index.core.schema import Document, TextNode

from llama_index.mrag import MRAGIndex, SplitEmbedding
from llama_index.ragkit import HybridRetriever
from llama_index.ragkit.llm.embeddings import cut_windows, most_tokens, pooled
from llama_index.ragkit.testing import HashEmbedding
from llama_index.ragkit.text.tokens import count_tokens
from llama_index.sprag import RuleContext, SpRAGIndex

LIMIT = 40
FILLER = " ".join(f"The keeper wrote line {number} of the log." for number in range(12))


class ShortSighted(HashEmbedding):
    """Reads the first `max_length` tokens, as a model does that cuts what it cannot read."""

    max_length: int | None = LIMIT

    def _get_text_embedding(self, text: str) -> list[float]:
        words = text.split()
        while count_tokens(" ".join(words)) > LIMIT:
            words.pop()
        return super()._get_text_embedding(" ".join(words))


def nodes() -> list[TextNode]:
    last = ["An albatross circled.", "A walrus slept.", "Some narwhal dived."]
    return [TextNode(text=f"{FILLER} {each}", id_=str(number)) for number, each in enumerate(last)]


@example("a漢漢. 漢", 8)  # fewer characters than tokens
@given(st.lists(st.text("ab .\n漢。", max_size=60), max_size=12).map(". ".join), st.integers(8, 30))
def test_windows_hold_all_of_a_text_and_fit(text, limit):
    windows = cut_windows(text, limit)
    assert "".join("".join(windows).split()) == "".join(text.split())
    if count_tokens(text) <= limit:
        assert windows == [text]
    else:
        assert all(count_tokens(" ".join(window.split())) <= limit for window in windows)


def test_windows_end_with_sentences_and_are_of_like_length():
    windows = cut_windows(FILLER, LIMIT)
    assert all(window.startswith("The") and window.endswith(".") for window in windows)
    sizes = [count_tokens(window) for window in windows]
    assert max(sizes) <= 0.8 * LIMIT
    assert min(sizes) >= max(sizes) / 2
    assert cut_windows(FILLER, None) == [FILLER]


def test_a_vector_is_the_mean_of_the_directions_of_its_windows():
    windows = np.array([[3.0, 0.0], [2.0, 0.0], [0.0, 4.0]], np.float32)
    rows = pooled(windows, [1, 2])
    assert rows[0].tolist() == [3.0, 0.0]
    np.testing.assert_allclose(rows[1], np.array([1, 1]) / np.sqrt(2) * 3, rtol=1e-6)
    assert np.isfinite(pooled(np.array([[1.0, 0.0], [-1.0, 0.0]], np.float32), [2])).all()


def test_what_a_model_reads_is_known_through_wrappers():
    assert most_tokens(ShortSighted()) == LIMIT
    assert most_tokens(SplitEmbedding(ShortSighted(), num_heads=4)) == LIMIT
    assert most_tokens(HashEmbedding()) is None


@pytest.mark.parametrize("question", ["albatross", "walrus", "narwhal"])
def test_the_end_of_a_chunk_is_found_by_its_vector(question, caplog):
    model = ShortSighted(dim=256)
    wanted = {"albatross": "0", "walrus": "1", "narwhal": "2"}[question]
    with caplog.at_level(logging.WARNING):
        plain = HybridRetriever(nodes(), model, lexical_weight=0, similarity_top_k=1)
    tokens = [count_tokens(node.text) for node in nodes()]
    beyond = sum(len(node.text) * (1 - LIMIT / n) for node, n in zip(nodes(), tokens, strict=True))
    share = 100 * beyond / sum(len(node.text) for node in nodes())
    assert f"3 of 3 texts are longer than the 40 tokens that hash reads, by about {share:.0f} %" in caplog.text
    assert plain.retrieve(question)[0].node_id == wanted
    index = SpRAGIndex(nodes(), embed_model=model, extractor=RuleContext())
    assert (
        index.as_retriever(mode="chunks", lexical_weight=0, similarity_top_k=1).retrieve(question)[0].node_id == wanted
    )
    heads = MRAGIndex(nodes(), embed_model=SplitEmbedding(model, num_heads=4))
    assert heads.as_retriever(lexical_weight=0, similarity_top_k=1).retrieve(question)[0].node_id == wanted


def test_the_estimate_counts_windows():
    documents = [Document(text=node.text, id_=node.node_id) for node in nodes()]
    model = ShortSighted()
    windows = sum(len(cut_windows(document.text, LIMIT)) for document in documents)
    found = MRAGIndex.estimate(documents, embed_model=model)
    assert not model.texts
    index = MRAGIndex.from_documents(documents, embed_model=SplitEmbedding(model))
    assert index.embed_model.embed_model is model
    assert found.embedded_texts == len(model.texts) == windows + 1  # and the text that tells models apart
    assert MRAGIndex.estimate(documents).embedded_texts == len(documents) + 1
